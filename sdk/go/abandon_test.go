package seatkeeper

import (
	"context"
	"errors"
	"testing"
	"time"
)

// newSlowAcquire starts a server whose first acquires have these answers. Every other request is granted at once.
func newSlowAcquire(t *testing.T, first ...reply) *scripted {
	t.Helper()
	return newScripted(t, func(request arrived, earlier int) reply {
		if request.target == acquireTarget && earlier < len(first) {
			return first[earlier]
		}
		return reply{status: 201, body: scriptedGrant}
	})
}

// granted is a grant after a delay.
func granted(delay time.Duration) reply {
	return reply{status: 201, body: scriptedGrant, delay: delay}
}

// acquireBriefly acquires a seat, and gives up after 50 ms.
func acquireBriefly(t *testing.T, client *Client, options ...AcquireOption) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := client.License("K").Acquire(ctx, append(options, Machine("m"))...)
	return err
}

// expectTargets compares the targets of all requests with the wanted ones, in order.
func expectTargets(t *testing.T, server *scripted, wanted ...string) {
	t.Helper()
	found := server.arrived("")
	isEqual := len(found) == len(wanted)
	for i := 0; isEqual && i < len(wanted); i++ {
		isEqual = found[i].target == wanted[i]
	}
	if !isEqual {
		t.Errorf("%v instead of %v", found, wanted)
	}
}

func TestAGrantLongAfterTheAcquireWasGivenUpIsGivenBack(t *testing.T) {
	t.Parallel()
	server := newSlowAcquire(t, granted(releaseBudget+time.Second))
	client := newListClient(t, server.url)
	if err := acquireBriefly(t, client); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	eventually(t, "the late session is kept", func() bool { return len(server.arrived(deleteTarget)) == 1 })
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
	expectTargets(t, server, acquireTarget, deleteTarget)
}

func TestCloseWaitsForAnAcquireThatWasGivenUpNoLongerThanForARelease(t *testing.T) {
	t.Parallel()
	server := newSlowAcquire(t, granted(longWait))
	client := newListClient(t, server.url)
	_ = acquireBriefly(t, client)
	began := time.Now()
	err := client.Close(context.Background())
	if took := time.Since(began); !errors.Is(err, ErrNotConfirmed) || took < releaseBudget || took > acquireTimeout/2 {
		t.Error(err, took)
	}
}

// The server resumes the session of the holder for the second acquire, so a later DELETE would end the new seat.
func TestAnAcquireWaitsForTheReleaseOfItsHolder(t *testing.T) {
	t.Parallel()
	late := granted(300 * time.Millisecond)
	find := []string{acquireTarget, acquireTarget, deleteTarget, acquireTarget}
	inTurn := []string{acquireTarget, deleteTarget, acquireTarget}
	one, other, process := []AcquireOption{Instance("a")}, []AcquireOption{Instance("b")}, []AcquireOption{PerProcess()}
	for name, test := range map[string]struct {
		answers     []reply
		first, next []AcquireOption
		targets     []string
		isSameID    bool
	}{
		"after a cancelled acquire":                  {[]reply{late}, nil, nil, inTurn, true},
		"after a cancelled acquire of one process":   {[]reply{late}, process, process, inTurn, true},
		"after an acquire whose outcome is in doubt": {[]reply{{status: 503}, late}, []AcquireOption{Patience(0)}, nil, find, true},
		// A license that counts machines ignores the process.
		"after a cancelled acquire of another process": {[]reply{late}, one, other, inTurn, false},
		"of one process after one without a process":   {[]reply{late}, nil, process, inTurn, false},
		"without a process after one of a process":     {[]reply{late}, process, nil, inTurn, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newSlowAcquire(t, test.answers...)
			client, err := NewClient(server.url, Token("t"), EventStreams(false), StateDir(t.TempDir()))
			if err != nil {
				t.Fatal(err)
			}
			if err := acquireBriefly(t, client, test.first...); err == nil {
				t.Fatal("the first acquire is granted")
			}
			seat, err := client.License("K").Acquire(context.Background(), append(test.next, Machine("m"))...)
			if err != nil {
				t.Fatal(err)
			}
			pause(context.Background(), 500*time.Millisecond)
			expectTargets(t, server, test.targets...)
			if err := seat.Check(); err != nil || seat.State().Kind != Active {
				t.Error(err, seat.State())
			}
			acquires := server.arrived(acquireTarget)
			first, last := acquires[0].body["instance_id"], acquires[len(acquires)-1].body["instance_id"]
			if (first == last) != test.isSameID {
				t.Errorf("the slot was chosen before its release: %v, %v", first, last)
			}
			_ = client.Close(context.Background())
		})
	}
}

func TestAnAcquireWaitsForTheDeleteOfAnotherProcess(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	server := newScripted(t, func(request arrived, _ int) reply {
		if request.target == deleteTarget {
			return reply{status: 204, after: answer}
		}
		return reply{status: 201, body: scriptedGrant}
	})
	client := newListClient(t, server.url)
	license := client.License("K")
	seat, err := license.Acquire(context.Background(), Machine("m"), Instance("a"))
	if err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if err := seat.Release(done); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	acquired := make(chan error, 1)
	go func() {
		_, err := license.Acquire(context.Background(), Machine("m"), Instance("b"))
		acquired <- err
	}()
	select {
	case <-acquired:
		t.Fatal("the acquire waits for no release")
	case <-time.After(300 * time.Millisecond):
	}
	close(answer)
	if err := <-acquired; err != nil {
		t.Error(err)
	}
	expectTargets(t, server, acquireTarget, deleteTarget, acquireTarget)
}

func TestTheWaitForAReleaseEndsWithTheContextAndHoldsUpNoOtherHolder(t *testing.T) {
	t.Parallel()
	server := newSlowAcquire(t, granted(longWait))
	client := newListClient(t, server.url)
	for range 2 {
		if err := acquireBriefly(t, client); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	expectTargets(t, server, acquireTarget)
	began := time.Now()
	if _, err := client.License("K").Acquire(context.Background(), Machine("other")); err != nil || time.Since(began) > releaseBudget {
		t.Error(err, time.Since(began))
	}
	_ = client.Close(context.Background())
}

// A release of two seconds is waited for; a longer one would end the seat of the acquire that follows.
func TestAnAcquireTakesOverAReleaseThatOutlastsTheWait(t *testing.T) {
	t.Parallel()
	server := newSlowAcquire(t, granted(releaseBudget+500*time.Millisecond))
	client := newListClient(t, server.url)
	_ = acquireBriefly(t, client)
	seat, err := client.License("K").Acquire(context.Background(), Machine("m"))
	if err != nil {
		t.Fatal(err)
	}
	pause(context.Background(), time.Second)
	expectTargets(t, server, acquireTarget, acquireTarget)
	if err := seat.Release(context.Background()); err != nil {
		t.Error(err)
	}
	expectTargets(t, server, acquireTarget, acquireTarget, deleteTarget)
}

// The seat would be denied by the session of the acquire before, if that session had the id of another slot.
func TestAnAcquireTakesTheSlotOfAReleaseThatOutlastsTheWait(t *testing.T) {
	t.Parallel()
	server := newSlowAcquire(t, granted(longWait))
	client, err := NewClient(server.url, Token("t"), EventStreams(false), StateDir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := acquireBriefly(t, client, PerProcess()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	acquireSlot(t, client)
	acquires := server.arrived(acquireTarget)
	if len(acquires) != 2 || acquires[0].body["instance_id"] != acquires[1].body["instance_id"] {
		t.Error(acquires)
	}
	_ = client.Close(context.Background())
}

// An occupied gate stands for a file server that hangs: the second acquire ends after its wait for the release, and before its
// own request.
func TestAReleaseOutlivesAnAcquireThatWaitedForItAndFailed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *Client, context.CancelFunc){
		"by its context": func(_ *testing.T, _ *Client, cancel context.CancelFunc) { cancel() },
		"by the end of the client": func(t *testing.T, client *Client, _ context.CancelFunc) {
			client.mu.Lock()
			client.isClosed = true
			client.mu.Unlock()
			client.slots.calls.leave()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := make(chan struct{})
			server := newSlowAcquire(t, reply{status: 201, body: scriptedGrant, after: answer})
			client, err := NewClient(server.url, Token("t"), EventStreams(false), StateDir(t.TempDir()))
			if err != nil {
				t.Fatal(err)
			}
			client.slots.patience = time.Hour
			if err := acquireBriefly(t, client); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			if err := client.slots.calls.enter(context.Background()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				_, err := client.License("K").Acquire(ctx, Machine("m"), PerProcess())
				failed <- err
			}()
			pause(context.Background(), releaseBudget+500*time.Millisecond)
			end(t, client, cancel)
			if err := <-failed; err == nil {
				t.Error("the second acquire is granted")
			}
			close(answer)
			eventually(t, "nobody releases the session of the first acquire", func() bool {
				return len(server.arrived(deleteTarget)) == 1
			})
			expectTargets(t, server, acquireTarget, deleteTarget)
		})
	}
}

func TestSeatsOfAMachineMayHaveOneHolder(t *testing.T) {
	base := plan{door: licenseDoor{}, licenseKey: "K", machineID: "m", instanceID: "i", perProcess: true}
	for name, test := range map[string]struct {
		change func(*plan)
		isSame bool
	}{
		"the same":                     {func(*plan) {}, true},
		"a process before its slot":    {func(p *plan) { p.instanceID = "" }, true},
		"another process":              {func(p *plan) { p.instanceID = "j" }, true},
		"a program without processes":  {func(p *plan) { p.instanceID, p.perProcess = "", false }, true},
		"another license":              {func(p *plan) { p.licenseKey = "L" }, false},
		"another machine":              {func(p *plan) { p.machineID = "n" }, false},
		"a device without a machine":   {func(p *plan) { p.door = deviceDoor{} }, false},
		"another device of the client": {func(p *plan) { p.deviceID = "d" }, false},
	} {
		other := base
		test.change(&other)
		if base.hasHolder(&other) != test.isSame {
			t.Error(name)
		}
	}
}
