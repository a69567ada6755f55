//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package seatkeeper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe hangs as a file server may: its reader waits for a writer.
func TestATokenFileThatHangsDelaysOneRequestForAMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := newTokenFile(path)
	tokens := &tokenCache{source: file.read, file: file}
	// current returns the token, which must come long before the end of a request.
	current := func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		token, err := tokens.current(ctx, "")
		if err != nil || ctx.Err() != nil {
			t.Errorf("%v, and the context: %v", err, ctx.Err())
		}
		return token
	}
	if token := current(); token != "first" {
		t.Fatal(token)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if token := current(); token != "first" {
			t.Error(token)
		}
		// The time of the next look, which must not begin before the end of the first.
		file.mu.Lock()
		if !file.isLooking {
			t.Error("the look is over")
		}
		file.lookAt = time.Time{}
		file.mu.Unlock()
	}
	if err := os.WriteFile(path, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); tokens.cached() != "second"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the token in the file is not read")
		}
	}
}

func TestATokenFileThatHangsKeepsOneReaderForAllRejections(t *testing.T) {
	folder := t.TempDir()
	path, aside := filepath.Join(folder, "token"), filepath.Join(folder, "aside")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	file := newTokenFile(path)
	tokens := &tokenCache{source: file.read, file: file}
	refresh := func(patience time.Duration) error {
		tokens.timeout = patience
		return tokens.refresh(context.Background(), "")
	}
	readers := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "os.ReadFile(")
	}
	for range 5 {
		if err := refresh(20 * time.Millisecond); !errors.Is(err, errTokenLate) {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); readers() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody reads the file")
		}
	}
	if readers := readers(); readers != 1 {
		t.Errorf("%d readers hang", readers)
	}
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("fresh"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refresh(20 * time.Millisecond); !errors.Is(err, errTokenLate) {
		t.Errorf("a second reader beside the one that hangs: %v", err)
	}
	if err := os.WriteFile(aside, []byte("late"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refresh(time.Minute); err != nil || tokens.cached() != "fresh" {
		t.Errorf("%v, and the token %q", err, tokens.cached())
	}
}
