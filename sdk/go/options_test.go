package seatkeeper

import (
	"context"
	"reflect"
	"testing"
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
