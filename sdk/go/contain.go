package seatkeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// errGoexit is the error of a call of the program's code that ended its goroutine.
var errGoexit = errors.New("the function ended its goroutine")

// contain calls code of the program: the code may panic, call runtime.Goexit, or ignore ctx. A panic must not end the program
// from a goroutine of the client. A value after the end of ctx goes to discard; nil discards nothing.
func contain[T any](ctx context.Context, call func() (T, error), discard func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result)
	go func() {
		r := result{err: errGoexit}
		defer func() {
			if panicked := recover(); panicked != nil {
				r = result{err: fmt.Errorf("panic: %v", panicked)}
			}
			select {
			case results <- r:
			case <-ctx.Done():
				if r.err == nil && discard != nil {
					discard(r.value)
				}
			}
		}()
		r.value, r.err = call()
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// closeAfter closes the body of an answer when ctx is done, since the transport of a program may ignore ctx. The returned
// function ends the wait.
func closeAfter(ctx context.Context, body io.Closer) (stop func() bool) {
	return context.AfterFunc(ctx, func() { closeBody(body) })
}

// closeBody closes the body of an answer. The body may be code of the program.
func closeBody(body io.Closer) {
	defer func() { _ = recover() }()
	_ = body.Close()
}
