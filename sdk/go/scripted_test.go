package seatkeeper

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const scriptedGrant = `{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}`

// arrived is a request as it arrived.
type arrived struct {
	// target is the method and the path.
	target, token string
	body          map[string]any
}

// reply is an answer, and the time before the answer.
type reply struct {
	status     int
	body       string
	retryAfter int
	delay      time.Duration
	// The server answers once the channel is closed; nil is no wait.
	after     <-chan struct{}
	requestID string
	// location is the header Location; empty is none.
	location string
}

// scripted is a server whose answers a test computes. The server notes every request.
type scripted struct {
	url   string
	mu    sync.Mutex
	noted []arrived
}

// newScripted starts a server. The script gets each request with the number of earlier requests for the same target. A
// release that the script grants is answered 204, as by a real server.
func newScripted(t *testing.T, script func(arrived, int) reply) *scripted {
	t.Helper()
	s := &scripted{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		request := arrived{target: r.Method + " " + r.URL.Path}
		request.token, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		_ = json.Unmarshal(text, &request.body)
		answer := script(request, s.note(request))
		select {
		case <-time.After(answer.delay):
		case <-r.Context().Done():
			return
		}
		if answer.after != nil {
			select {
			case <-answer.after:
			case <-r.Context().Done():
				return
			}
		}
		if answer.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(answer.retryAfter))
		}
		if answer.requestID != "" {
			w.Header().Set("X-Request-Id", answer.requestID)
		}
		if answer.location != "" {
			w.Header().Set("Location", answer.location)
		}
		if r.Method == http.MethodDelete && answer.status/100 == 2 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *scripted) note(request arrived) (earlier int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.noted {
		if other.target == request.target {
			earlier++
		}
	}
	s.noted = append(s.noted, request)
	return earlier
}

// arrived returns the requests whose target begins with target.
func (s *scripted) arrived(target string) []arrived {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []arrived
	for _, request := range s.noted {
		if strings.HasPrefix(request.target, target) {
			found = append(found, request)
		}
	}
	return found
}
