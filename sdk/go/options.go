package seatkeeper

import (
	"context"
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

// TokenFile sets the file of the bearer token. The client reads the file again when the server rejects the token.
func TokenFile(path string) ClientOption {
	return func(c *Client) { c.transport.tokens = &tokenCache{source: fileTokens(path)} }
}

// TokenSource sets a function that returns a fresh bearer token. The client calls the function for the first request, and
// when the server rejects the token. One call at a time serves every seat.
func TokenSource(source func(context.Context) (string, error)) ClientOption {
	return func(c *Client) { c.transport.tokens = &tokenCache{source: source} }
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

// HTTPClient sets the HTTP client, for certificates and proxies of the program's own. The client should follow no
// redirect.
func HTTPClient(client *http.Client) ClientOption {
	return func(c *Client) { c.transport.client = client }
}

// Logger sets the logger that is told a panic of a callback. Default: none.
func Logger(logger *slog.Logger) ClientOption {
	return func(c *Client) { c.logger = logger }
}

// An AcquireOption is an option of License.Acquire.
type AcquireOption func(*plan)

// Machine sets the machine that takes the seat, by a name that stays the same. The option is required.
func Machine(id string) AcquireOption {
	return func(p *plan) { p.machineID = id }
}

// Instance sets the process on the machine, for licenses that count processes.
func Instance(id string) AcquireOption {
	return func(p *plan) { p.instanceID = id }
}

// Wait sets how long to ask again while every seat is in use. By default the first denial is final.
func Wait(span time.Duration) AcquireOption {
	return func(p *plan) { p.waits, p.wait = true, max(span, 0) }
}

// WaitForever asks again until a seat is free or the context of Acquire is done.
func WaitForever() AcquireOption {
	return func(p *plan) { p.waits, p.wait = true, waitForever }
}

// Patience sets how long to try a server that does not answer; a longer wait prevails. Default: 10 s.
func Patience(span time.Duration) AcquireOption {
	return func(p *plan) { p.patience = max(span, 0) }
}

// UserAgent sets the program's name for itself, for the audit log.
func UserAgent(name string) AcquireOption {
	return func(p *plan) { p.userAgent = name }
}

// Metadata sets an object of the program's own, for the audit log: at most 4 KiB of JSON.
func Metadata(metadata map[string]any) AcquireOption {
	return func(p *plan) { p.metadata = metadata }
}

// OnChange is Seat.OnChange from the first state on.
func OnChange(callback func(State)) AcquireOption {
	return func(p *plan) { p.onChange = callback }
}
