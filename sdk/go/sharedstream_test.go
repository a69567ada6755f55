package seatkeeper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// acquireTogether acquires the seats of the machines with these numbers, which join their stream at one instant.
func acquireTogether(t *testing.T, client *Client, numbers ...int) []*Seat {
	t.Helper()
	seats := acquireUnwatched(t, client, numbers...)
	watchTogether(client, seats)
	return seats
}

// acquireUnwatched acquires the seats of the machines with these numbers, which join no stream yet.
func acquireUnwatched(t *testing.T, client *Client, numbers ...int) []*Seat {
	t.Helper()
	setOff := func(isOff bool) {
		client.mu.Lock()
		defer client.mu.Unlock()
		client.streams.isOff = isOff
	}
	setOff(true)
	defer setOff(false)
	var seats []*Seat
	for _, number := range numbers {
		seat, _ := acquireFor(t, client, fmt.Sprint("m", number))
		seats = append(seats, seat)
	}
	return seats
}

// watchTogether lets the seats join their stream at one instant, which is returned.
func watchTogether(client *Client, seats []*Seat) time.Time {
	client.mu.Lock()
	defer client.mu.Unlock()
	for _, seat := range seats {
		client.watch(seat)
	}
	return time.Now()
}

// sessions returns the sessions of the requests for streams, by their numbers, in order.
func (s *streamed) sessions() [][]int {
	var all [][]int
	for _, request := range s.requests() {
		var numbers []int
		first := strings.TrimSuffix(strings.TrimPrefix(request.URL.Path, licenseSessions), "/events")
		sessions := []string{first}
		if request.URL.RawQuery != "" {
			with := strings.TrimPrefix(request.URL.RawQuery, "with=")
			sessions = append(sessions, strings.Split(with, ",")...)
		}
		for _, session := range sessions {
			var number int
			_, _ = fmt.Sscanf(session, "0198a0aa-0000-7000-8000-%d", &number)
			numbers = append(numbers, number)
		}
		all = append(all, numbers)
	}
	return all
}

// expectRequests waits until the requests for streams name these sessions.
func (s *streamed) expectRequests(t *testing.T, wanted ...[]int) {
	t.Helper()
	eventually(t, fmt.Sprintf("no requests about %v", wanted), func() bool { return len(s.requests()) >= len(wanted) })
	if asked := s.sessions(); !slices.EqualFunc(asked, wanted, slices.Equal) {
		t.Fatalf("requests about %v instead of %v", asked, wanted)
	}
}

func beatOf(number int) string {
	return "PATCH " + licenseSessions + sessionNumber(number) + "/heartbeat"
}

func endOf(number int) string {
	return `event: revoked` + "\n" + `data: {"session_id":"` + sessionNumber(number) + `","reason":"revoked"}` + "\n\n"
}

func unknownOf(number int) string {
	return `event: unknown` + "\n" + `data: {"session_id":"` + sessionNumber(number) + `"}` + "\n\n"
}

var goneReply = reply{status: 410, body: `{"type":"/problems/session-ended","reason":"revoked"}`}

// telling returns a listener that keeps each stream open, and writes the texts of a channel to a shared stream.
func telling(texts <-chan string) listener {
	return func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "")
		tellAll(w, r, texts)
	}
}

func tellAll(w http.ResponseWriter, r *http.Request, texts <-chan string) {
	if r.URL.RawQuery == "" {
		texts = nil
	}
	for {
		select {
		case text := <-texts:
			stream(w, text)
		case <-r.Context().Done():
			return
		}
	}
}

func expectLost(t *testing.T, seat *Seat) {
	t.Helper()
	select {
	case <-seat.Lost():
	case <-time.After(longWait):
		t.Fatal("no loss is told")
	}
	var loss *Loss
	if !errors.As(seat.Err(), &loss) || loss.Reason != ReasonRevoked {
		t.Error(seat.Err())
	}
}

func expectHeld(t *testing.T, seats ...*Seat) {
	t.Helper()
	for _, seat := range seats {
		if err := seat.Check(); err != nil {
			t.Error(seat, err)
		}
	}
}

func release(t *testing.T, seats ...*Seat) {
	t.Helper()
	for _, seat := range seats {
		if err := seat.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestSeatsOfOneClientShareAStreamAndAnEndReachesItsSeat(t *testing.T) {
	texts := make(chan string)
	server := newStreamed(t, map[string]reply{beatOf(2): goneReply}, telling(texts))
	seats := acquireTogether(t, newStreamingClient(t, server, quick), 1, 2, 3)
	server.expectRequests(t, []int{1, 2, 3})
	texts <- "id: 7\n\n" + endOf(2)
	expectLost(t, seats[1])
	expectHeld(t, seats[0], seats[2])
	if beats := server.count(beatOf(1)) + server.count(beatOf(3)); beats > 0 || server.count(beatOf(2)) != 1 {
		t.Errorf("%d heartbeats of the other seats, %d of the ended one", beats, server.count(beatOf(2)))
	}
	server.expectRequests(t, []int{1, 2, 3})
	if open := server.open.Load(); open != 1 {
		t.Errorf("%d streams", open)
	}
}

func TestASharedStreamThatIsCutIsOpenedAgainForAllItsSessions(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
		switch earlier {
		case 0:
			stream(w, "id: 7\n\n")
		case 1:
			w.WriteHeader(503)
		case 2:
			w.WriteHeader(429)
		case 3:
			w.WriteHeader(302)
		case 4:
			panic(http.ErrAbortHandler)
		default:
			stream(w, "")
			<-r.Context().Done()
		}
	})
	seats := acquireTogether(t, newStreamingClient(t, server, quick), 1, 2)
	both := []int{1, 2}
	server.expectRequests(t, both, both, both, both, both, both)
	for _, request := range server.requests() {
		if id := request.Header.Get("Last-Event-ID"); id != "" {
			t.Errorf("a shared stream goes on from %s", id)
		}
	}
	expectHeld(t, seats...)
}

func TestAnUnknownCompanionGetsAStreamOfItsOwn(t *testing.T) {
	texts := make(chan string)
	server := newStreamed(t, nil, telling(texts))
	client := newStreamingClient(t, server, quick)
	seats := acquireTogether(t, client, 1, 2, 3)
	texts <- unknownOf(2)
	server.expectRequests(t, []int{1, 2, 3}, []int{2})
	eventually(t, "not two streams", func() bool { return server.open.Load() == 2 })
	if beats := server.count(beatOf(2)); beats > 0 {
		t.Error("an unknown companion asks by a heartbeat")
	}
	// The seat that is alone stays alone.
	next, _ := acquireFor(t, client, "m4")
	server.expectRequests(t, []int{1, 2, 3}, []int{2}, []int{1, 3, 4})
	expectHeld(t, append(seats, next)...)
	release(t, seats[1])
	eventually(t, "the stream of one seat outlives the seat", func() bool { return server.open.Load() == 1 })
}

// The home of the first session may have moved, so that its own stream decides.
func TestAnUnknownFirstSessionGetsAStreamOfItsOwnWhose404IsFinal(t *testing.T) {
	texts := make(chan string)
	shared := telling(texts)
	server := newStreamed(t, map[string]reply{beatOf(3): goneReply}, func(w http.ResponseWriter, r *http.Request, earlier int) {
		if r.URL.RawQuery == "" {
			w.WriteHeader(404)
			return
		}
		shared(w, r, earlier)
	})
	client := newStreamingClient(t, server, quick)
	seats := acquireTogether(t, client, 1, 2, 3)
	texts <- unknownOf(1)
	server.expectRequests(t, []int{1, 2, 3}, []int{1})
	eventually(t, "no heartbeat", func() bool { return server.count(beatOf(1)) == 1 })
	// The connection goes on for the other seats.
	texts <- unknownOf(1) + endOf(3)
	expectLost(t, seats[2])
	acquireFor(t, client, "m4")
	server.expectRequests(t, []int{1, 2, 3}, []int{1}, []int{2, 4})
	if beats := server.count(beatOf(1)); beats != 1 {
		t.Errorf("%d heartbeats", beats)
	}
	expectHeld(t, seats[0], seats[1])
}

// A stream that is opened anew tells an end again, while the heartbeat that confirms the end is in flight.
func TestARepeatedEndCancelsNoHeartbeatThatConfirmsTheFirstTelling(t *testing.T) {
	answer := make(chan struct{})
	texts := make(chan string)
	live := reply{status: 200, body: strings.Replace(streamedGrant, streamedSession, sessionNumber(2), 1), after: answer}
	server := newStreamed(t, map[string]reply{beatOf(2): live, beatOf(3): goneReply}, telling(texts))
	client := newStreamingClient(t, server, quick)
	seats := acquireTogether(t, client, 1, 2, 3)
	texts <- endOf(2)
	eventually(t, "no heartbeat", func() bool { return server.count(beatOf(2)) == 1 })
	next := acquireTogether(t, client, 4)
	server.expectRequests(t, []int{1, 2, 3}, []int{1, 2, 3, 4})
	// The handler of the first connection would take the text.
	eventually(t, "the first connection is open", func() bool { return server.open.Load() == 1 })
	texts <- endOf(2) + endOf(3)
	expectLost(t, seats[2])
	if beats := server.count(beatOf(2)); beats != 1 {
		t.Errorf("%d heartbeats", beats)
	}
	close(answer)
	eventually(t, "the first telling is not refuted", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return !seats[1].isConfirmingEnd()
	})
	// The session may end after the heartbeat.
	texts <- endOf(2)
	eventually(t, "a later end is ignored", func() bool { return server.count(beatOf(2)) == 2 })
	expectHeld(t, seats[0], seats[1], next[0])
}

func TestARefusedSharedStreamGivesEachSeatAStreamOfItsOwn(t *testing.T) {
	for _, status := range []int{204, 400, 403, 404, 414} {
		server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
			if r.URL.RawQuery != "" {
				w.WriteHeader(status)
				return
			}
			stream(w, "")
			<-r.Context().Done()
		})
		client := newStreamingClient(t, server, quick)
		seats := acquireTogether(t, client, 1, 2, 3)
		eventually(t, "not three streams", func() bool { return server.open.Load() == 3 })
		asked := server.sessions()
		slices.SortFunc(asked, slices.Compare)
		if !slices.EqualFunc(asked, [][]int{{1}, {1, 2, 3}, {2}, {3}}, slices.Equal) {
			t.Errorf("%d: requests about %v", status, asked)
		}
		next, _ := acquireFor(t, client, "m4")
		eventually(t, "no fourth stream", func() bool { return server.open.Load() == 4 })
		if last := server.sessions()[4:]; !slices.EqualFunc(last, [][]int{{4}}, slices.Equal) {
			t.Errorf("%d: requests about %v", status, last)
		}
		for number := range 5 {
			if beats := server.count(beatOf(number)); beats > 0 {
				t.Errorf("%d: %d heartbeats of seat %d", status, beats, number)
			}
		}
		release(t, append(seats, next)...)
		eventually(t, "a stream outlives its seat", func() bool { return server.open.Load() == 0 })
	}
}

func TestARejectedSharedStreamWaitsForTheNextToken(t *testing.T) {
	var issued atomic.Int64
	source := TokenSource(func(context.Context) (string, error) {
		return fmt.Sprint("t", issued.Add(1)-1), nil
	})
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.Header.Get("Authorization") == "Bearer t0" {
			w.WriteHeader(401)
			return
		}
		stream(w, "")
		<-r.Context().Done()
	})
	client := newStreamingClient(t, server, quick, source)
	seats := acquireTogether(t, client, 1, 2)
	server.expectRequests(t, []int{1, 2})
	eventually(t, "no stream is rejected", func() bool { return server.open.Load() == 0 })
	client.mu.Lock()
	seats[0].sentWith = 0
	client.refreshToken(seats[0])
	client.mu.Unlock()
	eventually(t, "no stream with the next token", func() bool { return server.open.Load() == 1 })
	server.expectRequests(t, []int{1, 2}, []int{1, 2})
	expectHeld(t, seats...)
}

func TestASeatThatLeavesClosesNothingForTheOthersAndTheLastOneClosesTheStream(t *testing.T) {
	texts := make(chan string)
	server := newStreamed(t, map[string]reply{beatOf(3): goneReply}, telling(texts))
	seats := acquireTogether(t, newStreamingClient(t, server, quick), 1, 2, 3)
	server.expectRequests(t, []int{1, 2, 3})
	release(t, seats[0])
	// Events about a session that nobody follows are ignored.
	texts <- unknownOf(1) + endOf(1) + endOf(3)
	expectLost(t, seats[2])
	if beats := server.count(beatOf(1)); beats > 0 {
		t.Error("a seat that was released asks by a heartbeat")
	}
	server.expectRequests(t, []int{1, 2, 3})
	if open := server.open.Load(); open != 1 {
		t.Errorf("%d streams", open)
	}
	release(t, seats[1])
	eventually(t, "the stream outlives its last seat", func() bool { return server.open.Load() == 0 })
	server.expectRequests(t, []int{1, 2, 3})
}

func TestSeatsThatJoinTogetherCostOneRequest(t *testing.T) {
	times := quick
	times.joinPause = 100 * time.Millisecond
	// A connection that is cut for a join is no failure.
	times.backoffFirst, times.backoffMax = time.Hour, time.Hour
	server := newStreamed(t, nil, telling(nil))
	client := newStreamingClient(t, server, times)
	first := acquireUnwatched(t, client, 1)
	began := watchTogether(client, first)
	server.expectRequests(t, []int{1})
	joining := acquireUnwatched(t, client, 2, 3)
	joined := watchTogether(client, joining[:1])
	watchTogether(client, joining[1:])
	eventually(t, "no request about the seats that joined", func() bool { return len(server.requests()) == 2 })
	eventually(t, "the first connection is open", func() bool { return server.open.Load() == 1 })
	expectHeld(t, append(first, joining...)...)
	// Each seat was listed by the end of the pause of the first one.
	if last := server.sessions()[1]; !slices.Equal(last, []int{1, 2, 3}) {
		t.Error(last)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.askedAt[0].Sub(began) < times.joinPause || server.askedAt[1].Sub(joined) < times.joinPause {
		t.Error(began, joined, server.askedAt)
	}
}

func TestASeatThatJoinedAndLeftOpensNothing(t *testing.T) {
	server := newStreamed(t, nil, telling(nil))
	client := newStreamingClient(t, server, quick)
	seats := acquireTogether(t, client, 1)
	eventually(t, "no stream is open", func() bool { return server.open.Load() == 1 })
	joining := acquireUnwatched(t, client, 2)
	client.mu.Lock()
	stream := seats[0].follower.group.stream
	client.watch(joining[0])
	isPlanned := stream.reopening != nil
	client.unfollow(joining[0])
	client.mu.Unlock()
	if !isPlanned {
		t.Error("a seat that joins plans no request")
	}
	eventually(t, "the plan goes on", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return stream.reopening == nil && stream.cut != nil
	})
	acquireTogether(t, client, 3)
	server.expectRequests(t, []int{1}, []int{1, 3})
}

// isPlanned reports whether the stream of a seat will be opened anew for seats that joined.
func isPlanned(client *Client, seat *Seat) bool {
	client.mu.Lock()
	defer client.mu.Unlock()
	return seat.follower.group.stream.reopening != nil
}

func TestASeatThatJoinsCutsNoOpeningWithoutAnAnswer(t *testing.T) {
	for _, status := range []int{200, 503} {
		answer := make(chan struct{})
		server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
			if earlier == 0 && r.URL.RawQuery == "" {
				select {
				case <-answer:
				case <-r.Context().Done():
					return
				}
				if status != 200 {
					w.WriteHeader(status)
					return
				}
			}
			stream(w, "")
			<-r.Context().Done()
		})
		client := newStreamingClient(t, server, quick)
		seats := acquireTogether(t, client, 1)
		server.expectRequests(t, []int{1})
		seats = append(seats, acquireTogether(t, client, 2, 3)...)
		// Many pauses for seats that join.
		pause(context.Background(), 50*time.Millisecond)
		if isPlanned(client, seats[0]) || server.open.Load() != 1 || len(server.requests()) != 1 {
			t.Errorf("%d: an opening is cut", status)
		}
		close(answer)
		server.expectRequests(t, []int{1}, []int{1, 2, 3})
		eventually(t, "not one stream", func() bool { return server.open.Load() == 1 })
		expectHeld(t, seats...)
	}
}

func TestASeatThatLeavesBeforeTheAnswerPlansNoFurtherRequest(t *testing.T) {
	times := quick
	times.joinPause = 200 * time.Millisecond
	answer := make(chan struct{})
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		select {
		case <-answer:
			stream(w, "")
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	})
	client := newStreamingClient(t, server, times)
	seats := acquireTogether(t, client, 1)
	server.expectRequests(t, []int{1})
	release(t, acquireTogether(t, client, 2)...)
	close(answer)
	eventually(t, "no answer comes", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return seats[0].follower.group.stream.cut != nil
	})
	if isPlanned(client, seats[0]) {
		t.Error("a seat that left plans a request")
	}
	server.expectRequests(t, []int{1})
}

func TestThePauseForSeatsThatJoinDoublesWhileTheyJoinSteadily(t *testing.T) {
	times := streamTimesDefault
	for last, next := range map[time.Duration]time.Duration{0: 100, 100: 200, 200: 400, 800: 1600, 1600: 1600} {
		last, next = last*time.Millisecond, next*time.Millisecond
		if span := times.pauseAfter(last, 2*time.Second); span != next {
			t.Errorf("%v after %v", span, last)
		}
		if span := times.pauseAfter(last, 2*time.Second+1); span != 100*time.Millisecond {
			t.Errorf("%v long after %v", span, last)
		}
	}
	times = quick
	times.joinPause, times.joinPauseMax, times.joinSpan = 20*time.Millisecond, 80*time.Millisecond, time.Hour
	server := newStreamed(t, nil, telling(nil))
	client := newStreamingClient(t, server, times)
	wanted := [][]int{{1}}
	acquireTogether(t, client, 1)
	server.expectRequests(t, wanted...)
	var joinedAt []time.Time
	for number := range 4 {
		seats := acquireUnwatched(t, client, number+2)
		joinedAt = append(joinedAt, watchTogether(client, seats))
		wanted = append(wanted, append(slices.Clone(wanted[number]), number+2))
		server.expectRequests(t, wanted...)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	for i, least := range []time.Duration{20, 40, 80, 80} {
		if span := server.askedAt[i+1].Sub(joinedAt[i]); span < least*time.Millisecond {
			t.Errorf("request %d comes after %v", i+1, span)
		}
	}
}

func TestASharedStreamKeepsNoPlaceInTheEvents(t *testing.T) {
	cut := make(chan struct{})
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.RawQuery == "" {
			stream(w, "id: 7\n\n")
			<-r.Context().Done()
			return
		}
		stream(w, "id: 8\n\n")
		<-cut
	})
	client := newStreamingClient(t, server, quick)
	seats := acquireTogether(t, client, 1)
	server.expectRequests(t, []int{1})
	eventually(t, "no id is kept", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return seats[0].follower.group.stream.place.lastID == "7"
	})
	companion := acquireTogether(t, client, 2)
	server.expectRequests(t, []int{1}, []int{1, 2})
	release(t, companion...)
	close(cut)
	server.expectRequests(t, []int{1}, []int{1, 2}, []int{1})
	for i, request := range server.requests() {
		if id := request.Header.Get("Last-Event-ID"); id != "" {
			t.Errorf("request %d goes on from %s", i, id)
		}
	}
}

func TestASeatThatJoinsCutsNoBackoffShort(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
		if earlier == 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			return
		}
		stream(w, "")
		<-r.Context().Done()
	})
	client := newStreamingClient(t, server, quick)
	acquireTogether(t, client, 1)
	eventually(t, "no stream is refused", func() bool { return len(server.requests()) == 1 && server.open.Load() == 0 })
	acquireTogether(t, client, 2)
	server.expectRequests(t, []int{1}, []int{1, 2})
	server.mu.Lock()
	defer server.mu.Unlock()
	if at := server.askedAt; at[1].Sub(at[0]) < time.Second {
		t.Error(at)
	}
}

// A token ahead of time replaces a token that no heartbeat has found rejected.
func TestAStreamWithARejectedTokenWaitsForATokenAheadOfTimeAndForNoSeat(t *testing.T) {
	var issued atomic.Int64
	source := TokenSource(func(context.Context) (string, error) {
		return fmt.Sprint("t", issued.Add(1)-1), nil
	})
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.Header.Get("Authorization") == "Bearer t0" {
			w.WriteHeader(401)
			return
		}
		stream(w, "")
		<-r.Context().Done()
	})
	client := newStreamingClient(t, server, quick, source)
	seats := acquireTogether(t, client, 1)
	eventually(t, "no stream is rejected", func() bool { return len(server.requests()) == 1 && server.open.Load() == 0 })
	seats = append(seats, acquireTogether(t, client, 2)...)
	// Many pauses for seats that join.
	pause(context.Background(), 50*time.Millisecond)
	server.expectRequests(t, []int{1})
	if err := client.transport.tokens.refresh(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	server.expectRequests(t, []int{1}, []int{1, 2})
	expectHeld(t, seats...)
}

// Neither connection lives long enough for a new start of the backoff, and the stream does.
func TestTheLifeOfAStreamGoesOnWhenASeatJoins(t *testing.T) {
	times := quick
	times.backoffMax, times.lifeMin = time.Hour, time.Second
	const failures, connections, retries = 10, 2, 8
	cut := make(chan struct{})
	var begun atomic.Int64
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "")
		if number := begun.Add(1); number <= failures || number > failures+connections {
			return
		}
		select {
		case <-cut:
		case <-r.Context().Done():
		}
	})
	client := newStreamingClient(t, server, times)
	acquireTogether(t, client, 1)
	expectTries := func(number int) {
		t.Helper()
		eventually(t, fmt.Sprintf("not %d tries", number), func() bool { return len(server.requests()) >= number })
	}
	expectTries(failures + 1)
	joining := acquireUnwatched(t, client, 2)
	pause(context.Background(), times.lifeMin*3/5)
	watchTogether(client, joining)
	expectTries(failures + connections)
	pause(context.Background(), times.lifeMin*3/5)
	close(cut)
	// The backoff doubles from a millisecond: these retries take minutes without a new start.
	expectTries(failures + connections + retries)
}

func TestAHundredAndOneSeatsAreTwoStreams(t *testing.T) {
	server := newStreamed(t, nil, telling(nil))
	client := newStreamingClient(t, server, quick)
	var numbers []int
	for number := range 101 {
		numbers = append(numbers, number+1)
	}
	acquireTogether(t, client, numbers...)
	eventually(t, "not two streams", func() bool { return server.open.Load() == 2 })
	asked := server.sessions()
	slices.SortFunc(asked, slices.Compare)
	if !slices.EqualFunc(asked, [][]int{numbers[:100], {101}}, slices.Equal) {
		t.Error(asked)
	}
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
	eventually(t, "a stream outlives its seats", func() bool { return server.open.Load() == 0 })
}

// A client that acquires twice for one machine has one session in two seats.
func TestTwoSeatsOfOneSessionShareItsSingleStream(t *testing.T) {
	ends := make(chan struct{})
	server := newStreamed(t, map[string]reply{beatTarget: goneReply}, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "")
		select {
		case <-ends:
			stream(w, revokedEvent)
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	})
	seats := acquireTogether(t, newStreamingClient(t, server, quick), 1, 1)
	server.expectRequests(t, []int{1})
	close(ends)
	for _, seat := range seats {
		expectLost(t, seat)
	}
	server.expectRequests(t, []int{1})
}

// A later server may tell events that a stream of one session has not today.
func TestAStreamOfOneSessionIgnoresAnUnknownSession(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
		stream(w, unknownOf(1)+"id: 9\n\n")
		if earlier > 0 {
			<-r.Context().Done()
		}
	})
	seats := acquireTogether(t, newStreamingClient(t, server, quick), 1)
	server.expectRequests(t, []int{1}, []int{1})
	if id := server.requests()[1].Header.Get("Last-Event-ID"); id != "9" || server.count(beatTarget) > 0 {
		t.Error(id, server.count(beatTarget))
	}
	expectHeld(t, seats...)
}

// faultyTokens is a store of tokens with an error, at the first streams.
type faultyTokens struct {
	tokenStore
	failures, streams atomic.Int64
}

func (f *faultyTokens) fresh(owner string) <-chan struct{} {
	if f.streams.Add(1) <= f.failures.Load() {
		panic("an error of the client")
	}
	return f.tokenStore.fresh(owner)
}

func newFaulty(client *Client, failures int64) *faultyTokens {
	faulty := &faultyTokens{tokenStore: client.transport.tokens}
	faulty.failures.Store(failures)
	client.transport.tokens = faulty
	return faulty
}

func TestTheSeatsOfAStreamThatFailedAreFollowedAgain(t *testing.T) {
	server := newStreamed(t, nil, telling(nil))
	client := newStreamingClient(t, server, quick)
	const failures = 3
	faulty := newFaulty(client, failures)
	seats := acquireTogether(t, client, 1, 2)
	server.expectRequests(t, []int{1, 2})
	if tries := faulty.streams.Load(); tries != failures+1 {
		t.Errorf("%d tries", tries)
	}
	seats = append(seats, acquireTogether(t, client, 3)...)
	server.expectRequests(t, []int{1, 2}, []int{1, 2, 3})
	expectHeld(t, seats...)
	release(t, seats...)
	eventually(t, "a stream outlives its seat", func() bool { return server.open.Load() == 0 })
}

func TestAStreamThatFailedIsOpenedAgainAfterABackoff(t *testing.T) {
	times := quick
	times.backoffFirst, times.backoffMax = time.Hour, time.Hour
	client := newStreamingClient(t, newStreamed(t, nil, telling(nil)), times)
	faulty := newFaulty(client, 1)
	acquireTogether(t, client, 1)
	eventually(t, "no stream fails", func() bool { return faulty.streams.Load() == 1 })
	acquireTogether(t, client, 2)
	pause(context.Background(), 50*time.Millisecond)
	if tries := faulty.streams.Load(); tries != 1 {
		t.Errorf("%d tries", tries)
	}
}
