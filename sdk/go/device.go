package seatkeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// A DeviceType is the type of a device.
type DeviceType string

// The types of devices.
const (
	DeviceMobile  DeviceType = "mobile"
	DeviceTV      DeviceType = "tv"
	DeviceBrowser DeviceType = "browser"
	DeviceTablet  DeviceType = "tablet"
)

// A Device is a device of the subscriber whom the client's token names.
type Device struct {
	client *Client
	id     string
	kind   DeviceType
}

// Device returns the device with this id, a name that stays the same. No request is sent.
func (c *Client) Device(id string, kind DeviceType) *Device {
	return &Device{client: c, id: id, kind: kind}
}

// Format implements fmt.Formatter.
func (d Device) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "device "+d.id)
}

// Admit takes a screen of the subscriber's plan for the device, and keeps the screen until Seat.Release or Client.Close.
//
// If every screen is in use, the plan decides: the server evicts the stalest device, or the error is a *Denied whose Devices
// are the live ones. Let the user choose a session to end, and call Admit again with Replace. The other errors are those of
// License.Acquire. A screen that is lost as ReasonEvicted is taken back by a person alone: automatic players would evict each
// other for ever.
func (d *Device) Admit(ctx context.Context, options ...AdmitOption) (*Seat, error) {
	p := &plan{door: deviceDoor{}, deviceID: d.id, deviceType: d.kind, patience: patienceDefault}
	for _, option := range options {
		option.forDevice(p)
	}
	if p.deviceID == "" {
		return nil, errors.New("seatkeeper: the id of the device is empty: want a name of the device that stays the same")
	}
	if _, isKey := d.client.transport.tokens.(*licenseTokens); isKey {
		return nil, errors.New("seatkeeper: a device needs a user's token, and LicenseKey gives license tokens alone: use Token, " +
			"TokenFile or TokenSource")
	}
	return d.client.take(ctx, p)
}

// deviceDoor is the door to the screens of subscribers.
type deviceDoor struct{}

const deviceSessions = "/api/v1/devices/sessions"

func (deviceDoor) acquire(p *plan) call {
	body := map[string]any{"device_id": p.deviceID, "device_type": p.deviceType}
	if p.deviceName != "" {
		body["device_name"] = p.deviceName
	}
	if p.lastSession != "" {
		body["session_id"] = p.lastSession
	}
	if p.replaces != "" {
		body["replace_session_id"] = p.replaces
	}
	return call{method: "POST", path: deviceSessions, body: body, isAcquire: true}
}

func (deviceDoor) heartbeat(session string, times map[string]any) call {
	times["session_id"] = session
	return call{method: "POST", path: deviceSessions + "/heartbeat", body: times}
}

func (deviceDoor) release(session string) call {
	return call{method: "DELETE", path: deviceSessions + "/" + session}
}

func (deviceDoor) releaseByCode(session string, code secret) call {
	body := map[string]any{"session_id": session, "release_code": code.reveal()}
	return call{method: "POST", path: deviceSessions + "/release", body: body, isTokenless: true}
}

func (deviceDoor) events(session string) string {
	return deviceSessions + "/" + session + "/events"
}

func (deviceDoor) full() string { return "devices-full" }

// isIdempotent: an admission may evict another device.
func (deviceDoor) isIdempotent() bool { return false }

func (deviceDoor) renewsWithoutTerms() bool { return true }
