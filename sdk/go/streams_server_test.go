package seatkeeper_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seatkeeper.dev/seatkeeper"
)

// quietTTL is a TTL whose first heartbeat comes after the end of every test, so that only a stream tells an end.
const quietTTL = 3_600

// expectLossWithin waits for the loss of a seat, and compares its reason.
func expectLossWithin(t *testing.T, seat *seatkeeper.Seat, span time.Duration, reason seatkeeper.Reason) *seatkeeper.Loss {
	t.Helper()
	select {
	case <-seat.Lost():
	case <-time.After(span):
		t.Fatalf("no loss is told within %v", span)
	}
	var loss *seatkeeper.Loss
	if !errors.As(seat.Err(), &loss) || loss.Reason != reason {
		t.Fatal(seat.Err())
	}
	return loss
}

// newProxy starts a proxy before a server. The handler decides about requests for event streams.
func newProxy(t *testing.T, s *server, events func(pass http.Handler) http.HandlerFunc) string {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.FlushInterval = -1
	pass.ErrorLog = log.New(io.Discard, "", 0)
	onEvents := events(pass)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			onEvents(w, r)
		} else {
			pass.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

func newClientAt(t *testing.T, address string, options ...seatkeeper.ClientOption) *seatkeeper.Client {
	t.Helper()
	client, err := seatkeeper.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func TestARevokedSeatIsToldWithinASecond(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	seat := acquire(t, newClient(t, s), s.license("STREAM", 1, quietTTL), seatkeeper.Machine("m"))
	s.run("sessions", "revoke", seat.SessionID())
	if loss := expectLossWithin(t, seat, time.Second, seatkeeper.ReasonRevoked); loss.Retry {
		t.Error(loss)
	}
}

func TestTwoSeatsShareOneConnectionAndARevokedOneIsToldWithinASecond(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var asked, open atomic.Int64
	shared := make(chan string, 9)
	address := newProxy(t, s, func(pass http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			open.Add(1)
			defer open.Add(-1)
			if with := r.URL.Query().Get("with"); with != "" {
				shared <- r.URL.Path + " " + with
			}
			pass.ServeHTTP(w, r)
		}
	})
	client := newClientAt(t, address, seatkeeper.Token(s.token()))
	key := s.license("PAIR", 2, quietTTL)
	first := acquire(t, client, key, seatkeeper.Machine("m1"))
	second := acquire(t, client, key, seatkeeper.Machine("m2"))
	select {
	case request := <-shared:
		if wanted := "/api/v1/licenses/sessions/" + first.SessionID() + "/events " + second.SessionID(); request != wanted {
			t.Errorf("%s instead of %s", request, wanted)
		}
	case <-time.After(long):
		t.Fatal("no stream is shared")
	}
	for end := time.Now().Add(long); open.Load() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d streams", open.Load())
		}
	}
	before := asked.Load()
	for _, seat := range []*seatkeeper.Seat{second, first} {
		if err := seat.Check(); err != nil {
			t.Fatal(err)
		}
		s.run("sessions", "revoke", seat.SessionID())
		expectLossWithin(t, seat, time.Second, seatkeeper.ReasonRevoked)
	}
	if more := asked.Load() - before; more != 0 {
		t.Errorf("%d requests after the shared one", more)
	}
}

func TestASeatOfALicenseKeyHasAStreamAndASuspensionIsTold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.run("license", "create", "--key", "OPEN", "--seats", "1", "--ttl-seconds", "3600", "--clients", "key")
	seat := acquire(t, newClient(t, s, seatkeeper.LicenseKey("OPEN", "")), "OPEN", seatkeeper.Machine("m"))
	s.run("license", "suspend", seat.LicenseID())
	expectLossWithin(t, seat, long, seatkeeper.ReasonEntitlementEnded)
}

func TestAStreamThatIsCutIsOpenedAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var cuts atomic.Int64
	address := newProxy(t, s, func(pass http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if cuts.Add(1) > 2 {
				pass.ServeHTTP(w, r)
				return
			}
			ctx, cut := context.WithTimeout(r.Context(), 100*time.Millisecond)
			defer cut()
			pass.ServeHTTP(w, r.WithContext(ctx))
		}
	})
	client := newClientAt(t, address, seatkeeper.Token(s.token()))
	seat := acquire(t, client, s.license("CUT", 1, quietTTL), seatkeeper.Machine("m"))
	for end := time.Now().Add(long); cuts.Load() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a cut stream is not opened again")
		}
	}
	if err := seat.Check(); err != nil {
		t.Error(err)
	}
	s.run("sessions", "revoke", seat.SessionID())
	expectLossWithin(t, seat, time.Second, seatkeeper.ReasonRevoked)
}

func TestAStreamComesBackAfterARestartOfTheServer(t *testing.T) {
	t.Parallel()
	s, told := newServer(t), newStates()
	seat := acquire(t, newClient(t, s), s.license("RESTART", 1, quietTTL), seatkeeper.Machine("m"), seatkeeper.OnChange(told.add))
	s.kill()
	s.start()
	s.run("sessions", "revoke", seat.SessionID())
	expectLossWithin(t, seat, long, seatkeeper.ReasonRevoked)
	told.waitFor(t, seatkeeper.Active, seatkeeper.Lost)
}

func TestAProxyThatSwallowsStreamsCostsNothing(t *testing.T) {
	t.Parallel()
	s, told := newServer(t), newStates()
	var open atomic.Int64
	address := newProxy(t, s, func(http.Handler) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			open.Add(1)
			defer open.Add(-1)
			<-r.Context().Done()
		}
	})
	client := newClientAt(t, address, seatkeeper.Token(s.token()))
	seat := acquire(t, client, s.license("SWALLOWED", 1, 2), seatkeeper.Machine("m"), seatkeeper.OnChange(told.add))
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := seat.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if open.Load() != 1 {
		t.Errorf("%d streams", open.Load())
	}
	if err := seat.Release(context.Background()); err != nil {
		t.Error(err)
	}
	told.waitFor(t, seatkeeper.Active, seatkeeper.Released)
	s.expectLive()
}

// countingDialer counts the connections that a client has open.
type countingDialer struct {
	open atomic.Int64
}

func (d *countingDialer) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			d.open.Add(1)
			return &countedConn{Conn: connection, open: &d.open}, nil
		},
	}}
}

type countedConn struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

func TestAReleaseClosesTheConnectionOfItsStream(t *testing.T) {
	t.Parallel()
	s, dialer := newServer(t), &countingDialer{}
	own := dialer.client()
	client := newClient(t, s, seatkeeper.Token(s.token()), seatkeeper.HTTPClient(own))
	expectOpen := func(what string, wanted int64) {
		t.Helper()
		for end := time.Now().Add(long); dialer.open.Load() != wanted; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d connections", what, dialer.open.Load())
			}
		}
	}
	seat := acquire(t, client, s.license("CONNECTIONS", 1, quietTTL), seatkeeper.Machine("m"))
	expectOpen("held: requests and stream", 2)
	if err := seat.Release(context.Background()); err != nil {
		t.Error(err)
	}
	expectOpen("released: requests", 1)
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
	// The transport of the program keeps its connections for other requests.
	expectOpen("closed: requests", 1)
	own.CloseIdleConnections()
	expectOpen("closed by the program", 0)
}

func TestAReleaseWithoutATokenFreesTheSeatByItsCode(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key := s.license("CODE", 1, quietTTL)
	tokens := []string{s.token(), ""}
	asked := 0
	var deleted atomic.Bool
	target, _ := url.Parse(s.url)
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The provider of tokens has logged the user out.
		if r.Method == http.MethodDelete {
			deleted.Store(true)
			r.Header.Set("Authorization", "Bearer rejected")
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	client := newClientAt(t, front.URL, seatkeeper.EventStreams(false), seatkeeper.TokenSource(
		func(context.Context) (string, error) {
			asked++
			return tokens[asked-1], nil
		}))
	seat := acquire(t, client, key, seatkeeper.Machine("m"))
	s.expectLive("m")
	if err := seat.Release(context.Background()); !errors.Is(err, seatkeeper.ErrNotConfirmed) || !deleted.Load() {
		t.Error(err, deleted.Load())
	}
	s.expectLive()
}

func TestTheAuditLogNamesTheProgram(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	client := newClient(t, s, seatkeeper.Token(s.token()), seatkeeper.Application("cad", "9.1"))
	acquire(t, client, s.license("NAMED", 2, quietTTL), seatkeeper.Machine("m"))
	if shown := s.run("audit", "list", "--json"); !strings.Contains(shown, "cad/9.1 (go/") {
		t.Error(shown)
	}
	acquire(t, newClient(t, s), "NAMED", seatkeeper.Machine("unnamed"))
}

func TestAHeartbeatWithTimesIsAccepted(t *testing.T) {
	t.Parallel()
	s, told := newServer(t), newStates()
	seat := acquire(t, newClient(t, s), s.license("ACTIVITY", 1, 2), seatkeeper.Machine("m"), seatkeeper.OnChange(told.add))
	seat.Activity()
	time.Sleep(3 * time.Second)
	if kinds := told.kinds(); len(kinds) != 1 {
		t.Error(kinds)
	}
	s.kill()
	for end := time.Now().Add(long); seat.State().Kind != seatkeeper.Offline; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no outage is told")
		}
	}
	s.start()
	for end := time.Now().Add(long); seat.State().Kind != seatkeeper.Active; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(seat.State())
		}
	}
}
