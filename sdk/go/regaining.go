package seatkeeper

import "time"

// regaining is a seat that has to be acquired again, after an ended session or a passed deadline.
type regaining struct {
	// held is the last lease, whose session may be over.
	held     *lease
	exchange exchange
	retry    *retry
	reason   Reason
	// face is the reported state: Offline after a sleep, until the first answer decides; Grace; Reacquiring; or Lost,
	// after which tries go on.
	face Kind
	// since is the start of Offline, and turnAt the end of Grace and Reacquiring.
	since, turnAt instant
	isRefused     bool
	// isInDoubt says that the deadline passed without a word of the server: heartbeats ask, until the server has told the end of
	// the session. Meanwhile an operator may have revoked the session, another screen may have evicted the session, and another
	// program may have kept the session. An acquire would seat a revoked holder again, and would evict the other screen.
	isInDoubt bool
	orphan    orphan
}

func newRegaining(held *lease, r *retry, since instant, isRefused bool) *regaining {
	return &regaining{
		held:      held,
		exchange:  wait(held.until),
		retry:     r,
		reason:    ReasonDeadline,
		face:      Offline,
		since:     since,
		isRefused: isRefused,
		isInDoubt: true,
		orphan:    held.orphan(),
	}
}

// afterSleep asks by a heartbeat at once, after a sleep past the deadline.
func (r *regaining) afterSleep(s *step) phase {
	r.ask(false, s)
	return r
}

// afterEnd handles the end of the session by the server: it asks at the point.
func (r *regaining) afterEnd(reason Reason, at instant, s *step) phase {
	r.reacquire(reason, s)
	r.exchange = wait(at)
	return r
}

// afterEndAtOnce handles the end of the session by the server: it asks at once.
func (r *regaining) afterEndAtOnce(reason Reason, s *step) phase {
	r.reacquire(reason, s)
	r.ask(false, s)
	return r
}

func (r *regaining) reacquire(reason Reason, s *step) {
	if r.face == Offline {
		r.face, r.reason = Reacquiring, reason
		r.turnAt = max(r.held.until, s.now.after(r.held.interval))
	}
	r.isInDoubt, r.orphan = false, orphan{}
}

// afterOutage handles a deadline that passed during an outage: grace, or the loss. The retries are heartbeats.
func (r *regaining) afterOutage(s *step) phase {
	return r.failed(0, s)
}

func (r *regaining) lease() *lease { return r.held }

func (r *regaining) state() State {
	switch r.face {
	case Offline:
		return State{Kind: Offline, Since: time.Duration(r.since), Until: time.Duration(r.held.until)}
	case Grace:
		return State{Kind: Grace, Until: time.Duration(r.turnAt)}
	case Reacquiring:
		return State{Kind: Reacquiring}
	default:
		return lostState(r.reason, "", true)
	}
}

func (r *regaining) wakeAt() instant {
	return min(r.exchange.wakeAt(), r.end())
}

// end returns the end of the grace or of the time to acquire again; never for another face.
func (r *regaining) end() instant {
	if r.face == Grace || r.face == Reacquiring {
		return r.turnAt
	}
	return never
}

func (r *regaining) wake(s *step) phase {
	if s.cancel(r.exchange) && !r.renews() {
		r.orphan = unknownOrphan
	}
	r.ask(false, s)
	return r
}

func (r *regaining) step(ev event, s *step) phase {
	if release, isRelease := ev.(releaseEvent); isRelease {
		return r.release(release, s)
	}
	if next := r.take(ev, s); next != phase(r) {
		return next
	}
	return r.turn(s)
}

// release ends the session: the last one by its id, or the one that an acquire in flight may bring.
func (r *regaining) release(release releaseEvent, s *step) phase {
	if r.renews() {
		return releaseSession(r.held, r.exchange, s)
	}
	return releaseAcquire(r.exchange, r.orphan, release.isAbandoned, s)
}

func (r *regaining) take(ev event, s *step) phase {
	switch o := r.exchange.take(ev, s); o.kind {
	case due:
		r.ask(o.refreshed, s)
	case replied:
		return r.answered(o, s)
	case tryFailed:
		if !r.renews() {
			r.orphan.acquireFailed(o.fault.failure)
		}
		return r.failed(0, s)
	}
	return r
}

func (r *regaining) answered(o outcome, s *step) phase {
	if r.renews() {
		renewed, back := readHeartbeat(o.response, r.held.session, s.plan.door)
		if back == nil {
			return holdRenewed(r.held, renewed, o.sent, r.retry, s)
		}
		return r.setBack(back, o, s)
	}
	granted, back := readAcquire(o.response)
	if back == nil {
		return holdGranted(granted, o.sent, r.retry, s)
	}
	r.orphan.acquireSetBack(back, s.plan.door)
	return r.setBack(back, o, s)
}

func (r *regaining) setBack(back *setback, o outcome, s *step) phase {
	switch back.kind {
	case transient:
		return r.failed(back.retryAfter, s)
	case unauthenticated:
		if !o.refreshed {
			r.exchange = s.refreshToken()
			return r
		}
		r.isRefused = true
		return r.failed(0, s)
	case refused:
		if r.renews() {
			return r.heartbeatRefused(back.problem, s)
		}
		return &ended{last: lostByAnswer(r.reason, "", back.problem.RequestID), orphan: r.orphan}
	default:
		if r.renews() {
			r.isRefused = false
		}
		return r.hopeless(s)
	}
}

func (r *regaining) heartbeatRefused(problem *Denied, s *step) phase {
	switch problem.Status {
	case 403:
		return &ended{last: lostByAnswer(ReasonUnauthorized, "", problem.RequestID), orphan: r.orphan}
	case 404:
		return r.over(ReasonNotFound, "", problem.RequestID, s)
	case 410:
		return r.over(goneReason(problem), problem.by, problem.RequestID, s)
	default:
		r.isRefused = true
		return r.hopeless(s)
	}
}

// over handles the end of the session: it acquires at once where the policy allows.
func (r *regaining) over(reason Reason, by, requestID string, s *step) phase {
	if r.onlyRenews() || (reason != ReasonExpired && reason != ReasonNotFound) {
		return &ended{last: lostByAnswer(reason, by, requestID)}
	}
	return r.afterEndAtOnce(reason, s)
}

func (r *regaining) hopeless(s *step) phase {
	r.unreached(s)
	r.exchange = wait(afterHopeless(s.now, r.held.interval, s.jitter))
	return r.turn(s)
}

// onlyRenews reports whether the vendor forbids a second session, so that the machine may only renew the first.
func (r *regaining) onlyRenews() bool {
	return !r.held.reacquires
}

// renews reports whether the next request is a heartbeat.
func (r *regaining) renews() bool {
	return r.isInDoubt || r.onlyRenews()
}

func (r *regaining) failed(retryAfter time.Duration, s *step) phase {
	r.unreached(s)
	retryAfter = waitBefore(r.end(), retryAfter, s.now)
	r.exchange = wait(r.retry.afterFailure(s.now, r.held.interval, retryAfter, s.jitter))
	return r.turn(s)
}

// unreached notes a try without a decision. After a sleep the first such try starts the grace or tells the loss.
func (r *regaining) unreached(s *step) {
	until := r.held.until.after(r.held.grace)
	switch {
	case r.face == Offline && !r.isRefused && !s.passed(until):
		r.face, r.turnAt = Grace, until
	case r.face == Offline, r.face == Grace && r.isRefused:
		r.face = Lost
	}
}

// turn tells the loss at the end of the grace or of the time to acquire again.
func (r *regaining) turn(s *step) phase {
	if s.passed(r.end()) {
		r.face = Lost
	}
	if r.face == Lost && r.onlyRenews() {
		s.cancel(r.exchange)
		return &ended{last: lostState(r.reason, "", false), orphan: r.orphan}
	}
	return r
}

func (r *regaining) ask(refreshed bool, s *step) {
	c := s.plan.door.acquire(s.plan)
	if r.renews() {
		c = s.heartbeat(r.held.session, &r.since)
	}
	r.exchange = s.send(c, acquireTimeout, refreshed, r.retry)
}
