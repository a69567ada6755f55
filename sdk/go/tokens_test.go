package seatkeeper

import (
	"context"
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
