package seatkeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	streamedSession = "0198a0aa-0000-7000-8000-000000000001"
	streamedGrant   = `{"session_id":"` + streamedSession + `","expires_in_seconds":360,"release_code":"c0de"}`
	streamTarget    = "GET /api/v1/licenses/sessions/" + streamedSession + "/events"
	beatTarget      = "PATCH /api/v1/licenses/sessions/" + streamedSession + "/heartbeat"
	deleteTarget    = "DELETE /api/v1/licenses/sessions/" + streamedSession
	codeTarget      = "POST /api/v1/licenses/sessions/release"
	revokedEvent    = "id: 8-ended\nevent: revoked\ndata: {\"session_id\":\"" + streamedSession + "\",\"reason\":\"revoked\"}\n\n"
	// longWait is more than any wait in these tests needs.
	longWait = 30 * time.Second
)

// listener is the handler of one request for a stream: earlier is the number of earlier ones.
type listener func(w http.ResponseWriter, r *http.Request, earlier int)

// streamed is a server with event streams. Requests without an answer in answers are granted: each machine has a session of
// its own.
type streamed struct {
	url string
	// open counts the streams that are open, and connections the connections of clients.
	open, connections atomic.Int64

	mu sync.Mutex
	// asked are the requests for streams, and askedAt their times.
	asked   []*http.Request
	askedAt []time.Time
	answers map[string]reply
	earlier map[string]int
}

func newStreamed(t *testing.T, answers map[string]reply, listen listener) *streamed {
	t.Helper()
	s := &streamed{answers: answers, earlier: map[string]int{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target := r.Method + " " + r.URL.Path
		earlier := s.note(target, r)
		if r.Method == "GET" {
			s.open.Add(1)
			defer s.open.Add(-1)
			listen(w, r, earlier)
			return
		}
		granted := strings.Replace(streamedGrant, streamedSession, grantedSession(r), 1)
		answer, ok := s.answers[target]
		if !ok && r.Method == "DELETE" {
			answer = reply{status: 204}
		} else if !ok {
			answer = reply{status: 200, body: granted}
		}
		if answer.delay > 0 {
			pause(r.Context(), answer.delay)
		}
		if answer.after != nil {
			select {
			case <-answer.after:
			case <-r.Context().Done():
			}
		}
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.connections.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.connections.Add(-1)
		}
	}
	server.Start()
	t.Cleanup(func() {
		// A stream that a failed test left open would hold up the end.
		server.CloseClientConnections()
		server.Close()
	})
	s.url = server.URL
	return s
}

// grantedSession returns the session of the machine that a request names, or else the session in its path.
func grantedSession(r *http.Request) string {
	var body struct {
		Machine string `json:"machine_id"`
	}
	text, _ := io.ReadAll(r.Body)
	if json.Unmarshal(text, &body) == nil && body.Machine != "" {
		number := 1
		_, _ = fmt.Sscanf(body.Machine, "m%d", &number)
		return sessionNumber(number)
	}
	return strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, licenseSessions), "/heartbeat")
}

// sessionNumber returns the session of the machine m with this number; the session of the machine m is number 1.
func sessionNumber(number int) string {
	return fmt.Sprintf("0198a0aa-0000-7000-8000-%012d", number)
}

func (s *streamed) note(target string, r *http.Request) (earlier int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == "GET" {
		s.asked, s.askedAt = append(s.asked, r), append(s.askedAt, time.Now())
	}
	s.earlier[target]++
	return s.earlier[target] - 1
}

// requests returns the requests for streams, in order.
func (s *streamed) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// count returns the number of requests for a target.
func (s *streamed) count(target string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.earlier[target]
}

// quick are spans for tests: retries come at once, and nothing else does.
var quick = streamTimes{
	joinPause:    time.Millisecond,
	joinPauseMax: time.Millisecond,
	silenceMax:   time.Hour,
	backoffFirst: time.Millisecond,
	backoffMax:   time.Millisecond,
	lifeMin:      time.Hour,
}

func newStreamingClient(t *testing.T, s *streamed, times streamTimes, options ...ClientOption) *Client {
	t.Helper()
	client, err := NewClient(s.url, append([]ClientOption{Token("t0")}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	client.streams.times = times
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// toldKinds collects the kinds of the states that a seat tells.
type toldKinds struct {
	mu    sync.Mutex
	kinds []Kind
}

func (k *toldKinds) add(state State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kinds = append(k.kinds, state.Kind)
}

func (k *toldKinds) are(kinds ...Kind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Equal(k.kinds, kinds)
}

func acquireStreamed(t *testing.T, client *Client) (*Seat, *toldKinds) {
	t.Helper()
	return acquireFor(t, client, "m")
}

func acquireFor(t *testing.T, client *Client, machine string) (*Seat, *toldKinds) {
	t.Helper()
	told := &toldKinds{}
	seat, err := client.License("K").Acquire(context.Background(), Machine(machine), OnChange(told.add))
	if err != nil {
		t.Fatal(err)
	}
	return seat, told
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(longWait); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// stream begins a stream, and writes a text.
func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

func TestAnEndFromTheStreamIsToldAtOnce(t *testing.T) {
	ends := make(chan struct{})
	gone := reply{status: 410, body: `{"type":"/problems/session-ended","reason":"revoked"}`}
	server := newStreamed(t, map[string]reply{beatTarget: gone}, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "id: 8\n\n: still here\n\nevent: license_changed\ndata: {\"seats_total\":3}\n\n")
		<-ends
		stream(w, revokedEvent)
		<-r.Context().Done()
	})
	seat, told := acquireStreamed(t, newStreamingClient(t, server, quick))
	eventually(t, "no stream is open", func() bool { return server.open.Load() == 1 })
	if err := seat.Check(); err != nil {
		t.Error(err)
	}
	close(ends)
	select {
	case <-seat.Lost():
	case <-time.After(time.Second):
		t.Fatal("no loss is told")
	}
	var loss *Loss
	if !errors.As(seat.Check(), &loss) || loss.Reason != ReasonRevoked || loss.Retry {
		t.Error(seat.Check())
	}
	eventually(t, "the loss is told otherwise", func() bool { return told.are(Active, Lost) })
	eventually(t, "the stream of a lost seat is open", func() bool { return server.open.Load() == 0 })
	if asked := len(server.requests()); asked != 1 {
		t.Error(asked)
	}
}

func TestAStreamThatIsCutGoesOnFromItsLastID(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
		switch earlier {
		case 0:
			stream(w, "id: 7\n\nid: 8\n")
		case 1:
			stream(w, "id: 9\nevent: license_changed\ndata: {}\n\nid: "+strings.Repeat("9", 2_000)+"\n\n")
		case 2:
			stream(w, ": still here\n\n")
		case 3:
			panic(http.ErrAbortHandler)
		default:
			stream(w, "")
			<-r.Context().Done()
		}
	})
	seat, told := acquireStreamed(t, newStreamingClient(t, server, quick))
	eventually(t, "no fifth stream", func() bool { return len(server.requests()) == 5 })
	for i, wanted := range []string{"", "7", "9", "9", "9"} {
		header := server.requests()[i].Header
		if header.Get("Last-Event-ID") != wanted || header.Get("Accept") != "text/event-stream" ||
			header.Get("Authorization") != "Bearer t0" || header.Get("Accept-Encoding") != "identity" {
			t.Error(i, header)
		}
	}
	if err := seat.Check(); err != nil || seat.State().Kind != Active || !told.are(Active) {
		t.Error(err, seat.State())
	}
}

func TestAStreamThatAProxySwallowsChangesNothing(t *testing.T) {
	times := quick
	times.silenceMax = 20 * time.Millisecond
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
		if earlier%2 == 1 {
			stream(w, ": still here\n\n")
		}
		<-r.Context().Done()
	})
	seat, told := acquireStreamed(t, newStreamingClient(t, server, times))
	eventually(t, "a dead connection is kept", func() bool { return len(server.requests()) >= 5 })
	if err := seat.Check(); err != nil || seat.State().Kind != Active || !told.are(Active) {
		t.Error(err, seat.State())
	}
	if err := seat.Release(context.Background()); err != nil {
		t.Error(err)
	}
	eventually(t, "a stream is open", func() bool { return server.open.Load() == 0 })
}

func TestBytesKeepAStreamAlive(t *testing.T) {
	times := quick
	times.silenceMax = 2 * time.Second
	begun := time.Now()
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		for pause(r.Context(), 50*time.Millisecond) {
			stream(w, ":\n")
		}
	})
	acquireStreamed(t, newStreamingClient(t, server, times))
	eventually(t, "no time passes", func() bool { return time.Since(begun) > 2*times.silenceMax })
	if asked := len(server.requests()); asked != 1 {
		t.Errorf("%d streams", asked)
	}
}

func TestASessionThatEndedWhileItsStreamWasCutIsLostWithinASecond(t *testing.T) {
	for _, status := range []int{204, 404} {
		gone := reply{status: 410, body: `{"type":"/problems/session-ended","reason":"revoked"}`}
		server := newStreamed(t, map[string]reply{beatTarget: gone}, func(w http.ResponseWriter, _ *http.Request, earlier int) {
			if earlier == 0 {
				stream(w, "id: 7\n\n")
				return
			}
			w.WriteHeader(status)
		})
		seat, told := acquireStreamed(t, newStreamingClient(t, server, quick))
		eventually(t, "no second stream", func() bool { return len(server.requests()) == 2 })
		select {
		case <-seat.Lost():
		case <-time.After(time.Second):
			t.Fatal(status, "no loss is told")
		}
		var loss *Loss
		if !errors.As(seat.Check(), &loss) || loss.Reason != ReasonRevoked || server.count(beatTarget) != 1 {
			t.Error(status, seat.Check(), server.count(beatTarget))
		}
		eventually(t, "the loss is told otherwise", func() bool { return told.are(Active, Lost) })
	}
}

func TestAStreamThatIsOverIsNotOpenedAgainAndAsksOnce(t *testing.T) {
	for _, status := range []int{204, 404} {
		server := newStreamed(t, nil, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(status) })
		client := newStreamingClient(t, server, quick)
		seat, _ := acquireStreamed(t, client)
		eventually(t, "no heartbeat", func() bool { return server.count(beatTarget) == 1 })
		// The session is left and found again, as after an acquire that resumes it.
		client.mu.Lock()
		client.unfollow(seat)
		client.watch(seat)
		isWatched := seat.follower.group != nil
		client.mu.Unlock()
		// Hundreds of pauses between two tries.
		pause(context.Background(), 500*time.Millisecond)
		asked, beats := len(server.requests()), server.count(beatTarget)
		if asked != 1 || beats != 1 || isWatched || seat.Check() != nil {
			t.Error(status, asked, beats, isWatched, seat.Check())
		}
	}
}

func TestAnotherSessionHasAStreamOfItsOwn(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
		stream(w, "id: 7\n\n")
		if earlier > 0 || strings.HasSuffix(r.URL.Path, "/another/events") {
			<-r.Context().Done()
		}
	})
	client := newStreamingClient(t, server, quick)
	seat, _ := acquireStreamed(t, client)
	eventually(t, "no id is kept", func() bool {
		asked := server.requests()
		return len(asked) == 2 && asked[1].Header.Get("Last-Event-ID") == "7"
	})
	client.mu.Lock()
	seat.machine.phase.lease().session = "another"
	client.watch(seat)
	client.mu.Unlock()
	eventually(t, "no stream of the other session", func() bool { return len(server.requests()) == 3 })
	last := server.requests()[2]
	if !strings.HasSuffix(last.URL.Path, "/another/events") || last.Header.Get("Last-Event-ID") != "" {
		t.Error(last.URL, last.Header)
	}
	eventually(t, "the first stream is open", func() bool { return server.open.Load() == 1 })
}

func TestAnythingButAStreamIsTriedAgainAndRetryAfterIsHeeded(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
		switch earlier {
		case 0:
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, revokedEvent)
		case 1:
			w.WriteHeader(302)
		case 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		default:
			stream(w, "")
			<-r.Context().Done()
		}
	})
	seat, told := acquireStreamed(t, newStreamingClient(t, server, quick))
	eventually(t, "no fourth request", func() bool { return len(server.requests()) == 4 })
	if beats := server.count(beatTarget); beats != 0 {
		t.Errorf("a page of a proxy told an end: %d heartbeats", beats)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if at := server.askedAt; at[3].Sub(at[2]) < time.Second || at[2].Sub(at[0]) > time.Second {
		t.Error(at)
	}
	if !told.are(Active) || seat.Check() != nil {
		t.Error(seat.State())
	}
}

func TestARejectedTokenWaitsForTheNextTokenOfTheMachine(t *testing.T) {
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
	seat, _ := acquireStreamed(t, client)
	eventually(t, "no stream is rejected", func() bool { return len(server.requests()) == 1 && server.open.Load() == 0 })
	if pause(context.Background(), 50*time.Millisecond); len(server.requests()) != 1 {
		t.Fatal("a rejected token is sent again")
	}
	// The next heartbeat is rejected as well: the machine asks for a token.
	client.mu.Lock()
	seat.sentWith = 0
	client.refreshToken(seat)
	client.mu.Unlock()
	eventually(t, "no stream with the next token", func() bool { return server.open.Load() == 1 })
	if asked := server.requests(); len(asked) != 2 || asked[1].Header.Get("Authorization") != "Bearer t1" {
		t.Error(len(asked))
	}
}

func TestAReleaseClosesTheStreamBeforeItsAnswer(t *testing.T) {
	answers := map[string]reply{deleteTarget: {status: 204, delay: 900 * time.Millisecond}}
	server := newStreamed(t, answers, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "")
		<-r.Context().Done()
	})
	seat, _ := acquireStreamed(t, newStreamingClient(t, server, quick))
	eventually(t, "no stream is open", func() bool { return server.open.Load() == 1 })
	ended := make(chan error)
	go func() { ended <- seat.Release(context.Background()) }()
	for isOver := false; !isOver; {
		select {
		case <-ended:
			t.Fatal("the stream outlives the release")
		case <-time.After(time.Millisecond):
			isOver = server.open.Load() == 0
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if asked := len(server.requests()); asked != 1 {
		t.Error(asked)
	}
}

func TestAnOptionTurnsStreamsOff(t *testing.T) {
	for isOn, wanted := range map[bool]bool{true: true, false: false} {
		server := newStreamed(t, nil, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(204) })
		client := newStreamingClient(t, server, quick, EventStreams(isOn))
		seat, _ := acquireStreamed(t, client)
		client.mu.Lock()
		isWatched := seat.follower.session != ""
		client.mu.Unlock()
		if isWatched != wanted {
			t.Errorf("on %v, watched %v", isOn, isWatched)
		}
	}
}

func TestTheBackoffHasFullJitterFromASecondToAMinute(t *testing.T) {
	for failures, longest := range map[int]time.Duration{
		0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute, 100: time.Minute,
	} {
		for _, jitter := range []float64{0, 0.25, 1} {
			if pause := streamTimesDefault.backoff(failures, jitter); pause != part(longest, jitter) {
				t.Error(failures, jitter, pause)
			}
		}
	}
	if d := streamTimesDefault; d.silenceMax != 45*time.Second || d.lifeMin != time.Minute {
		t.Error(streamTimesDefault)
	}
}

func TestTheBackoffStartsAnewAfterALongStreamAlone(t *testing.T) {
	const long = 30 * time.Millisecond
	for _, test := range []struct {
		untilHead, life time.Duration
		isAnew          bool
	}{{0, long, true}, {0, 0, false}, {long, 0, false}} {
		times := quick
		times.backoffMax, times.lifeMin = time.Hour, 20*time.Millisecond
		server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
			pause(r.Context(), test.untilHead)
			stream(w, "")
			pause(r.Context(), test.life)
		})
		acquireStreamed(t, newStreamingClient(t, server, times))
		// Twenty tries without a new start take minutes: the backoff doubles from a millisecond.
		const tries = 20
		begun := time.Now()
		for len(server.requests()) < tries && time.Since(begun) < 3*time.Second {
			time.Sleep(time.Millisecond)
		}
		if came := len(server.requests()) >= tries; came != test.isAnew {
			t.Errorf("%+v: %d tries", test, len(server.requests()))
		}
	}
}

func TestAStreamGoesToTheServerThatHasTheHeartbeats(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "")
		<-r.Context().Done()
	})
	client, err := NewClient(closedAddress, Token("t"), Server(server.url))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	acquireStreamed(t, client)
	eventually(t, "no stream is open", func() bool { return server.open.Load() == 1 })
}

func TestAStreamHoldsUpNoHeartbeatOfAClientOfTheProgram(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, _ int) {
		stream(w, "")
		<-r.Context().Done()
	})
	program := &http.Client{
		Timeout:   time.Second,
		Transport: &http.Transport{MaxConnsPerHost: 1, ResponseHeaderTimeout: time.Second},
	}
	client := newStreamingClient(t, server, quick, HTTPClient(program))
	begun := time.Now()
	acquireTogether(t, client, 1, 2, 3)
	eventually(t, "no stream is open", func() bool { return server.open.Load() == 1 })
	client.Wake()
	eventually(t, "a heartbeat is held up", func() bool { return server.count(beatTarget) == 1 })
	eventually(t, "no time passes", func() bool { return time.Since(begun) > 2*program.Timeout })
	if asked := len(server.requests()); asked != 1 {
		t.Errorf("the timeout of the program's client cut a stream: %d streams", asked)
	}
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// The test is not parallel: it counts the goroutines of the program.
func TestClosingLeavesNoGoroutineAndNoConnection(t *testing.T) {
	server := newStreamed(t, nil, func(w http.ResponseWriter, r *http.Request, earlier int) {
		switch earlier % 3 {
		case 0:
			stream(w, "")
			<-r.Context().Done()
		case 1:
			<-r.Context().Done()
		default:
			w.WriteHeader(204)
		}
	})
	before := runtime.NumGoroutine()
	var clients []*Client
	for range 9 {
		client := newStreamingClient(t, server, quick)
		clients = append(clients, client)
		acquireStreamed(t, client)
	}
	eventually(t, "a stream is missing", func() bool { return len(server.requests()) == 9 })
	for _, client := range clients {
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	// One second less than a connection without use is kept.
	for end := time.Now().Add(900 * time.Millisecond); server.connections.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections", server.connections.Load())
		}
	}
	eventually(t, "a goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

func TestAReleaseWithoutATokenUsesTheReleaseCode(t *testing.T) {
	type asked struct{ token, body string }
	var byCode []asked
	deletes := 0
	server := newScripted(t, func(request arrived, _ int) reply {
		switch request.target {
		case acquireTarget:
			return reply{status: 201, body: streamedGrant}
		case deleteTarget:
			deletes++
			return reply{status: 401, body: "{}"}
		case codeTarget:
			byCode = append(byCode, asked{request.token, fmt.Sprint(request.body)})
			return reply{status: 204}
		default:
			return reply{status: 503}
		}
	})
	first := true
	client, err := NewClient(server.url, TokenSource(func(context.Context) (string, error) {
		if first {
			first = false
			return "t0", nil
		}
		return "", errors.New("logged out")
	}))
	if err != nil {
		t.Fatal(err)
	}
	seat, _ := acquireStreamed(t, client)
	if err := seat.Release(context.Background()); !errors.Is(err, ErrNotConfirmed) {
		t.Error(err)
	}
	wanted := asked{"", "map[release_code:c0de session_id:" + streamedSession + "]"}
	if deletes != 1 || len(byCode) != 1 || byCode[0] != wanted {
		t.Error(deletes, byCode)
	}
}

func TestTheProgramIsNamedToTheServer(t *testing.T) {
	for wanted, options := range map[string][]ClientOption{
		"<nil>": nil,
		"map[name:cad sdk:" + sdkName + " version:9]": {Application("cad", "9")},
		"map[name:cad sdk:" + sdkName + "]":           {Application("cad", "")},
	} {
		server := newScripted(t, func(arrived, int) reply { return reply{status: 201, body: scriptedGrant} })
		client, err := NewClient(server.url, append(options, Token("t"))...)
		if err != nil {
			t.Fatal(err)
		}
		seat, _ := acquireStreamed(t, client)
		_ = seat.Release(context.Background())
		if named := fmt.Sprint(server.arrived(acquireTarget)[0].body["client"]); named != wanted {
			t.Error(named)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 101), "a\nb"} {
		if _, err := NewClient(closedAddress, Token("t"), Application(name, "9")); err == nil {
			t.Errorf("%q", name)
		}
		if _, err := NewClient(closedAddress, Token("t"), Application("cad", name)); err == nil && name != "" {
			t.Errorf("%q", name)
		}
	}
}

func TestHeartbeatsTellTheTimeSinceTheLastActivity(t *testing.T) {
	server := newScripted(t, func(request arrived, _ int) reply {
		grant := strings.Replace(scriptedGrant, "360", `3,"heartbeat_interval_seconds":1`, 1)
		return reply{status: 200, body: grant}
	})
	client, err := NewClient(server.url, Token("t"), EventStreams(false))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	seat, _ := acquireStreamed(t, client)
	eventually(t, "no heartbeat", func() bool { return len(server.arrived(beatTarget)) == 1 })
	before, active := client.clock.boot(), time.Now()
	if seat.Activity(); instant(seat.activeAt.Load()) < before {
		t.Error("the activity is in the past")
	}
	eventually(t, "no second heartbeat", func() bool { return len(server.arrived(beatTarget)) == 2 })
	beats := server.arrived(beatTarget)
	idle, isTold := beats[1].body["idle_seconds"].(float64)
	if beats[0].body != nil || !isTold || idle > time.Since(active).Seconds() || len(beats[1].body) != 1 {
		t.Error(beats)
	}
}

func TestAStreamIsWantedWhileASeatIsHeld(t *testing.T) {
	held := &lease{session: "S"}
	for name, test := range map[string]struct {
		phase   phase
		watched string
	}{
		"acquiring":   {&acquiring{}, ""},
		"active":      {&holding{held: held}, "S"},
		"failing":     {&holding{held: held, health: failing}, "S"},
		"offline":     {&holding{held: held, health: offline}, "S"},
		"woken":       {&regaining{held: held, face: Offline}, "S"},
		"grace":       {&regaining{held: held, face: Grace}, "S"},
		"reacquiring": {&regaining{held: held, face: Reacquiring}, ""},
		"lost":        {&regaining{held: held, face: Lost}, ""},
		"ended":       {&ended{last: lostState(ReasonRevoked, "", false)}, ""},
		"releasing":   {&deleting{}, ""},
	} {
		if watched := (&machine{phase: test.phase}).watched(); watched != test.watched {
			t.Errorf("%s: %q", name, watched)
		}
	}
}

func isClosed(news <-chan struct{}) bool {
	select {
	case <-news:
		return true
	default:
		return false
	}
}

func TestWhoWaitsForALicenseTokenHearsOfTheNextOneOfTheMachine(t *testing.T) {
	server := newScripted(t, issue)
	transport := &transport{client: newHTTPClient()}
	transport.servers, _ = parseServers([]string{server.url})
	tokens := newLicenseTokens(transport, newHostClock(), "", cadKey)
	mine, others := tokens.fresh("m"), tokens.fresh("another")
	if isClosed(mine) {
		t.Error("no token came")
	}
	if err := tokens.refresh(context.Background(), "m"); err != nil {
		t.Fatal(err)
	}
	if !isClosed(mine) || isClosed(others) || isClosed(tokens.fresh("m")) {
		t.Error("not the machine's news")
	}
	// A dropped slot has no news: who waits looks for another slot.
	tokens.dropExpired()
	if !isClosed(others) || len(tokens.machines) != 1 {
		t.Error("no news of a dropped slot")
	}
}
