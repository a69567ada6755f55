package seatkeeper

import (
	"context"
	"slices"
)

// watch sees to an event stream that tells of a seat's session, as the seat's state wants. The caller holds the lock.
func (c *Client) watch(seat *Seat) {
	session := ""
	if !c.streams.isOff {
		session = seat.machine.watched()
	}
	if seat.follower.group != nil && seat.follower.session == session {
		return
	}
	c.unfollow(seat)
	if session == "" {
		return
	}
	if seat.follower.session != session {
		seat.follower = follower{session: session}
	}
	if !seat.follower.isOver {
		c.follow(seat)
	}
}

// follow puts a seat into a group, and starts the stream of a new group. The caller holds the lock.
func (c *Client) follow(seat *Seat) {
	key := streamKey{tokenOwner: seat.tokenOwner, door: seat.machine.plan.door}
	group, isNew := c.streams.groups.join(seat, key)
	if !isNew {
		group.stream.planReopening()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	group.stream = &eventStream{client: c, group: group, close: cancel}
	go group.stream.run(ctx)
}

// unfollow takes a seat out of its group, and closes the stream of a group without a seat. The caller holds the lock.
func (c *Client) unfollow(seat *Seat) {
	if empty := c.streams.groups.leave(seat); empty != nil {
		empty.stream.close()
	}
}

// followAlone gives each of the seats a stream that its present session never shares. The caller holds the lock.
func (c *Client) followAlone(seats []*Seat) {
	for _, seat := range seats {
		c.unfollow(seat)
		seat.follower.isAlone = true
		c.follow(seat)
	}
}

// tell tells an event to the seats that it is about.
func (s *eventStream) tell(r *streamRequest, event serverEvent) {
	if end, ok := event.sessionEnd(); ok {
		s.tellEnd(end)
		return
	}
	if session, ok := event.unknownSession(); ok && r.isShared() {
		s.separate(session)
	}
}

// tellEnd gives an end to the machines of the seats with the session. Seats that have left the group hear nothing. A stream
// that is opened anew tells the end again, which must not cancel the heartbeat that confirms the first telling.
func (s *eventStream) tellEnd(end sessionEnd) {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seat := range s.group.holders(end.session) {
		if !seat.isConfirmingEnd() {
			c.step(seat, end)
		}
	}
	c.setTimer()
}

// tellOver ends the stream of a session that has no further events: the session may have ended while the stream was cut.
func (s *eventStream) tellOver(session string) {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seat := range s.group.holders(session) {
		seat.follower.isOver = true
		c.unfollow(seat)
		c.step(seat, streamOverEvent{session})
	}
	c.setTimer()
}

// isConfirmingEnd reports whether a stream told the end of the session, and no heartbeat that was sent later has been answered.
// The caller holds the lock.
func (s *Seat) isConfirmingEnd() bool {
	h, isHolding := s.machine.phase.(*holding)
	return isHolding && h.toldEnd != nil
}

// separate gives the seats with a session streams of their own: another node or region may know the session, whose home may
// have moved.
func (s *eventStream) separate(session string) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.client.followAlone(s.group.holders(session))
}

// unshare gives each seat of the group a stream of its own.
func (s *eventStream) unshare() {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.client.followAlone(slices.Clone(s.group.seats))
}
