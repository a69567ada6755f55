package seatkeeper

import "time"

// call is a request without its number and timeout.
type call struct {
	method string
	// path is the path on the server, from /api.
	path string
	body map[string]any
	// isAcquire marks the request that takes a seat.
	isAcquire bool
	// isTokenless says that the request carries no bearer token.
	isTokenless bool
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
	// requestID is the header X-Request-Id: the id of the request in the server's log.
	requestID string
}

// A Failure is the way in which a request got no response, as a sentence for people.
type Failure string

// The failures of requests.
const (
	FailureRefused         Failure = "the connection was refused"
	FailureUnresolved      Failure = "the name of the server was not found"
	FailureCertificate     Failure = "the server's certificate was not accepted: name a CA file that vouches for the certificate, or correct the certificate's name and dates"
	FailureResetBeforeSend Failure = "the connection broke before the request was sent"
	FailureResetAfterSend  Failure = "the connection broke before the answer"
	FailureTimeout         Failure = "no answer in time"
	FailureTruncated       Failure = "the answer broke off"
	FailureGarbage         Failure = "the answer is not one of a Seatkeeper server"
	FailureNoToken         Failure = "the token source has no token"
	FailureUnavailable     Failure = "the server cannot answer now"
)
