package seatkeeper

import (
	"cmp"
	"strings"
	"time"
)

// A Holder holds a seat.
type Holder struct {
	MachineID string
	// InstanceID is the process on the machine, where the license counts processes.
	InstanceID string
}

// A DeviceSession is a live session of a subscriber's device. Type, name and address are empty while the server cannot look
// them up.
type DeviceSession struct {
	SessionID  string
	DeviceType DeviceType
	// DeviceName is the owner's name for the device.
	DeviceName string
	// IP is the address from which the device was admitted.
	IP string
	// StartedAt and LastHeartbeatAt are times on the server's clock.
	StartedAt, LastHeartbeatAt time.Time
}

// A FieldError is a field of a request that breaks a rule.
type FieldError struct {
	Field   string
	Message string
}

// Denied is the error of an acquire that the server refused, in the server's words (RFC 9457).
type Denied struct {
	// Status is the HTTP status.
	Status int
	// Title is one short sentence for the kind of problem, Detail one for this occurrence.
	Title, Detail string
	// RetryAfter is the time to wait before the next try, a day at most; zero if the server told none.
	RetryAfter time.Duration
	// SeatsTotal is the number of seats of a full license, or of devices that the plan of a subscriber allows.
	SeatsTotal int
	// Holders are some holders of a full license, the stalest first.
	Holders []Holder
	// Devices are the live sessions of a subscriber with every screen in use, the most recent heartbeat first.
	Devices []DeviceSession
	// Errors are the fields of the request that break a rule.
	Errors []FieldError
	// ContactSupport is the person to ask about an expired license.
	ContactSupport string
	// RequestID is the id of the request in the server's log.
	RequestID string

	hasRetryAfter bool

	code   string
	reason string
	by     string
}

// Code returns the kind of problem, such as license-full or license-not-found.
func (d *Denied) Code() string { return d.code }

func (d *Denied) Error() string {
	told := "seatkeeper: " + d.code
	if text := cmp.Or(d.Detail, d.Title); text != "" {
		told += ": " + text
	}
	var wrong []string
	for _, field := range d.Errors {
		wrong = append(wrong, field.Field+" "+field.Message)
	}
	if len(wrong) > 0 {
		told += " (" + strings.Join(wrong, ", ") + ")"
	}
	return withRemedy(told, denialRemedies[d.code])
}

// denialPauseMax is the longest pause that a denial may ask for.
const denialPauseMax = 24 * time.Hour

// unnamedProblem returns the problem of an answer that has a status alone.
func unnamedProblem(r response) *Denied {
	return &Denied{Status: r.status, RequestID: r.requestID, code: problemCode("", r.status)}
}

// parseProblem parses the body of an answer; nil if the body has neither type nor title, for then some proxy answered.
func parseProblem(r response) *Denied {
	parsed, ok := parseMembers(r.body)
	if !ok || (parsed.text("type") == "" && parsed.text("title") == "") {
		return nil
	}
	problem := &Denied{
		Status:         r.status,
		Title:          parsed.text("title"),
		Detail:         parsed.text("detail"),
		ContactSupport: parsed.text("contact_support"),
		RequestID:      r.requestID,
		code:           problemCode(parsed.text("type"), r.status),
		reason:         parsed.text("reason"),
		by:             parsed.text("by"),
	}
	if pause, ok := parsed.span("retry_after_seconds", denialPauseMax); ok {
		problem.RetryAfter, problem.hasRetryAfter = pause, true
	}
	if total, ok := parsed.whole("seats_total"); ok {
		problem.SeatsTotal = int(total)
	}
	for _, holder := range parsed.objects("holders") {
		if id := holder.text("machine_id"); id != "" {
			problem.Holders = append(problem.Holders, Holder{id, holder.text("instance_id")})
		}
	}
	if limit, ok := parsed.whole("device_limit"); ok {
		problem.SeatsTotal = int(limit)
	}
	for _, session := range parsed.objects("sessions") {
		if session.text("session_id") != "" {
			problem.Devices = append(problem.Devices, newDeviceSession(session))
		}
	}
	for _, wrong := range parsed.objects("errors") {
		problem.Errors = append(problem.Errors, FieldError{wrong.text("field"), wrong.text("message")})
	}
	return problem
}

func newDeviceSession(told members) DeviceSession {
	return DeviceSession{
		SessionID:       told.text("session_id"),
		DeviceType:      DeviceType(told.text("device_type")),
		DeviceName:      told.text("device_name"),
		IP:              told.text("ip"),
		StartedAt:       told.time("started_at"),
		LastHeartbeatAt: told.time("last_heartbeat_at"),
	}
}

func problemCode(kind string, status int) string {
	last := kind[strings.LastIndexByte(kind, '/')+1:]
	if last != "" && last != "about:blank" {
		return last
	}
	switch status {
	case 401:
		return "unauthenticated"
	case 403:
		return "forbidden"
	case 404:
		return "not-found"
	case 410:
		return "session-ended"
	case 422:
		return "invalid-request"
	default:
		return "refused"
	}
}
