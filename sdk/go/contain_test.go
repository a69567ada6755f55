package seatkeeper

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// roundTripper is the transport of a program.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// throughTripper returns the option of an HTTP client with the transport.
func throughTripper(f roundTripper) ClientOption {
	return HTTPClient(&http.Client{Transport: f})
}

// foreignBody is the body of an answer by the program.
type foreignBody struct {
	read   func() (int, error)
	closed chan struct{}
}

func newForeignBody(read func() (int, error)) *foreignBody {
	return &foreignBody{read: read, closed: make(chan struct{}, 9)}
}

func (b *foreignBody) Read([]byte) (int, error) { return b.read() }

func (b *foreignBody) Close() error {
	b.closed <- struct{}{}
	return nil
}

// ends are the ways in which code of a program ends a call other than by an answer.
var ends = map[string]func(){
	"panic":  func() { panic("the program's fault") },
	"Goexit": runtime.Goexit,
}

func TestATransportThatPanicsOrEndsItsGoroutineIsAFailedRequest(t *testing.T) {
	for name, end := range ends {
		for place, trip := range map[string]roundTripper{
			"request": func(*http.Request) (*http.Response, error) {
				end()
				return nil, io.EOF
			},
			"body": func(*http.Request) (*http.Response, error) {
				body := newForeignBody(func() (int, error) {
					end()
					return 0, io.EOF
				})
				return &http.Response{StatusCode: 201, Body: body, Header: http.Header{}}, nil
			},
		} {
			t.Run(name+" in the "+place, func(t *testing.T) {
				client, err := NewClient("http://seats.example", Token("t"), throughTripper(trip))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), longWait)
				defer cancel()
				_, err = client.License("K").Acquire(ctx, Machine("m"), Patience(0))
				var unreachable *Unreachable
				if !errors.As(err, &unreachable) || unreachable.Failure != FailureResetAfterSend {
					t.Error(err)
				}
			})
		}
	}
}

func TestATransportThatIgnoresItsContextHoldsUpNoRequest(t *testing.T) {
	goOn := make(chan struct{})
	defer close(goOn)
	body := newForeignBody(func() (int, error) {
		<-goOn
		return 0, io.EOF
	})
	for place, trip := range map[string]roundTripper{
		"request": func(*http.Request) (*http.Response, error) {
			<-goOn
			return nil, io.EOF
		},
		"body": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 201, Body: body, Header: http.Header{}}, nil
		},
	} {
		client, err := NewClient("http://seats.example", Token("t"), throughTripper(trip))
		if err != nil {
			t.Fatal(err)
		}
		outcome := make(chan event, 1)
		r := request{call: licenseDoor{}.release("s"), id: 7, timeout: 20 * time.Millisecond}
		go func() { outcome <- client.transport.answer(context.Background(), "", r) }()
		select {
		case ev := <-outcome:
			if failed, ok := ev.(failedEvent); !ok || failed.fault.failure != FailureTimeout {
				t.Errorf("%s: %v", place, ev)
			}
		case <-time.After(longWait):
			t.Fatalf("the %s goes on", place)
		}
	}
	select {
	case <-body.closed:
	case <-time.After(longWait):
		t.Fatal("the body stays open")
	}
}

func TestAStreamThroughATransportThatPanicsOrEndsItsGoroutineIsOpenedAgain(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, revokedEvent)
		<-r.Context().Done()
	})
	var streams atomic.Int64
	broken := func(end func()) (*http.Response, error) {
		body := newForeignBody(func() (int, error) {
			end()
			return 0, io.EOF
		})
		header := http.Header{"Content-Type": {"text/event-stream"}}
		return &http.Response{StatusCode: 200, Body: body, Header: header}, nil
	}
	trip := func(r *http.Request) (*http.Response, error) {
		if r.Method != "GET" {
			return http.DefaultTransport.RoundTrip(r)
		}
		switch streams.Add(1) {
		case 1:
			ends["panic"]()
		case 2:
			ends["Goexit"]()
		case 3:
			return broken(ends["panic"])
		case 4:
			return broken(ends["Goexit"])
		}
		return http.DefaultTransport.RoundTrip(r)
	}
	client := newStreamingClient(t, server, quick, throughTripper(trip))
	acquireStreamed(t, client)
	eventually(t, "no stream after the failed ones", func() bool { return server.open.Load() == 1 })
	// The told end is confirmed by a heartbeat.
	eventually(t, "no heartbeat", func() bool { return server.count(beatTarget) == 1 })
	if opened := streams.Load(); opened != 5 {
		t.Errorf("%d streams", opened)
	}
}

// A body that ignores its context would keep its connection after the release.
func TestAReleaseClosesTheStreamOfATransportThatIgnoresItsContext(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "")
		<-r.Context().Done()
	})
	client := newStreamingClient(t, server, quick, throughTripper(func(r *http.Request) (*http.Response, error) {
		return http.DefaultTransport.RoundTrip(r.WithContext(context.Background()))
	}))
	seat, _ := acquireStreamed(t, client)
	eventually(t, "no stream is open", func() bool { return server.open.Load() == 1 })
	if err := seat.Release(context.Background()); err != nil {
		t.Error(err)
	}
	eventually(t, "the stream outlives the release", func() bool { return server.open.Load() == 0 })
}

func TestALicenseTokenIsReplacedAfterATransportThatEndedItsGoroutine(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			server, tokens, move := newTestTokens(t, 0, nil)
			expectToken(t, tokens, "t1")
			var isBroken atomic.Bool
			isBroken.Store(true)
			tokens.transport.client = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if isBroken.Load() {
					end()
				}
				return http.DefaultTransport.RoundTrip(r)
			})}
			move(tokenLife * 4 / 5)
			slot := tokens.slot("m")
			expectToken(t, tokens, "t1")
			eventually(t, "the replacement goes on", func() bool {
				slot.mu.Lock()
				defer slot.mu.Unlock()
				return slot.pauseUntil != 0 && !slot.isRenewing
			})
			isBroken.Store(false)
			if err := tokens.refresh(context.Background(), "m"); err != nil {
				t.Error(err)
			}
			expectToken(t, tokens, "t2")
			if asked := server.arrived(tokenTarget); len(asked) != 2 || strings.Contains(asked[1].token, "t") {
				t.Error(asked)
			}
		})
	}
}
