package seatkeeper

import (
	"fmt"
	"slices"
	"testing"
)

var licenseKeyA = streamKey{"a", licenseDoor{}}

// joined returns a seat with a session, which joined a group of the key, and reports whether the group is new.
func joined(groups streamGroups, key streamKey, session string) (*Seat, bool) {
	seat := &Seat{follower: follower{session: session}}
	_, isNew := groups.join(seat, key)
	return seat, isNew
}

func expectList(t *testing.T, seat *Seat, sessions ...string) {
	t.Helper()
	if listed := seat.follower.group.list(); !slices.Equal(listed, sessions) {
		t.Errorf("%v are listed instead of %v", listed, sessions)
	}
}

func TestAHundredSeatsShareAStreamAndTheNextOneBeginsAnother(t *testing.T) {
	groups := streamGroups{}
	var seats []*Seat
	for number := range 101 {
		seat, isNew := joined(groups, licenseKeyA, fmt.Sprint("S", number))
		seats = append(seats, seat)
		if isNew != (number == 0 || number == 100) {
			t.Errorf("seat %d: a new group %v", number, isNew)
		}
	}
	if listed := seats[0].follower.group.list(); len(listed) != 100 || listed[0] != "S0" || listed[99] != "S99" {
		t.Error(listed)
	}
	expectList(t, seats[100], "S100")
	// A free place is taken before a new group begins.
	if groups.leave(seats[7]) != nil {
		t.Error("a group with 99 seats is empty")
	}
	if next, _ := joined(groups, licenseKeyA, "S101"); next.follower.group != seats[0].follower.group {
		t.Error("the free place is not taken")
	}
}

func TestSeatsShareAStreamByTokenAndDoor(t *testing.T) {
	groups := streamGroups{}
	for _, key := range []streamKey{licenseKeyA, {"b", licenseDoor{}}, {"a", deviceDoor{}}} {
		if _, isNew := joined(groups, key, "S"); !isNew {
			t.Errorf("%v has the group of another key", key)
		}
		if _, isNew := joined(groups, key, "T"); isNew {
			t.Errorf("%v has two groups", key)
		}
	}
}

func TestASeatThatIsAloneSharesNoStream(t *testing.T) {
	groups := streamGroups{}
	shared, _ := joined(groups, licenseKeyA, "S")
	alone := &Seat{follower: follower{session: "T", isAlone: true}}
	if _, isNew := groups.join(alone, licenseKeyA); !isNew {
		t.Error("a seat that is alone joins a group")
	}
	groups.leave(shared)
	if next, isNew := joined(groups, licenseKeyA, "U"); !isNew || next.follower.group == alone.follower.group {
		t.Error("a seat joins the group of a seat that is alone")
	}
	if groups.leave(alone) == nil {
		t.Error("the group has no seat, and goes on")
	}
}

func TestTheLastSeatEndsItsGroup(t *testing.T) {
	groups := streamGroups{}
	first, _ := joined(groups, licenseKeyA, "S")
	second, _ := joined(groups, licenseKeyA, "T")
	group := first.follower.group
	if groups.leave(first) != nil || first.follower.group != nil || groups.leave(first) != nil {
		t.Error("the group ends before its last seat")
	}
	if groups.leave(second) != group || len(groups) != 0 {
		t.Error("a group without a seat goes on")
	}
	if _, isNew := joined(groups, licenseKeyA, "S"); !isNew {
		t.Error("a seat joins a group that has ended")
	}
}

func TestASeatThatJoinsMakesTheListStaleAndASeatThatLeavesDoesNot(t *testing.T) {
	groups := streamGroups{}
	first, _ := joined(groups, licenseKeyA, "S")
	group := first.follower.group
	if !group.isStale() {
		t.Error("a seat is listed before a request")
	}
	expectList(t, first, "S")
	second, _ := joined(groups, licenseKeyA, "T")
	if !group.isStale() {
		t.Error("a seat is listed before the next request")
	}
	expectList(t, first, "S", "T")
	groups.leave(first)
	if group.isStale() {
		t.Error("a seat that left makes the list stale")
	}
	// The session was listed, and its seat may have missed an event.
	if groups.join(first, licenseKeyA); !group.isStale() {
		t.Error("a seat that came back is listed")
	}
	expectList(t, second, "T", "S")
}

func TestTwoSeatsOfOneSessionAreListedOnce(t *testing.T) {
	groups := streamGroups{}
	first, _ := joined(groups, licenseKeyA, "S")
	second, _ := joined(groups, licenseKeyA, "S")
	third, _ := joined(groups, licenseKeyA, "T")
	group := first.follower.group
	expectList(t, first, "S", "T")
	if holders := group.holders("S"); !slices.Equal(holders, []*Seat{first, second}) {
		t.Error(holders)
	}
	groups.leave(third)
	if len(group.holders("T")) > 0 {
		t.Error("a session has a holder that left")
	}
	expectList(t, first, "S")
}

func TestTheEndOfOneGroupEndsNoOther(t *testing.T) {
	groups := streamGroups{}
	alone := &Seat{follower: follower{session: "S", isAlone: true}}
	groups.join(alone, licenseKeyA)
	second, _ := joined(groups, licenseKeyA, "T")
	if groups.leave(alone) == nil || len(groups[licenseKeyA]) != 1 || groups.leave(second) == nil {
		t.Error("the end of one group ends another")
	}
}
