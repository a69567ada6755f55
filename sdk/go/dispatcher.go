package seatkeeper

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// changesWaitingMax is the number of changes that wait for a slow callback; older ones give way, except a loss.
const changesWaitingMax = 16

// dispatcher calls one callback of the program in the order of the changes. Its goroutine lives while changes wait, so
// that a slow callback delays no heartbeat.
type dispatcher struct {
	callback func(State)
	logger   *slog.Logger

	mu        sync.Mutex
	waiting   []State
	isRunning bool
	isStopped bool
}

// put queues a change, and never blocks.
func (d *dispatcher) put(state State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isStopped {
		return
	}
	if len(d.waiting) >= changesWaitingMax {
		for i, old := range d.waiting {
			if old.Kind != Lost {
				d.waiting = append(d.waiting[:i], d.waiting[i+1:]...)
				break
			}
		}
	}
	d.waiting = append(d.waiting, state)
	if !d.isRunning {
		d.isRunning = true
		go d.run()
	}
}

// stop drops the changes that wait.
func (d *dispatcher) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isStopped, d.waiting = true, nil
}

func (d *dispatcher) run() {
	isOver := false
	defer func() {
		// A callback that calls runtime.Goexit, as t.FailNow does, ends this goroutine and no later call.
		if !isOver {
			go d.run()
		}
	}()
	for {
		state, ok := d.next()
		if !ok {
			isOver = true
			return
		}
		d.call(state)
	}
}

func (d *dispatcher) next() (State, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waiting) == 0 {
		d.isRunning = false
		return State{}, false
	}
	state := d.waiting[0]
	d.waiting = d.waiting[1:]
	return state, true
}

// call calls the callback; a panic of the callback must not end the program from a goroutine of the client.
func (d *dispatcher) call(state State) {
	defer func() {
		if panicked := recover(); panicked != nil {
			tellError(d.logger, "a callback of the program panicked; the seat is not affected", panicked)
		}
	}()
	d.callback(state)
}

// tellError tells the logger of the program a panic. The handler of the logger may panic, wait, or call the client while the
// caller holds the client's lock, so the handler has a goroutine of its own.
func tellError(logger *slog.Logger, message string, panicked any) {
	go func() {
		defer func() { _ = recover() }()
		logger.Error(message, "panic", fmt.Sprint(panicked))
	}()
}

// silent is a handler that drops every record: the client prints nothing unless the program asks.
type silent struct{}

func (silent) Enabled(context.Context, slog.Level) bool  { return false }
func (silent) Handle(context.Context, slog.Record) error { return nil }
func (s silent) WithAttrs([]slog.Attr) slog.Handler      { return s }
func (s silent) WithGroup(string) slog.Handler           { return s }
