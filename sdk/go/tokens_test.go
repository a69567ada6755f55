package seatkeeper

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestATokenSourceThatHangsIsGivenUp(t *testing.T) {
	// The source heeds no context, as a call into another library may.
	tokens := &tokenCache{source: func(context.Context) (string, error) { select {} }}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- tokens.refresh(ctx, "") }()
	select {
	case err := <-result:
		if err == nil {
			t.Error("a token came from nowhere")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the refresh goes on")
	}
}

func TestATokenSourceThatPanicsHasNoToken(t *testing.T) {
	tokens := &tokenCache{source: func(context.Context) (string, error) { panic("no token") }}
	if err := tokens.refresh(context.Background(), ""); err == nil {
		t.Error("a token came from nowhere")
	}
}

func TestATokenFileThatChangesIsReadBeforeARejection(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "token")
	file := &tokenFile{path: path}
	tokens := &tokenCache{source: file.read, file: file}
	expect := func(wanted string) {
		t.Helper()
		// The time of the next look.
		file.lookAt = time.Time{}
		if token, err := tokens.current(context.Background(), ""); token != wanted || err != nil {
			t.Errorf("%q and %v instead of %q", token, err, wanted)
		}
	}
	write := func(text string) {
		t.Helper()
		fresh := filepath.Join(folder, "fresh")
		if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, path); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	expect("first")
	write("second\n")
	if token, _ := tokens.current(context.Background(), ""); token != "first" && token != "second" {
		t.Error(token)
	}
	expect("second")
	write("no token at all")
	expect("second")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("second")
	write("third")
	expect("third")
}
