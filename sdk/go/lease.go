package seatkeeper

import "time"

const (
	// intervalMin bounds the rate of heartbeats, whatever a server says.
	intervalMin = time.Second
	// heartbeatTimeoutMax is the longest timeout of a heartbeat.
	heartbeatTimeoutMax = 10 * time.Second
)

// heartbeatInterval returns the interval told, if a heartbeat fits before the TTL; else a third of the TTL.
func heartbeatInterval(told, ttl time.Duration) time.Duration {
	if told >= ttl {
		told = ttl / 3
	}
	return max(told, intervalMin)
}

// lease is the session of a seat, with the terms of the last answer.
type lease struct {
	session, licenseID    string
	releaseCode           secret
	seatsUsed, seatsTotal int
	until                 instant
	ttl, interval, grace  time.Duration
	reacquires            bool
}

// newLease returns the lease of a grant whose request was sent at sent.
func newLease(g grant, sent instant) *lease {
	interval := g.expiresIn / 3
	if g.interval != nil {
		interval = *g.interval
	}
	return &lease{
		session:     g.session,
		licenseID:   g.licenseID,
		releaseCode: g.releaseCode,
		seatsUsed:   g.seatsUsed,
		seatsTotal:  g.seatsTotal,
		until:       sent.after(g.expiresIn),
		ttl:         g.expiresIn,
		interval:    heartbeatInterval(interval, g.expiresIn),
		grace:       g.grace,
		reacquires:  g.reacquires,
	}
}

// orphan returns the session as one that a release has to end.
func (l *lease) orphan() orphan {
	return orphan{session: l.session, code: l.releaseCode}
}

// renew counts the TTL anew from sent. Requests are sent one after the other, so sent never goes back.
func (l *lease) renew(r renewal, sent instant) {
	if r.expiresIn != nil {
		l.ttl = *r.expiresIn
	}
	l.until = sent.after(l.ttl)
	told := min(l.interval, max(l.ttl/3, intervalMin))
	if r.interval != nil {
		told = *r.interval
	}
	l.interval = heartbeatInterval(told, l.ttl)
	if r.grace != nil {
		l.grace = *r.grace
	}
	if r.reacquires != nil {
		l.reacquires = *r.reacquires
	}
}

// firstBeat returns 0.3 to 1.0 of the interval after sent, so that fleets that started together drift apart.
func (l *lease) firstBeat(sent instant, jitter float64) instant {
	return sent.after(part(l.interval, between(0.3, 1.0, jitter)))
}

// nextBeat returns 0.9 to 1.0 of the interval after sent.
func (l *lease) nextBeat(sent instant, jitter float64) instant {
	return sent.after(part(l.interval, between(0.9, 1.0, jitter)))
}

// timeout returns the timeout of a heartbeat: a third of the interval, at most 10 s.
func (l *lease) timeout() time.Duration {
	return min(l.interval/3, heartbeatTimeoutMax)
}
