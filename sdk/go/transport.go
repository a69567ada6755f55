package seatkeeper

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// answerBytesMax is the size of the largest answer that is read: no answer of a server comes near.
	answerBytesMax = 1 << 20
	connectTimeout = 5 * time.Second
	// connectionsMax bounds the connections of one client: a server's queue of new connections is short.
	connectionsMax = 64
)

// sdkName is the name of this package with its version, as the audit log shows them.
const sdkName = "go/0.1.0"

// transport is the servers of a client, and the way to them.
type transport struct {
	servers *servers
	client  *http.Client
	// isForeign says that client is the program's own.
	isForeign bool
	tokens    tokenStore
}

// parseBase returns the address of a server without a slash at its end.
func parseBase(address string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" || parsed.User != nil {
		if strings.Contains(address, "@") {
			// An error may be logged, and the address may hold a password.
			return "", errors.New("seatkeeper: the address of a server has no user name: pass a token instead")
		}
		return "", fmt.Errorf("seatkeeper: %q is not the address of a server: want http://HOST:PORT or https://HOST:PORT", address)
	}
	return parsed.Scheme + "://" + parsed.Host + strings.TrimRight(parsed.EscapedPath(), "/"), nil
}

// newHTTPClient returns a client that speaks HTTP/1.1, follows no redirect and reads no environment.
func newHTTPClient() *http.Client {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		MaxConnsPerHost:     connectionsMax,
		// Heartbeats of many seats that share a tick need no new connections.
		MaxIdleConnsPerHost: 8,
		// An older connection may have died unseen while the machine slept.
		IdleConnTimeout: 5 * time.Second,
	}
	speakHTTP1(transport)
	return &http.Client{Transport: transport, CheckRedirect: followNoRedirect}
}

// speakHTTP1 keeps a transport that has sent no request from HTTP/2. Over HTTP/1.1 a request without an answer closes its
// connection; over HTTP/2 the next requests would share a connection that died silently, and the seat would be lost. The clone
// of a transport that speaks HTTP/2 offers HTTP/2 to the server, and does not speak it.
func speakHTTP1(t *http.Transport) {
	t.ForceAttemptHTTP2 = false
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	if t.TLSClientConfig != nil {
		protocols := t.TLSClientConfig.NextProtos
		t.TLSClientConfig.NextProtos = slices.DeleteFunc(slices.Clone(protocols), func(name string) bool { return name == "h2" })
	}
}

func followNoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// answer sends the request with the token of owner, and returns its outcome within the request's timeout.
func (t *transport) answer(ctx context.Context, owner string, r request) event {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	token, err := "", error(nil)
	if !r.isTokenless {
		token, err = t.tokens.current(ctx, owner)
	}
	// The error of a token source may have methods of the program, which errors.As would call.
	refused, isRefused := err.(*refusedToken)
	switch {
	case err == nil:
	case isRefused:
		return withoutToken(r, refused)
	case ctx.Err() != nil:
		return failedEvent{r.id, fault{FailureTimeout, errTokenLate}}
	default:
		return failedEvent{r.id, fault{FailureNoToken, err}}
	}
	answer, failed := t.send(ctx, r.call, token)
	if failed.failure != "" {
		return failedEvent{r.id, failed}
	}
	return answeredEvent{r.id, answer}
}

// withoutToken returns the outcome of a request whose token the server did not give. A refused license token refuses the
// acquire as well, but tells nothing of a session.
func withoutToken(r request, refused *refusedToken) event {
	switch {
	case refused.fault.failure != "":
		return failedEvent{r.id, refused.fault}
	case r.isAcquire || isTransient(refused.answer.status):
		return answeredEvent{r.id, refused.answer}
	default:
		return failedEvent{r.id, fault{FailureNoToken, refused}}
	}
}

// exchange sends a request to one server, without a bearer token if token is empty.
func (t *transport) exchange(ctx context.Context, base string, r call, token string) (response, fault) {
	httpRequest, err := newRequest(ctx, base, r, token)
	if err != nil {
		return response{}, fault{FailureResetBeforeSend, err}
	}
	type outcome struct {
		answer response
		failed fault
	}
	o, err := contain(ctx, func() (o outcome, _ error) {
		o.answer, o.failed = t.do(httpRequest)
		return o, nil
	}, nil)
	if err != nil {
		return response{}, fault{FailureResetAfterSend, err}
	}
	return o.answer, o.failed
}

// do sends a request by the HTTP client. The client may run code of the program.
func (t *transport) do(httpRequest *http.Request) (response, fault) {
	answer, err := t.client.Do(httpRequest)
	if err != nil {
		return response{}, faultFromError(err)
	}
	defer closeAfter(httpRequest.Context(), answer.Body)()
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax+1))
	switch {
	case err != nil:
		return response{}, fault{FailureTruncated, causeFromError(err)}
	case len(body) > answerBytesMax:
		return response{}, fault{failure: FailureGarbage}
	}
	pause, hasPause := retryAfter(answer.Header)
	return response{answer.StatusCode, pause, hasPause, body, answer.Header.Get("X-Request-Id")}, fault{}
}

func newRequest(ctx context.Context, base string, r call, token string) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, base+r.path, body)
	if err != nil {
		return nil, err
	}
	if r.body != nil {
		httpRequest.Header.Set("Content-Type", "application/json")
	}
	httpRequest.Header.Set("Accept", "application/json")
	if token != "" {
		httpRequest.Header.Set("Authorization", "Bearer "+token)
	}
	httpRequest.Header.Set("User-Agent", "seatkeeper-"+sdkName)
	return httpRequest, nil
}

// retryAfter returns the header Retry-After, retryAfterMax at most; false if the header is no number of seconds.
func retryAfter(header http.Header) (time.Duration, bool) {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 63)
	if err != nil {
		return 0, false
	}
	return time.Duration(min(seconds, uint64(retryAfterMax/time.Second))) * time.Second, true
}
