package seatkeeper

import "time"

// reacquireSpread is the span within which holders of expired sessions acquire again.
const reacquireSpread = 5 * time.Second

// health is the reachability of the server.
type health int

const (
	// confirmed: the last heartbeat was answered.
	confirmed health = iota
	// failing: heartbeats fail; the outage is told at holding.tellAt.
	failing
	// offline: the outage was told, and began at holding.since.
	offline
)

// holding is a seat before its deadline: heartbeats, and the report of an outage.
type holding struct {
	held     *lease
	exchange exchange
	retry    *retry
	// due is the time at which the next heartbeat is, or was, due.
	due           instant
	health        health
	tellAt, since instant
	// isRefused says that the last answer was a refusal: a later outage has no grace.
	isRefused bool
	// toldEnd is an end from the event stream, before a heartbeat confirms.
	toldEnd *sessionEnd
}

// holdGranted starts with the grant of an acquire that was sent at sent.
func holdGranted(g grant, sent instant, r *retry, s *step) phase {
	s.plan.lastSession, s.plan.replaces = g.session, ""
	held := newLease(g, sent)
	return hold(held, held.firstBeat(sent, s.jitter), r)
}

// holdRenewed goes on with a session that a heartbeat renewed after its deadline.
func holdRenewed(held *lease, renewed renewal, sent instant, r *retry, s *step) phase {
	held.renew(renewed, sent)
	return hold(held, held.nextBeat(sent, s.jitter), r)
}

func hold(held *lease, due instant, r *retry) phase {
	r.succeed()
	return &holding{held: held, exchange: wait(due), retry: r, due: due}
}

func (h *holding) lease() *lease { return h.held }

func (h *holding) state() State {
	until := time.Duration(h.held.until)
	if h.health == offline {
		return State{Kind: Offline, Since: time.Duration(h.since), Until: until}
	}
	return State{Kind: Active, Until: until}
}

func (h *holding) wakeAt() instant {
	next := min(h.exchange.wakeAt(), h.held.until)
	if h.health == failing {
		next = min(next, h.tellAt)
	}
	return next
}

func (h *holding) wake(s *step) phase {
	s.cancel(h.exchange)
	if h.health != offline {
		h.health, h.since = offline, s.now
	}
	switch {
	case !s.passed(h.held.until):
		h.beat(false, s)
		return h
	case h.toldEnd != nil:
		return h.believeStream(s)
	default:
		return h.regaining().afterSleep(s)
	}
}

func (h *holding) step(ev event, s *step) phase {
	switch ev := ev.(type) {
	case releaseEvent:
		return releaseSession(h.held, h.exchange, s)
	case sessionEnd:
		h.ended(ev, s)
		return h
	case streamOverEvent:
		h.streamOver(ev.session, s)
		return h
	}
	if next := h.take(ev, s); next != phase(h) {
		return next
	}
	if s.passed(h.held.until) {
		return h.passed(s)
	}
	h.tellOutage(s)
	return h
}

// passed handles a deadline that passed without an answer: the end that the event stream told, else an outage.
func (h *holding) passed(s *step) phase {
	s.cancel(h.exchange)
	if h.toldEnd != nil {
		return h.believeStream(s)
	}
	return h.regaining().afterOutage(s)
}

// tellOutage tells an outage once the heartbeat is half an interval late.
func (h *holding) tellOutage(s *step) {
	if h.health == failing && s.passed(h.tellAt) {
		h.health, h.since = offline, h.due
	}
}

func (h *holding) take(ev event, s *step) phase {
	switch o := h.exchange.take(ev, s); o.kind {
	case due:
		if !s.passed(h.held.until) {
			h.beat(o.refreshed, s)
		}
	case replied:
		return h.answered(o, s)
	case tryFailed:
		return h.failed(0, s)
	}
	return h
}

func (h *holding) beat(refreshed bool, s *step) {
	h.tellOutage(s)
	var since *instant
	if h.health == offline {
		since = &h.since
	}
	h.exchange = s.send(s.heartbeat(h.held.session, since), h.held.timeout(), refreshed, h.retry)
}

func (h *holding) answered(o outcome, s *step) phase {
	renewed, back := readHeartbeat(o.response, h.held.session, s.plan.door)
	if back == nil {
		h.renewed(renewed, o.sent, s)
		return h
	}
	switch back.kind {
	case transient:
		return h.failed(back.retryAfter, s)
	case unauthenticated:
		if !o.refreshed {
			h.exchange = s.refreshToken()
			return h
		}
		h.isRefused = true
		return h.failed(0, s)
	case refused:
		return h.refused(back.problem, s)
	default:
		return h.hopeless(false, s)
	}
}

func (h *holding) renewed(renewed renewal, sent instant, s *step) {
	h.held.renew(renewed, sent)
	h.retry.succeed()
	h.health, h.isRefused, h.toldEnd = confirmed, false, nil
	h.due = h.held.nextBeat(sent, s.jitter)
	h.exchange = wait(h.due)
}

func (h *holding) refused(problem *Denied, s *step) phase {
	switch problem.Status {
	case 403:
		return &ended{last: lostByAnswer(ReasonUnauthorized, "", problem.RequestID), orphan: h.held.orphan()}
	case 404:
		return h.over(ReasonNotFound, "", problem.RequestID, s)
	case 410:
		reason, by := goneReason(problem), problem.by
		if end := h.toldEnd; by == "" && end != nil && end.reason == reason {
			// The stream names causes that the answer leaves out.
			by = end.by
		}
		return h.over(reason, by, problem.RequestID, s)
	default:
		return h.hopeless(true, s)
	}
}

func (h *holding) hopeless(isRefused bool, s *step) phase {
	if h.toldEnd != nil {
		return h.believeStream(s)
	}
	h.isRefused = isRefused
	h.fail()
	h.exchange = wait(afterHopeless(s.now, h.held.interval, s.jitter))
	return h
}

// believeStream handles the end that the event stream told, when no answer of the server contradicts the stream.
func (h *holding) believeStream(s *step) phase {
	end := h.toldEnd
	h.toldEnd = nil
	return h.over(end.reason, end.by, "", s)
}

// over handles the end of the session: it acquires again where the policy allows.
func (h *holding) over(reason Reason, by, requestID string, s *step) phase {
	switch {
	case h.held.reacquires && reason == ReasonExpired:
		return h.regaining().afterEnd(reason, s.now.after(part(reacquireSpread, s.jitter)), s)
	case h.held.reacquires && reason == ReasonNotFound:
		return h.regaining().afterEndAtOnce(reason, s)
	default:
		return &ended{last: lostByAnswer(reason, by, requestID)}
	}
}

func (h *holding) failed(retryAfter time.Duration, s *step) phase {
	if h.toldEnd != nil {
		return h.believeStream(s)
	}
	h.fail()
	retryAfter = waitBefore(h.held.until, retryAfter, s.now)
	h.exchange = wait(h.retry.afterFailure(s.now, h.held.interval, retryAfter, s.jitter))
	return h
}

// fail notes that a heartbeat failed; the outage is told once the heartbeat is half an interval late.
func (h *holding) fail() {
	if h.health == confirmed {
		h.health, h.tellAt = failing, h.due.after(h.held.interval/2)
	}
}

// ended confirms an end from the event stream by a heartbeat: a stream may lag behind the session.
func (h *holding) ended(end sessionEnd, s *step) {
	if end.session == h.held.session {
		h.toldEnd = &end
		h.askAgain(s)
	}
}

// streamOver asks by a heartbeat whether the session lives: the session may have ended while the stream was cut. A proxy
// can answer 404, so the answer of a stream ends no session.
func (h *holding) streamOver(session string, s *step) {
	// A heartbeat that confirms a told end is under way already.
	isAsked := h.toldEnd != nil
	// A server that forgets every session would be asked without a pause.
	isSpent := h.retry.isSpent(s.now, h.held.interval)
	if session == h.held.session && !isAsked && !isSpent {
		h.askAgain(s)
	}
}

// askAgain sends a heartbeat at once. The answer to a heartbeat in flight may be older than the news.
func (h *holding) askAgain(s *step) {
	s.cancel(h.exchange)
	h.beat(false, s)
}

func (h *holding) regaining() *regaining {
	since := h.due
	if h.health == offline {
		since = h.since
	}
	return newRegaining(h.held, h.retry, since, h.isRefused)
}
