package seatkeeper_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seatkeeper.dev/seatkeeper"
)

// fromEnvironment returns the number in a variable, or else standard.
func fromEnvironment(t *testing.T, name string, standard int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

// usage is the use of resources by this process.
type usage struct {
	goroutines, threads, files int
	heapAndStacks, resident    int
	cpu                        time.Duration
}

func readUsage() (u usage) {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	u.goroutines = runtime.NumGoroutine()
	u.heapAndStacks = int(memory.HeapAlloc + memory.StackInuse)
	files, _ := os.ReadDir("/proc/self/fd")
	u.files = len(files)
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "Threads:"):
			u.threads, _ = strconv.Atoi(fields[1])
		case strings.HasPrefix(line, "VmRSS:"):
			u.resident, _ = strconv.Atoi(fields[1])
			u.resident <<= 10
		}
	}
	stat, _ := os.ReadFile("/proc/self/stat")
	if _, after, ok := strings.Cut(string(stat), ") "); ok {
		fields := strings.Fields(after)
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		u.cpu = time.Duration(user+system) * 10 * time.Millisecond
	}
	return u
}

// serviceToken returns a token whose limits fit a fleet.
func (s *server) serviceToken() string {
	s.t.Helper()
	return strings.TrimSpace(s.run("token", "--user", "fleet", "--scope", "service"))
}

// SDK_TEST_CYCLES is the number of cycles: ten thousand take some minutes. The test is not parallel: it counts the goroutines
// and files of the program.
func TestCyclesFromOpenToCloseLeaveNothing(t *testing.T) {
	s := newServer(t)
	key, token := s.license("CYCLES", 1, 60), s.serviceToken()
	cycle := func() {
		client, err := seatkeeper.NewClient(s.url, seatkeeper.Token(token))
		if err != nil {
			t.Fatal(err)
		}
		seat := acquire(t, client, key, seatkeeper.Machine("m"))
		if err := seat.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	cycles := fromEnvironment(t, "SDK_TEST_CYCLES", 300)
	for range min(cycles, 100) {
		cycle()
	}
	before := readUsage()
	for range cycles {
		cycle()
	}
	// The last connections may take a moment to close.
	var after usage
	for end := time.Now().Add(long); ; time.Sleep(10 * time.Millisecond) {
		after = readUsage()
		if after.goroutines <= before.goroutines && after.files <= before.files || time.Now().After(end) {
			break
		}
	}
	t.Logf("%d cycles: before %+v, after %+v", cycles, before, after)
	const heapGrowthMax = 1 << 20
	if after.goroutines > before.goroutines || after.files > before.files ||
		after.heapAndStacks > before.heapAndStacks+heapGrowthMax {
		t.Errorf("growth: before %+v, after %+v", before, after)
	}
	s.expectLive()
}

// SDK_TEST_SEATS is the number of seats, and SDK_TEST_SECONDS the time for which they are held.
func TestManySeatsOfOneProgramCostLittle(t *testing.T) {
	s := newServer(t)
	seats := fromEnvironment(t, "SDK_TEST_SEATS", 50)
	held := time.Duration(fromEnvironment(t, "SDK_TEST_SECONDS", 1)) * time.Second
	key, token := s.license("SEATS", seats, 360), s.serviceToken()
	for _, isOn := range []bool{false, true} {
		before := readUsage()
		client := newClient(t, s, seatkeeper.Token(token), seatkeeper.EventStreams(isOn))
		var all sync.WaitGroup
		for number := range seats {
			all.Add(1)
			go func() {
				defer all.Done()
				_, err := client.License(key).Acquire(context.Background(), seatkeeper.Machine(fmt.Sprint("m", number)))
				if err != nil {
					t.Error(err)
				}
			}()
		}
		all.Wait()
		// The streams need a moment to open.
		time.Sleep(max(held/10, time.Second))
		begun := readUsage()
		time.Sleep(held)
		during := readUsage()
		cpu := during.cpu - begun.cpu
		t.Logf("streams %v, %d seats for %v: %.1f goroutines, %d bytes of heap and stacks and %d resident bytes a seat; "+
			"%d threads more, %v of CPU, %.2f%% of a core", isOn, seats, held,
			float64(during.goroutines-before.goroutines)/float64(seats), (during.heapAndStacks-before.heapAndStacks)/seats,
			(during.resident-before.resident)/seats, during.threads-before.threads, cpu, 100*cpu.Seconds()/held.Seconds())
		const goroutinesOfAStream, goroutinesOfAClient, seatsOfAStream = 3, 140, 100
		goroutinesMax := goroutinesOfAClient
		if isOn {
			goroutinesMax += goroutinesOfAStream * ((seats + seatsOfAStream - 1) / seatsOfAStream)
		}
		if more := during.goroutines - before.goroutines; more > goroutinesMax {
			t.Errorf("%d goroutines", more)
		}
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkCheck is the cost of Seat.Check for a seat that is held.
func BenchmarkCheck(b *testing.B) {
	server := answering(b, 201, `{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":3600}`)
	client, err := seatkeeper.NewClient(server.URL, seatkeeper.Token("t"), seatkeeper.EventStreams(false))
	if err != nil {
		b.Fatal(err)
	}
	seat, err := client.License("K").Acquire(context.Background(), seatkeeper.Machine("m"))
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if err := seat.Check(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := client.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
