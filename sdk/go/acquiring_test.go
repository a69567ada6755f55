package seatkeeper

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

func TestAnAcquireFromASilentServerEndsWithThePatience(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client, err := NewClient("http://"+silent.Addr().String(), Token("t"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = client.License("K").Acquire(context.Background(), Machine("m"), Patience(time.Second))
	var u *Unreachable
	if !errors.As(err, &u) || u.Failure != FailureTimeout {
		t.Error(err)
	}
	if took := time.Since(began); took < acquireTimeoutMin || took > acquireTimeout/2 {
		t.Error(took)
	}
}
