package seatkeeper

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// clockGap is the gap between wall clock and monotonic clock that hints at a sleep of the host, or at a clock that was set.
const clockGap = time.Second

// hostClock reads the clocks of this host.
//
// Go's monotonic clock stands still while many hosts sleep. The clock that counts sleep is the monotonic clock plus each
// gap by which the wall clock ran ahead. On Linux the uptime, which includes sleep and which nobody sets, measures the
// gap. Elsewhere a wall clock that is set ahead looks like a sleep, and costs one heartbeat. A wall clock that is set
// back changes nothing.
type hostClock struct {
	// now returns the monotonic clock and the wall clock.
	now func() (mono, wall time.Duration)
	// uptime returns the time since the start of the host, sleep included; false if the host does not tell.
	uptime func() (time.Duration, bool)

	mu                sync.Mutex
	slept             time.Duration
	mono, wall        time.Duration
	uptimeOffset      time.Duration
	uptimeOffsetIsSet bool
}

// newHostClock returns the clock of this host.
func newHostClock() *hostClock {
	began := time.Now()
	return newClock(func() (time.Duration, time.Duration) {
		now := time.Now()
		return now.Sub(began), time.Duration(now.UnixNano())
	}, readUptime)
}

// newClock returns a clock over the sources.
func newClock(now func() (mono, wall time.Duration), uptime func() (time.Duration, bool)) *hostClock {
	c := &hostClock{now: now, uptime: uptime}
	c.mono, c.wall = now()
	if up, ok := uptime(); ok {
		c.uptimeOffset, c.uptimeOffsetIsSet = up-c.mono, true
	}
	return c
}

// read reads all three clocks.
func (c *hostClock) read() reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, wall := c.now()
	gap := (wall - c.wall) - (mono - c.mono)
	c.mono, c.wall = mono, wall
	if gap > clockGap || gap < -clockGap {
		// The uptime is slow to read: the wall clock says when to look.
		gap = c.uptimeGap(mono, gap)
	}
	if gap > clockGap {
		c.slept += gap
	}
	return reading{mono: mono, boot: instant(mono + c.slept), wall: wall}
}

// uptimeGap returns the gap by which the uptime ran ahead since its last reading, or else the gap of the wall clock.
func (c *hostClock) uptimeGap(mono, wallGap time.Duration) time.Duration {
	up, ok := c.uptime()
	if !ok || !c.uptimeOffsetIsSet {
		return wallGap
	}
	offset := up - mono
	gap := offset - c.uptimeOffset
	c.uptimeOffset = offset
	return gap
}

// boot reads the clock that counts sleep.
func (c *hostClock) boot() instant {
	return c.read().boot
}

// readUptime reads the uptime of a Linux host.
func readUptime() (time.Duration, bool) {
	if runtime.GOOS != "linux" {
		return 0, false
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, false
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	seconds, err := strconv.ParseFloat(string(first), 64)
	return time.Duration(seconds * float64(time.Second)), err == nil
}
