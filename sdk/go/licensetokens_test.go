package seatkeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	cadKey        = "CAD-2030-KEY"
	tokenTarget   = "POST " + licenseTokenPath
	acquireTarget = "POST /api/v1/licenses/acquire"
	tokenLife     = 1_000 * time.Second
)

// issue returns a token that names the machine, and the number of the token.
func issue(request arrived, earlier int) reply {
	body := fmt.Sprintf(`{"token":"%s.%d","token_type":"Bearer","expires_in_seconds":900}`, request.body["machine_id"], earlier)
	return reply{status: 200, body: body, delay: 100 * time.Millisecond}
}

func newKeyClient(t *testing.T, address string) *Client {
	t.Helper()
	client, err := NewClient(address, LicenseKey(cadKey, "acme"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// takeTen acquires and releases ten seats of some machines at once.
func takeTen(t *testing.T, client *Client, machines int) {
	t.Helper()
	var all sync.WaitGroup
	for number := range 10 {
		all.Add(1)
		go func() {
			defer all.Done()
			machine, instance := Machine(fmt.Sprintf("m%d", number%machines)), Instance(fmt.Sprint(number))
			seat, err := client.License(cadKey).Acquire(context.Background(), machine, instance)
			if err == nil {
				err = seat.Release(context.Background())
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
}

func TestEachMachineHasATokenAndOneRequestServesAllItsSeats(t *testing.T) {
	server := newScripted(t, func(request arrived, earlier int) reply {
		if request.target == tokenTarget {
			return issue(request, earlier)
		}
		return reply{status: 201, body: scriptedGrant}
	})
	takeTen(t, newKeyClient(t, server.url), 2)
	asked := server.arrived(tokenTarget)
	if len(asked) != 2 || asked[0].body["machine_id"] == asked[1].body["machine_id"] {
		t.Fatal(asked)
	}
	for _, request := range asked {
		if request.token != "" || request.body["license_key"] != cadKey || request.body["tenant"] != "acme" || len(request.body) != 3 {
			t.Error(request)
		}
	}
	for _, request := range server.arrived(acquireTarget) {
		if machine, _, _ := strings.Cut(request.token, "."); machine != request.body["machine_id"] {
			t.Error(request)
		}
	}
}

func TestARejectedLicenseTokenIsReplacedOnceForAllSeatsOfItsMachine(t *testing.T) {
	server := newScripted(t, func(request arrived, earlier int) reply {
		switch {
		case request.token == "":
			return issue(request, earlier)
		case strings.HasSuffix(request.token, ".0"):
			return reply{status: 401, body: "{}"}
		default:
			return reply{status: 201, body: scriptedGrant}
		}
	})
	takeTen(t, newKeyClient(t, server.url), 1)
	if asked := server.arrived(tokenTarget); len(asked) != 2 {
		t.Error(asked)
	}
}

func TestAKeyThatIsNotGoodIsADenialThatNamesTheRemedy(t *testing.T) {
	for kind, remedy := range map[string]string{"license-not-found": "--clients key", "not-found": "license_token_key_file"} {
		body := fmt.Sprintf(`{"type":"/problems/%s","title":"Not found","status":404}`, kind)
		server := newScripted(t, func(arrived, int) reply { return reply{status: 404, body: body} })
		client := newKeyClient(t, server.url)
		_, err := client.License(cadKey).Acquire(context.Background(), Machine("m"))
		var denied *Denied
		if !errors.As(err, &denied) || denied.Code() != kind || !strings.Contains(err.Error(), remedy) {
			t.Error(err)
		}
		if shown := fmt.Sprintf("%v %+v %#v", err, client, client); strings.Contains(shown, cadKey) {
			t.Error(shown)
		}
		if asked, acquires := server.arrived(tokenTarget), server.arrived(acquireTarget); len(asked) != 1 || len(acquires) != 0 {
			t.Error(asked, acquires)
		}
	}
}

func TestABusyIssuerIsAskedAgainAndAnAbsentOneIsOffline(t *testing.T) {
	server := newScripted(t, func(request arrived, earlier int) reply {
		switch {
		case request.target != tokenTarget:
			return reply{status: 201, body: scriptedGrant}
		case earlier == 0:
			return reply{status: 429, body: `{"title":"slow down"}`, retryAfter: 1}
		case earlier == 1:
			return reply{status: 503, body: "{}"}
		default:
			return issue(request, earlier)
		}
	})
	_, err := newKeyClient(t, server.url).License(cadKey).Acquire(context.Background(), Machine("m"), Patience(time.Minute))
	if asked := server.arrived(tokenTarget); err != nil || len(asked) != 3 {
		t.Error(err, asked)
	}
	away := newKeyClient(t, "http://127.0.0.1:1")
	_, err = away.License(cadKey).Acquire(context.Background(), Machine("m"), Patience(0))
	var unreachable *Unreachable
	if !errors.As(err, &unreachable) || unreachable.Failure != FailureRefused {
		t.Error(err)
	}
}

func TestARefusedTokenIsNoWordOnAHeldSession(t *testing.T) {
	server := newScripted(t, func(request arrived, earlier int) reply {
		switch {
		case request.target == tokenTarget && earlier == 0:
			return issue(request, earlier)
		case request.target == tokenTarget:
			return reply{status: 404, body: `{"type":"/problems/license-not-found","title":"none"}`}
		case request.target == acquireTarget:
			grant := strings.Replace(scriptedGrant, "360", `3,"heartbeat_interval_seconds":1`, 1)
			return reply{status: 201, body: grant}
		default:
			return reply{status: 401, body: "{}"}
		}
	})
	client := newKeyClient(t, server.url)
	seat, err := client.License(cadKey).Acquire(context.Background(), Machine("m"))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); len(server.arrived(tokenTarget)) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no token is asked for")
		}
	}
	if acquires := server.arrived(acquireTarget); len(acquires) != 1 {
		t.Error(acquires)
	}
	if err := seat.Release(context.Background()); !errors.Is(err, ErrNotConfirmed) {
		t.Error(err)
	}
}

func TestAKeyThatIsClosedBeforeTheSeatIsADenialAndNoOutage(t *testing.T) {
	server := newScripted(t, func(request arrived, earlier int) reply {
		switch {
		case request.target != tokenTarget:
			return reply{status: 401, body: "{}"}
		case earlier == 0:
			return issue(request, earlier)
		default:
			return reply{status: 404, body: `{"type":"/problems/license-not-found","title":"none"}`}
		}
	})
	license := newKeyClient(t, server.url).License(cadKey)
	_, err := license.Acquire(context.Background(), Machine("m"), Patience(time.Minute))
	var denied *Denied
	if !errors.As(err, &denied) || denied.Code() != "license-not-found" {
		t.Error(err)
	}
}

// newTestTokens returns license tokens of a server, and a function that moves their clock. The server gives the second token
// once the channel is closed.
func newTestTokens(t *testing.T, delay time.Duration, second <-chan struct{}) (*scripted, *licenseTokens, func(time.Duration)) {
	t.Helper()
	server := newScripted(t, func(_ arrived, earlier int) reply {
		body := fmt.Sprintf(`{"token":"t%d","expires_in_seconds":%d}`, earlier+1, tokenLife/time.Second)
		if earlier == 1 {
			return reply{status: 200, body: body, delay: delay, after: second}
		}
		return reply{status: 200, body: body, delay: delay}
	})
	var mu sync.Mutex
	elapsed := time.Duration(0)
	now := func() (time.Duration, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		return elapsed, elapsed
	}
	clock := newClock(now, func() (time.Duration, bool) { return 0, false })
	client := newKeyClient(t, server.url)
	move := func(span time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		elapsed += span
	}
	return server, newLicenseTokens(&client.transport, clock, "", cadKey), move
}

func expectToken(t *testing.T, tokens *licenseTokens, want string) {
	t.Helper()
	if token, err := tokens.current(context.Background(), "m"); token != want || err != nil {
		t.Errorf("%s %v instead of %s", token, err, want)
	}
}

func TestATokenIsDueAtFourFifthsOfItsLifeAndReplacedInTheBackground(t *testing.T) {
	second := make(chan struct{})
	server, tokens, move := newTestTokens(t, 0, second)
	expectToken(t, tokens, "t1")
	move(tokenLife*4/5 - time.Second)
	expectToken(t, tokens, "t1")
	time.Sleep(20 * time.Millisecond)
	if asked := server.arrived(tokenTarget); len(asked) != 1 {
		t.Error("before four fifths of the life:", asked)
	}
	move(time.Second)
	// No request waits for the replacement.
	for range 20 {
		expectToken(t, tokens, "t1")
	}
	close(second)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if token, _ := tokens.current(context.Background(), "m"); token == "t2" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the token is not replaced")
		}
	}
	move(tokenLife)
	var all sync.WaitGroup
	for range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			expectToken(t, tokens, "t3")
		}()
	}
	all.Wait()
	if asked := server.arrived(tokenTarget); len(asked) != 3 {
		t.Error(asked)
	}
}

func TestAReplacementThatFailsKeepsTheTokenAndPauses(t *testing.T) {
	_, tokens, move := newTestTokens(t, 0, nil)
	expectToken(t, tokens, "t1")
	tokens.transport.servers = &servers{bases: []string{"http://127.0.0.1:1"}}
	move(tokenLife * 4 / 5)
	slot := tokens.slot("m")
	pause := func() instant {
		slot.mu.Lock()
		defer slot.mu.Unlock()
		return slot.pauseUntil
	}
	for end := time.Now().Add(30 * time.Second); pause() == 0; time.Sleep(time.Millisecond) {
		expectToken(t, tokens, "t1")
		if time.Now().After(end) {
			t.Fatal("no pause")
		}
	}
	for number := range 1_000 {
		tokens.slot(fmt.Sprint("m", number))
	}
	if len(tokens.machines) > machinesKept {
		t.Error(len(tokens.machines), "machines are kept")
	}
}

func TestAnIssuerThatHangsIsGivenUp(t *testing.T) {
	_, tokens, _ := newTestTokens(t, time.Hour, nil)
	tokens.timeout = 50 * time.Millisecond
	began := time.Now()
	var refused *refusedToken
	if _, err := tokens.current(context.Background(), "m"); !errors.As(err, &refused) || refused.fault.failure != FailureTimeout {
		t.Error(err)
	}
	if err := tokens.refresh(context.Background(), "m"); err == nil || time.Since(began) > 10*time.Second {
		t.Error(err, time.Since(began))
	}
}
