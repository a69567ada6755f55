package seatkeeper

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// parsed returns the events and the last id of a stream that arrives in chunks of a size.
func parsed(t *testing.T, text string, size int) ([]serverEvent, string) {
	t.Helper()
	var parser eventParser
	var found []serverEvent
	for len(text) > 0 {
		n := min(size, len(text))
		events, err := parser.feed([]byte(text[:n]))
		if err != nil {
			t.Fatal(err)
		}
		found, text = append(found, events...), text[n:]
	}
	return found, parser.lastID
}

func TestAStreamIsParsedByTheRulesOfServerSentEventsInChunksOfAnySize(t *testing.T) {
	for name, stream := range map[string]struct {
		text   string
		events []serverEvent
		lastID string
	}{
		"LF":                         {"event: a\ndata: 1\nid: 7\n\n", []serverEvent{{"a", "1"}}, "7"},
		"CR LF":                      {"event: a\r\ndata: 1\r\nid: 7\r\n\r\n", []serverEvent{{"a", "1"}}, "7"},
		"CR":                         {"event: a\rdata: 1\rid: 7\r\r", []serverEvent{{"a", "1"}}, "7"},
		"mixed ends of lines":        {"event: a\r\ndata: 1\n\rdata: 2\r\r\n", []serverEvent{{"a", "1"}, {"", "2"}}, ""},
		"two events":                 {"event: a\ndata: 1\n\ndata: 2\n\n", []serverEvent{{"a", "1"}, {"", "2"}}, ""},
		"several lines of data":      {"data: 1\ndata:\ndata:  3\n\n", []serverEvent{{"", "1\n\n 3"}}, ""},
		"comments":                   {": still here\n\n:\ndata: 1\n: more\n\n", []serverEvent{{"", "1"}}, ""},
		"a byte order mark":          {"\xef\xbb\xbfdata: 1\n\n", []serverEvent{{"", "1"}}, ""},
		"a second byte order mark":   {"\xef\xbb\xbf\n\xef\xbb\xbfdata: 1\n\n", nil, ""},
		"an id alone":                {"id: 7\n\n", nil, "7"},
		"an id that stays":           {"id: 7\ndata: 1\n\ndata: 2\n\n", []serverEvent{{"", "1"}, {"", "2"}}, "7"},
		"an id that is emptied":      {"id: 7\n\nid\n\n", nil, ""},
		"an id with a zero byte":     {"id: 7\n\nid: 8\x00\n\n", nil, "7"},
		"an id without a blank line": {"id: 7\n\nid: 8\n", nil, "7"},
		"an event without data":      {"event: a\n\ndata: 1\n\n", []serverEvent{{"", "1"}}, ""},
		"fields without a colon":     {"data\n\nevent\ndata\n\n", []serverEvent{{}, {}}, ""},
		"unknown fields":             {"retry: 5\nData: 1\ndata : 2\n\ndata: 3\n\n", []serverEvent{{"", "3"}}, ""},
		"colons and spaces":          {"event: a:b\ndata: {\"a\": 1}\n\n", []serverEvent{{"a:b", `{"a": 1}`}}, ""},
		"an unfinished event":        {"data: 1\n\ndata: 2\n", []serverEvent{{"", "1"}}, ""},
		"letters of two bytes":       {"data: Zoë’s TV\n\n", []serverEvent{{"", "Zoë’s TV"}}, ""},
	} {
		for size := 1; size <= len(stream.text); size++ {
			events, lastID := parsed(t, stream.text, size)
			if !reflect.DeepEqual(events, stream.events) || lastID != stream.lastID {
				t.Errorf("%s in chunks of %d: %q, id %q", name, size, events, lastID)
			}
		}
	}
}

func TestAnEventWithoutAnEndIsGivenUp(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 1024), strings.Repeat("data: xxxxxxxx\n", 64)} {
		var parser eventParser
		var err error
		for fed := 0; err == nil; fed += len(text) {
			if fed > 2*eventBytesMax {
				t.Fatal("the parser keeps all")
			}
			_, err = parser.feed([]byte(text))
		}
	}
}

func TestAnEventTellsAnEndOrNothing(t *testing.T) {
	const by = `{"session_id":"T","device_type":"tv","device_name":"Living room"}`
	for data, wanted := range map[string]sessionEnd{
		`{"session_id":"S","reason":"revoked","ended_at":"2030-01-01T00:00:00Z"}`: {"S", ReasonRevoked, ""},
		`{"session_id":"S","reason":"revoked","by":"ops"}`:                        {"S", ReasonRevoked, "ops"},
		`{"session_id":"S","reason":"evicted","by":` + by + `}`:                   {"S", ReasonEvicted, "Living room"},
		`{"session_id":"S","reason":"evicted","by":{"device_type":"tv"}}`:         {"S", ReasonEvicted, "tv"},
		`{"session_id":"S","reason":"evicted","by":{"session_id":"T"}}`:           {"S", ReasonEvicted, "T"},
		`{"session_id":"S","reason":"a later reason","by":[1]}`:                   {"S", "a later reason", ""},
	} {
		if end, ok := (serverEvent{data: data}).sessionEnd(); !ok || end != wanted {
			t.Errorf("%s: %v", data, end)
		}
	}
	for _, data := range []string{
		"", "null", "[]", "{", `{"session_id":"S"}`, `{"reason":"revoked"}`, `{"session_id":1,"reason":2}`,
		`{"seats_total":3,"license_expires_at":null,"grace_seconds":0,"reacquire":"expired_only"}`,
		`{"plan":"basic","device_limit":2}`,
	} {
		if end, ok := (serverEvent{name: "revoked", data: data}).sessionEnd(); ok {
			t.Errorf("%s: %v", data, end)
		}
	}
}

func TestAnEventTellsAnUnknownSessionOrNothing(t *testing.T) {
	for event, wanted := range map[serverEvent]string{
		{"unknown", `{"session_id":"S"}`}:                    "S",
		{"unknown", `{"session_id":"S","later":true}`}:       "S",
		{"unknown", `{"session_id":1}`}:                      "",
		{"unknown", `{}`}:                                    "",
		{"unknown", `S`}:                                     "",
		{"", `{"session_id":"S"}`}:                           "",
		{"revoked", `{"session_id":"S","reason":"revoked"}`}: "",
	} {
		if session, ok := event.unknownSession(); session != wanted || ok != (wanted != "") {
			t.Errorf("%v: %q, %v", event, session, ok)
		}
	}
}

func TestNoVerbShowsASecret(t *testing.T) {
	held := lease{session: "S", releaseCode: newSecret("c0de-7f3a91")}
	shown := ""
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb, held) + fmt.Sprintf(verb, &held) + fmt.Sprintf(verb, held.releaseCode)
	}
	if strings.Contains(shown, "c0de") || strings.Contains(shown, fmt.Sprintf("%x", "c0de")) {
		t.Error(shown)
	}
}
