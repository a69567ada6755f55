package seatkeeper

import "slices"

// streamSeatsMax is the number of seats of a full group: the server tells of 100 sessions by one stream at most.
const streamSeatsMax = 100

// streamKey is the part of a request for an event stream that all seats of a group share.
type streamKey struct {
	tokenOwner string
	door       door
}

// streamGroup is the seats of one event stream, in the order in which the seats joined.
type streamGroup struct {
	key   streamKey
	seats []*Seat
	// stream reads the events of the group; streamGroups leaves the field to the client.
	stream *eventStream
}

// follower is the part of a seat in the event streams of its client.
type follower struct {
	// session is the session of the seat that a stream tells of, or told of last.
	session string
	// group is the group of the seat; nil while no stream tells of the session.
	group *streamGroup
	// isListed says that the latest request of the group names the session.
	isListed bool
	// isAlone says that the session shares no stream, and isOver that no stream has further events of the session.
	isAlone, isOver bool
}

// streamGroups decides which seats share an event stream, without I/O, clocks and goroutines. The map has the groups that a
// further seat may join.
type streamGroups map[streamKey][]*streamGroup

// join puts a seat into the first group with a free place, or into a new group. A seat that is alone gets a new group, which
// no other seat joins.
func (g streamGroups) join(seat *Seat, key streamKey) (group *streamGroup, isNew bool) {
	if !seat.follower.isAlone {
		for _, group := range g[key] {
			if len(group.seats) < streamSeatsMax {
				group.add(seat)
				return group, false
			}
		}
	}
	group = &streamGroup{key: key}
	group.add(seat)
	if !seat.follower.isAlone {
		g[key] = append(g[key], group)
	}
	return group, true
}

// leave takes a seat out of its group, and returns the group if no seat is left; else nil.
func (g streamGroups) leave(seat *Seat) *streamGroup {
	group := seat.follower.group
	if group == nil {
		return nil
	}
	seat.follower.group, seat.follower.isListed = nil, false
	group.seats = slices.DeleteFunc(group.seats, func(other *Seat) bool { return other == seat })
	if len(group.seats) > 0 {
		return nil
	}
	key := group.key
	g[key] = slices.DeleteFunc(g[key], func(other *streamGroup) bool { return other == group })
	if len(g[key]) == 0 {
		delete(g, key)
	}
	return group
}

func (g *streamGroup) add(seat *Seat) {
	g.seats = append(g.seats, seat)
	seat.follower.group = g
}

// list returns the sessions of the next request, each session once, and notes that the request names every seat's session.
func (g *streamGroup) list() []string {
	var sessions []string
	for _, seat := range g.seats {
		seat.follower.isListed = true
		// Two seats of one holder have one session.
		if !slices.Contains(sessions, seat.follower.session) {
			sessions = append(sessions, seat.follower.session)
		}
	}
	return sessions
}

// isStale reports whether a seat joined after the latest request.
func (g *streamGroup) isStale() bool {
	return slices.ContainsFunc(g.seats, func(seat *Seat) bool { return !seat.follower.isListed })
}

// holders returns the seats with a session; none for a session that every seat has left.
func (g *streamGroup) holders(session string) []*Seat {
	var found []*Seat
	for _, seat := range g.seats {
		if seat.follower.session == session {
			found = append(found, seat)
		}
	}
	return found
}
