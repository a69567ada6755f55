package seatkeeper

import "container/heap"

// schedule is a heap of seats, the next one to tick first, so that a step costs no walk over all seats of a client.
type schedule []*Seat

// unscheduled is the place of a seat outside the schedule.
const unscheduled = -1

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].wakeAt < s[j].wakeAt }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push implements heap.Interface.
func (s *schedule) Push(seat any) {
	added := seat.(*Seat)
	added.place = len(*s)
	*s = append(*s, added)
}

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	seat := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	seat.place = unscheduled
	return seat
}

// set puts a seat to the time at which its machine wants a tick.
func (s *schedule) set(seat *Seat) {
	seat.wakeAt = seat.machine.wakeAt()
	if seat.place == unscheduled {
		heap.Push(s, seat)
	} else {
		heap.Fix(s, seat.place)
	}
}

// remove takes a seat out of the schedule.
func (s *schedule) remove(seat *Seat) {
	if seat.place != unscheduled {
		heap.Remove(s, seat.place)
	}
}

// takeDue takes the seats out whose time has come at now.
func (s *schedule) takeDue(now instant) []*Seat {
	var due []*Seat
	for len(*s) > 0 && (*s)[0].wakeAt <= now {
		due = append(due, heap.Pop(s).(*Seat))
	}
	return due
}
