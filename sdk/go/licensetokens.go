package seatkeeper

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

const (
	licenseTokenPath = "/api/v1/licenses/token"
	// licenseTokenTimeout is the timeout of a request for a token.
	licenseTokenTimeout = 10 * time.Second
	// renewalPause is the pause after a failed replacement ahead of time.
	renewalPause = 10 * time.Second
	// machinesKept is the number of machines above which expired tokens are dropped.
	machinesKept = 64
)

// tokenRemedies are the remedies of refused license tokens, by the kind of problem.
var tokenRemedies = map[string]string{
	"license-not-found": "no license token: the key or the tenant is unknown, or the license is suspended, expired or closed " +
		"to license tokens. Check the key and the tenant; an operator opens a license with " +
		"`seatkeeper license update LICENSE_ID --clients key`",
	"not-found": "the server issues no license tokens: an operator sets auth.license_token_key_file on every node; else give " +
		"the client a user's token",
}

// refusedToken is the error of a request for a license token: the server's answer, or else a failure.
type refusedToken struct {
	answer response
	fault  fault
}

func (r *refusedToken) Error() string {
	if r.fault.failure != "" {
		return "no license token: " + r.fault.Error()
	}
	problem := parseProblem(r.answer)
	if problem == nil {
		problem = unnamedProblem(r.answer)
	}
	return "the server gave no license token: " + problem.code
}

// Unwrap returns the cause of a failure.
func (r *refusedToken) Unwrap() error { return r.fault.cause }

// licenseTokens trades a license key for a short-lived token of each machine.
type licenseTokens struct {
	transport *transport
	clock     *hostClock
	// body has the key and the tenant.
	body    map[string]any
	timeout time.Duration

	mu       sync.Mutex
	machines map[string]*tokenSlot
}

// tokenSlot is the token of one machine. Times are readings of the clock that counts sleep.
type tokenSlot struct {
	// fetching is full during a request for a token, so that one request serves all seats.
	fetching chan struct{}

	mu              sync.Mutex
	token           string
	renewAt, overAt instant
	// pauseUntil is the time before which no replacement ahead of time is tried.
	pauseUntil instant
	// isRenewing is true from the start of a replacement ahead of time to its end.
	isRenewing bool
	tokens     announcer
}

// lock waits until no request for a token is in flight, or ctx is done.
func (s *tokenSlot) lock(ctx context.Context) error {
	select {
	case s.fetching <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *tokenSlot) unlock() { <-s.fetching }

func newLicenseTokens(t *transport, clock *hostClock, tenant, key string) *licenseTokens {
	body := map[string]any{"license_key": key}
	if tenant != "" {
		body["tenant"] = tenant
	}
	return &licenseTokens{
		transport: t,
		clock:     clock,
		body:      body,
		timeout:   licenseTokenTimeout,
		machines:  map[string]*tokenSlot{},
	}
}

func (l *licenseTokens) owner(machineID string) string { return machineID }

// current returns the token of a machine. A token in the last fifth of its life is returned as well, and replaced in the
// background, so that no heartbeat waits for the replacement.
func (l *licenseTokens) current(ctx context.Context, machineID string) (string, error) {
	slot := l.slot(machineID)
	if token := l.good(machineID, slot); token != "" {
		return token, nil
	}
	if err := slot.lock(ctx); err != nil {
		return "", err
	}
	defer slot.unlock()
	if token := l.good(machineID, slot); token != "" {
		return token, nil
	}
	return l.fetch(ctx, machineID, slot)
}

// refresh replaces a token that the server rejected.
func (l *licenseTokens) refresh(ctx context.Context, machineID string) error {
	slot := l.slot(machineID)
	if err := slot.lock(ctx); err != nil {
		return err
	}
	defer slot.unlock()
	_, err := l.fetch(ctx, machineID, slot)
	return err
}

// fresh returns a channel that is closed when a token of the machine comes after the call.
func (l *licenseTokens) fresh(machineID string) <-chan struct{} {
	return l.slot(machineID).tokens.next()
}

// good returns the token if its life is not over, and starts its replacement in the last fifth of its life.
func (l *licenseTokens) good(machineID string, slot *tokenSlot) string {
	now := l.clock.boot()
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.token == "" || now >= slot.overAt {
		return ""
	}
	if now >= slot.renewAt && now >= slot.pauseUntil && !slot.isRenewing {
		slot.isRenewing = true
		go l.renew(machineID, slot)
	}
	return slot.token
}

func (l *licenseTokens) renew(machineID string, slot *tokenSlot) {
	err := l.refresh(context.Background(), machineID)
	slot.mu.Lock()
	defer slot.mu.Unlock()
	slot.isRenewing = false
	if err != nil {
		slot.pauseUntil = l.clock.boot() + instant(renewalPause)
	}
}

// fetch asks the server for a token, and keeps it. A refusal drops the old token, which the server rejects as well.
func (l *licenseTokens) fetch(ctx context.Context, machineID string, slot *tokenSlot) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	began := l.clock.boot()
	body := map[string]any{"machine_id": machineID}
	for name, value := range l.body {
		body[name] = value
	}
	answer, failed := l.transport.send(ctx, call{method: "POST", path: licenseTokenPath, body: body}, "")
	if failed.failure != "" {
		return "", &refusedToken{fault: failed}
	}
	if answer.status != 200 {
		if answer.status >= 400 && answer.status <= 499 && !isTransient(answer.status) {
			slot.mu.Lock()
			slot.token = ""
			slot.mu.Unlock()
		}
		return "", &refusedToken{answer: explained(answer)}
	}
	parsed, _ := parseMembers(answer.body)
	token := parsed.text("token")
	life, ok := parsed.span("expires_in_seconds", spanMax)
	if !ok || !isToken(token) {
		return "", &refusedToken{fault: fault{failure: FailureGarbage}}
	}
	slot.mu.Lock()
	defer slot.mu.Unlock()
	slot.token, slot.renewAt, slot.overAt = token, began+instant(life/5*4), began+instant(life)
	slot.tokens.announce()
	return token, nil
}

func (l *licenseTokens) slot(machineID string) *tokenSlot {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := l.machines[machineID]
	if slot == nil {
		if len(l.machines) >= machinesKept {
			l.dropExpired()
		}
		slot = &tokenSlot{fetching: make(chan struct{}, 1)}
		l.machines[machineID] = slot
	}
	return slot
}

// dropExpired forgets the machines without a good token. The caller holds the lock.
func (l *licenseTokens) dropExpired() {
	now := l.clock.boot()
	for machineID, slot := range l.machines {
		slot.mu.Lock()
		if len(slot.fetching) == 0 && (slot.token == "" || now >= slot.overAt) {
			delete(l.machines, machineID)
			// A later token is in another slot.
			slot.tokens.announce()
		}
		slot.mu.Unlock()
	}
}

// explained adds the remedy to the server's refusal of a license token.
func explained(answer response) response {
	problem := parseProblem(answer)
	if problem == nil || tokenRemedies[problem.code] == "" {
		return answer
	}
	var body map[string]any
	if json.Unmarshal(answer.body, &body) != nil {
		return answer
	}
	body["detail"] = tokenRemedies[problem.code]
	if text, err := json.Marshal(body); err == nil {
		answer.body = text
	}
	return answer
}

// isTransient returns true for the status of an answer after which the same request may succeed.
func isTransient(status int) bool {
	return status == 408 || status == 429 || status >= 500
}
