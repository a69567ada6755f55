package seatkeeper

import "time"

// step is the input of one step besides its event, and the actions of the step so far.
type step struct {
	plan   *plan
	now    instant
	jitter float64
	// activity is the time of the user's last activity; nil before the program told of any.
	activity    *instant
	nextRequest uint64
	actions     []action
}

// passed reports whether the point has come.
func (s *step) passed(point instant) bool {
	return s.now >= point
}

func (s *step) act(a action) {
	s.actions = append(s.actions, a)
}

// exchangeStage is the stage of the pending request of a phase.
type exchangeStage int

const (
	// waiting: the next try is sent at exchange.at.
	waiting exchangeStage = iota
	// inFlight: a request is on its way.
	inFlight
	// awaitingToken: the server rejected the token of this try, and the token source has until exchange.at for another.
	awaitingToken
)

// exchange is the pending request of a phase: timer, request, at most one fresh token, answer.
type exchange struct {
	stage exchangeStage
	// at is the time of the next try, or the end of the time for a fresh token.
	at instant
	// request is the number of the request in flight, and sent the time at which it was sent.
	request uint64
	sent    instant
	// refreshed is set after the fresh token of this try.
	refreshed bool
}

// outcomeKind is the kind of the result of an event for an exchange.
type outcomeKind int

const (
	// unrelated: the event belongs to no request of the exchange.
	unrelated outcomeKind = iota
	// due: the next try is due, or the fresh token has arrived.
	due
	// replied: the request was answered.
	replied
	// tryFailed: the try failed.
	tryFailed
)

// outcome is the result of an event for an exchange.
type outcome struct {
	kind      outcomeKind
	response  response
	sent      instant
	refreshed bool
	fault     fault
}

// wait returns an exchange whose next try is sent at the point.
func wait(at instant) exchange {
	return exchange{stage: waiting, at: at}
}

// send sends a request at once.
func (s *step) send(c call, timeout time.Duration, refreshed bool, r *retry) exchange {
	r.count(s.now)
	id := s.nextRequest
	s.nextRequest++
	s.act(sendAction{request{call: c, id: id, timeout: timeout}})
	return exchange{stage: inFlight, request: id, sent: s.now, refreshed: refreshed}
}

// secondsMax is the longest time, in seconds, that a heartbeat may tell: a year.
const secondsMax = 365 * 24 * 3_600

// secondsSince returns the whole seconds since the point, rounded down.
func (s *step) secondsSince(point instant) int64 {
	return min(int64(max(0, s.now-point)/instant(time.Second)), secondsMax)
}

// heartbeat returns the call that renews a session. OfflineSince is the start of the state Offline; nil in touch with the
// server.
func (s *step) heartbeat(session string, offlineSince *instant) call {
	times := map[string]any{}
	if offlineSince != nil {
		if seconds := s.secondsSince(*offlineSince); seconds > 0 {
			times["offline_seconds"] = seconds
		}
	}
	if s.activity != nil {
		times["idle_seconds"] = s.secondsSince(*s.activity)
	}
	return s.plan.door.heartbeat(session, times)
}

// tokenTimeout is the time that a token source has for a fresh token.
const tokenTimeout = 30 * time.Second

// refreshToken asks the token source for another token.
func (s *step) refreshToken() exchange {
	return s.refreshTokenUntil(s.now.after(tokenTimeout))
}

// refreshTokenUntil asks the token source for another token, which counts until the point.
func (s *step) refreshTokenUntil(over instant) exchange {
	s.act(refreshTokenAction{})
	return exchange{stage: awaitingToken, at: over}
}

// cancel aborts a request on its way, and reports whether there was one.
func (s *step) cancel(e exchange) bool {
	if e.stage != inFlight {
		return false
	}
	s.act(cancelAction{e.request})
	return true
}

// take matches an event against the exchange.
func (e exchange) take(ev event, s *step) outcome {
	switch ev := ev.(type) {
	case tickEvent:
		switch {
		case e.stage == waiting && s.passed(e.at):
			return outcome{kind: due}
		case e.stage == awaitingToken && s.passed(e.at):
			return outcome{kind: tryFailed, fault: fault{FailureNoToken, errTokenLate}}
		}
	case answeredEvent:
		if e.stage == inFlight && ev.request == e.request {
			return outcome{kind: replied, response: ev.response, sent: e.sent, refreshed: e.refreshed}
		}
	case failedEvent:
		if e.stage == inFlight && ev.request == e.request {
			return outcome{kind: tryFailed, fault: ev.fault}
		}
	case tokenReadyEvent:
		if e.stage == awaitingToken {
			return outcome{kind: due, refreshed: true}
		}
	case tokenFailedEvent:
		if e.stage == awaitingToken {
			return outcome{kind: tryFailed, fault: fault{FailureNoToken, ev.cause}}
		}
	}
	return outcome{kind: unrelated}
}

// wakeAt returns the time of the next try, or the end of the time for a fresh token; never for a request in flight, which the
// client ends.
func (e exchange) wakeAt() instant {
	if e.stage == inFlight {
		return never
	}
	return e.at
}
