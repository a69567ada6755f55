package seatkeeper

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// vectorsMin fails the test if the folder of vectors is missing or truncated.
const vectorsMin = 255

func TestTheMachinePlaysEveryVector(t *testing.T) {
	files, err := filepath.Glob("../vectors/*.json")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	named := func(name string) {
		if names[name] {
			t.Errorf("two vectors are named %q", name)
		}
		names[name] = true
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "storm.json" {
			for _, fleet := range decode[[]fleet](t, text) {
				named(fleet.Name)
				t.Run(fleet.Name, fleet.play)
			}
			continue
		}
		for _, vector := range decode[[]vector](t, text) {
			named(vector.Name)
			t.Run(vector.Name, vector.play)
		}
	}
	if len(names) < vectorsMin {
		t.Errorf("%d vectors", len(names))
	}
}

// vector is one holder, step by step.
type vector struct {
	Name   string                       `json:"name"`
	Jitter json.RawMessage              `json:"jitter"`
	Given  given                        `json:"given"`
	Steps  []map[string]json.RawMessage `json:"steps"`
}

type given struct {
	LicenseKey string          `json:"license_key"`
	MachineID  string          `json:"machine_id"`
	InstanceID string          `json:"instance_id"`
	UserAgent  string          `json:"user_agent"`
	Metadata   json.RawMessage `json:"metadata"`
	Client     map[string]any  `json:"client"`
	Device     *givenDevice    `json:"device"`
	Wait       string          `json:"wait"`
	Patience   string          `json:"patience"`
}

type givenDevice struct {
	DeviceID         string     `json:"device_id"`
	DeviceType       DeviceType `json:"device_type"`
	DeviceName       string     `json:"device_name"`
	SessionID        string     `json:"session_id"`
	ReplaceSessionID string     `json:"replace_session_id"`
}

type expectation struct {
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	JSON    json.RawMessage `json:"json"`
	At      string          `json:"at"`
	Timeout string          `json:"timeout"`
	Bearer  *bool           `json:"bearer"`
}

type answer struct {
	Status     int             `json:"status"`
	RetryAfter int             `json:"retry_after"`
	JSON       json.RawMessage `json:"json"`
	Text       string          `json:"text"`
}

type told struct {
	Session string `json:"session"`
	Reason  Reason `json:"reason"`
	By      string `json:"by"`
}

// held is the session of a held seat; Events is the path of its event stream.
type held struct {
	ID        string `json:"id"`
	LicenseID string `json:"license_id"`
	Seats     [2]int `json:"seats"`
	Events    string `json:"events"`
}

// decode rejects fields that the runner does not know.
func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var value T
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return value
}

// span reads 250ms, 10s, 5m, 3h or 400d.
func span(t *testing.T, text string) time.Duration {
	t.Helper()
	split := strings.IndexAny(text, "msdh")
	units := map[string]float64{"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
	if split < 0 || units[text[split:]] == 0 {
		t.Fatalf("no span: %s", text)
	}
	number, err := strconv.ParseFloat(text[:split], 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(number*units[text[split:]]+0.5) * time.Millisecond
}

// withIDs puts ids where a vector has their names.
func withIDs(text string) string {
	return strings.NewReplacer(
		"$S", "0198a0aa-0000-7000-8000-000000000001",
		"$T", "0198a0aa-0000-7000-8000-000000000002",
	).Replace(text)
}

// fakeClocks are the clocks of one holder. Different initial readings expose code that mixes up two clocks.
type fakeClocks struct {
	reading
	began instant
}

func newFakeClocks() *fakeClocks {
	boot := instant(1_000_000 * time.Second)
	return &fakeClocks{reading{5_000 * time.Second, boot, 1_800_000_000 * time.Second}, boot}
}

func (c *fakeClocks) advance(by time.Duration) {
	c.mono += by
	c.sleep(by)
}

func (c *fakeClocks) sleep(by time.Duration) {
	c.boot += instant(by)
	c.wall += by
}

func (c *fakeClocks) sinceBeginning() time.Duration {
	return time.Duration(c.boot - c.began)
}

type sentRequest struct {
	request
	at time.Duration
}

type flight struct {
	request  uint64
	timesOut instant
}

// player plays one vector: a machine, its clocks, and the requests on their way.
type player struct {
	*testing.T
	clocks  *fakeClocks
	machine *machine
	jitters []float64
	steps   int
	// sent are the requests not matched by an expect yet.
	sent         []sentRequest
	flight       *flight
	expected     *uint64
	cancelled    []uint64
	refreshAsked bool
	told         []Kind
	finished     finish
}

func (v vector) play(t *testing.T) {
	p := &player{T: t, clocks: newFakeClocks(), jitters: []float64{0.5}}
	if v.Jitter != nil {
		text := v.Jitter
		if text[0] != '[' {
			text = []byte("[" + string(text) + "]")
		}
		p.jitters = decode[[]float64](t, text)
	}
	machine, actions := newMachine(v.Given.plan(t), orphan{}, p.clocks.reading)
	p.machine = machine
	p.carryOut(actions)
	for number, step := range v.Steps {
		if len(step) != 1 {
			t.Fatalf("step %d has not one verb", number+1)
		}
		for verb, argument := range step {
			p.play(verb, argument)
			if t.Failed() {
				t.Fatalf("step %d: %s %s", number+1, verb, argument)
			}
		}
	}
	p.noRequest("that nobody expects")
}

func (g given) plan(t *testing.T) *plan {
	p := &plan{
		door:        licenseDoor{},
		licenseKey:  "K",
		machineID:   "m",
		instanceID:  g.InstanceID,
		userAgent:   g.UserAgent,
		metadata:    g.Metadata,
		application: g.Client,
		patience:    patienceDefault,
	}
	if d := g.Device; d != nil {
		p.door, p.deviceID, p.deviceType, p.deviceName = deviceDoor{}, d.DeviceID, d.DeviceType, d.DeviceName
		p.lastSession, p.replaces = withIDs(d.SessionID), withIDs(d.ReplaceSessionID)
	}
	if g.LicenseKey != "" {
		p.licenseKey = g.LicenseKey
	}
	if g.MachineID != "" {
		p.machineID = g.MachineID
	}
	switch g.Wait {
	case "":
	case "forever":
		p.waits, p.wait = true, waitForever
	default:
		p.waits, p.wait = true, span(t, g.Wait)
	}
	if g.Patience != "" {
		p.patience = span(t, g.Patience)
	}
	return p
}

func (p *player) play(verb string, argument json.RawMessage) {
	switch verb {
	case "acquired":
		p.acquired(argument)
	case "beat":
		p.beat(argument)
	case "expect":
		p.expect(decode[expectation](p.T, argument))
	case "answer":
		p.answer(decode[answer](p.T, argument))
	case "fail":
		p.step(failedEvent{p.landed(), fault{failure: p.failure(decode[string](p.T, argument))}})
	case "cancelled":
		if p.expected == nil {
			p.Fatal("no request is expected")
		}
		p.equal(slices.Contains(p.cancelled, *p.expected), decode[bool](p.T, argument), "cancelled")
	case "advance":
		p.advance(p.span(argument))
	case "sleep":
		p.clocks.sleep(p.span(argument))
		p.step(tickEvent{})
	case "freeze":
		p.clocks.advance(p.span(argument))
		p.step(tickEvent{})
	case "wall":
		p.wall(decode[string](p.T, argument))
	case "event":
		p.event(decode[told](p.T, argument))
	case "call":
		p.call(decode[string](p.T, argument))
	case "token":
		p.token(decode[string](p.T, argument))
	case "state":
		p.state(decode[map[string]any](p.T, argument))
	case "callback":
		p.equal(fmt.Sprint(p.told), fmt.Sprint(decode[[]Kind](p.T, argument)), "told")
		p.told = nil
	case "finish":
		p.equal(p.finished, decode[finish](p.T, argument), "finish")
		p.finished = ""
	case "session":
		p.session(decode[held](p.T, argument))
	case "no_request_for":
		p.noRequest("before")
		p.advance(p.span(argument))
		p.noRequest("meanwhile")
	default:
		p.Fatalf("no verb: %s", verb)
	}
}

// event tells an end, or without a reason that the stream of the session is over.
func (p *player) event(end told) {
	p.Helper()
	session := withIDs(end.Session)
	if end.Reason != "" {
		p.step(sessionEnd{session, end.Reason, end.By})
		return
	}
	p.equal(end.By, "", "a cause without a reason")
	p.step(streamOverEvent{session})
}

func (p *player) session(wanted held) {
	p.Helper()
	lease := p.machine.phase.lease()
	if lease == nil {
		p.Fatal("no session")
	}
	p.equal(lease.session, withIDs(wanted.ID), "session")
	p.equal(lease.licenseID, wanted.LicenseID, "license")
	p.equal([2]int{lease.seatsUsed, lease.seatsTotal}, wanted.Seats, "seats")
	p.equal(p.machine.plan.door.events(lease.session), withIDs(wanted.Events), "events")
}

func (p *player) equal(found, wanted any, subject string) {
	p.Helper()
	if !reflect.DeepEqual(found, wanted) {
		p.Errorf("%s: %v instead of %v", subject, found, wanted)
	}
}

func (p *player) span(argument json.RawMessage) time.Duration {
	return span(p.T, decode[string](p.T, argument))
}

func (p *player) noRequest(when string) {
	p.Helper()
	if len(p.sent) != 0 {
		p.Errorf("requests %s: %v", when, p.sent)
	}
}

// extended returns the JSON object defaults with the members of more.
func (p *player) extended(defaults map[string]any, more []byte) json.RawMessage {
	for name, value := range decode[map[string]any](p.T, more) {
		defaults[name] = value
	}
	text, err := json.Marshal(defaults)
	if err != nil {
		p.Fatal(err)
	}
	return text
}

func (p *player) isDevice() bool {
	return p.machine.plan.door == deviceDoor{}
}

func (p *player) acquired(fields []byte) {
	path := "/api/v1/licenses/acquire"
	if p.isDevice() {
		path = "/api/v1/devices/sessions"
	}
	p.expect(expectation{Method: "POST", Path: path})
	granted := map[string]any{
		"session_id":                 "$S",
		"expires_in_seconds":         360,
		"heartbeat_interval_seconds": 120,
		"status":                     "acquired",
	}
	p.answer(answer{Status: 201, JSON: p.extended(granted, fields)})
}

func (p *player) beat(fields []byte) {
	if p.isDevice() {
		body := json.RawMessage(`{"session_id":"$S"}`)
		p.expect(expectation{Method: "POST", Path: "/api/v1/devices/sessions/heartbeat", JSON: body})
		p.answer(answer{Status: 204})
		return
	}
	p.expect(expectation{Method: "PATCH", Path: "/api/v1/licenses/sessions/$S/heartbeat"})
	p.answer(answer{Status: 200, JSON: p.extended(map[string]any{"expires_in_seconds": 360}, fields)})
}

func (p *player) expect(wanted expectation) {
	if len(p.sent) == 0 {
		p.Fatalf("no request is sent: want %v", wanted)
	}
	found := p.sent[0]
	p.sent = p.sent[1:]
	p.equal(found.method, wanted.Method, "method")
	p.equal(found.path, withIDs(wanted.Path), "path")
	if wanted.JSON != nil {
		body, err := json.Marshal(found.body)
		if err != nil {
			p.Fatal(err)
		}
		p.equal(decode[any](p.T, body), decode[any](p.T, []byte(withIDs(string(wanted.JSON)))), "body")
	}
	if wanted.At != "" {
		p.equal(found.at.Milliseconds(), span(p.T, wanted.At).Milliseconds(), "the time of the request")
	}
	if wanted.Timeout != "" {
		p.equal(found.timeout.Milliseconds(), span(p.T, wanted.Timeout).Milliseconds(), "timeout")
	}
	if wanted.JSON == nil {
		p.equal(found.body != nil, found.method == "POST", "has a body")
	}
	p.equal(!found.isTokenless, wanted.Bearer == nil || *wanted.Bearer, "has a bearer token")
	p.expected = &found.id
}

func (p *player) answer(a answer) {
	body := a.Text
	if a.JSON != nil {
		body = withIDs(string(a.JSON))
	}
	retryAfter := time.Duration(a.RetryAfter) * time.Second
	p.step(answeredEvent{p.landed(), response{status: a.Status, retryAfter: retryAfter, body: []byte(body)}})
}

func (p *player) failure(kind string) Failure {
	failure, ok := map[string]Failure{
		"refused":           FailureRefused,
		"reset-before-send": FailureResetBeforeSend,
		"reset-after-send":  FailureResetAfterSend,
		"timeout":           FailureTimeout,
		"truncated":         FailureTruncated,
		"garbage":           FailureGarbage,
		"no-token":          FailureNoToken,
	}[kind]
	if !ok {
		p.Fatalf("no failure: %s", kind)
	}
	return failure
}

func (p *player) wall(jump string) {
	by := span(p.T, strings.TrimLeft(jump, "+-"))
	if jump[0] == '-' {
		by = -by
	}
	p.clocks.wall = max(0, p.clocks.wall+by)
	p.step(tickEvent{})
}

func (p *player) call(call string) {
	switch call {
	case "release":
		p.step(releaseEvent{})
	case "abandon":
		p.step(releaseEvent{isAbandoned: true})
	case "acquire":
		p.step(acquireEvent{})
	case "wake":
		p.step(wakeEvent{})
	case "activity":
		p.machine.noteActivity(p.clocks.boot)
	default:
		p.Fatalf("no call: %s", call)
	}
}

func (p *player) token(token string) {
	p.equal(p.refreshAsked, true, "a token was asked for")
	p.refreshAsked = false
	switch token {
	case "fresh":
		p.step(tokenReadyEvent{})
	case "none":
		p.step(tokenFailedEvent{})
	default:
		p.Fatalf("no token: %s", token)
	}
}

func (p *player) state(wanted map[string]any) {
	state := p.machine.state(p.clocks.boot)
	point := func(point time.Duration) any {
		return (point - time.Duration(p.clocks.began)).Milliseconds()
	}
	shown := map[string]any{"kind": string(state.Kind)}
	switch state.Kind {
	case Active, Grace:
		shown["until"] = point(state.Until)
	case Offline:
		shown["until"], shown["since"] = point(state.Until), point(state.Since)
	case Lost:
		loss := state.Err.(*Loss)
		shown["reason"], shown["retry"], shown["by"] = string(loss.Reason), loss.Retry, any(nil)
		if loss.By != "" {
			shown["by"] = loss.By
		}
	case Refused:
		shown["code"] = state.Err.(interface{ Code() string }).Code()
	}
	for name, value := range wanted {
		if name == "until" || name == "since" {
			value = span(p.T, value.(string)).Milliseconds()
		}
		found, ok := shown[name]
		p.equal(ok, true, name+" is shown")
		p.equal(found, value, fmt.Sprintf("%s of %v", name, state))
	}
}

// stepsAtOnceMax is the number of steps at one instant above which the machine is in a livelock.
const stepsAtOnceMax = 100

// advance advances the clocks, and fires timers and timeouts at their exact time.
func (p *player) advance(by time.Duration) {
	end := p.clocks.boot.after(by)
	for atOnce := 0; ; {
		timesOut := never
		if p.flight != nil {
			timesOut = p.flight.timesOut
		}
		upcoming := min(p.machine.wakeAt(), timesOut)
		if upcoming > end {
			break
		}
		if upcoming > p.clocks.boot {
			p.clocks.advance(time.Duration(upcoming - p.clocks.boot))
			atOnce = 0
		}
		if atOnce++; atOnce > stepsAtOnceMax {
			p.Fatal("the machine asks for time that has passed")
		}
		if p.flight != nil && timesOut == upcoming {
			request := p.flight.request
			p.flight = nil
			p.step(failedEvent{request, fault{failure: FailureTimeout}})
		} else {
			p.step(tickEvent{})
		}
	}
	p.clocks.advance(time.Duration(end - p.clocks.boot))
}

// landed takes the expected request out of flight; an aborted request may still be answered.
func (p *player) landed() uint64 {
	if p.expected == nil {
		p.Fatal("no request is expected")
	}
	request := *p.expected
	p.expected = nil
	if p.flight != nil && p.flight.request == request {
		p.flight = nil
	} else {
		p.equal(slices.Contains(p.cancelled, request), true, "an aborted request")
	}
	return request
}

func (p *player) step(ev event) {
	jitter := p.jitters[p.steps%len(p.jitters)]
	p.steps++
	p.carryOut(p.machine.step(ev, p.clocks.reading, jitter))
	state := p.machine.state(p.clocks.boot)
	if state.Kind == Active && time.Duration(p.clocks.boot) >= state.Until {
		p.Error("active after the deadline")
	}
}

func (p *player) carryOut(actions []action) {
	for _, a := range actions {
		switch a := a.(type) {
		case sendAction:
			if p.flight != nil {
				p.Errorf("a second request in flight: %v", a.request)
			}
			p.flight = &flight{a.request.id, p.clocks.boot.after(a.request.timeout)}
			p.sent = append(p.sent, sentRequest{a.request, p.clocks.sinceBeginning()})
		case cancelAction:
			if p.flight != nil && p.flight.request == a.request {
				p.flight = nil
			}
			p.cancelled = append(p.cancelled, a.request)
		case refreshTokenAction:
			p.equal(p.refreshAsked, false, "a second refresh")
			p.refreshAsked = true
		case tellAction:
			p.told = append(p.told, a.state.Kind)
		case finishAction:
			p.equal(p.finished, finish(""), "a second end")
			p.finished = a.finish
		}
	}
}
