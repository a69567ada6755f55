package seatkeeper

import "time"

// A Kind is the kind of a state.
type Kind string

// The kinds of states.
const (
	// Acquiring: no seat yet; the client asks for one.
	Acquiring Kind = "acquiring"
	// Active: the server confirmed the seat lately, and keeps the seat at least until State.Until.
	Active Kind = "active"
	// Offline: the server does not answer, or the host just woke; before State.Until the seat is still held.
	Offline Kind = "offline"
	// Grace: the deadline passed in an outage, and the vendor lets the program go on until State.Until.
	Grace Kind = "grace"
	// Reacquiring: the session is over by the server's word, and the client acquires again by itself.
	Reacquiring Kind = "reacquiring"
	// Lost: the seat is lost; State.Err is a *Loss.
	Lost Kind = "lost"
	// Refused: the acquire got no seat; State.Err is a *Denied or an *Unreachable.
	Refused Kind = "refused"
	// Released: the program gave the seat up.
	Released Kind = "released"
)

// A State is the state of a seat at one instant.
type State struct {
	Kind Kind
	// Until is the deadline of Active, Offline and Grace, and Since the start of Offline, both on the client's clock
	// that counts sleep. Seat.Remaining is the time until the deadline.
	Until, Since time.Duration
	// Err is the reason of Lost and Refused.
	Err error
}

// isLike reports whether other is the same state but for a deadline that moved.
func (s State) isLike(other State) bool {
	loss, _ := s.Err.(*Loss)
	otherLoss, _ := other.Err.(*Loss)
	if loss != nil && otherLoss != nil {
		return loss.Reason == otherLoss.Reason && loss.By == otherLoss.By && loss.Retry == otherLoss.Retry
	}
	return s.Kind == other.Kind
}

// at returns the state at now: no state is Active after its deadline.
func (s State) at(now instant) State {
	if s.Kind == Active && time.Duration(now) >= s.Until {
		return State{Kind: Offline, Since: s.Until, Until: s.Until}
	}
	return s
}

// A Reason is the reason of a loss, in the server's words where the server told one. A later server may have further
// reasons.
type Reason string

// The reasons of losses.
const (
	// ReasonDeadline: the server was out of reach until the deadline and the grace had passed.
	ReasonDeadline Reason = "deadline"
	// ReasonUnauthorized: the token may no longer use the license.
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonNotFound: the server knows no such session, and gives no new one.
	ReasonNotFound Reason = "not_found"
	// ReasonExpired: the server heard no heartbeat within the TTL.
	ReasonExpired Reason = "expired"
	// ReasonEvicted: another client took the place.
	ReasonEvicted Reason = "evicted"
	// ReasonSuperseded: a newer session of the same identity took the place.
	ReasonSuperseded Reason = "superseded"
	// ReasonUpgraded: a higher tier took the place.
	ReasonUpgraded Reason = "upgraded"
	// ReasonRevoked: a user or an operator ended the session.
	ReasonRevoked Reason = "revoked"
	// ReasonIdle: the session's user gave no sign of work.
	ReasonIdle Reason = "idle"
	// ReasonEntitlementEnded: the license was suspended, revoked or came to its date.
	ReasonEntitlementEnded Reason = "entitlement_ended"
	// ReasonReleased: the session was released, though not by this holder.
	ReasonReleased Reason = "released"
	// ReasonEnded: the server told no reason.
	ReasonEnded Reason = "ended"
)

// lostState returns the state of a seat that its program did not give up.
func lostState(reason Reason, by string, retries bool) State {
	return State{Kind: Lost, Err: &Loss{Reason: reason, By: by, Retry: retries}}
}

// lostByAnswer returns the state of a seat that an answer of the server ended for good.
func lostByAnswer(reason Reason, by, requestID string) State {
	return State{Kind: Lost, Err: &Loss{Reason: reason, By: by, RequestID: requestID}}
}

// unreachableState returns the state after an acquire that the server did not answer, or could not serve.
func unreachableState(failed fault, requestID string) State {
	return State{Kind: Refused, Err: &Unreachable{Failure: failed.failure, RequestID: requestID, cause: failed.cause}}
}
