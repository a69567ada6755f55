package seatkeeper

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

const (
	// fleetRoundTrip is a round trip to the server of a fleet.
	fleetRoundTrip = 5 * time.Millisecond
	// fleetBucket is the span in which load is counted.
	fleetBucket = 100 * time.Millisecond
	// fleetStepsMax is more steps of one holder than any fleet needs.
	fleetStepsMax = 10_000
)

// fleet is many holders and one outage.
type fleet struct {
	Name                string         `json:"name"`
	Holders             int            `json:"holders"`
	Seed                uint64         `json:"seed"`
	Grant               map[string]any `json:"grant"`
	OutageFrom          string         `json:"outage_from"`
	OutageTo            string         `json:"outage_to"`
	Outage              string         `json:"outage"`
	Until               string         `json:"until"`
	BucketShareMax      float64        `json:"bucket_share_max"`
	SpreadMin           string         `json:"spread_min"`
	TriesPerIntervalMax int            `json:"tries_per_interval_max"`
	State               Kind           `json:"state"`
}

// splitMix64 is the generator of jitter that sdk/vectors/README.md defines.
type splitMix64 uint64

func (s *splitMix64) draw() float64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

func TestTheGeneratorIsSplitMix64(t *testing.T) {
	var random splitMix64
	if drawn := random.draw(); drawn != 0.8833108082136426 {
		t.Error(drawn)
	}
}

func (f fleet) play(t *testing.T) {
	interval := time.Duration(f.Grant["heartbeat_interval_seconds"].(float64)) * time.Second
	outageTo := span(t, f.OutageTo)
	var first []time.Duration
	buckets := map[time.Duration]int{}
	for number := range f.Holders {
		sent := f.requests(t, number)
		for i := f.TriesPerIntervalMax; i < len(sent); i++ {
			if sent[i]-sent[i-f.TriesPerIntervalMax] < interval {
				t.Fatalf("holder %d: more than %d tries", number, f.TriesPerIntervalMax)
			}
		}
		back := slices.IndexFunc(sent, func(at time.Duration) bool { return at >= outageTo })
		if back < 0 {
			t.Fatalf("holder %d does not come back", number)
		}
		first = append(first, sent[back])
		buckets[sent[back]/fleetBucket]++
	}
	for _, count := range buckets {
		if share := float64(count) / float64(f.Holders); share > f.BucketShareMax {
			t.Errorf("%d requests within 100 ms", count)
		}
	}
	if spread := slices.Max(first) - slices.Min(first); spread < span(t, f.SpreadMin) {
		t.Errorf("spread over %v alone", spread)
	}
}

// requests returns the times of the requests of one holder since the beginning.
func (f fleet) requests(t *testing.T, number int) []time.Duration {
	random := splitMix64(f.Seed + uint64(number))
	clocks := newFakeClocks()
	m, actions := newMachine(
		&plan{door: licenseDoor{}, licenseKey: "K", machineID: fmt.Sprint("m", number), patience: patienceDefault}, orphan{}, clocks.reading)
	from, to := clocks.began.after(span(t, f.OutageFrom)), clocks.began.after(span(t, f.OutageTo))
	end := clocks.began.after(span(t, f.Until))
	var sent []time.Duration
	var inFlight *request
	var arrives instant
	for range fleetStepsMax {
		for _, a := range actions {
			if send, ok := a.(sendAction); ok {
				if inFlight != nil {
					t.Fatal("a second request in flight")
				}
				sent = append(sent, clocks.sinceBeginning())
				inFlight, arrives = &send.request, clocks.boot.after(fleetRoundTrip)
			}
		}
		upcoming := m.wakeAt()
		if inFlight != nil {
			upcoming = min(upcoming, arrives)
		}
		if upcoming > end {
			if state := m.state(clocks.boot); state.Kind != f.State {
				t.Fatalf("holder %d is %v", number, state)
			}
			return sent
		}
		clocks.advance(max(0, time.Duration(upcoming-clocks.boot)))
		var ev event = tickEvent{}
		if inFlight != nil && arrives == upcoming {
			ev = f.answer(t, inFlight, upcoming >= from && upcoming < to)
			inFlight = nil
		}
		actions = m.step(ev, clocks.reading, random.draw())
	}
	t.Fatalf("holder %d goes round in circles", number)
	return nil
}

func (f fleet) answer(t *testing.T, r *request, isOutage bool) event {
	switch {
	case isOutage && f.Outage == "refused":
		return failedEvent{r.id, fault{failure: FailureRefused}}
	case isOutage && f.Outage == "503":
		return answeredEvent{r.id, response{status: 503, retryAfter: time.Second}}
	case isOutage:
		t.Fatalf("no outage: %s", f.Outage)
	}
	granted := map[string]any{"session_id": withIDs("$S")}
	for name, value := range f.Grant {
		granted[name] = value
	}
	body, err := json.Marshal(granted)
	if err != nil {
		t.Fatal(err)
	}
	status := 200
	if r.method == "POST" {
		status = 201
	}
	return answeredEvent{r.id, response{status: status, body: body}}
}
