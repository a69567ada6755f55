package seatkeeper

import (
	"context"
	"mime"
	"net/http"
	"strings"
	"time"
)

// lastIDBytesMax is the size of the longest Last-Event-ID that is sent.
const lastIDBytesMax = 1 << 10

// streamRequest is one request for an event stream, and the watch over its connection.
type streamRequest struct {
	// sessions are the sessions that the request names, each one once.
	sessions []string
	// lastID is the place from which the stream of a single session goes on.
	lastID string
	// cut ends the connection, and silence cuts a dead one.
	cut     context.CancelFunc
	silence *time.Timer
}

// isShared reports whether the request asks for a shared stream, whose events have no ids.
func (r *streamRequest) isShared() bool { return len(r.sessions) > 1 }

// path returns the path of the request, with its query.
func (r *streamRequest) path(d door) string {
	path := d.events(r.sessions[0])
	if r.isShared() {
		path += "?with=" + strings.Join(r.sessions[1:], ",")
	}
	return path
}

// open sends the request to the server that has the heartbeats.
func (s *eventStream) open(ctx context.Context, r *streamRequest, token string) (*http.Response, error) {
	_, base := s.client.transport.servers.current()
	request, err := newRequest(ctx, base, call{method: "GET", path: r.path(s.group.key.door)}, token)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Cache-Control", "no-cache")
	// A compressed stream could hold an event back.
	request.Header.Set("Accept-Encoding", "identity")
	if r.lastID != "" {
		request.Header.Set("Last-Event-ID", r.lastID)
	}
	return s.client.streams.client.Do(request)
}

// isRefused returns true for the status of a server or a proxy that gives no shared stream to these sessions.
func isRefused(status int) bool {
	return status == 204 || (status >= 400 && status <= 499 && status != 429)
}

func isEventStream(header http.Header) bool {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// isHeaderValue reports whether an id can be sent back as a header.
func isHeaderValue(id string) bool {
	return len(id) <= lastIDBytesMax && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f })
}
