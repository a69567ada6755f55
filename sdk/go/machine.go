package seatkeeper

import "time"

// timerLate is how late a timer of a suspended host is.
const timerLate = 10 * time.Second

// machine is the holder's state machine for one seat, without I/O, clocks, goroutines or randomness.
//
// The client calls step for each event and at wakeAt, and carries out the actions. At most one request is in flight at
// any time.
type machine struct {
	plan        *plan
	phase       phase
	last        reading
	told        State
	nextRequest uint64
	activity    *instant
}

// phase is one phase of a machine, with the data that is valid in the phase; step and wake return the phase that follows.
type phase interface {
	state() State
	// lease returns the lease, while the phase has one.
	lease() *lease
	// wakeAt returns the time at which the phase wants a tick; never if the phase waits for other events alone.
	wakeAt() instant
	// wake voids the request in flight after a sleep of the host, and asks the server before any other work.
	wake(*step) phase
	step(event, *step) phase
}

// noLease is embedded by the phases without a lease.
type noLease struct{}

func (noLease) lease() *lease { return nil }

// newMachine creates a machine and starts its acquire. The orphan is the session that an earlier machine of the holder left.
func newMachine(p *plan, left orphan, now reading) (*machine, []action) {
	m := &machine{plan: p, last: now, told: State{Kind: Acquiring}, nextRequest: 1}
	s := m.newStep(now, 0)
	m.phase = startAcquire(left, s)
	return m, m.conclude(s)
}

// step takes one event at now, and returns the actions that follow. The jitter is a new random number in 0.0..1.0.
func (m *machine) step(ev event, now reading, jitter float64) []action {
	_, isWake := ev.(wakeEvent)
	isLate := now.boot >= m.wakeAt().after(timerLate)
	woke := isWake || isLate || now.sleptSince(m.last)
	m.last = now
	s := m.newStep(now, jitter)
	if woke {
		m.phase = m.phase.wake(s)
	}
	if !isWake {
		m.phase = m.phase.step(ev, s)
	}
	return m.conclude(s)
}

// leave stops the machine with a request that may be in flight, and returns the actions that follow. Nothing is sent.
func (m *machine) leave(request uint64) []action {
	m.phase = &ended{last: State{Kind: Released}}
	s := m.newStep(m.last, 0)
	s.act(cancelAction{request})
	s.act(finishAction{left})
	return m.conclude(s)
}

// noteActivity notes that the user was active at now. Nothing is sent.
func (m *machine) noteActivity(now instant) {
	m.activity = &now
}

// watched returns the session whose event stream is worth a connection; empty if no session is held.
func (m *machine) watched() string {
	switch m.phase.state().Kind {
	case Active, Offline, Grace:
		return m.phase.lease().session
	default:
		return ""
	}
}

// wakeAt returns the time at which the machine wants a tick; never if the machine waits for other events alone.
func (m *machine) wakeAt() instant {
	return m.phase.wakeAt()
}

// slack returns the longest delay of a tick. The hundredth part of an interval lets the heartbeats of many seats share one
// tick; the machine takes a timer that is much later for a sleep of the host.
func (m *machine) slack() time.Duration {
	if held := m.phase.lease(); held != nil {
		return min(held.interval/100, slackMax)
	}
	return 0
}

// state returns the state at now. No answer is Active after its deadline, also between two steps.
func (m *machine) state(now instant) State {
	return m.phase.state().at(now)
}

func (m *machine) newStep(now reading, jitter float64) *step {
	return &step{
		plan:        m.plan,
		now:         now.boot,
		jitter:      min(max(jitter, 0), 1),
		activity:    m.activity,
		nextRequest: m.nextRequest,
	}
}

func (m *machine) conclude(s *step) []action {
	m.nextRequest = s.nextRequest
	state := m.phase.state()
	if !state.isLike(m.told) {
		s.act(tellAction{state})
	}
	m.told = state
	return s.actions
}

// ended is a seat that is lost, refused or released; only the program begins again.
type ended struct {
	noLease
	last State
	// orphan is the session that may live at the server.
	orphan orphan
}

func (e *ended) state() State     { return e.last }
func (e *ended) wakeAt() instant  { return never }
func (e *ended) wake(*step) phase { return e }

func (e *ended) step(ev event, s *step) phase {
	switch ev.(type) {
	case acquireEvent:
		return startAcquire(e.orphan, s)
	case releaseEvent:
		return releaseOrphan(e.orphan, 0, s.now.after(releaseBudget), s)
	default:
		return e
	}
}

// released ends a release; the orphan is the session that may still live.
func released(f finish, left orphan, s *step) phase {
	s.act(finishAction{f})
	return &ended{last: State{Kind: Released}, orphan: left}
}
