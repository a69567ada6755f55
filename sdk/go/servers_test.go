package seatkeeper

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"
)

const closedAddress = "http://127.0.0.1:1"

func granting(t *testing.T) *scripted {
	t.Helper()
	return newScripted(t, func(arrived, int) reply { return reply{status: 201, body: scriptedGrant} })
}

func newListClient(t *testing.T, first string, others ...string) *Client {
	t.Helper()
	options := []ClientOption{Token("t"), EventStreams(false)}
	for _, other := range others {
		options = append(options, Server(other))
	}
	client, err := NewClient(first, options...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func takeAndGive(client *Client, patience time.Duration) error {
	seat, err := client.License("K").Acquire(context.Background(), Machine("m"), Patience(patience))
	if err != nil {
		return err
	}
	return seat.Release(context.Background())
}

func TestAServerThatRefusesConnectionsIsPassedOverAndTheNextOneKept(t *testing.T) {
	good, spare := granting(t), granting(t)
	client := newListClient(t, closedAddress, good.url, spare.url)
	for range 3 {
		if err := takeAndGive(client, 0); err != nil {
			t.Error(err)
		}
	}
	if len(good.arrived("")) != 6 || len(spare.arrived("")) != 0 {
		t.Error(good.arrived(""), spare.arrived(""))
	}
}

func TestA503WithoutRetryAfterMovesOnAndOneWithItStays(t *testing.T) {
	good := granting(t)
	gone := newScripted(t, func(arrived, int) reply { return reply{status: 503} })
	if err := takeAndGive(newListClient(t, gone.url, good.url), time.Minute); err != nil {
		t.Error(err)
	}
	if len(gone.arrived(acquireTarget)) != 1 || len(good.arrived(acquireTarget)) != 1 {
		t.Error(gone.arrived(""), good.arrived(""))
	}
	busy := newScripted(t, func(_ arrived, earlier int) reply {
		if earlier == 0 {
			return reply{status: 503, retryAfter: 1}
		}
		return reply{status: 201, body: scriptedGrant}
	})
	if err := takeAndGive(newListClient(t, busy.url, good.url), time.Minute); err != nil {
		t.Error(err)
	}
	if len(busy.arrived(acquireTarget)) != 2 {
		t.Error(busy.arrived(""))
	}
}

func TestANodeIsLeftAfterTwoUnavailableAnswersInARow(t *testing.T) {
	for _, test := range []struct {
		statuses []int
		isLeft   bool
	}{
		{[]int{503}, false},
		{[]int{503, 502}, true},
		{[]int{500, 200, 500}, false},
		{[]int{500, 429, 504}, false},
		{[]int{501, 501, 505, 505}, false},
		{[]int{500, 501, 500}, false},
	} {
		nodes, err := parseServers([]string{"http://a", "http://b"})
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range test.statuses {
			nodes.answered(0, response{status: status, hasRetryAfter: true})
		}
		if node, _ := nodes.current(); (node == 1) != test.isLeft {
			t.Errorf("%v: node %d", test.statuses, node)
		}
		// Requests that were sent before the change tell nothing of the next node.
		for range 3 {
			nodes.answered(0, response{status: 503, hasRetryAfter: true})
		}
		if node, _ := nodes.current(); node != 1 {
			t.Errorf("%v: late answers of the first node leave the next one", test.statuses)
		}
	}
}

func TestALateAnswerOfANodeThatWasLeftCountsForNothingOnceTheNodeIsInUseAgain(t *testing.T) {
	nodes, err := parseServers([]string{"http://a", "http://b"})
	if err != nil {
		t.Fatal(err)
	}
	late, _ := nodes.current()
	nodes.leave(late)
	other, _ := nodes.current()
	nodes.answered(late, response{status: 503, hasRetryAfter: true})
	nodes.leave(other)
	nodes.answered(late, response{status: 503})
	nodes.leave(late)
	again, base := nodes.current()
	nodes.answered(again, response{status: 503, hasRetryAfter: true})
	if _, left := nodes.current(); base != "http://a" || left != "http://a" {
		t.Error(base, left)
	}
	nodes.answered(again, response{status: 503, hasRetryAfter: true})
	if _, left := nodes.current(); left != "http://b" {
		t.Error(left)
	}
}

// A node that is cut off from the other nodes answers every heartbeat by 503 with Retry-After, and a proxy answers 502.
func TestASeatIsKeptByTheNextNodeWhileItsNodeStaysUnavailable(t *testing.T) {
	t.Parallel()
	const ttl = 9 * time.Second
	for _, status := range []int{503, 502} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			beats := make(chan time.Time, 100)
			cutOff := newScripted(t, func(request arrived, _ int) reply {
				if request.target == acquireTarget {
					return reply{status: 201, body: `{"session_id":"` + streamedSession + `","expires_in_seconds":9}`}
				}
				beats <- time.Now()
				return reply{status: status, retryAfter: 1}
			})
			good := newScripted(t, func(arrived, int) reply {
				beats <- time.Now()
				return reply{status: 200, body: `{"expires_in_seconds":9}`}
			})
			client := newListClient(t, cutOff.url, good.url)
			began := time.Now()
			seat, err := client.License("K").Acquire(context.Background(), Machine("m"))
			if err != nil {
				t.Fatal(err)
			}
			first, second, third := <-beats, <-beats, <-beats
			if len(cutOff.arrived(beatTarget)) != 2 || len(good.arrived(beatTarget)) != 1 || third.Sub(began) >= ttl {
				t.Error(cutOff.arrived(beatTarget), good.arrived(beatTarget), third.Sub(began))
			}
			if second.Sub(first) < time.Second || third.Sub(second) < time.Second {
				t.Errorf("%v, %v, %v: Retry-After is not heeded", first, second, third)
			}
			if seat.Check() != nil || seat.Err() != nil {
				t.Error(seat.State(), seat.Err())
			}
			_ = client.Close(context.Background())
		})
	}
}

func TestABrokenConnectionMovesTheNextRequestAndNeverRepeatsOne(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			// Closes after the request has arrived: earlier, the client may see the end before it sends the request.
			_, _ = connection.Read(make([]byte, 65_536))
			connection.Close()
		}
	}()
	client := newListClient(t, "http://"+listener.Addr().String(), granting(t).url)
	var unreachable *Unreachable
	if err := takeAndGive(client, 0); !errors.As(err, &unreachable) || unreachable.Failure != FailureResetAfterSend {
		t.Error(err)
	}
	if err := takeAndGive(client, 0); err != nil {
		t.Error(err)
	}
}

func TestAListWithoutAServerThatAnswersIsOfflineAndAWrongAddressAnError(t *testing.T) {
	var unreachable *Unreachable
	err := takeAndGive(newListClient(t, closedAddress, "http://127.0.0.1:2"), 0)
	if !errors.As(err, &unreachable) || unreachable.Failure != FailureRefused {
		t.Error(err)
	}
	if _, err := NewClient(closedAddress, Token("t"), Server("seats")); err == nil {
		t.Error("a wrong address")
	}
}
