package seatkeeper

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"
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
	// A connection is used again once its answer is read.
	_, _ = io.Copy(io.Discard, answer.Body)
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

func TestARetryAfterCountsForAnHourAtMost(t *testing.T) {
	for told, wanted := range map[string]time.Duration{
		"": -1, "soon": -1, "-1": -1, "0": 0, "3599": 3_599 * time.Second, "3601": time.Hour, "9223372036854775807": time.Hour,
	} {
		header := http.Header{"Retry-After": {told}}
		if found, ok := retryAfter(header); ok != (wanted >= 0) || (ok && found != wanted) {
			t.Errorf("%q is %v, %v instead of %v", told, found, ok, wanted)
		}
	}
}

// A program may use one client for other requests, whose connections Close would cut off from their reuse.
func TestCloseLeavesTheIdleConnectionsOfTheProgram(t *testing.T) {
	server := granting(t)
	for name, own := range map[string]*http.Client{
		"http.DefaultTransport":          {},
		"a transport of the program":     {Transport: &http.Transport{}},
		"a RoundTripper with a method":   {Transport: &closing{}},
		"http.DefaultClient as a client": http.DefaultClient,
	} {
		t.Run(name, func(t *testing.T) {
			get(t, own, server.url)
			client, err := NewClient(server.url, Token("t"), HTTPClient(own))
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			isReused := false
			trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { isReused = got.Reused }}
			request, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), "GET", server.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := own.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if !isReused {
				t.Error("the idle connection of the program is closed")
			}
		})
	}
}

// closing is a RoundTripper of a program over http.Transport.
type closing struct{ http.Transport }
