package seatkeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Seat is a seat of a license, or the screen of a device. Release gives the seat back; after a crash of the program the
// server frees the seat once the TTL has passed. Every method may be called from any goroutine.
type Seat struct {
	client *Client

	// The machine and the fields of its requests belong to the client, under the client's lock.
	machine    *machine
	flight     uint64
	abort      context.CancelFunc
	tokenOwner string
	sentWith   uint64
	wantsToken bool
	// slot is the instance id of a seat of one process, until the release is over; nil for every other seat.
	slot *slot
	// hasSlotFile says that the instance id is a file of the state directory, and warning is the reason of an id without one.
	// Both are set before the program has the seat.
	hasSlotFile bool
	warning     string
	// follower is the seat's part in the event streams.
	follower follower

	// wakeAt is the time at which the machine wants a tick, tickBy the latest time for that tick, and place the seat's place
	// in the client's schedule.
	wakeAt, tickBy instant
	place          int

	// validUntil is the end of validity on the clock that counts sleep; 0 is invalid.
	validUntil atomic.Int64
	// activeAt is the time of the user's last activity on the same clock; 0 without one.
	activeAt atomic.Int64
	// acquired is closed when the acquire has its result, lost at the first loss, and done at the end of the release.
	acquired, lost, done chan struct{}

	mu                    sync.Mutex
	last                  State
	loss                  *Loss
	result                finish
	sessionID, licenseID  string
	seatsUsed, seatsTotal int
	dispatchers           []*dispatcher
}

func newSeat(c *Client) *Seat {
	return &Seat{
		client:   c,
		place:    unscheduled,
		abort:    func() {},
		acquired: make(chan struct{}),
		lost:     make(chan struct{}),
		done:     make(chan struct{}),
		last:     State{Kind: Acquiring},
	}
}

// isReleasing reports whether the release has begun. The caller holds the client's lock.
func (s *Seat) isReleasing() bool {
	return s.machine.phase.state().Kind == Released
}

// publish publishes the state of the machine; isTold tells the callbacks. The caller holds the client's lock.
func (s *Seat) publish(isTold bool) {
	state := s.machine.state(s.client.clock.boot())
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := s.machine.phase.lease(); held != nil {
		s.sessionID, s.licenseID = held.session, held.licenseID
		s.seatsUsed, s.seatsTotal = held.seatsUsed, held.seatsTotal
	}
	if s.last.Kind == Acquiring && state.Kind != Acquiring {
		close(s.acquired)
	}
	s.last = state
	s.validUntil.Store(int64(state.Until))
	if loss, isLost := state.Err.(*Loss); isLost {
		if s.loss == nil {
			close(s.lost)
		}
		s.loss = loss
	}
	if isTold {
		for _, d := range s.dispatchers {
			d.put(state)
		}
	}
}

// finish leaves the instance id to the next process, and then tells the end of the release. The caller holds the client's lock,
// so finish never waits for the file system.
func (s *Seat) finish(result finish) {
	s.mu.Lock()
	s.result = result
	s.mu.Unlock()
	s.client.slots.end(s.slot, func() { close(s.done) })
}

// Format implements fmt.Formatter, so that a log holds the session alone, and reads no field that a goroutine writes.
func (s *Seat) Format(f fmt.State, _ rune) {
	if s == nil {
		_, _ = io.WriteString(f, "<nil>")
		return
	}
	_, _ = io.WriteString(f, "seat "+s.SessionID())
}

// State returns the state of this instant.
func (s *Seat) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.at(s.client.clock.boot())
}

// Check returns nil while the program may go on. Otherwise the error is a *Loss, ErrUnconfirmed or ErrReleased.
func (s *Seat) Check() error {
	if int64(s.client.clock.boot()) < s.validUntil.Load() {
		return nil
	}
	switch state := s.State(); state.Kind {
	case Lost:
		return state.Err
	case Released:
		return ErrReleased
	default:
		return ErrUnconfirmed
	}
}

// Activity notes that the user did something. From the first call on, each heartbeat tells the server the time since the
// last call. A call is cheap, and sends nothing by itself.
func (s *Seat) Activity() {
	s.activeAt.Store(max(1, int64(s.client.clock.boot())))
}

// Remaining returns the time until the deadline of this instant, with the sleep of the host counted; 0 without a valid
// seat.
func (s *Seat) Remaining() time.Duration {
	return max(0, time.Duration(s.validUntil.Load())-time.Duration(s.client.clock.boot()))
}

// Lost returns a channel that is closed at the first loss. Err tells its reason.
func (s *Seat) Lost() <-chan struct{} {
	return s.lost
}

// Err returns the last loss, a *Loss; nil before the first loss. Unlike Check, Err also remembers a loss after which the
// client acquired the seat again.
func (s *Seat) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loss == nil {
		return nil
	}
	return s.loss
}

// Context returns a context that is done with parent, at the first loss with the *Loss as its cause, and after the
// release.
func (s *Seat) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case <-s.lost:
			cancel(s.Err())
		case <-s.done:
			cancel(ErrReleased)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// OnChange tells callback the present state and every change, in order, on a goroutine of the client. The returned
// function ends this. A callback may be slow, and may call every method of the seat. A panic of a callback is told to the
// Logger of the client. A deadline that merely moves is no change.
func (s *Seat) OnChange(callback func(State)) (stop func()) {
	d := &dispatcher{callback: callback, logger: s.client.logger}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatchers = append(s.dispatchers, d)
	d.put(s.last)
	return func() {
		d.stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dispatchers = slices.DeleteFunc(s.dispatchers, func(other *dispatcher) bool { return other == d })
	}
}

// SessionID returns the id of the session, which changes when the seat is acquired again.
func (s *Seat) SessionID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessionID
}

// LicenseID returns the id of the license; empty for a device.
func (s *Seat) LicenseID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.licenseID
}

// Seats returns the seats, or a subscriber's screens, in use and in total at the time of the grant; zeros if the server did
// not tell.
func (s *Seat) Seats() (used, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seatsUsed, s.seatsTotal
}

// Warning returns the reason for which a seat of PerProcess got a random instance id; empty if all is well. The text begins
// with no-home, unusable, not-a-directory, foreign-owner, writable-by-others or no-free-slot, and names the place.
func (s *Seat) Warning() string {
	return s.warning
}

// ErrNotConfirmed is the error of a release that the server did not confirm. The seat is free one TTL after the last
// heartbeat at the latest.
var ErrNotConfirmed = errors.New("seatkeeper: the server did not confirm the release")

// Release gives the seat back, within two seconds; a state directory that hangs adds a second. The error is ErrNotConfirmed,
// or the cause of ctx once ctx is done; the release then goes on in the background. A second call waits for the first. Release
// with a ctx that is done already still starts the release.
func (s *Seat) Release(ctx context.Context) error {
	s.client.release(s, releaseEvent{})
	return s.finished(ctx)
}

// Leave stops the heartbeats without a release, if a second program keeps the seat for the holder. Otherwise the seat is free
// after the TTL. The state is then Released: a later Release or Client.Close sends nothing, and Release returns nil. After
// Release or Client.Close, Leave has no effect.
func (s *Seat) Leave() {
	if s.client.leave(s) {
		// A program may acquire again by the same instance id.
		<-s.done
	}
}

// finished waits for the end of the release.
func (s *Seat) finished(ctx context.Context) error {
	select {
	case <-s.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result == unconfirmed {
		return ErrNotConfirmed
	}
	return nil
}
