package seatkeeper

import (
	"container/heap"
	"time"
)

// slackMax is the longest delay of a tick.
const slackMax = time.Second

// schedule is a heap of seats, the first one that must tick first, so that a step costs no walk over all seats of a client.
type schedule []*Seat

// unscheduled is the place of a seat outside the schedule.
const unscheduled = -1

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].tickBy < s[j].tickBy }

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
	seat.tickBy = seat.wakeAt.after(seat.machine.slack())
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

// takeDue takes seats out whose time has come at now: every seat that must tick now, and others that share the tick.
func (s *schedule) takeDue(now instant) []*Seat {
	var due []*Seat
	for len(*s) > 0 && (*s)[0].wakeAt <= now {
		due = append(due, heap.Pop(s).(*Seat))
	}
	return due
}
