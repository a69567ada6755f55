package seatkeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strings"
)

// errTokenLate is the error of a token source without a token in time. A deadline of the client itself must not look like
// the context.DeadlineExceeded of the program's context.
var errTokenLate = errors.New("no token came in time")

// fault is the failure of a request without a response, and the cause; cause is nil if failure says all. The zero value is no
// fault.
type fault struct {
	failure Failure
	cause   error
}

// Error implements error.
func (f fault) Error() string {
	if f.cause == nil {
		return string(f.failure)
	}
	return string(f.failure) + " (" + f.cause.Error() + ")"
}

// Unwrap returns the cause.
func (f fault) Unwrap() error { return f.cause }

// faultFromError returns the fault of an error of the HTTP client.
func faultFromError(err error) fault {
	return fault{failureOf(err), causeFromError(err)}
}

// causeFromError returns the error inside of a *url.Error, since a *url.Error repeats method and address. A deadline of the
// HTTP client becomes an error with the same text alone.
func causeFromError(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.New(err.Error())
	}
	return err
}

func failureOf(err error) Failure {
	var name *net.DNSError
	var connect *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return FailureCertificate
	case errors.As(err, &name):
		return FailureUnresolved
	case errors.As(err, &connect) && (connect.Op == "dial" || connect.Op == "proxyconnect"):
		return FailureRefused
	case strings.Contains(err.Error(), "malformed HTTP"):
		return FailureGarbage
	default:
		return FailureResetAfterSend
	}
}

// isBeforeConnection returns true for a request without a connection: no server has seen the request.
func (f Failure) isBeforeConnection() bool {
	return f == FailureRefused || f == FailureUnresolved
}
