// Command conformance drives the Go client by JSON lines; crates/sdk-conformance/src/driver.rs explains the commands.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"seatkeeper.dev/seatkeeper"
)

// A command is a line of the input.
type command struct {
	ID           uint64   `json:"id"`
	Do           string   `json:"do"`
	URL          string   `json:"url"`
	Token        string   `json:"token"`
	TokenFile    string   `json:"token_file"`
	LicenseKey   string   `json:"license_key"`
	EventStreams bool     `json:"event_streams"`
	Seat         string   `json:"seat"`
	Machine      string   `json:"machine"`
	Wait         *float64 `json:"wait"`
	Patience     float64  `json:"patience"`
	Calls        int      `json:"calls"`
	Count        int      `json:"count"`
}

// An answer is the members of a line of the output.
type answer map[string]any

// A driver is the client and its seats.
type driver struct {
	started time.Time
	client  *seatkeeper.Client

	mu    sync.Mutex
	seats map[string]*seatkeeper.Seat

	printing sync.Mutex
	output   *json.Encoder
}

func main() {
	d := &driver{started: time.Now(), seats: map[string]*seatkeeper.Seat{}, output: json.NewEncoder(os.Stdout)}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			panic(err)
		}
		if c.Do == "open" {
			d.reply(c)
		} else {
			go d.reply(c)
		}
	}
}

func (d *driver) reply(c command) {
	line, err := d.obey(c)
	if err != nil {
		line = answer{"error": answer{"code": code(err)}}
	}
	line["id"] = c.ID
	d.print(line)
}

func (d *driver) obey(c command) (answer, error) {
	switch c.Do {
	case "open":
		client, err := newClient(c)
		d.client = client
		return answer{"ok": true}, err
	case "acquire":
		return d.acquire(c)
	case "state":
		return d.states(), nil
	case "activity":
		d.seat(c.Seat).Activity()
		return answer{"ok": true}, nil
	case "release":
		err := d.seat(c.Seat).Release(context.Background())
		return answer{"confirmed": err == nil}, nil
	case "close":
		err := d.client.Close(context.Background())
		if errors.Is(err, seatkeeper.ErrNotConfirmed) {
			err = nil
		}
		return answer{"ok": true}, err
	case "check":
		return answer{"nanoseconds": priceOfCheck(d.seat(c.Seat), c.Calls)}, nil
	case "cycles":
		return answer{"ok": true}, cycles(c)
	case "memory":
		return answer{"kib": memory()}, nil
	case "crash":
		return nil, crash()
	default:
		panic("no command is named " + c.Do)
	}
}

// newClient returns a client with the options of a command.
func newClient(c command) (*seatkeeper.Client, error) {
	source := seatkeeper.LicenseKey(c.LicenseKey, "")
	if c.Token != "" {
		source = seatkeeper.Token(c.Token)
	} else if c.TokenFile != "" {
		source = seatkeeper.TokenFile(c.TokenFile)
	}
	options := []seatkeeper.ClientOption{source, seatkeeper.EventStreams(c.EventStreams)}
	nodes := strings.Fields(c.URL)
	for _, node := range nodes[1:] {
		options = append(options, seatkeeper.Server(node))
	}
	return seatkeeper.NewClient(nodes[0], options...)
}

// cycles opens a client, acquires, releases and closes, again and again.
func cycles(c command) error {
	for range c.Count {
		client, err := newClient(c)
		if err != nil {
			return err
		}
		seat, err := client.License(c.LicenseKey).Acquire(context.Background(), seatkeeper.Machine(c.Machine))
		if err != nil {
			return err
		}
		if err := seat.Release(context.Background()); err != nil {
			return err
		}
		if err := client.Close(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

// memory returns the KiB in use after a collection: the heap, and the stacks of goroutines.
func memory() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc+stats.StackInuse) / 1024
}

// priceOfCheck measures Check, the best of ten rounds, in nanoseconds.
func priceOfCheck(seat *seatkeeper.Seat, calls int) float64 {
	best := math.Inf(1)
	for range 10 {
		start := time.Now()
		for range calls {
			if seat.Check() != nil {
				panic("the seat is not held")
			}
		}
		best = min(best, float64(time.Since(start).Nanoseconds())/float64(calls))
	}
	return best
}

func (d *driver) acquire(c command) (answer, error) {
	options := []seatkeeper.AcquireOption{seatkeeper.Machine(c.Machine), seatkeeper.Patience(seconds(c.Patience))}
	if c.Wait != nil {
		options = append(options, seatkeeper.Wait(seconds(*c.Wait)))
	}
	seat, err := d.client.License(c.LicenseKey).Acquire(context.Background(), options...)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.seats[c.Seat] = seat
	d.mu.Unlock()
	seat.OnChange(func(state seatkeeper.State) { d.tell(c.Seat, state) })
	return answer{"session": seat.SessionID()}, nil
}

func (d *driver) seat(name string) *seatkeeper.Seat {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seats[name]
}

func (d *driver) states() answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	states := answer{}
	for name, seat := range d.seats {
		states[name] = answer{"kind": seat.State().Kind, "valid": seat.Check() == nil}
	}
	return answer{"states": states}
}

func (d *driver) tell(name string, state seatkeeper.State) {
	told := answer{"kind": state.Kind}
	var loss *seatkeeper.Loss
	if errors.As(state.Err, &loss) {
		told["reason"], told["by"], told["retry"] = loss.Reason, loss.By, loss.Retry
	}
	at := float64(time.Since(d.started).Microseconds()) / 1e3
	d.print(answer{"seat": name, "at": at, "state": told})
}

func (d *driver) print(line answer) {
	d.printing.Lock()
	defer d.printing.Unlock()
	if err := d.output.Encode(line); err != nil {
		panic(err)
	}
}

// crash ends the process at once, without any cleaning.
func crash() error {
	process, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return process.Kill()
}

func seconds(span float64) time.Duration {
	return time.Duration(span * float64(time.Second))
}

// code returns the code of an error of the client.
func code(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return err.Error()
}
