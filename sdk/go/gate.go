package seatkeeper

import "context"

// gate admits one call of the file system, or of a token source, at a time. A call that hangs then keeps one thread or
// goroutine, also after every caller has given up.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// enter waits until no other call is under way, or until ctx is done. Without an error, leave must follow.
func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g gate) leave() { <-g }
