package seatkeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seatkeeper.dev/seatkeeper"
)

func admit(t *testing.T, device *seatkeeper.Device, options ...seatkeeper.AdmitOption) *seatkeeper.Seat {
	t.Helper()
	seat, err := device.Admit(context.Background(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return seat
}

func TestANewcomerEvictsTheStalestDeviceWhichHearsOfItAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	client := newClient(t, s)
	tv := admit(t, client.Device("tv-1", seatkeeper.DeviceTV), seatkeeper.DeviceName("Living room"))
	if used, total := tv.Seats(); used != 1 || total != 1 {
		t.Error(used, total)
	}
	phone := admit(t, client.Device("phone", seatkeeper.DeviceMobile), seatkeeper.DeviceName("Ann’s phone"))
	if loss := expectLossWithin(t, tv, time.Second, seatkeeper.ReasonEvicted); loss.By != "Ann’s phone" || loss.Retry {
		t.Error(loss)
	}
	if err := phone.Check(); err != nil {
		t.Error(err)
	}
	if err := phone.Release(context.Background()); err != nil {
		t.Error(err)
	}
	if err := tv.Release(context.Background()); err != nil {
		t.Error(err)
	}
	s.expectLive()
}

func TestAFullPlanNamesItsDevicesAndOneOfThemIsReplaced(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.run("plan", "create", "two", "--devices", "2", "--when-full", "deny")
	s.run("subscription", "create", "--user", "ann", "--plan", "two")
	client := newClient(t, s)
	tv := admit(t, client.Device("tv-1", seatkeeper.DeviceTV), seatkeeper.DeviceName("Living room"))
	tablet := admit(t, client.Device("tablet", seatkeeper.DeviceTablet))
	phone := client.Device("phone", seatkeeper.DeviceMobile)
	_, err := phone.Admit(context.Background())
	var denied *seatkeeper.Denied
	if !errors.As(err, &denied) || denied.Code() != "devices-full" || len(denied.Devices) != 2 || denied.SeatsTotal != 2 {
		t.Fatal(err, denied)
	}
	// Two heartbeats of one millisecond have no order.
	chosen := denied.Devices[0]
	if chosen.SessionID != tv.SessionID() {
		chosen = denied.Devices[1]
	}
	if chosen.SessionID != tv.SessionID() || chosen.DeviceType != seatkeeper.DeviceTV || chosen.DeviceName != "Living room" ||
		chosen.IP == "" || chosen.StartedAt.IsZero() || chosen.LastHeartbeatAt.IsZero() {
		t.Error(chosen)
	}
	seat := admit(t, phone, seatkeeper.Replace(chosen.SessionID))
	expectLossWithin(t, tv, time.Second, seatkeeper.ReasonEvicted)
	if err := errors.Join(seat.Check(), tablet.Check()); err != nil {
		t.Error(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = tablet.Release(context.Background()) })
	waiting := admit(t, client.Device("tv-1", seatkeeper.DeviceTV), seatkeeper.Wait(long))
	if err := waiting.Check(); err != nil {
		t.Error(err)
	}
}

func TestADeviceGoesOnWithItsLastSessionAndOutlivesItsTTL(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.run("plan", "create", "short", "--devices", "1", "--ttl-seconds", "4")
	s.run("subscription", "create", "--user", "ann", "--plan", "short")
	first := newClient(t, s)
	seat := admit(t, first.Device("tv-1", seatkeeper.DeviceTV))
	seat.Activity()
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := seat.Check(); err != nil {
			t.Fatal(err)
		}
	}
	again := admit(t, newClient(t, s).Device("tv-1", seatkeeper.DeviceTV), seatkeeper.LastSession(seat.SessionID()))
	if again.SessionID() != seat.SessionID() || again.LicenseID() != "" {
		t.Error(again.SessionID(), seat.SessionID())
	}
}

func TestADeviceNeedsAnIDAndATokenOfAUser(t *testing.T) {
	client := newClientAt(t, "http://127.0.0.1:1", seatkeeper.Token("t"))
	none := client.Device("", seatkeeper.DeviceTV)
	if _, err := none.Admit(context.Background(), seatkeeper.Patience(0)); err == nil || code(err) == "offline" {
		t.Error("a device without an id")
	}
	keyed := newClientAt(t, "http://127.0.0.1:1", seatkeeper.LicenseKey("K", ""))
	if _, err := keyed.Device("tv", seatkeeper.DeviceTV).Admit(context.Background(), seatkeeper.Patience(0)); code(err) == "offline" {
		t.Error("a device with a license key")
	}
}
