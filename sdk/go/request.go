package seatkeeper

import "time"

// call is a request without its number and timeout.
type call struct {
	method string
	// path is the path on the server, from /api.
	path string
	body map[string]any
}

// request is a request for the client to send with the bearer token of the moment.
type request struct {
	call
	// id is the number of the request; no two requests of one machine share a number.
	id uint64
	// timeout is the span after which the client fails the request with FailureTimeout.
	timeout time.Duration
}

// response is an HTTP response that arrived whole.
type response struct {
	status int
	// retryAfter is the header Retry-After; zero if the header is no number of seconds.
	retryAfter    time.Duration
	hasRetryAfter bool
	body          []byte
}

// A Failure is the way in which a request got no response, as a sentence for people.
type Failure string

// The failures of requests.
const (
	FailureRefused         Failure = "the connection was refused"
	FailureCertificate     Failure = "the server's certificate was not accepted: name a CA file that vouches for the certificate, or correct the certificate's name and dates"
	FailureResetBeforeSend Failure = "the connection broke before the request was sent"
	FailureResetAfterSend  Failure = "the connection broke before the answer"
	FailureTimeout         Failure = "no answer in time"
	FailureTruncated       Failure = "the answer broke off"
	FailureGarbage         Failure = "the answer is not one of a Seatkeeper server"
	FailureNoToken         Failure = "the token source has no token"
	FailureUnavailable     Failure = "the server cannot answer now"
)

// acquireCall returns the call that acquires a seat, or finds the holder's session again.
func acquireCall(p *plan) call {
	body := map[string]any{"license_key": p.licenseKey, "machine_id": p.machineID}
	if p.instanceID != "" {
		body["instance_id"] = p.instanceID
	}
	if p.userAgent != "" {
		body["user_agent"] = p.userAgent
	}
	if p.metadata != nil {
		body["metadata"] = p.metadata
	}
	return call{method: "POST", path: "/api/v1/licenses/acquire", body: body}
}

// heartbeatCall returns the call that renews a session.
func heartbeatCall(session string) call {
	return call{method: "PATCH", path: "/api/v1/licenses/sessions/" + session + "/heartbeat"}
}

// releaseCall returns the call that gives a session's seat back.
func releaseCall(session string) call {
	return call{method: "DELETE", path: "/api/v1/licenses/sessions/" + session}
}
