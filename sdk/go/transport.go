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

// transport is a server, and the way to it.
type transport struct {
	base   string
	client *http.Client
	tokens *tokenCache
}

// parseBase returns the address of a server without a slash at its end.
func parseBase(address string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" || parsed.User != nil {
		return "", fmt.Errorf("seatkeeper: %q is not the address of a server: want http://HOST:PORT or https://HOST:PORT", address)
	}
	return parsed.Scheme + "://" + parsed.Host + strings.TrimRight(parsed.EscapedPath(), "/"), nil
}

// newHTTPClient returns a client that follows no redirect and reads no environment.
func newHTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSHandshakeTimeout: connectTimeout,
			ForceAttemptHTTP2:   true,
			MaxConnsPerHost:     connectionsMax,
			MaxIdleConnsPerHost: 2,
			IdleConnTimeout:     30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send sends the request, and returns its outcome within the request's timeout.
func (t *transport) send(ctx context.Context, r request) event {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer, failure := t.exchange(ctx, r)
	switch {
	case failure == "":
		return answeredEvent{r.id, answer}
	case ctx.Err() != nil:
		return failedEvent{r.id, FailureTimeout}
	default:
		return failedEvent{r.id, failure}
	}
}

func (t *transport) exchange(ctx context.Context, r request) (response, Failure) {
	token, err := t.tokens.current(ctx)
	if err != nil {
		return response{}, FailureNoToken
	}
	httpRequest, err := t.newRequest(ctx, r, token)
	if err != nil {
		return response{}, FailureResetBeforeSend
	}
	answer, err := t.client.Do(httpRequest)
	if err != nil {
		return response{}, failureOf(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax+1))
	switch {
	case err != nil:
		return response{}, FailureTruncated
	case len(body) > answerBytesMax:
		return response{}, FailureGarbage
	}
	return response{answer.StatusCode, retryAfter(answer.Header), body}, ""
}

func (t *transport) newRequest(ctx context.Context, r request, token string) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, t.base+r.path, body)
	if err != nil {
		return nil, err
	}
	if r.body != nil {
		httpRequest.Header.Set("Content-Type", "application/json")
	}
	httpRequest.Header.Set("Accept", "application/json")
	httpRequest.Header.Set("Authorization", "Bearer "+token)
	httpRequest.Header.Set("User-Agent", "seatkeeper-go/0.1.0")
	return httpRequest, nil
}

// retryAfter returns the header Retry-After; zero if the header is no number of seconds.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 63)
	if err != nil {
		return 0
	}
	return time.Duration(min(seconds, uint64(spanMax/time.Second))) * time.Second
}

func failureOf(err error) Failure {
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return FailureCertificate
	case errors.As(err, &dial) && dial.Op == "dial":
		return FailureRefused
	case strings.Contains(err.Error(), "malformed HTTP"):
		return FailureGarbage
	default:
		return FailureResetAfterSend
	}
}
