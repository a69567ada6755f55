package seatkeeper

import (
	"bytes"
	"errors"
	"strings"
)

// eventBytesMax is the size of the largest event that is read: no event of a server comes near.
const eventBytesMax = 64 << 10

var errEventTooLong = errors.New("seatkeeper: an event is too long")

// serverEvent is one event of a stream of server-sent events.
type serverEvent struct {
	// name is the field event; empty stands for message.
	name string
	data string
}

// eventParser parses a stream of server-sent events by the rules of the WHATWG, in chunks of any size.
type eventParser struct {
	// lastID is the id of the last event, or of the last id without an event.
	lastID string

	line []byte
	// afterCR says that a LF would belong to the CR before.
	afterCR bool
	// hasBegun is set once the first line, with its byte order mark, is over.
	hasBegun bool
	id, name string
	data     []byte
}

// byteOrderMark may precede a stream.
var byteOrderMark = []byte("\xef\xbb\xbf")

// feed takes the next bytes of the stream, and returns the events that they complete.
func (p *eventParser) feed(chunk []byte) ([]serverEvent, error) {
	var events []serverEvent
	for _, b := range chunk {
		isRest := p.afterCR && b == '\n'
		p.afterCR = b == '\r'
		switch {
		case isRest:
		case b == '\n' || b == '\r':
			if event, ok := p.endLine(); ok {
				events = append(events, event)
			}
		case len(p.line)+len(p.data) >= eventBytesMax:
			return events, errEventTooLong
		default:
			p.line = append(p.line, b)
		}
	}
	return events, nil
}

// endLine takes the line that is over; an empty line ends an event.
func (p *eventParser) endLine() (serverEvent, bool) {
	line := p.line
	if !p.hasBegun {
		line = bytes.TrimPrefix(line, byteOrderMark)
		p.hasBegun = true
	}
	p.line = p.line[:0]
	if len(line) == 0 {
		return p.endEvent()
	}
	// A comment is a field without a name.
	name, value, _ := strings.Cut(string(line), ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "event":
		p.name = value
	case "data":
		p.data = append(append(p.data, value...), '\n')
	case "id":
		if !strings.ContainsRune(value, 0) {
			p.id = value
		}
	}
	return serverEvent{}, false
}

// endEvent returns the event; false for an event without data.
func (p *eventParser) endEvent() (serverEvent, bool) {
	p.lastID = p.id
	event := serverEvent{name: p.name, data: strings.TrimSuffix(string(p.data), "\n")}
	hasData := len(p.data) > 0
	p.name, p.data = "", p.data[:0]
	return event, hasData
}

// sessionEnd returns the end of a session that the event tells; false for an event of another kind.
func (e serverEvent) sessionEnd() (sessionEnd, bool) {
	told, ok := parseMembers([]byte(e.data))
	end := sessionEnd{session: told.text("session_id"), reason: Reason(told.text("reason")), by: told.text("by")}
	if successor, isObject := told["by"].(map[string]any); isObject {
		end.by = successorName(successor)
	}
	return end, ok && end.session != "" && end.reason != ""
}

// unknownSession returns the session of which a shared stream tells nothing further; false for an event of another kind.
func (e serverEvent) unknownSession() (string, bool) {
	if e.name != "unknown" {
		return "", false
	}
	told, _ := parseMembers([]byte(e.data))
	session := told.text("session_id")
	return session, session != ""
}

// successorName returns the name of the session that took a place: the name of its device, else the type, else its id.
func successorName(successor members) string {
	for _, member := range []string{"device_name", "device_type", "session_id"} {
		if name := successor.text(member); name != "" {
			return name
		}
	}
	return ""
}
