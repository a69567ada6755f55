package seatkeeper

import (
	"context"
	"errors"
	"sync"
)

// unavailableMax is the number of unavailable answers in a row after which a node is left.
const unavailableMax = 2

// servers are equal nodes of one installation. Every request goes to the node in use; a node that does not serve is left
// for the next node of the list.
type servers struct {
	bases []string

	mu sync.Mutex
	// turn counts the changes of the node in use. A late answer belongs to its turn: the node may be in use again.
	turn int
	// unavailable counts the unavailable answers in a row of the node in use.
	unavailable int
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

// current returns the turn of the node in use, and its address.
func (s *servers) current() (turn int, base string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn, s.bases[s.turn%len(s.bases)]
}

// leave puts the next node in use, unless another request has ended the turn already.
func (s *servers) leave(turn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if turn == s.turn {
		s.next()
	}
}

// next puts the next node in use. The caller holds the lock.
func (s *servers) next() {
	s.turn, s.unavailable = s.turn+1, 0
}

// answered leaves a node after a 503 without Retry-After, and after the second unavailable answer in a row: a node that is cut
// off from the other nodes sends Retry-After with every 503.
func (s *servers) answered(turn int, answer response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case turn != s.turn:
	case !isUnavailable(answer.status):
		s.unavailable = 0
	default:
		s.unavailable++
		if s.unavailable >= unavailableMax || (answer.status == 503 && !answer.hasRetryAfter) {
			s.next()
		}
	}
}

// isUnavailable returns true for the status of a node that cannot serve now. Every node of the installation answers 501 and
// 505 alike.
func isUnavailable(status int) bool {
	return status >= 500 && status <= 599 && status != 501 && status != 505
}

// send sends a request to the node in use, and returns its response. Without a connection the next node gets the request.
// After another failure, a 503 without Retry-After or the second 5xx in a row, the next node gets the next request.
func (t *transport) send(ctx context.Context, r call, token string) (response, fault) {
	var failed fault
	for range t.servers.bases {
		turn, base := t.servers.current()
		var answer response
		answer, failed = t.exchange(ctx, base, r, token)
		isTimeout := errors.Is(ctx.Err(), context.DeadlineExceeded)
		if failed.failure == "" {
			t.servers.answered(turn, answer)
			return answer, fault{}
		}
		if ctx.Err() != nil {
			failed = fault{failure: FailureTimeout}
		}
		// A request that the client gave up tells nothing of the node.
		if ctx.Err() == nil || isTimeout {
			t.servers.leave(turn)
		}
		if !failed.failure.isBeforeConnection() {
			return response{}, failed
		}
	}
	return response{}, failed
}
