package seatkeeper

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMetadataAreSentAsTheyWereAtTheAcquire(t *testing.T) {
	metadata := map[string]any{"job": "first"}
	server := newScripted(t, func(request arrived, earlier int) reply {
		if request.target != "POST /api/v1/licenses/acquire" || earlier > 0 {
			return reply{status: 201, body: scriptedGrant}
		}
		// The program goes on with its own map, and the client sends the acquire again with another token.
		metadata["job"] = "second"
		return reply{status: 401, body: "{}"}
	})
	seat := scriptedSeat(t, server.url, nil, Metadata(metadata))
	defer seat.Release(context.Background())
	acquires := server.arrived("POST /api/v1/licenses/acquire")
	if len(acquires) != 2 {
		t.Fatalf("%d acquires", len(acquires))
	}
	for number, request := range acquires {
		if sent := request.body["metadata"]; !reflect.DeepEqual(sent, map[string]any{"job": "first"}) {
			t.Errorf("acquire %d sends %v", number, sent)
		}
	}
}

func TestALoggerAndAnHTTPClientThatAreNilKeepTheDefaults(t *testing.T) {
	server := newScripted(t, func(arrived, int) reply { return reply{status: 201, body: scriptedGrant} })
	told := make(chan Kind, 2)
	panics := OnChange(func(state State) {
		told <- state.Kind
		panic("the program's own fault")
	})
	seat := scriptedSeat(t, server.url, []ClientOption{Logger(nil), HTTPClient(nil)}, panics)
	_ = seat.Release(context.Background())
	for _, kind := range []Kind{Active, Released} {
		select {
		case got := <-told:
			if got != kind {
				t.Errorf("%v instead of %v", got, kind)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%v is not told", kind)
		}
	}
}

func TestAnHTTPClientOfTheProgramFollowsNoRedirect(t *testing.T) {
	target := newScripted(t, func(arrived, int) reply { return reply{status: 201, body: scriptedGrant} })
	server := newScripted(t, func(arrived, int) reply { return reply{status: 307, location: target.url} })
	own := &http.Client{}
	client, err := NewClient(server.url, Token("t"), HTTPClient(own))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.License("K").Acquire(context.Background(), Machine("m"), Patience(0)); err == nil {
		t.Error("a seat came by a redirect")
	}
	if sent := target.arrived(""); len(sent) > 0 {
		t.Errorf("the target of the redirect got %v", sent)
	}
	if own.CheckRedirect != nil {
		t.Error("the client of the program is changed")
	}
}

func TestAnErrorOfAnAddressShowsNoPassword(t *testing.T) {
	for _, address := range []string{"https://user:hunter2@host", "https://user:hunt er2@host", "user:hunter2@host"} {
		_, err := NewClient(address, Token("t"))
		if err == nil || strings.Contains(err.Error(), "hunt") {
			t.Errorf("%v for %s", err, address)
		}
	}
}

// scriptedSeat acquires a seat of a new client.
func scriptedSeat(t *testing.T, url string, options []ClientOption, acquire ...AcquireOption) *Seat {
	t.Helper()
	client, err := NewClient(url, append([]ClientOption{Token("t"), EventStreams(false)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	seat, err := client.License("K").Acquire(context.Background(), append(acquire, Machine("m"))...)
	if err != nil {
		t.Fatal(err)
	}
	return seat
}
