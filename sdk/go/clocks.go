package seatkeeper

import (
	"math"
	"time"
)

// instant is a point on the clock that counts sleep. Every deadline uses this clock.
type instant time.Duration

// never is the end of time: a deadline that does not pass.
const never = instant(math.MaxInt64)

// after returns the point span later, or never if the sum is longer.
func (i instant) after(span time.Duration) instant {
	if sum := i + instant(span); sum >= i {
		return sum
	}
	return never
}

// reading is one reading of the three clocks of a client, each with an origin of its own.
type reading struct {
	// mono is the monotonic clock, which may stand still while the host sleeps.
	mono time.Duration
	// boot is the monotonic clock that counts sleep.
	boot instant
	// wall is the wall clock since 1970, for logs alone.
	wall time.Duration
}

// sleepGap is the gap between boot and mono from which on the host has slept.
const sleepGap = 2 * time.Second

// sleptSince reports whether the host slept between earlier and this reading.
func (r reading) sleptSince(earlier reading) bool {
	boot := max(0, time.Duration(r.boot-earlier.boot))
	mono := max(0, r.mono-earlier.mono)
	return boot-mono > sleepGap
}

// part returns the part of span that factor stands for, to the nearest nanosecond.
func part(span time.Duration, factor float64) time.Duration {
	return time.Duration(math.Round(float64(span) * factor))
}

// between returns the point of low..high that the random number jitter stands for.
func between(low, high, jitter float64) float64 {
	return low + (high-low)*jitter
}
