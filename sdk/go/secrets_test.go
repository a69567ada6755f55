package seatkeeper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seatkeeper.dev/seatkeeper"
)

const (
	canaryKey   = "CANARY-LICENSE-7f3a91-KEY9"
	canaryToken = "canary.token.5be2c04d"
	canaryCode  = "canary-code-90e1f7"
)

// answering returns a server with one answer to everything.
func answering(t testing.TB, status int, body string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestNoOutputShowsALicenseKeyOrAToken(t *testing.T) {
	log := &lockedBuffer{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	acquire := func(address string) []any {
		client, err := seatkeeper.NewClient(address, seatkeeper.Token(canaryToken), seatkeeper.Logger(logger))
		if err != nil {
			t.Fatal(err)
		}
		license := client.License(canaryKey)
		panics := seatkeeper.OnChange(func(state seatkeeper.State) { panic(state) })
		seat, err := license.Acquire(context.Background(), seatkeeper.Machine("m1"), seatkeeper.Patience(0), panics)
		shown := []any{client, *license, license, seat, err, []*seatkeeper.License{license}}
		if seat != nil {
			shown = append(shown, seat.State(), seat.Check(), seat.Release(context.Background()))
		}
		logger.Info("shown", "client", client, "license", license, "seat", seat, "error", err)
		return append(shown, client.Close(context.Background()))
	}
	const grant = `{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360,"release_code":"` + canaryCode + `"}`
	var shown []any
	shown = append(shown, acquire(answering(t, 201, grant).URL)...)
	shown = append(shown, acquire(answering(t, 403, `{"type":"/problems/license-full","title":"full"}`).URL)...)
	shown = append(shown, acquire(answering(t, 401, `{"type":"/problems/unauthenticated"}`).URL)...)
	shown = append(shown, acquire(answering(t, 503, "").URL)...)
	shown = append(shown, acquire("http://127.0.0.1:1")...)
	var text strings.Builder
	for _, value := range shown {
		fmt.Fprintf(&text, "%v %+v %#v %s %q %d\n", value, value, value, value, value, value)
	}
	text.WriteString(log.String())
	for _, secret := range []string{canaryKey, canaryToken, canaryCode, "7f3a91", "5be2c04d", "90e1f7"} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("%q is shown:\n%s", secret, text.String())
		}
	}
	if !strings.Contains(text.String(), "****KEY9") {
		t.Error("the license shows no end of its key")
	}
}

func TestACertificateOfAnUnknownAuthorityIsNamed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&bytes.Buffer{}, nil), slog.LevelDebug)
	server.StartTLS()
	t.Cleanup(server.Close)
	client, err := seatkeeper.NewClient(server.URL, seatkeeper.Token("t"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	_, err = client.License("K").Acquire(ctx, seatkeeper.Machine("m1"), seatkeeper.Patience(10*time.Millisecond))
	var unreachable *seatkeeper.Unreachable
	if !errors.As(err, &unreachable) || unreachable.Failure != seatkeeper.FailureCertificate {
		t.Errorf("%v", err)
	}
}
