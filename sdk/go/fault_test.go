package seatkeeper

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sourceError is the error of a program's token source.
type sourceError struct{ role string }

func (e *sourceError) Error() string { return "vault: permission denied for role " + e.role }

// unreachable returns the error of an acquire that fails at once.
func unreachable(t *testing.T, url string, options ...ClientOption) *Unreachable {
	t.Helper()
	client, err := NewClient(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.License("K").Acquire(context.Background(), Machine("m"), Patience(0))
	var u *Unreachable
	if !errors.As(err, &u) {
		t.Fatal(err)
	}
	return u
}

func TestTheErrorOfATokenSourceIsTheCauseOfAnAcquireThatFails(t *testing.T) {
	denied := func(context.Context) (string, error) { return "", &sourceError{"cad"} }
	err := unreachable(t, closedAddress, TokenSource(denied))
	var cause *sourceError
	if err.Failure != FailureNoToken || !errors.As(err, &cause) || cause.role != "cad" {
		t.Error(err)
	}
	if !strings.Contains(err.Error(), "has no token (vault: permission denied for role cad). Remedy:") {
		t.Error(err)
	}
	missing := filepath.Join(t.TempDir(), "token")
	if err := unreachable(t, closedAddress, TokenFile(missing)); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
	words := func(context.Context) (string, error) { return "two words", nil }
	if err := unreachable(t, closedAddress, TokenSource(words)); !strings.Contains(err.Error(), "one line of ASCII") {
		t.Error(err)
	}
}

func TestTheErrorOfARefreshIsTheCauseOfAnAcquireThatFails(t *testing.T) {
	server := newScripted(t, func(arrived, int) reply { return reply{status: 401, body: "{}"} })
	calls := 0
	source := func(context.Context) (string, error) {
		if calls++; calls == 1 {
			return "stale", nil
		}
		return "", &sourceError{"cad"}
	}
	var cause *sourceError
	if err := unreachable(t, server.url, TokenSource(source)); !errors.As(err, &cause) {
		t.Error(err)
	}
}

// A deadline of the client itself is no deadline of the program's context.
func TestATokenThatComesTooLateIsNoDeadlineOfTheProgram(t *testing.T) {
	tokens := &tokenCache{timeout: 20 * time.Millisecond, source: func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}}
	own := func(c *Client) { c.transport.tokens = tokens }
	err := unreachable(t, closedAddress, own)
	if err.Failure != FailureNoToken || errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errTokenLate) {
		t.Error(err)
	}
}

func TestANameThatIsNotFoundIsNoRefusedConnection(t *testing.T) {
	missing := &net.DNSError{Err: "no such host", Name: "seats.example", IsNotFound: true}
	dial := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: missing}
	}
	client := HTTPClient(&http.Client{Transport: &http.Transport{DialContext: dial}})
	err := unreachable(t, "http://seats.example", Token("t"), client)
	var name *net.DNSError
	if err.Failure != FailureUnresolved || !errors.As(err, &name) || strings.Contains(err.Error(), "refused") ||
		!strings.Contains(err.Error(), "seats.example") || !strings.Contains(err.Error(), "Remedy: check the address") {
		t.Error(err)
	}
	if isUnknown := afterFailure(err.Failure).isUnknown; isUnknown {
		t.Error("a request without a server leaves a session in doubt")
	}
	good := granting(t)
	if err := takeAndGive(newListClient(t, "http://no-such-host.invalid", good.url), 0); err != nil {
		t.Error("the next node is not asked:", err)
	}
}

// afterFailure returns the orphan of an acquire that failed.
func afterFailure(failure Failure) (o orphan) {
	o.acquireFailed(failure)
	return o
}

func TestAFailedConnectionTellsItsCause(t *testing.T) {
	if err := unreachable(t, closedAddress, Token("t")); err.Failure != FailureRefused ||
		!strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "/api/") {
		t.Error(err)
	}
	proxy, _ := url.Parse(closedAddress)
	through := HTTPClient(&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}})
	if err := unreachable(t, "http://seats.example", Token("t"), through); err.Failure != FailureRefused {
		t.Error(err)
	}
	late := HTTPClient(&http.Client{Timeout: time.Nanosecond})
	if err := unreachable(t, closedAddress, Token("t"), late); errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
