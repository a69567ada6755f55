package seatkeeper

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func newScheduled(t *testing.T, s *schedule, wakeAt instant) *Seat {
	t.Helper()
	seat := &Seat{place: unscheduled, machine: &machine{phase: &acquiring{exchange: wait(wakeAt)}}}
	s.set(seat)
	return seat
}

func TestTheScheduleGivesEachSeatAtItsTimeAndNoneThatLeft(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	var s schedule
	waiting := map[*Seat]instant{}
	for now := instant(0); now < 3_000; now++ {
		for range random.IntN(3) {
			at := now + instant(random.IntN(500))
			waiting[newScheduled(t, &s, at)] = at
		}
		for seat := range waiting {
			switch random.IntN(100) {
			case 0:
				s.remove(seat)
				s.remove(seat)
				delete(waiting, seat)
			case 1:
				waiting[seat] = now + instant(random.IntN(500))
				seat.machine.phase.(*acquiring).exchange = wait(waiting[seat])
				s.set(seat)
			}
		}
		due := s.takeDue(now)
		for seat, at := range waiting {
			if slices.Contains(due, seat) != (at <= now) {
				t.Fatalf("seed %d: at %d a seat of %d", seed, now, at)
			}
			if at <= now {
				delete(waiting, seat)
			}
		}
		if len(s) != len(waiting) {
			t.Fatalf("seed %d: %d in the schedule, %d wait", seed, len(s), len(waiting))
		}
	}
}

func TestHeartbeatsShareATickAndNoneIsLateByMoreThanAHundredthOfItsInterval(t *testing.T) {
	var s schedule
	scheduled := func(interval time.Duration, wakeAt time.Duration) *Seat {
		held := &lease{interval: interval, until: never}
		seat := &Seat{place: unscheduled, machine: &machine{phase: &holding{held: held, exchange: wait(instant(wakeAt))}}}
		s.set(seat)
		return seat
	}
	slow, slower := scheduled(120*time.Second, 10*time.Second), scheduled(120*time.Second, 10_900*time.Millisecond)
	fast := scheduled(10*time.Second, 11*time.Second)
	if slow.tickBy != instant(11*time.Second) || fast.tickBy != instant(11_100*time.Millisecond) {
		t.Error(slow.tickBy, fast.tickBy)
	}
	if due := s.takeDue(slow.tickBy); !slices.Equal(due, []*Seat{slow, fast, slower}) {
		t.Error(due)
	}
}

func TestAfterASleepOfTheHostEverySeatAsksAtOnce(t *testing.T) {
	server := granting(t)
	client := newListClient(t, server.url)
	sources := &fakeSources{100 * time.Second, 1_800_000_000 * time.Second, 5_000 * time.Second, true}
	client.clock = sources.clock()
	client.last = client.clock.read()
	defer client.Close(context.Background())
	for _, machine := range []string{"m1", "m2"} {
		if _, err := client.License("K").Acquire(context.Background(), Machine(machine)); err != nil {
			t.Fatal(err)
		}
	}
	client.clock.mu.Lock()
	sources.sleep(10 * time.Second)
	client.clock.mu.Unlock()
	client.tick()
	eventually(t, "a seat did not ask", func() bool { return len(server.arrived(beatTarget)) == 2 })
}

func TestAReleasedSeatLeavesTheClient(t *testing.T) {
	client := newListClient(t, granting(t).url)
	if err := takeAndGive(client, 0); err != nil {
		t.Fatal(err)
	}
	client.mu.Lock()
	defer client.mu.Unlock()
	if len(client.schedule) != 0 || len(client.seats) != 0 {
		t.Error(client.schedule, client.seats)
	}
}
