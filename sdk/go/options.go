package seatkeeper

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"
)

// A ClientOption is an option of NewClient.
type ClientOption func(*Client)

// Token sets a fixed bearer token.
func Token(token string) ClientOption {
	return func(c *Client) { c.transport.tokens = &tokenCache{source: staticTokens(token)} }
}

// TokenFile sets the file of the bearer token. The client reads the file again when the file changes, and when the server
// rejects the token.
func TokenFile(path string) ClientOption {
	return func(c *Client) {
		file := newTokenFile(path)
		c.transport.tokens = &tokenCache{source: file.read, file: file}
	}
}

// TokenSource sets a function that returns a fresh bearer token. The client calls the function for the first request, and
// when the server rejects the token. One call at a time serves every seat: a function that hangs and ignores its context
// is not called again before its end.
func TokenSource(source func(context.Context) (string, error)) ClientOption {
	return func(c *Client) { c.transport.tokens = &tokenCache{source: oneAtATime(source)} }
}

// LicenseKey sets a license key as the source of tokens: the client trades the key for a license token of each machine, and
// replaces a token ahead of its end. The license must be open to such clients (--clients key). Tenant is the owner of the
// license; empty is the tenant default.
func LicenseKey(key, tenant string) ClientOption {
	return func(c *Client) { c.transport.tokens = newLicenseTokens(&c.transport, c.clock, tenant, key) }
}

// Server adds another node of the same installation. The client stays with one node; after a failed connection, or a 503
// without Retry-After, the next node takes over.
func Server(address string) ClientOption {
	return func(c *Client) { c.addresses = append(c.addresses, address) }
}

// HTTPClient sets the HTTP client, for certificates and proxies of the program's own. Requests go through a copy that
// follows no redirect: the target would get the license key. Over HTTP/2, requests go on over a connection that died
// silently until the seat is lost, unless the transport checks its connections: prefer HTTP/1.1. Nil keeps the default.
func HTTPClient(client *http.Client) ClientOption {
	return func(c *Client) {
		if client != nil {
			own := *client
			own.CheckRedirect = followNoRedirect
			c.transport.client, c.transport.isForeign = &own, true
		}
	}
}

// Application names the program to the server, for the audit log, together with the version of this package. An empty
// version is not sent. Each is up to 100 characters without control characters.
func Application(name, version string) ClientOption {
	return func(c *Client) { c.application = newApplication(name, version) }
}

// EventStreams turns the event streams of seats on or off. Default: on. A stream tells the end of a seat within a second.
// Up to 100 seats with one token share a stream, which costs one open connection. Without a stream, the next heartbeat tells
// the end.
func EventStreams(isOn bool) ClientOption {
	return func(c *Client) { c.streams.isOff = !isOn }
}

// StateDir sets the directory of the instance ids for PerProcess, which is used for nothing else. With an empty path each
// acquire has a random instance id. Default: $XDG_STATE_HOME/seatkeeper or $HOME/.local/state/seatkeeper; on macOS
// $HOME/Library/Application Support/Seatkeeper; on Windows %LOCALAPPDATA%\Seatkeeper.
func StateDir(path string) ClientOption {
	return func(c *Client) { c.stateDir = stateDir{isOff: path == "", path: path} }
}

// Logger sets the logger that is told a panic of a callback, and a state directory that cannot be used. Default,
// and with nil: none.
func Logger(logger *slog.Logger) ClientOption {
	return func(c *Client) {
		if logger != nil {
			c.logger = logger
		}
	}
}

// An AcquireOption is an option of License.Acquire.
type AcquireOption interface{ forLicense(*plan) }

// An AdmitOption is an option of Device.Admit.
type AdmitOption interface{ forDevice(*plan) }

// A SeatOption is an option of License.Acquire and of Device.Admit.
type SeatOption interface {
	AcquireOption
	AdmitOption
}

type (
	licenseOption func(*plan)
	deviceOption  func(*plan)
	seatOption    func(*plan)
)

func (o licenseOption) forLicense(p *plan) { o(p) }
func (o deviceOption) forDevice(p *plan)   { o(p) }
func (o seatOption) forLicense(p *plan)    { o(p) }
func (o seatOption) forDevice(p *plan)     { o(p) }

// Machine sets the machine that takes the seat, by a name that stays the same. The option is required.
func Machine(id string) AcquireOption {
	return licenseOption(func(p *plan) { p.machineID = id })
}

// Instance sets the process on the machine, for licenses that count processes.
func Instance(id string) AcquireOption {
	return licenseOption(func(p *plan) { p.instanceID = id })
}

// PerProcess names the process on the machine by an id of the state directory, for licenses that count processes. A program
// that is started again after a crash gets its own seat back at once. An id by Instance prevails. A failed Acquire frees its id
// before the error returns, within two seconds.
func PerProcess() AcquireOption {
	return licenseOption(func(p *plan) { p.perProcess = true })
}

// UserAgent sets the program's name for itself, for the audit log.
func UserAgent(name string) AcquireOption {
	return licenseOption(func(p *plan) { p.userAgent = name })
}

// Metadata sets an object of the program's own, for the audit log: at most 4 KiB of JSON. A later change of the map changes
// nothing of a seat.
func Metadata(metadata map[string]any) AcquireOption {
	return licenseOption(func(p *plan) {
		p.metadata, p.metadataErr = nil, nil
		if metadata != nil {
			p.metadata, p.metadataErr = json.Marshal(metadata)
		}
	})
}

// DeviceName sets the owner's name for the device, which the owner's other devices see.
func DeviceName(name string) AdmitOption {
	return deviceOption(func(p *plan) { p.deviceName = name })
}

// LastSession sets the session that the device had before, if the device remembers one: a live session goes on, also after
// the device has moved to another network.
func LastSession(id string) AdmitOption {
	return deviceOption(func(p *plan) { p.lastSession = id })
}

// Replace sets the session of the same subscriber that ends, if all screens are in use. Denied.Devices has the ids.
func Replace(sessionID string) AdmitOption {
	return deviceOption(func(p *plan) { p.replaces = sessionID })
}

// Wait sets how long to ask again while every seat is in use. By default the first denial is final.
func Wait(span time.Duration) SeatOption {
	return seatOption(func(p *plan) { p.waits, p.wait = true, max(span, 0) })
}

// WaitForever asks again until a seat is free or the context of the call is done.
func WaitForever() SeatOption {
	return seatOption(func(p *plan) { p.waits, p.wait = true, waitForever })
}

// Patience sets how long to try a server that does not answer, with at least two seconds for each try; a longer wait
// prevails. Default: 10 s.
func Patience(span time.Duration) SeatOption {
	return seatOption(func(p *plan) { p.patience = max(span, 0) })
}

// OnChange is Seat.OnChange from the first state on.
func OnChange(callback func(State)) SeatOption {
	return seatOption(func(p *plan) { p.onChange = callback })
}
