package seatkeeper

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// members are the members of a JSON object of the server.
type members map[string]any

// parseMembers parses a JSON object; false for everything else.
func parseMembers(body []byte) (members, bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var parsed members
	if decoder.Decode(&parsed) != nil || parsed == nil {
		return nil, false
	}
	_, err := decoder.Token()
	return parsed, err == io.EOF
}

// text returns a member that is a text; the empty text for everything else.
func (m members) text(name string) string {
	value, _ := m[name].(string)
	return value
}

// time returns a member that is a time; the zero time for everything else.
func (m members) time(name string) time.Time {
	value, _ := time.Parse(time.RFC3339, m.text(name))
	return value
}

// whole returns a member that is a whole number from zero up.
func (m members) whole(name string) (uint64, bool) {
	number, isNumber := m[name].(json.Number)
	if !isNumber {
		return 0, false
	}
	value, err := strconv.ParseUint(number.String(), 10, 64)
	return value, err == nil
}

// count returns the first member of these names that is a whole number; else 0.
func (m members) count(names ...string) int {
	for _, name := range names {
		if value, ok := m.whole(name); ok {
			return int(value)
		}
	}
	return 0
}

// span returns a member that is a number of seconds, longest at most.
func (m members) span(name string, longest time.Duration) (time.Duration, bool) {
	seconds, ok := m.whole(name)
	return time.Duration(min(seconds, uint64(longest/time.Second))) * time.Second, ok
}

// objects returns the objects of a member that is an array.
func (m members) objects(name string) []members {
	values, _ := m[name].([]any)
	var found []members
	for _, value := range values {
		if object, isObject := value.(map[string]any); isObject {
			found = append(found, object)
		}
	}
	return found
}
