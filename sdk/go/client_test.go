package seatkeeper_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatkeeper.dev/seatkeeper"
)

// long is more than any wait in these tests needs.
const long = 30 * time.Second

// states collects the states that a callback is told.
type states struct {
	mu   sync.Mutex
	told []seatkeeper.State
	news chan struct{}
}

func newStates() *states {
	return &states{news: make(chan struct{}, 100)}
}

func (s *states) add(state seatkeeper.State) {
	s.mu.Lock()
	s.told = append(s.told, state)
	s.mu.Unlock()
	s.news <- struct{}{}
}

func (s *states) kinds() []seatkeeper.Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kinds []seatkeeper.Kind
	for _, state := range s.told {
		kinds = append(kinds, state.Kind)
	}
	return kinds
}

// waitFor waits until the kinds that were told start with these.
func (s *states) waitFor(t *testing.T, kinds ...seatkeeper.Kind) {
	t.Helper()
	timeout := time.After(long)
	for {
		told := s.kinds()
		if len(told) >= len(kinds) && reflect.DeepEqual(told[:len(kinds)], kinds) {
			return
		}
		select {
		case <-s.news:
		case <-timeout:
			t.Fatalf("%v instead of %v", told, kinds)
		}
	}
}

func newClient(t *testing.T, s *server, options ...seatkeeper.ClientOption) *seatkeeper.Client {
	t.Helper()
	if options == nil {
		options = append(options, seatkeeper.Token(s.token()))
	}
	client, err := seatkeeper.NewClient(s.url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func acquire(t *testing.T, client *seatkeeper.Client, key string, options ...seatkeeper.AcquireOption) *seatkeeper.Seat {
	t.Helper()
	seat, err := client.License(key).Acquire(context.Background(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return seat
}

func code(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

func TestASeatOutlivesItsTTLByHeartbeatsAndIsGivenBack(t *testing.T) {
	t.Parallel()
	s, told := newServer(t), newStates()
	client := newClient(t, s)
	seat := acquire(t, client, s.license("BEATS", 1, 4), seatkeeper.Machine("m"), seatkeeper.OnChange(told.add))
	if used, total := seat.Seats(); used != 1 || total != 1 {
		t.Error(used, total)
	}
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := seat.Check(); err != nil {
			t.Fatal(err)
		}
	}
	s.expectLive("m")
	if seat.Remaining() <= 0 || seat.Err() != nil {
		t.Error(seat.Remaining(), seat.Err())
	}
	for range 2 {
		if err := seat.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
	s.expectLive()
	if err := seat.Check(); !errors.Is(err, seatkeeper.ErrReleased) {
		t.Error(err)
	}
	told.waitFor(t, seatkeeper.Active, seatkeeper.Released)
}

func TestAProgramWithALicenseKeyAloneHoldsASeat(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key, shut := s.openLicense("OPEN"), s.license("SHUT", 1, 3)
	client := newClient(t, s, seatkeeper.LicenseKey(key, ""))
	seat := acquire(t, client, key, seatkeeper.Machine("m"))
	time.Sleep(3 * time.Second)
	if err := seat.Check(); err != nil {
		t.Error(err)
	}
	s.expectLive("m")
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
	s.expectLive()
	for name, source := range map[string]seatkeeper.ClientOption{
		shut: seatkeeper.LicenseKey(shut, ""),
		key:  seatkeeper.LicenseKey(key, "another"),
	} {
		_, err := newClient(t, s, source).License(name).Acquire(context.Background(), seatkeeper.Machine("m"))
		if code(err) != "license-not-found" {
			t.Error(name, err)
		}
	}
}

func TestTheSecondProgramKeepsASeatThatTheFirstOneLeaves(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key := s.license("SHARED", 1, 2)
	first, second := newClient(t, s), newClient(t, s)
	left := acquire(t, first, key, seatkeeper.Machine("m"))
	kept := acquire(t, second, key, seatkeeper.Machine("m"))
	if left.SessionID() != kept.SessionID() {
		t.Fatal(left, kept)
	}
	left.Leave()
	if err := first.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := kept.Check(); err != nil {
			t.Fatal(err)
		}
	}
	s.expectLive("m")
}

func TestAFullLicenseIsDeniedAndAWaitGetsTheSeat(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	client, key := newClient(t, s), s.license("FULL", 1, 3)
	first := acquire(t, client, key, seatkeeper.Machine("first"))
	_, err := client.License(key).Acquire(context.Background(), seatkeeper.Machine("second"))
	var denied *seatkeeper.Denied
	if !errors.As(err, &denied) || denied.Code() != "license-full" || denied.Holders[0].MachineID != "first" {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = first.Release(context.Background()) })
	second := acquire(t, client, key, seatkeeper.Machine("second"), seatkeeper.Wait(long))
	if err := second.Check(); err != nil {
		t.Error(err)
	}
}

func TestARevokedSeatIsToldWithItsReason(t *testing.T) {
	t.Parallel()
	s, told := newServer(t), newStates()
	client := newClient(t, s)
	seat := acquire(t, client, s.license("REVOKED", 1, 3), seatkeeper.Machine("m"), seatkeeper.OnChange(told.add))
	ctx, cancel := seat.Context(context.Background())
	defer cancel()
	s.run("sessions", "revoke", seat.SessionID())
	select {
	case <-seat.Lost():
	case <-time.After(long):
		t.Fatal("no loss is told")
	}
	var loss *seatkeeper.Loss
	if !errors.As(seat.Err(), &loss) || loss.Reason != seatkeeper.ReasonRevoked || loss.Retry {
		t.Error(seat.Err())
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); code(cause) != "lost" || code(seat.Check()) != "lost" {
		t.Error(cause, seat.Check())
	}
	told.waitFor(t, seatkeeper.Active, seatkeeper.Lost)
	if err := seat.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestADeadServerIsALossAtTheDeadlineAndItsReturnASeatAgain(t *testing.T) {
	t.Parallel()
	s, told := newServer(t), newStates()
	client := newClient(t, s)
	seat := acquire(t, client, s.license("CRASH", 1, 2), seatkeeper.Machine("m"), seatkeeper.OnChange(told.add))
	s.kill()
	told.waitFor(t, seatkeeper.Active, seatkeeper.Offline, seatkeeper.Lost)
	var loss *seatkeeper.Loss
	if !errors.As(seat.Check(), &loss) || loss.Reason != seatkeeper.ReasonDeadline || !loss.Retry {
		t.Error(seat.Check())
	}
	s.start()
	told.waitFor(t, seatkeeper.Active, seatkeeper.Offline, seatkeeper.Lost, seatkeeper.Active)
	if err := seat.Check(); err != nil {
		t.Error(err)
	}
}

func TestAnAcquireWhoseContextIsDoneHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	client, key := newClient(t, s), s.license("CONTEXT", 1, 60)
	first := acquire(t, client, key, seatkeeper.Machine("first"))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := client.License(key).Acquire(ctx, seatkeeper.Machine("second"), seatkeeper.WaitForever())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	s.expectLive("first")
	if err := first.Check(); err != nil {
		t.Error(err)
	}
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
	s.expectLive()
	_, err = client.License(key).Acquire(context.Background(), seatkeeper.Machine("late"))
	if !errors.Is(err, seatkeeper.ErrClosed) {
		t.Error(err)
	}
}

func TestARejectedTokenIsReplacedOnceForAllSeats(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key, fresh := s.license("TOKENS", 9, 60), s.token()
	var asked atomic.Int64
	client := newClient(t, s, seatkeeper.TokenSource(func(context.Context) (string, error) {
		if asked.Add(1) == 1 {
			return "stale", nil
		}
		return fresh, nil
	}))
	var all sync.WaitGroup
	for _, machine := range []string{"m1", "m2", "m3", "m4"} {
		all.Add(1)
		go func() {
			defer all.Done()
			if _, err := client.License(key).Acquire(context.Background(), seatkeeper.Machine(machine)); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	s.expectLive("m1", "m2", "m3", "m4")
	if asked.Load() != 2 {
		t.Errorf("asked %d times", asked.Load())
	}
	panics := newClient(t, s, seatkeeper.TokenSource(func(context.Context) (string, error) { panic("the program's fault") }))
	_, err := panics.License(key).Acquire(context.Background(), seatkeeper.Machine("m"), seatkeeper.Patience(0))
	var unreachable *seatkeeper.Unreachable
	if !errors.As(err, &unreachable) || unreachable.Failure != seatkeeper.FailureNoToken {
		t.Error(err)
	}
}

// lockedBuffer is a buffer that a logger may write while the test reads.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func TestACallbackThatPanicsCostsNoSeat(t *testing.T) {
	t.Parallel()
	s, log := newServer(t), &lockedBuffer{}
	client := newClient(t, s, seatkeeper.Token(s.token()), seatkeeper.Logger(slog.New(slog.NewTextHandler(log, nil))))
	seat := acquire(t, client, s.license("CALLBACK", 1, 3), seatkeeper.Machine("m"))
	seat.OnChange(func(seatkeeper.State) { panic("the program's fault") })
	for end := time.Now().Add(long); !strings.Contains(log.String(), "the program's fault"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the panic is not logged")
		}
	}
	if err := seat.Check(); err != nil {
		t.Error(err)
	}
}

func TestAnAddressThatIsNoneAndAServerThatIsAwayAreTypedErrors(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"seats.example", "ftp://seats.example", "http://", "http://host:port", "http://u@h"} {
		if _, err := seatkeeper.NewClient(address, seatkeeper.Token("t")); err == nil {
			t.Error(address)
		}
	}
	if _, err := seatkeeper.NewClient("http://localhost"); err == nil {
		t.Error("a client without a token")
	}
	client, err := seatkeeper.NewClient("http://127.0.0.1:1", seatkeeper.Token("t"))
	if err != nil {
		t.Fatal(err)
	}
	license := client.License("K")
	_, err = license.Acquire(context.Background(), seatkeeper.Machine("m"), seatkeeper.Patience(200*time.Millisecond))
	if code(err) != "offline" {
		t.Error(err)
	}
	if _, err := license.Acquire(context.Background()); err == nil {
		t.Error("an acquire without a machine")
	}
}

func TestWhatIsNoServerIsNoAnswer(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"a page of a proxy":       "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
		"a page that breaks off":  "HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n<html>",
		"another protocol":        "SSH-2.0-OpenSSH\r\n",
		"a connection that ended": "",
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go answerAll(listener, answer)
			client, err := seatkeeper.NewClient("http://"+listener.Addr().String(), seatkeeper.Token("t"))
			if err != nil {
				t.Fatal(err)
			}
			patience := seatkeeper.Patience(300 * time.Millisecond)
			_, err = client.License("K").Acquire(context.Background(), seatkeeper.Machine("m"), patience)
			if code(err) != "offline" {
				t.Error(err)
			}
		})
	}
}

func answerAll(listener net.Listener, answer string) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = connection.Read(make([]byte, 65_536))
		_, _ = connection.Write([]byte(answer))
		connection.Close()
	}
}

// The test is not parallel: it counts the goroutines of the program.
func TestSeatsLeaveNoGoroutine(t *testing.T) {
	s := newServer(t)
	key := s.license("GOROUTINES", 9, 60)
	before := runtime.NumGoroutine()
	for range 2 {
		client := newClient(t, s)
		for _, machine := range []string{"m1", "m2", "m3"} {
			acquire(t, client, key, seatkeeper.Machine(machine))
		}
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(long); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}
