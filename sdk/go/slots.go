package seatkeeper

import (
	"context"
	"sync"
	"time"
)

const (
	// slotPatience is the longest wait of an acquire for a slot.
	slotPatience = 5 * time.Second
	// slotEndPatience is the longest wait of a release for the end of the lock of a slot.
	slotEndPatience = time.Second
)

// slots takes and closes the slots of a client. A file server may hang, so no caller waits longer than its patience.
type slots struct {
	calls                 gate
	patience, endPatience time.Duration
}

func newSlots() *slots {
	return &slots{calls: newGate(), patience: slotPatience, endPatience: slotEndPatience}
}

// take returns the slot that find finds. Without one in time, the slot has a random id and the warning unusable with the
// place. A later slot is closed.
func (s *slots) take(ctx context.Context, place string, find func() *slot) (*slot, error) {
	bounded, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	came := make(chan *slot)
	go func() {
		if s.calls.enter(bounded) != nil {
			return
		}
		defer s.calls.leave()
		found := find()
		select {
		case came <- found:
		case <-bounded.Done():
			found.close()
		}
	}()
	select {
	case found := <-came:
		return found, nil
	case <-bounded.Done():
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return &slot{instanceID: newInstanceID(), warning: (&unusable{"unusable", place}).Error()}, nil
	}
}

// end closes a slot, and calls then once the slot is closed, or after the patience. Without a file, end calls then at once; with
// a file, end never waits.
func (s *slots) end(ended *slot, then func()) {
	if !ended.isLocked() {
		then()
		return
	}
	then = sync.OnceFunc(then)
	timer := time.AfterFunc(s.endPatience, then)
	go func() {
		if s.calls.enter(context.Background()) == nil {
			ended.close()
			s.calls.leave()
		}
		timer.Stop()
		then()
	}()
}
