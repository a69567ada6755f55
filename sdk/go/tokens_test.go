package seatkeeper

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestATokenSourceThatHangsIsGivenUp(t *testing.T) {
	// The source heeds no context, as a call into another library may.
	tokens := &tokenCache{source: func(context.Context) (string, error) { select {} }}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- tokens.refresh(ctx, "") }()
	select {
	case err := <-result:
		if err == nil {
			t.Error("a token came from nowhere")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the refresh goes on")
	}
}

// hangingSource is the TokenSource of a client whose first call ignores its context, as a call into another library may, and
// hangs until goOn is closed.
func hangingSource(t *testing.T) (tokens *tokenCache, calls *atomic.Int32, goOn chan struct{}) {
	t.Helper()
	calls, goOn = &atomic.Int32{}, make(chan struct{})
	client, err := NewClient(closedAddress, TokenSource(func(context.Context) (string, error) {
		if calls.Add(1) == 1 {
			<-goOn
			return "late", nil
		}
		return "fresh", nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	tokens = client.transport.tokens.(*tokenCache)
	tokens.timeout = 20 * time.Millisecond
	return tokens, calls, goOn
}

func TestATokenSourceThatHangsInItsFirstCallIsAskedAgainAfterTheCall(t *testing.T) {
	tokens, calls, goOn := hangingSource(t)
	if token, err := tokens.current(context.Background(), ""); err == nil {
		t.Errorf("%q came from nowhere", token)
	}
	close(goOn)
	tokens.timeout = longWait
	if token, err := tokens.current(context.Background(), ""); token != "fresh" || err != nil {
		t.Errorf("%q and %v", token, err)
	}
	if calls := calls.Load(); calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

// The test is not parallel: it counts the goroutines of the program.
func TestATokenSourceThatHangsKeepsOneGoroutineForAllRejections(t *testing.T) {
	tokens, calls, goOn := hangingSource(t)
	before := runtime.NumGoroutine()
	for range 5 {
		if err := tokens.refresh(context.Background(), ""); !errors.Is(err, errTokenLate) {
			t.Fatal(err)
		}
	}
	if calls := calls.Load(); calls != 1 {
		t.Errorf("%d calls hang", calls)
	}
	eventually(t, "a goroutine of each refresh", func() bool { return runtime.NumGoroutine() <= before+1 })
	close(goOn)
	tokens.timeout = longWait
	if err := tokens.refresh(context.Background(), ""); err != nil || tokens.cached() != "fresh" {
		t.Errorf("%v, and the token %q", err, tokens.cached())
	}
}

func TestACallOfATokenSourceOutlivesTheRequestThatBeganIt(t *testing.T) {
	var calls atomic.Int32
	began, goOn := make(chan struct{}, 2), make(chan struct{})
	tokens := &tokenCache{source: func(ctx context.Context) (string, error) {
		calls.Add(1)
		began <- struct{}{}
		select {
		case <-goOn:
			return "t", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() {
		_, err := tokens.current(ctx, "")
		first <- err
	}()
	<-began
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(goOn)
	if token, err := tokens.current(context.Background(), ""); token != "t" || err != nil {
		t.Errorf("%q and %v", token, err)
	}
	if calls := calls.Load(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestATokenSourceThatPanicsOrEndsItsGoroutineHasNoToken(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("no token") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			tokens := &tokenCache{source: func(context.Context) (string, error) {
				end()
				return "t", nil
			}}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := tokens.refresh(ctx, ""); err == nil || ctx.Err() != nil {
				t.Errorf("%v, and the context: %v", err, ctx.Err())
			}
		})
	}
}

func TestACallbackThatEndsItsGoroutineIsCalledAgain(t *testing.T) {
	told := make(chan State, 2)
	d := &dispatcher{logger: slog.New(silent{}), callback: func(state State) {
		told <- state
		runtime.Goexit()
	}}
	for _, kind := range []Kind{Active, Lost} {
		d.put(State{Kind: kind})
		select {
		case state := <-told:
			if state.Kind != kind {
				t.Errorf("%v instead of %v", state.Kind, kind)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%v is not told", kind)
		}
	}
}

func TestATokenFileThatChangesIsReadBeforeARejection(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "token")
	file := newTokenFile(path)
	tokens := &tokenCache{source: file.read, file: file}
	expect := func(wanted string) {
		t.Helper()
		// The time of the next look.
		file.lookAt = time.Time{}
		if token, err := tokens.current(context.Background(), ""); token != wanted || err != nil {
			t.Errorf("%q and %v instead of %q", token, err, wanted)
		}
	}
	write := func(text string) {
		t.Helper()
		fresh := filepath.Join(folder, "fresh")
		if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, path); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	expect("first")
	write("second\n")
	if token, _ := tokens.current(context.Background(), ""); token != "first" && token != "second" {
		t.Error(token)
	}
	expect("second")
	write("no token at all")
	expect("second")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("second")
	write("third")
	expect("third")
}

// panicking is the handler of a program's logger.
type panicking struct{ told chan string }

func (panicking) Enabled(context.Context, slog.Level) bool { return true }

func (p panicking) Handle(_ context.Context, record slog.Record) error {
	p.told <- record.Message
	panic("no log")
}

func (p panicking) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p panicking) WithGroup(string) slog.Handler      { return p }

func TestALoggerThatPanicsEndsNoProgram(t *testing.T) {
	told := make(chan string, 2)
	d := &dispatcher{logger: slog.New(panicking{told}), callback: func(State) { panic("the program's fault") }}
	for range 2 {
		d.put(State{Kind: Active})
		select {
		case <-told:
		case <-time.After(10 * time.Second):
			t.Fatal("the panic is not told")
		}
	}
}

func TestARefreshAfterTheLastSeatKeepsNoKeeper(t *testing.T) {
	server := newScripted(t, func(request arrived, earlier int) reply { return issue(request, earlier) })
	client := newKeyClient(t, server.url)
	client.refresh("m")
	if len(client.keepers) > 0 {
		t.Error("the keeper of a machine without a seat is kept")
	}
}
