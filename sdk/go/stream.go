package seatkeeper

import (
	"context"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strings"
	"time"
)

// streamTimes are the spans of event streams.
type streamTimes struct {
	// silenceMax is the time without a byte after which a connection is dead: three keep-alives of the server.
	silenceMax time.Duration
	// backoffFirst and backoffMax are the longest backoff before the second try, and before any try.
	backoffFirst, backoffMax time.Duration
	// lifeMin is the life of a stream after which the backoff starts anew.
	lifeMin time.Duration
}

var streamTimesDefault = streamTimes{
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

const (
	// streamBufferBytes is the size of each buffer of a connection for event streams: events are short, and rare.
	streamBufferBytes = 1 << 10
	// lastIDBytesMax is the size of the longest Last-Event-ID that is sent.
	lastIDBytesMax = 1 << 10
)

// streams are the event streams of a client.
type streams struct {
	isOff  bool
	times  streamTimes
	client *http.Client
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

// streamPlace is the place in a session's events from which a later stream goes on.
type streamPlace struct {
	session, lastID string
	// isOver says that no stream of the session has further events.
	isOver bool
}

// watch opens and closes the event stream of a seat, as its state wants. The caller holds the lock.
func (c *Client) watch(seat *Seat) {
	session := ""
	if !c.streams.isOff {
		session = seat.machine.watched()
	}
	if session == seat.watched {
		return
	}
	if seat.unwatch != nil {
		seat.unwatch()
	}
	seat.watched, seat.unwatch = session, nil
	if session == "" {
		return
	}
	if seat.heard.session != session {
		seat.heard = streamPlace{session: session}
	}
	if seat.heard.isOver {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	seat.unwatch = cancel
	s := &eventStream{
		client:  c,
		seat:    seat,
		session: session,
		path:    seat.machine.plan.door.events(session),
	}
	go s.run(ctx)
}

// eventStream keeps the event stream of one session open. A stream tells an end at once, and is no duty: its failure changes
// no state.
type eventStream struct {
	client  *Client
	seat    *Seat
	session string
	path    string
}

// streamEnd is the way in which a stream ended.
type streamEnd int

const (
	// streamCut: the stream broke off, or was not opened; a later stream may work.
	streamCut streamEnd = iota
	// streamRejected: the token was rejected.
	streamRejected
	// streamOver: the session has no further events.
	streamOver
)

func (s *eventStream) run(ctx context.Context) {
	defer func() {
		// An error of the client itself must not end the program; the heartbeats tell the end.
		if panicked := recover(); panicked != nil {
			tellError(s.client.logger, "an event stream failed; heartbeats go on", panicked)
		}
	}()
	times := s.client.streams.times
	for failures := 0; ; failures++ {
		began := time.Now()
		fresh := s.client.transport.tokens.fresh(s.seat.tokenOwner)
		end, retryAfter := s.listen(ctx)
		if time.Since(began) >= times.lifeMin {
			failures = 0
		}
		if end == streamOver {
			s.keepPlace(func(p *streamPlace) { p.isOver = true })
			// The session may have ended while the stream was cut.
			s.tell(streamOverEvent{s.session})
			return
		}
		if end == streamRejected {
			// The machine asks for tokens; a stream waits for the next one.
			select {
			case <-fresh:
			case <-ctx.Done():
			}
		}
		if !pause(ctx, max(times.backoff(failures, rand.Float64()), retryAfter)) {
			return
		}
	}
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

// listen opens the stream, and tells its events until it ends. The span is the header Retry-After.
func (s *eventStream) listen(ctx context.Context) (streamEnd, time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(s.client.streams.times.silenceMax, cancel)
	defer silence.Stop()
	t := &s.client.transport
	token, err := t.tokens.current(ctx, s.seat.tokenOwner)
	if err != nil {
		return streamCut, 0
	}
	if !t.isForeign {
		return s.follow(ctx, token, silence)
	}
	type outcome struct {
		end        streamEnd
		retryAfter time.Duration
	}
	// A stream that fails to end is cut.
	o, _ := contain(ctx, func() (o outcome, _ error) {
		o.end, o.retryAfter = s.follow(ctx, token, silence)
		return o, nil
	}, nil)
	return o.end, o.retryAfter
}

// follow sends the request by the HTTP client, and tells the events. The client may run code of the program.
func (s *eventStream) follow(ctx context.Context, token string, silence *time.Timer) (streamEnd, time.Duration) {
	answer, err := s.open(ctx, token)
	if err != nil {
		return streamCut, 0
	}
	defer closeAfter(ctx, answer.Body)()
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == 204, answer.StatusCode == 404:
		return streamOver, 0
	case answer.StatusCode == 401:
		return streamRejected, 0
	case answer.StatusCode != 200 || !isEventStream(answer.Header):
		retryAfter, _ := retryAfter(answer.Header)
		return streamCut, retryAfter
	}
	s.read(ctx, answer.Body, silence)
	return streamCut, 0
}

// open sends the request to the server that has the heartbeats.
func (s *eventStream) open(ctx context.Context, token string) (*http.Response, error) {
	_, base := s.client.transport.servers.current()
	request, err := newRequest(ctx, base, call{method: "GET", path: s.path}, token)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Cache-Control", "no-cache")
	// A compressed stream could hold an event back.
	request.Header.Set("Accept-Encoding", "identity")
	if id := s.lastID(); id != "" {
		request.Header.Set("Last-Event-ID", id)
	}
	return s.client.streams.client.Do(request)
}

// read tells the events of a stream until the stream breaks off, and gives the connection time at each byte.
func (s *eventStream) read(ctx context.Context, body io.Reader, silence *time.Timer) {
	kept := s.lastID()
	parser := eventParser{id: kept, lastID: kept}
	var buffer [512]byte
	for ctx.Err() == nil {
		n, err := body.Read(buffer[:])
		if n > 0 {
			silence.Reset(s.client.streams.times.silenceMax)
		}
		events, tooLong := parser.feed(buffer[:n])
		if parser.lastID != kept && isHeaderValue(parser.lastID) {
			kept = parser.lastID
			s.keepPlace(func(p *streamPlace) { p.lastID = kept })
		}
		for _, event := range events {
			if end, ok := event.sessionEnd(); ok {
				s.tell(end)
			}
		}
		if err != nil || tooLong != nil {
			return
		}
	}
}

// tell gives an end, or the end of the stream, to the machine, unless the seat has left the stream.
func (s *eventStream) tell(ev event) {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.seat.watched == s.session {
		c.step(s.seat, ev)
		c.setTimer()
	}
}

// keepPlace changes the place for a later stream of the session.
func (s *eventStream) keepPlace(change func(*streamPlace)) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.seat.heard.session == s.session {
		change(&s.seat.heard)
	}
}

// lastID returns the id of the last event of the session that a stream told.
func (s *eventStream) lastID() string {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.seat.heard.session != s.session {
		return ""
	}
	return s.seat.heard.lastID
}

func isEventStream(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// isHeaderValue reports whether an id can be sent back as a header.
func isHeaderValue(id string) bool {
	return len(id) <= lastIDBytesMax && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f })
}
