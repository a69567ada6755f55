package seatkeeper

import (
	"testing"
	"time"
)

// fakeSources are the sources of a clock, which a test sets.
type fakeSources struct {
	mono, wall, up time.Duration
	hasUptime      bool
}

func (s *fakeSources) clock() *hostClock {
	return newClock(
		func() (time.Duration, time.Duration) { return s.mono, s.wall },
		func() (time.Duration, bool) { return s.up, s.hasUptime },
	)
}

func (s *fakeSources) advance(by time.Duration) {
	s.mono, s.wall, s.up = s.mono+by, s.wall+by, s.up+by
}

func (s *fakeSources) sleep(by time.Duration) {
	s.wall, s.up = s.wall+by, s.up+by
}

func TestTheClockCountsSleepAndIgnoresASetWallClock(t *testing.T) {
	for _, hasUptime := range []bool{true, false} {
		sources := &fakeSources{100 * time.Second, 1_800_000_000 * time.Second, 5_000 * time.Second, hasUptime}
		clock := sources.clock()
		began := clock.boot()
		expect := func(what string, wanted time.Duration) {
			t.Helper()
			if passed := time.Duration(clock.boot() - began); passed != wanted {
				t.Errorf("%s, uptime %v: %v instead of %v", what, hasUptime, passed, wanted)
			}
		}
		sources.advance(10 * time.Second)
		expect("awake", 10*time.Second)
		sources.sleep(time.Hour)
		expect("asleep", time.Hour+10*time.Second)
		sources.advance(time.Second)
		expect("awake again", time.Hour+11*time.Second)
		sources.wall -= 1_000 * time.Hour
		expect("set back", time.Hour+11*time.Second)
		if hasUptime {
			sources.wall += 2_000 * time.Hour
			expect("set ahead", time.Hour+11*time.Second)
			sources.wall -= 1_000 * time.Hour
			sources.sleep(time.Minute)
			expect("asleep and set back", time.Hour+71*time.Second)
		}
	}
}

func TestTheHostHasAClock(t *testing.T) {
	clock := newHostClock()
	first := clock.read()
	if second := clock.read(); second.boot < first.boot || second.mono < first.mono || second.sleptSince(first) {
		t.Error(first, second)
	}
}

// BenchmarkBoot is the cost of Seat.Check but for one atomic load.
func BenchmarkBoot(b *testing.B) {
	clock := newHostClock()
	for range b.N {
		clock.boot()
	}
}
