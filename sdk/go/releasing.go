package seatkeeper

import "time"

const (
	// releaseBudget is the budget of a release, retry included.
	releaseBudget = 2 * time.Second
	// releaseTimeout is the timeout of one try: half of the budget, which leaves time for the retry.
	releaseTimeout = time.Second
	// findsMax bounds the acquires that a release sends to learn the id of a session: one, and one retry.
	findsMax = 2
)

// releaseSession cancels the heartbeat in flight, then releases the session.
func releaseSession(held *lease, e exchange, s *step) phase {
	s.cancel(e)
	return deleteSession(held.orphan(), s.now.after(releaseBudget), s)
}

// releaseAcquire waits for the acquire in flight, and releases its session or the orphan. A server may commit a grant long after
// the program has given up, so an abandoned acquire keeps its whole timeout, and the budget follows.
func releaseAcquire(e exchange, left orphan, isAbandoned bool, s *step) phase {
	over := s.now.after(releaseBudget)
	if e.stage != inFlight {
		return releaseOrphan(left, 0, over, s)
	}
	if isAbandoned {
		over = e.sent.after(acquireTimeout).after(releaseBudget)
	}
	return &finding{exchange: e, orphan: left, over: over}
}

// awaited returns the end of a release after an event: from Client.Close on a caller waits, also for an abandoned acquire.
func awaited(over instant, ev event, s *step) instant {
	if release, isRelease := ev.(releaseEvent); isRelease && !release.isAbandoned {
		return min(over, s.now.after(releaseBudget))
	}
	return over
}

// releaseOrphan deletes a known session, asks for the id of an unknown one, or ends the release. The release has sent finds
// acquires already.
func releaseOrphan(left orphan, finds int, over instant, s *step) phase {
	switch {
	case left == orphan{}:
		return released(givenBack, orphan{}, s)
	case !left.isUnknown:
		return deleteSession(left, over, s)
	case finds < findsMax && s.plan.door.isIdempotent():
		f := &finding{orphan: left, finds: finds + 1, over: over}
		f.ask(false, s)
		return f
	default:
		return released(unconfirmed, left, s)
	}
}

// finding is a release while an acquire is in flight, whose session must be released: an acquire of the program, or an acquire
// that the release sent to learn the id of a session.
type finding struct {
	noLease
	exchange exchange
	// orphan is the session to release without a grant.
	orphan orphan
	// finds counts the acquires of the release.
	finds int
	over  instant
}

func (f *finding) state() State     { return State{Kind: Released} }
func (f *finding) wakeAt() instant  { return f.over }
func (f *finding) wake(*step) phase { return f }

func (f *finding) step(ev event, s *step) phase {
	f.over = awaited(f.over, ev, s)
	if s.passed(f.over) {
		if s.cancel(f.exchange) {
			f.orphan = unknownOrphan
		}
		return released(unconfirmed, f.orphan, s)
	}
	switch o := f.exchange.take(ev, s); o.kind {
	case due:
		f.ask(o.refreshed, s)
	case replied:
		return f.answered(o, s)
	case tryFailed:
		f.orphan.acquireFailed(o.fault.failure)
		return releaseOrphan(f.orphan, f.finds, f.over, s)
	}
	return f
}

func (f *finding) answered(o outcome, s *step) phase {
	granted, back := readAcquire(o.response)
	if back == nil {
		return deleteSession(orphan{session: granted.session, code: granted.releaseCode}, f.over, s)
	}
	f.orphan.acquireSetBack(back, s.plan.door)
	switch {
	case back.kind == unauthenticated && f.orphan.isUnknown && !o.refreshed && s.plan.door.isIdempotent():
		f.exchange = s.refreshToken()
		return f
	case back.kind == transient:
		return releaseOrphan(f.orphan, f.finds, f.over, s)
	default:
		// Another acquire would be answered alike.
		return releaseOrphan(f.orphan, findsMax, f.over, s)
	}
}

func (f *finding) ask(refreshed bool, s *step) {
	f.exchange = s.send(s.plan.door.acquire(s.plan), releaseTimeout, refreshed, &retry{})
}

// deleting is the release of a session: one retry within the budget, and no heartbeat.
type deleting struct {
	noLease
	left      orphan
	exchange  exchange
	isRetried bool
	// isByCode says that the request in flight releases by the code, without a token.
	isByCode bool
	over     instant
}

func deleteSession(left orphan, over instant, s *step) phase {
	d := &deleting{left: left, over: over}
	d.ask(false, s)
	return d
}

func (d *deleting) state() State     { return State{Kind: Released} }
func (d *deleting) wakeAt() instant  { return min(d.exchange.wakeAt(), d.over) }
func (d *deleting) wake(*step) phase { return d }

func (d *deleting) step(ev event, s *step) phase {
	d.over = awaited(d.over, ev, s)
	if s.passed(d.over) {
		s.cancel(d.exchange)
		return d.unconfirmed(s)
	}
	switch o := d.exchange.take(ev, s); o.kind {
	case due:
		d.isRetried = true
		d.ask(o.refreshed, s)
	case replied:
		return d.answered(o, s)
	case tryFailed:
		if o.fault.failure == FailureNoToken {
			return d.withoutToken(s)
		}
		return d.again(s)
	}
	return d
}

func (d *deleting) answered(o outcome, s *step) phase {
	isProblem := parseProblem(o.response) != nil
	switch status := o.response.status; {
	case d.isByCode:
		// The answer to a wrong code is the same.
		return d.unconfirmed(s)
	case status == 204, (status == 404 || status == 410) && isProblem:
		return released(givenBack, orphan{}, s)
	case status == 401 && !o.refreshed && !d.isRetried && !s.passed(d.tokenOver()):
		d.exchange = s.refreshTokenUntil(d.tokenOver())
		return d
	case status == 401 && !d.left.code.isEmpty():
		return d.withoutToken(s)
	case status == 408, status == 429:
		return d.again(s)
	case status == 401, status >= 400 && status <= 499 && isProblem:
		return d.unconfirmed(s)
	default:
		// A server that cannot answer now, or the page of a proxy: no word of the server.
		return d.again(s)
	}
}

// tokenOver returns the end of the time for a fresh token. A slow token source leaves the time of a try for the release by
// code.
func (d *deleting) tokenOver() instant {
	if d.left.code.isEmpty() {
		return d.over
	}
	return d.over - instant(releaseTimeout)
}

// withoutToken releases the session by its code, once; without a code it tries again.
func (d *deleting) withoutToken(s *step) phase {
	if d.left.code.isEmpty() || d.isByCode {
		return d.again(s)
	}
	d.isByCode = true
	d.exchange = s.send(s.plan.door.releaseByCode(d.left.session, d.left.code), releaseTimeout, false, &retry{})
	return d
}

func (d *deleting) again(s *step) phase {
	if d.isRetried || d.isByCode {
		return d.unconfirmed(s)
	}
	d.isRetried = true
	d.ask(false, s)
	return d
}

func (d *deleting) unconfirmed(s *step) phase {
	return released(unconfirmed, d.left, s)
}

func (d *deleting) ask(refreshed bool, s *step) {
	d.exchange = s.send(s.plan.door.release(d.left.session), releaseTimeout, refreshed, &retry{})
}
