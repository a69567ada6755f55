package seatkeeper

import "time"

const (
	// releaseBudget is the budget of a release, retry included.
	releaseBudget = 2 * time.Second
	// releaseTimeout is the timeout of one try: half of the budget, which leaves time for the retry.
	releaseTimeout = time.Second
)

// releaseSession cancels the heartbeat in flight, then releases the session.
func releaseSession(held *lease, e exchange, s *step) phase {
	s.cancel(e)
	return deleteSession(held.session, s.now.after(releaseBudget), s)
}

// releaseWithoutSession releases before a session is known.
func releaseWithoutSession(e exchange, s *step) phase {
	if e.stage == inFlight {
		return &awaitingAcquire{request: e.request, over: s.now.after(releaseBudget)}
	}
	return released(givenBack, s)
}

// awaitingAcquire is a release while an acquire is in flight. A granted seat must be released.
type awaitingAcquire struct {
	noLease
	request uint64
	over    instant
}

func (a *awaitingAcquire) state() State     { return State{Kind: Released} }
func (a *awaitingAcquire) wakeAt() instant  { return a.over }
func (a *awaitingAcquire) wake(*step) phase { return a }

func (a *awaitingAcquire) step(ev event, s *step) phase {
	if s.passed(a.over) {
		s.act(cancelAction{a.request})
		return released(unconfirmed, s)
	}
	switch ev := ev.(type) {
	case answeredEvent:
		if ev.request != a.request {
			return a
		}
		if granted, back := readAcquire(ev.response); back == nil {
			return deleteSession(granted.session, a.over, s)
		}
		return released(givenBack, s)
	case failedEvent:
		if ev.request == a.request {
			// The server may have granted the acquire; the session id is unknown.
			return released(unconfirmed, s)
		}
	}
	return a
}

// deleting is the release of a session: one retry within the budget, and no heartbeat.
type deleting struct {
	noLease
	session   string
	exchange  exchange
	isRetried bool
	over      instant
}

func deleteSession(session string, over instant, s *step) phase {
	d := &deleting{session: session, over: over}
	d.ask(false, s)
	return d
}

func (d *deleting) state() State     { return State{Kind: Released} }
func (d *deleting) wakeAt() instant  { return d.over }
func (d *deleting) wake(*step) phase { return d }

func (d *deleting) step(ev event, s *step) phase {
	if s.passed(d.over) {
		s.cancel(d.exchange)
		return released(unconfirmed, s)
	}
	switch o := d.exchange.take(ev, s); o.kind {
	case due:
		d.isRetried = true
		d.ask(o.refreshed, s)
	case replied:
		return d.answered(o, s)
	case tryFailed:
		return d.again(s)
	}
	return d
}

func (d *deleting) answered(o outcome, s *step) phase {
	switch status := o.response.status; {
	case status >= 200 && status <= 299, status == 404, status == 410:
		return released(givenBack, s)
	case status == 401 && !o.refreshed && !d.isRetried:
		d.exchange = s.refreshToken()
		return d
	case status == 408, status == 429, status >= 500 && status <= 599:
		return d.again(s)
	default:
		return released(unconfirmed, s)
	}
}

func (d *deleting) again(s *step) phase {
	if d.isRetried {
		return released(unconfirmed, s)
	}
	d.isRetried = true
	d.ask(false, s)
	return d
}

func (d *deleting) ask(refreshed bool, s *step) {
	d.exchange = s.send(releaseCall(d.session), releaseTimeout, refreshed, &retry{})
}
