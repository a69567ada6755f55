package seatkeeper

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// streamTimes are the spans of event streams.
type streamTimes struct {
	// joinPause is the pause from a seat that joins a stream to the request that names the seat's session, so that seats
	// acquired together cost one request. The pause doubles, up to joinPauseMax, with each such request that follows the last
	// one within joinSpan.
	joinPause, joinPauseMax, joinSpan time.Duration
	// silenceMax is the time without a byte after which a connection is dead: three keep-alives of the server.
	silenceMax time.Duration
	// backoffFirst and backoffMax are the longest backoff before the second try, and before any try.
	backoffFirst, backoffMax time.Duration
	// lifeMin is the time from the first answer of a stream, over connections for seats that joined, after which the backoff
	// starts anew.
	lifeMin time.Duration
}

var streamTimesDefault = streamTimes{
	joinPause:    100 * time.Millisecond,
	joinPauseMax: 1600 * time.Millisecond,
	joinSpan:     2 * time.Second,
	silenceMax:   45 * time.Second,
	backoffFirst: time.Second,
	backoffMax:   time.Minute,
	lifeMin:      time.Minute,
}

// backoff returns the pause before the next try, with full jitter: a random part of a longest pause that doubles with each
// failure in a row.
func (t streamTimes) backoff(failures int, jitter float64) time.Duration {
	longest := min(t.backoffFirst<<min(failures, 16), t.backoffMax)
	return part(longest, jitter)
}

// pauseAfter returns the pause before a request for seats that join now, from the pause and the age of the last such request.
// The pause 0 stands for no request before.
func (t streamTimes) pauseAfter(last, age time.Duration) time.Duration {
	if last == 0 || age > t.joinSpan {
		return t.joinPause
	}
	return min(2*last, t.joinPauseMax)
}

// streamBufferBytes is the size of each buffer of a connection for event streams: events are short, and rare.
const streamBufferBytes = 1 << 10

// streams are the event streams of a client.
type streams struct {
	isOff  bool
	times  streamTimes
	client *http.Client
	// groups are the seats of the streams, under the client's lock.
	groups streamGroups
}

// newStreamClient returns a client with the settings of base, without its timeouts and its bound on connections: a stream
// is an answer without an end, and must not hold up a heartbeat.
func newStreamClient(base *http.Client) *http.Client {
	client := *base
	client.Timeout = 0
	roundTripper := client.Transport
	if roundTripper == nil {
		roundTripper = http.DefaultTransport
	}
	if t, ok := roundTripper.(*http.Transport); ok {
		t = t.Clone()
		speakHTTP1(t)
		t.MaxConnsPerHost, t.ResponseHeaderTimeout = 0, 0
		t.ReadBufferSize, t.WriteBufferSize = streamBufferBytes, streamBufferBytes
		// Connections of streams are not used again.
		t.IdleConnTimeout = time.Second
		client.Transport = t
	}
	return &client
}

// eventStream keeps the event stream of a group of seats open. A stream tells an end at once, and is no duty: its failure
// changes no state.
type eventStream struct {
	client *Client
	group  *streamGroup
	// close ends the stream.
	close context.CancelFunc

	// The fields below are under the client's lock. cut ends the open connection; nil before the head of the answer, and
	// between two connections.
	cut context.CancelFunc
	// openedAt is the time of the first answer since the stream broke off; zero without an answer. Connections for seats that
	// joined keep the time.
	openedAt time.Time
	// reopening cuts the connection for the seats that joined; nil without such a plan. wasReopened says that the connection
	// was cut.
	reopening   *time.Timer
	wasReopened bool
	// reopenedAt is the time of the last cut for seats that joined, and reopenPause the pause before that cut; both are zero
	// before the first one.
	reopenedAt  time.Time
	reopenPause time.Duration
	// place is the place in the events of a single session from which a later connection goes on.
	place streamPlace
}

// streamPlace is the id of the last event of a session.
type streamPlace struct {
	session, lastID string
}

// streamEnd is the way in which a connection ended.
type streamEnd int

const (
	// streamCut: the connection broke off, or had no stream; a later one may work.
	streamCut streamEnd = iota
	// streamReopened: the connection was cut for a request that names further sessions.
	streamReopened
	// streamRejected: the token was rejected.
	streamRejected
	// streamOver: the single session has no further events.
	streamOver
	// streamUnshared: no stream was given to the sessions together.
	streamUnshared
	// streamFailed: the client itself failed.
	streamFailed
)

// streamOutcome is the end of a connection, and the time before the next one.
type streamOutcome struct {
	end streamEnd
	// retryAfter is the header Retry-After; zero without one.
	retryAfter time.Duration
	// hasLived says that the stream was open for streamTimes.lifeMin.
	hasLived bool
}

func (s *eventStream) run(ctx context.Context) {
	times := s.client.streams.times
	failures := 0
	for wait := times.joinPause; pause(ctx, wait); {
		o := s.attempt(ctx)
		if o.hasLived {
			failures = 0
		}
		switch o.end {
		case streamReopened:
			wait = 0
		case streamOver, streamUnshared:
			// The group has the seats that joined since; without a seat the stream is closed.
			wait = times.joinPause
		default:
			wait = max(times.backoff(failures, rand.Float64()), o.retryAfter)
			failures++
		}
	}
}

// attempt tells the events of one connection, and waits for the next token after a rejected one.
func (s *eventStream) attempt(ctx context.Context) (o streamOutcome) {
	defer func() {
		// An error of the client itself must not end the program, and the seats of the group keep a stream.
		if panicked := recover(); panicked != nil {
			tellError(s.client.logger, "an event stream failed, and is opened again; heartbeats go on", panicked)
			o = s.finish(streamOutcome{end: streamFailed})
		}
	}()
	// A token that replaces the rejected one ahead of time may come before the answer.
	fresh := s.client.transport.tokens.fresh(s.group.key.tokenOwner)
	o = s.listen(ctx)
	if o.end == streamRejected {
		// The machine asks for tokens; a stream waits for the next one.
		select {
		case <-fresh:
		case <-ctx.Done():
		}
	}
	return o
}

// pause waits for the span; false once ctx is done.
func pause(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// listen opens a connection for all sessions of the group, and tells the events until the connection ends.
func (s *eventStream) listen(ctx context.Context) streamOutcome {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	r := &streamRequest{cut: cut, silence: time.AfterFunc(s.client.streams.times.silenceMax, cut)}
	defer r.silence.Stop()
	if !s.begin(r) {
		return streamOutcome{}
	}
	o := s.finish(s.converse(ctx, r))
	switch o.end {
	case streamOver:
		s.tellOver(r.sessions[0])
	case streamUnshared:
		s.unshare()
	}
	return o
}

// begin lists the sessions of a request; false for a group without a seat.
func (s *eventStream) begin(r *streamRequest) bool {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	r.sessions = s.group.list()
	if len(r.sessions) == 0 {
		return false
	}
	if r.isShared() || s.place.session != r.sessions[0] {
		s.place = streamPlace{session: r.sessions[0]}
	}
	r.lastID = s.place.lastID
	return true
}

// noteOpen notes that the head of the answer came, and plans a request for the seats that joined meanwhile.
func (s *eventStream) noteOpen(ctx context.Context, r *streamRequest) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	// The transport of a program may answer after the end of the request.
	if ctx.Err() != nil {
		return
	}
	s.cut = r.cut
	if s.openedAt.IsZero() {
		s.openedAt = time.Now()
	}
	if s.group.isStale() {
		s.planReopening()
	}
}

// finish ends the plan to cut the connection, and completes the outcome.
func (s *eventStream) finish(o streamOutcome) streamOutcome {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.reopening != nil {
		s.reopening.Stop()
	}
	if s.wasReopened && o.end == streamCut {
		o.end = streamReopened
	}
	s.cut, s.reopening, s.wasReopened = nil, nil, false
	o.hasLived = !s.openedAt.IsZero() && time.Since(s.openedAt) >= s.client.streams.times.lifeMin
	if o.end != streamReopened {
		s.openedAt = time.Time{}
	}
	return o
}

// planReopening plans to cut the open connection for a seat that joined. Without an open connection, a seat cuts neither the
// wait for the head of an answer nor a backoff: `noteOpen` or the next request sees to the seat. The caller holds the lock.
func (s *eventStream) planReopening() {
	if s.cut == nil || s.reopening != nil {
		return
	}
	span := s.client.streams.times.pauseAfter(s.reopenPause, time.Since(s.reopenedAt))
	s.reopening = time.AfterFunc(span, func() { s.reopen(span) })
}

// reopen cuts the connection after the pause, unless the seats that joined have left.
func (s *eventStream) reopen(span time.Duration) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.reopening = nil
	if s.cut != nil && s.group.isStale() {
		s.wasReopened = true
		s.reopenedAt, s.reopenPause = time.Now(), span
		s.cut()
	}
}

// converse sends the request with the token of the group, and tells the events.
func (s *eventStream) converse(ctx context.Context, r *streamRequest) streamOutcome {
	t := &s.client.transport
	token, err := t.tokens.current(ctx, s.group.key.tokenOwner)
	if err != nil {
		return streamOutcome{}
	}
	if !t.isForeign {
		return s.send(ctx, r, token)
	}
	// A stream that fails to end is cut.
	o, _ := contain(ctx, func() (streamOutcome, error) { return s.send(ctx, r, token), nil }, nil)
	return o
}

// send sends the request by the HTTP client, and tells the events. The client may run code of the program.
func (s *eventStream) send(ctx context.Context, r *streamRequest, token string) streamOutcome {
	answer, err := s.open(ctx, r, token)
	if err != nil {
		return streamOutcome{}
	}
	defer closeAfter(ctx, answer.Body)()
	defer answer.Body.Close()
	switch status := answer.StatusCode; {
	case status == 401:
		return streamOutcome{end: streamRejected}
	case r.isShared() && isRefused(status):
		return streamOutcome{end: streamUnshared}
	case status == 204, status == 404:
		return streamOutcome{end: streamOver}
	case status != 200 || !isEventStream(answer.Header):
		retryAfter, _ := retryAfter(answer.Header)
		return streamOutcome{retryAfter: retryAfter}
	}
	s.noteOpen(ctx, r)
	s.read(ctx, r, answer.Body)
	return streamOutcome{}
}

// read tells the events of a connection until the connection breaks off, and gives the connection time at each byte.
func (s *eventStream) read(ctx context.Context, r *streamRequest, body io.Reader) {
	parser := eventParser{id: r.lastID, lastID: r.lastID}
	var buffer [512]byte
	for ctx.Err() == nil {
		n, err := body.Read(buffer[:])
		if n > 0 {
			r.silence.Reset(s.client.streams.times.silenceMax)
		}
		events, tooLong := parser.feed(buffer[:n])
		s.keepPlace(r, parser.lastID)
		for _, event := range events {
			s.tell(r, event)
		}
		if err != nil || tooLong != nil {
			return
		}
	}
}

// keepPlace keeps the id of the last event of a single session for a later connection.
func (s *eventStream) keepPlace(r *streamRequest, lastID string) {
	if r.isShared() || lastID == r.lastID || !isHeaderValue(lastID) {
		return
	}
	r.lastID = lastID
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.place.session == r.sessions[0] {
		s.place.lastID = lastID
	}
}
