package seatkeeper

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// errorOf returns the error of an acquire that a server answers so.
func errorOf(t *testing.T, url string) error {
	t.Helper()
	client, err := NewClient(url, Token("t"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.License("K").Acquire(context.Background(), Machine("m"), Patience(0))
	return err
}

// requestIDOf returns the id of the request of an error.
func requestIDOf(err error) string {
	var denied *Denied
	var unreachable *Unreachable
	var loss *Loss
	switch {
	case errors.As(err, &denied):
		return denied.RequestID
	case errors.As(err, &unreachable):
		return unreachable.RequestID
	case errors.As(err, &loss):
		return loss.RequestID
	default:
		return ""
	}
}

func TestEachErrorOfAnAnswerHasTheIDOfTheRequestAndARemedy(t *testing.T) {
	wrong := `{"type":"/problems/invalid-request","title":"wrong","errors":[{"field":"machine_id","message":"is too long"}]}`
	for _, test := range []struct {
		reply reply
		text  string
	}{
		{reply{status: 403, body: `{"type":"/problems/license-full","detail":"All in use."}`}, "full: All in use. Remedy: pass"},
		{reply{status: 422, body: wrong}, "wrong (machine_id is too long)"},
		{reply{status: 404, body: `{"type":"/problems/not-found"}`}, "not-found. Remedy: correct the path"},
		{reply{status: 401, body: "{}"}, "unauthenticated. Remedy: check the issuer"},
		{reply{status: 503, body: "{}"}, "cannot answer now. Remedy: try again"},
		{reply{status: 501, body: "{}"}, "cannot answer now. Remedy: try again"},
	} {
		test.reply.requestID = "r-7"
		s := newScripted(t, func(arrived, int) reply { return test.reply })
		if err := errorOf(t, s.url); requestIDOf(err) != "r-7" || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%v, request %q, instead of %q", err, requestIDOf(err), test.text)
		}
	}
	err := errorOf(t, "http://127.0.0.1:1")
	if requestIDOf(err) != "" || !strings.Contains(err.Error(), "Remedy: check the address") {
		t.Error(err)
	}
}

func TestALossToldByAnAnswerHasTheIDOfTheRequest(t *testing.T) {
	s := newScripted(t, func(r arrived, _ int) reply {
		if strings.HasSuffix(r.target, "/heartbeat") {
			return reply{status: 410, body: `{"type":"/problems/session-ended","reason":"revoked"}`, requestID: "beat"}
		}
		return reply{status: 201, body: scriptedGrant}
	})
	client, err := NewClient(s.url, Token("t"), EventStreams(false))
	if err != nil {
		t.Fatal(err)
	}
	seat, err := client.License("K").Acquire(context.Background(), Machine("m"))
	if err != nil {
		t.Fatal(err)
	}
	client.Wake()
	select {
	case <-seat.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("no loss")
	}
	if err := seat.Check(); requestIDOf(err) != "beat" || !strings.Contains(err.Error(), "revoked. Remedy: ask the operator") {
		t.Error(err)
	}
}
