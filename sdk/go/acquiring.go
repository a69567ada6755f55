package seatkeeper

import "time"

const (
	// acquireInterval bounds retries before the first grant.
	acquireInterval = time.Minute
	// acquireTimeout is the timeout of an acquire: longer than a server's own limit on a commit.
	acquireTimeout = 10 * time.Second
	// acquireTimeoutMin is the least timeout near the end of the patience: a token, a connection and an answer need time.
	acquireTimeoutMin = 2 * time.Second
	// fullPause is the pause after a denial without retry_after_seconds.
	fullPause = 10 * time.Second
)

// acquiring is an acquire under way: it asks until the server grants or refuses a seat, or the wait is over.
type acquiring struct {
	noLease
	exchange exchange
	retry    *retry
	began    instant
	// isLast says that the try under way is the last one.
	isLast bool
	// orphan is the session that a lost reply, or an earlier life of this machine, may have left at the server.
	orphan orphan
}

// startAcquire sends the first request.
func startAcquire(left orphan, s *step) phase {
	a := &acquiring{retry: &retry{}, began: s.now, orphan: left}
	a.ask(false, s)
	return a
}

func (a *acquiring) state() State { return State{Kind: Acquiring} }

// wakeAt: the client ends a request in flight by timeout.
func (a *acquiring) wakeAt() instant { return a.exchange.wakeAt() }

func (a *acquiring) wake(s *step) phase {
	if s.cancel(a.exchange) {
		a.orphan = unknownOrphan
	}
	a.ask(false, s)
	return a
}

func (a *acquiring) step(ev event, s *step) phase {
	if release, isRelease := ev.(releaseEvent); isRelease {
		return releaseAcquire(a.exchange, a.orphan, release.isAbandoned, s)
	}
	switch o := a.exchange.take(ev, s); o.kind {
	case due:
		a.ask(o.refreshed, s)
	case replied:
		return a.answered(o, s)
	case tryFailed:
		a.orphan.acquireFailed(o.fault.failure)
		return a.failed(o.fault, 0, "", s)
	}
	return a
}

func (a *acquiring) answered(o outcome, s *step) phase {
	granted, back := readAcquire(o.response)
	if back == nil {
		return holdGranted(granted, o.sent, a.retry, s)
	}
	a.orphan.acquireSetBack(back, s.plan.door)
	switch {
	case back.kind == transient:
		return a.failed(fault{failure: back.failure}, back.retryAfter, back.requestID, s)
	case back.kind == hopeless:
		return a.ended(unreachableState(fault{failure: FailureUnavailable}, back.requestID))
	case back.kind == unauthenticated && !o.refreshed:
		a.exchange = s.refreshToken()
		return a
	case back.kind == refused && back.problem.code == s.plan.door.full():
		return a.full(back.problem, s)
	default:
		return a.ended(State{Kind: Refused, Err: back.problem})
	}
}

// full handles a license without a free seat: it asks again when the server says, and a last time when the wait is over.
func (a *acquiring) full(problem *Denied, s *step) phase {
	if !s.plan.waits || s.passed(a.over(s)) {
		return a.ended(State{Kind: Refused, Err: problem})
	}
	a.retry.succeed()
	pause := problem.RetryAfter
	if !problem.hasRetryAfter {
		pause = fullPause
	}
	pause = part(max(pause, time.Second), between(1.0, 1.25, s.jitter))
	a.exchange = wait(min(s.now.after(pause), a.over(s)))
	return a
}

func (a *acquiring) failed(failed fault, retryAfter time.Duration, requestID string, s *step) phase {
	over := a.givenUpAt(s)
	at := a.retry.afterFailure(s.now, acquireInterval, retryAfter, s.jitter)
	if a.isLast || s.passed(over) {
		return a.ended(unreachableState(failed, requestID))
	}
	if at >= over {
		// Jitter keeps a fleet from a common last try.
		a.isLast = true
		at = s.now.after(part(time.Duration(over-s.now), between(0.75, 1.0, s.jitter)))
	}
	a.exchange = wait(at)
	return a
}

func (a *acquiring) ended(last State) phase {
	return &ended{last: last, orphan: a.orphan}
}

// over returns the end of the wait for a free seat.
func (a *acquiring) over(s *step) instant {
	return a.began.after(s.plan.wait)
}

// givenUpAt returns the end of the patience with a silent server, or of a longer wait.
func (a *acquiring) givenUpAt(s *step) instant {
	over := a.began.after(s.plan.patience)
	if s.plan.waits {
		over = max(over, a.over(s))
	}
	return over
}

func (a *acquiring) ask(refreshed bool, s *step) {
	rest := time.Duration(a.givenUpAt(s) - s.now)
	timeout := min(acquireTimeout, max(acquireTimeoutMin, rest))
	a.exchange = s.send(s.plan.door.acquire(s.plan), timeout, refreshed, a.retry)
}
