package seatkeeper

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestASeatThatIsLeftSendsNothingMoreAndClosesItsStream(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "")
		<-r.Context().Done()
	})
	client := newStreamingClient(t, server, quick)
	seat, told := acquireStreamed(t, client)
	eventually(t, "no stream is open", func() bool { return server.open.Load() == 1 })
	ctx, cancel := seat.Context(context.Background())
	defer cancel()
	seat.Leave()
	if err := seat.Check(); !errors.Is(err, ErrReleased) {
		t.Error(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(longWait):
		t.Fatal("the context of the seat goes on")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ErrReleased) {
		t.Error(cause)
	}
	eventually(t, "the stream is open", func() bool { return server.open.Load() == 0 })
	eventually(t, "the callback is told another state", func() bool { return told.are(Active, Released) })
	client.Wake()
	seat.Leave()
	if err := seat.Release(context.Background()); err != nil {
		t.Error(err)
	}
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if server.count(deleteTarget)+server.count(beatTarget)+server.count(codeTarget) > 0 {
		t.Error("a seat that was left is asked for")
	}
	if len(client.seats)+len(client.schedule) > 0 {
		t.Error(client.seats, client.schedule)
	}
}

func TestAReleaseUnderWayGoesOnAfterLeave(t *testing.T) {
	answers := map[string]reply{deleteTarget: {status: 204, delay: 100 * time.Millisecond}}
	server := newStreamed(t, answers, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(204) })
	seat, _ := acquireStreamed(t, newStreamingClient(t, server, quick))
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if err := seat.Release(done); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	seat.Leave()
	if err := seat.Release(context.Background()); err != nil || server.count(deleteTarget) != 1 {
		t.Error(err, server.count(deleteTarget))
	}
}

// A heartbeat in flight would reach the server after the last word of the program.
func TestLeaveAbortsTheRequestInFlight(t *testing.T) {
	isAborted := make(chan struct{})
	server := newScripted(t, func(request arrived, _ int) reply {
		if request.target == beatTarget {
			return reply{status: 200, after: isAborted}
		}
		return reply{status: 201, body: scriptedGrant}
	})
	seat := scriptedSeat(t, server.url, nil)
	seat.client.Wake()
	eventually(t, "no heartbeat", func() bool { return len(server.arrived(beatTarget)) == 1 })
	seat.client.mu.Lock()
	abort := seat.abort
	seat.abort = func() {
		abort()
		close(isAborted)
	}
	seat.client.mu.Unlock()
	seat.Leave()
	select {
	case <-isAborted:
	case <-time.After(longWait):
		t.Fatal("the heartbeat goes on")
	}
}

func TestASeatThatIsLeftLeavesItsInstanceID(t *testing.T) {
	server := newScripted(t, func(arrived, int) reply { return reply{status: 201, body: scriptedGrant} })
	state := StateDir(t.TempDir())
	first := scriptedSeat(t, server.url, []ClientOption{state}, PerProcess())
	first.Leave()
	second := scriptedSeat(t, server.url, []ClientOption{state}, PerProcess())
	defer second.Leave()
	ids := map[any]bool{}
	for _, request := range server.arrived(acquireTarget) {
		ids[request.body["instance_id"]] = true
	}
	if len(ids) != 1 {
		t.Errorf("%v are the ids of one slot", ids)
	}
}
