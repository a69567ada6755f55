package seatkeeper

import (
	"context"
	"errors"
	"sync/atomic"
)

// servers are equal nodes of one installation. Every request goes to the node in use; a node that does not serve is left
// for the next node of the list.
type servers struct {
	bases []string
	inUse atomic.Int64
}

// parseServers parses the addresses; the first one is in use.
func parseServers(addresses []string) (*servers, error) {
	if len(addresses) == 0 {
		return nil, errors.New("seatkeeper: a client needs the address of a server")
	}
	s := &servers{}
	for _, address := range addresses {
		base, err := parseBase(address)
		if err != nil {
			return nil, err
		}
		s.bases = append(s.bases, base)
	}
	return s, nil
}

// leave puts the next node in use, unless another request has left node already.
func (s *servers) leave(node int64) {
	s.inUse.CompareAndSwap(node, (node+1)%int64(len(s.bases)))
}

// send sends a request to the node in use, and returns its response. Without a connection the next node gets the request.
// After another failure, or a 503 without Retry-After, the next node gets the next request.
func (t *transport) send(ctx context.Context, r call, token string) (response, fault) {
	var failed fault
	for range t.servers.bases {
		node := t.servers.inUse.Load()
		var answer response
		answer, failed = t.exchange(ctx, t.servers.bases[node], r, token)
		isTimeout := errors.Is(ctx.Err(), context.DeadlineExceeded)
		if failed.failure == "" {
			if answer.status == 503 && !answer.hasRetryAfter {
				t.servers.leave(node)
			}
			return answer, fault{}
		}
		if ctx.Err() != nil {
			failed = fault{failure: FailureTimeout}
		}
		// A request that the client gave up tells nothing of the node.
		if ctx.Err() == nil || isTimeout {
			t.servers.leave(node)
		}
		if !failed.failure.isBeforeConnection() {
			return response{}, failed
		}
	}
	return response{}, failed
}
