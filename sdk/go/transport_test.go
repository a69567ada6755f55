package seatkeeper

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// protocols starts a TLS server that speaks HTTP/2, and returns the URL, the settings to trust the server, and the protocol of
// the latest request.
func protocols(t *testing.T) (string, *tls.Config, func() string) {
	t.Helper()
	var latest atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		latest.Store(r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server.URL, &tls.Config{RootCAs: roots}, func() string { return latest.Load().(string) }
}

func get(t *testing.T, client *http.Client, url string) {
	t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

func TestRequestsSpeakHTTP1(t *testing.T) {
	url, trust, latest := protocols(t)
	client := newHTTPClient()
	client.Transport.(*http.Transport).TLSClientConfig = trust
	get(t, client, url)
	if latest() != "HTTP/1.1" {
		t.Fatalf("a request speaks %s, whose connections outlive requests without an answer", latest())
	}
}

// A transport that was used has HTTP/2 in its settings, and its clone as well.
func TestStreamsBesideATransportOfTheProgramSpeakHTTP1(t *testing.T) {
	url, trust, latest := protocols(t)
	own := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	get(t, own, url)
	if latest() != "HTTP/2.0" {
		t.Fatalf("the program's transport speaks %s", latest())
	}
	get(t, newStreamClient(own), url)
	if latest() != "HTTP/1.1" {
		t.Fatalf("a stream speaks %s", latest())
	}
}

// An admission would evict another device of a full plan.
func TestACallThatIsCancelledAsksNothing(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	client, err := NewClient(server.URL, Token("t"))
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("the window is closed")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	if _, err := client.License("key").Acquire(ctx, Machine("m")); !errors.Is(err, gone) {
		t.Fatalf("the error is %v", err)
	}
	_ = client.Close(context.Background())
	if asked.Load() != 0 {
		t.Fatalf("%d requests for a call that was cancelled before", asked.Load())
	}
}
