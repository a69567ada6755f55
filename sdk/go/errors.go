package seatkeeper

import "errors"

// Errors of calls that cannot work, and of Seat.Check.
var (
	// ErrClosed is the error of a client that was closed.
	ErrClosed = errors.New("seatkeeper: the client is closed: make another one")
	// ErrUnconfirmed is the error of Seat.Check while the seat is being acquired again.
	ErrUnconfirmed = errors.New("seatkeeper: the seat is not confirmed: wait until its state is Active again")
	// ErrReleased is the error of Seat.Check after the release.
	ErrReleased = errors.New("seatkeeper: the seat is released: acquire another one")
)

// A Loss is the end of a seat that its program did not ask for.
type Loss struct {
	Reason Reason
	// By is the cause, where the server named one.
	By string
	// Retry is true if the client goes on trying to acquire.
	Retry bool
	// RequestID is the id of the request in the server's log; empty if no answer told the loss.
	RequestID string
}

// Code returns the text lost.
func (l *Loss) Code() string { return "lost" }

func (l *Loss) Error() string {
	told := "seatkeeper: the seat is lost: " + string(l.Reason)
	if l.By != "" {
		told += " by " + l.By
	}
	return withRemedy(told, lossRemedies[l.Reason])
}

// Unreachable is the error of an acquire that got no usable answer in time.
type Unreachable struct {
	// Failure is the last failure.
	Failure Failure
	// RequestID is the id of the request in the server's log; empty if the last try got no answer.
	RequestID string

	cause error
}

// Code returns the text offline.
func (u *Unreachable) Code() string { return "offline" }

func (u *Unreachable) Error() string {
	told := "seatkeeper: the server cannot be reached: " + fault{u.Failure, u.cause}.Error()
	return withRemedy(told, failureRemedies[u.Failure])
}

// Unwrap returns the cause of the last failure, such as the error of the token source or of the HTTP client; nil without one.
func (u *Unreachable) Unwrap() error { return u.cause }
