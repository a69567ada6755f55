package seatkeeper

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAStateDirectoryThatHangsCostsAnAcquireAMomentAndNoSeat(t *testing.T) {
	s := newStateDirTest(t)
	hanging := newSlots()
	hanging.patience = 20 * time.Millisecond
	goOn, calls := make(chan struct{}), make(chan struct{}, 9)
	late := make(chan *slot, 9)
	find := func() *slot {
		calls <- struct{}{}
		<-goOn
		taken := stateDir{path: s.base}.take(slotServer, slotLicense, slotMachine)
		late <- taken
		return taken
	}
	ids := map[string]bool{}
	for range 3 {
		taken, err := hanging.take(context.Background(), s.base, find)
		if err != nil || !uuid4.MatchString(taken.instanceID) || taken.warning != "unusable: "+s.base {
			t.Fatal(taken, err)
		}
		ids[taken.instanceID] = true
	}
	if len(ids) != 3 || len(calls) != 1 {
		t.Errorf("%d ids, and %d calls that hang", len(ids), len(calls))
	}
	close(goOn)
	found := <-late
	// The late slot is closed: the next acquire takes it.
	hanging.patience = longWait
	taken, err := hanging.take(context.Background(), s.base, find)
	if err != nil || taken.warning != "" || taken.instanceID != found.instanceID {
		t.Error(taken, err, found)
	}
	taken.close()
}

// newSlotClient returns a client of a server that grants every seat, with a state directory.
func newSlotClient(t *testing.T) (*scripted, *Client) {
	t.Helper()
	server := newScripted(t, func(arrived, int) reply { return reply{status: 201, body: scriptedGrant} })
	client, err := NewClient(server.url, Token("t"), EventStreams(false), StateDir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

func acquireSlot(t *testing.T, client *Client) *Seat {
	t.Helper()
	seat, err := client.License("K").Acquire(context.Background(), Machine("m"), PerProcess())
	if err != nil {
		t.Fatal(err)
	}
	return seat
}

// An occupied gate stands for a file server that hangs.
func TestASlotWhoseEndHangsHoldsUpNoOtherSeat(t *testing.T) {
	server, client := newSlotClient(t)
	client.slots.endPatience = time.Hour
	hangs, other := acquireSlot(t, client), acquireSlot(t, client)
	if err := client.slots.calls.enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() { released <- hangs.Release(context.Background()) }()
	isForgotten := func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return len(client.seats) == 1
	}
	eventually(t, "the release holds the lock of the client", isForgotten)
	client.Wake()
	eventually(t, "no heartbeat of the other seat", func() bool { return len(server.arrived("PATCH")) > 0 })
	if err := other.Check(); err != nil {
		t.Error(err)
	}
	if len(released) > 0 {
		t.Error("the release does not wait for the slot")
	}
	client.slots.calls.leave()
	if err := <-released; err != nil {
		t.Error(err)
	}
	again := acquireSlot(t, client)
	if ids := server.arrived(acquireTarget); ids[0].body["instance_id"] != ids[2].body["instance_id"] {
		t.Errorf("%v, %v: the slot is not free after the release", again, ids)
	}
}

func TestAReleaseGivesUpASlotWhoseEndHangs(t *testing.T) {
	_, client := newSlotClient(t)
	client.slots.endPatience = 20 * time.Millisecond
	released, left := acquireSlot(t, client), acquireSlot(t, client)
	if err := client.slots.calls.enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer client.slots.calls.leave()
	ended := make(chan error, 1)
	go func() {
		left.Leave()
		ended <- released.Release(context.Background())
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(longWait):
		t.Fatal("the release waits for a slot that hangs")
	}
}

func TestADeniedAcquireLeavesItsSlotBeforeItReturns(t *testing.T) {
	denial := `{"type":"/problems/license-full","title":"full"}`
	server := newScripted(t, func(arrived, int) reply { return reply{status: 403, body: denial} })
	client, err := NewClient(server.url, Token("t"), StateDir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := client.License("K").Acquire(context.Background(), Machine("m"), PerProcess()); !strings.Contains(err.Error(), "full") {
			t.Fatal(err)
		}
	}
	for _, request := range server.arrived(acquireTarget) {
		if request.body["instance_id"] != server.arrived(acquireTarget)[0].body["instance_id"] {
			t.Fatal("a denied acquire keeps its slot for a while")
		}
	}
}

// The release of an acquire in doubt finds the session by a second acquire, and deletes the session.
func TestAnAcquireInDoubtLeavesItsSlotBeforeItReturns(t *testing.T) {
	t.Parallel()
	server := newSlowAcquire(t, reply{status: 503}, granted(300*time.Millisecond))
	state := StateDir(t.TempDir())
	client := func() *Client {
		made, err := NewClient(server.url, Token("t"), EventStreams(false), state)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	options := []AcquireOption{Machine("m"), PerProcess(), Patience(0)}
	var unreachable *Unreachable
	if _, err := client().License("K").Acquire(context.Background(), options...); !errors.As(err, &unreachable) {
		t.Fatal(err)
	}
	// A client of its own waits for no release of the first one.
	seat := acquireSlot(t, client())
	expectTargets(t, server, acquireTarget, acquireTarget, deleteTarget, acquireTarget)
	acquires := server.arrived(acquireTarget)
	if acquires[0].body["instance_id"] != acquires[2].body["instance_id"] {
		t.Errorf("%v, %v: the failed acquire keeps its slot for a while", acquires, seat)
	}
	_ = seat.Release(context.Background())
}
