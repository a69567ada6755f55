// Package seatkeeper holds license seats of a Seatkeeper server: acquire, heartbeats, loss, release.
//
// The package starts no goroutine without a seat, installs no signal handler, prints nothing and keeps no package state.
// PerProcess alone reads the environment, for the state directory, and MachineID alone reads other files that the program
// does not name.
package seatkeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// lookInterval is the longest pause between two readings of the clocks: timers do not count the sleep of a host.
const lookInterval = time.Second

// A Client is a client of one server. All seats of a client share one timer. Every method may be called from any
// goroutine.
type Client struct {
	addresses []string
	clock     *hostClock
	transport transport
	logger    *slog.Logger
	streams   streams
	stateDir  stateDir
	slots     *slots
	// application names the program to the server; nil if the program gave no name.
	application map[string]any

	mu       sync.Mutex
	seats    map[*Seat]struct{}
	schedule schedule
	// keepers has one keeper for each owner of a token with a seat.
	keepers map[string]*tokenKeeper
	timer   *time.Timer
	// firesAt is the time at which the timer fires; never without one.
	firesAt  instant
	last     reading
	isClosed bool
}

// NewClient describes the server at address, http://HOST:PORT or https://HOST:PORT. No request is sent. One of the
// options Token, TokenFile, TokenSource and LicenseKey is required.
func NewClient(address string, options ...ClientOption) (*Client, error) {
	c := &Client{
		addresses: []string{address},
		clock:     newHostClock(),
		transport: transport{client: newHTTPClient()},
		logger:    slog.New(silent{}),
		streams:   streams{times: streamTimesDefault, groups: streamGroups{}},
		slots:     newSlots(),
		seats:     map[*Seat]struct{}{},
		keepers:   map[string]*tokenKeeper{},
		firesAt:   never,
	}
	for _, option := range options {
		option(c)
	}
	parsed, err := parseServers(c.addresses)
	if err != nil {
		return nil, err
	}
	c.transport.servers = parsed
	if c.transport.tokens == nil {
		return nil, errors.New("seatkeeper: a client needs one of Token, TokenFile, TokenSource and LicenseKey")
	}
	if err := checkApplication(c.application); err != nil {
		return nil, err
	}
	c.streams.client = newStreamClient(c.transport.client)
	c.last = c.clock.read()
	return c, nil
}

// Format implements fmt.Formatter, so that a log never holds the token.
func (c *Client) Format(f fmt.State, _ rune) {
	if c == nil {
		_, _ = io.WriteString(f, "<nil>")
		return
	}
	_, _ = io.WriteString(f, "client of "+strings.Join(c.transport.servers.bases, ", "))
}

// License returns the license with this key. No request is sent.
func (c *Client) License(key string) *License {
	return &License{client: c, key: key}
}

// Wake makes every seat ask the server at once, for a host that knows of a sleep or a new network.
func (c *Client) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for seat := range c.seats {
		c.step(seat, wakeEvent{})
	}
	c.setTimer()
}

// Close gives every seat back within two seconds, or until ctx is done, and closes every event stream at once. The idle
// connections of a transport that HTTPClient set stay open.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.isClosed = true
	var released []*Seat
	for seat := range c.seats {
		released = append(released, seat)
		c.step(seat, releaseEvent{})
	}
	c.setTimer()
	c.mu.Unlock()
	var failed []error
	for _, seat := range released {
		failed = append(failed, seat.finished(ctx))
	}
	c.closeIdleConnections()
	return errors.Join(failed...)
}

// closeIdleConnections closes connections of the transports that NewClient made: the program may use its own transport, and
// http.DefaultTransport, for other requests.
func (c *Client) closeIdleConnections() {
	if !c.transport.isForeign {
		c.transport.client.CloseIdleConnections()
	}
	// A transport of this type is the clone of newStreamClient.
	if own, isOwn := c.streams.client.Transport.(*http.Transport); isOwn {
		own.CloseIdleConnections()
	}
}

// A License is a license on one server. Every verb of package fmt shows the last four characters of the key alone.
type License struct {
	client *Client
	key    string
}

// Format implements fmt.Formatter, so that a log never holds the key.
func (l License) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "license "+masked(l.key))
}

// masked returns a key with all but its last four characters hidden; a key of eight or fewer is hidden whole.
func masked(key string) string {
	const shown, hiddenWhole = 4, 8
	characters := []rune(key)
	if len(characters) <= hiddenWhole {
		return "****"
	}
	return "****" + string(characters[len(characters)-shown:])
}

// Acquire acquires a seat, and keeps it until Seat.Release or Client.Close. Acquire first waits, for two seconds at most, for the
// releases that the same client has under way on the same license and machine.
//
// The error is a *Denied if the server refuses, an *Unreachable if the server does not answer, and the cause of ctx once
// ctx is done; a seat that came too late is given back. After Acquire has returned, ctx has no effect on the seat.
func (l *License) Acquire(ctx context.Context, options ...AcquireOption) (*Seat, error) {
	p := &plan{door: licenseDoor{}, licenseKey: l.key, patience: patienceDefault, application: l.client.application}
	for _, option := range options {
		option.forLicense(p)
	}
	if p.machineID == "" {
		return nil, errors.New("seatkeeper: Machine is missing: want a name of this machine that stays the same")
	}
	if p.metadataErr != nil {
		return nil, fmt.Errorf("seatkeeper: the metadata are no JSON: %w", p.metadataErr)
	}
	return l.client.take(ctx, p)
}

// take takes the seat of a plan, and waits until the server grants or refuses the seat.
func (c *Client) take(ctx context.Context, p *plan) (*Seat, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	// A release under way still has its slot.
	releases, err := c.awaitReleases(ctx, p)
	if err != nil {
		return nil, err
	}
	taken, err := c.takeSlot(ctx, p)
	if err != nil {
		return nil, err
	}
	seat, err := c.start(p, taken, releases)
	if err != nil {
		isEnded := make(chan struct{})
		c.slots.end(taken, func() { close(isEnded) })
		<-isEnded
		return nil, err
	}
	select {
	case <-seat.acquired:
	case <-ctx.Done():
		c.release(seat, releaseEvent{isAbandoned: true})
		return nil, context.Cause(ctx)
	}
	switch state := seat.State(); state.Kind {
	case Refused:
		c.release(seat, releaseEvent{})
		if seat.hasSlotFile {
			// A retry by another instance id may be denied for the session that the release ends.
			_ = seat.finished(ctx)
		}
		return nil, state.Err
	case Released:
		return nil, ErrClosed
	default:
		if p.onChange != nil {
			seat.OnChange(p.onChange)
		}
		return seat, nil
	}
}

// awaitReleases waits for the releases of the same holder that are under way, for releaseBudget at most, and returns
// them. The server resumes the session of a holder that acquires again, so a late DELETE would end the new seat.
func (c *Client) awaitReleases(ctx context.Context, p *plan) ([]*Seat, error) {
	releases := c.releasing(p)
	bounded, cancel := context.WithTimeout(ctx, releaseBudget)
	defer cancel()
	if !allDone(bounded, releases) && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return releases, nil
}

// allDone waits until every release has ended; false once ctx is done.
func allDone(ctx context.Context, releases []*Seat) bool {
	for _, seat := range releases {
		select {
		case <-seat.done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// releasing returns the seats of the same holder whose release is not finished.
func (c *Client) releasing(p *plan) []*Seat {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*Seat
	for seat := range c.seats {
		if seat.isReleasing() && seat.machine.plan.hasHolder(p) {
			found = append(found, seat)
		}
	}
	return found
}

// takeOver stops the releases that go on, and returns the session that they leave to the acquire of seat. A seat with a
// slot takes the slot of such a release: a license that counts processes knows the session by that slot alone. The
// caller holds the lock.
func (c *Client) takeOver(seat *Seat, releases []*Seat) orphan {
	left := orphan{}
	for _, stopped := range releases {
		if _, goesOn := c.seats[stopped]; !goesOn {
			continue
		}
		if seat.slot != nil && stopped.slot.isLocked() {
			seat.slot, stopped.slot = stopped.slot, seat.slot
		}
		c.carryOut(stopped, stopped.machine.leave(stopped.flight))
		left = unknownOrphan
	}
	return left
}

// takeSlot finds the instance id of a seat of one process; nil for every other seat.
func (c *Client) takeSlot(ctx context.Context, p *plan) (*slot, error) {
	if !p.perProcess || p.instanceID != "" {
		return nil, nil
	}
	// Without a base, the search for a slot ends before any call of the file system.
	base, _ := c.stateDir.base()
	find := func() *slot { return c.stateDir.take(c.addresses[0], p.licenseKey, p.machineID) }
	taken, err := c.slots.take(ctx, base, find)
	if err != nil {
		return nil, err
	}
	if taken.warning != "" {
		c.logger.Warn("the state directory is not used; the instance id is random", "reason", taken.warning)
	}
	return taken, nil
}

// start starts an acquire, and takes over the releases that go on. An error stops no release. Without an error, the slot
// belongs to the client.
func (c *Client) start(p *plan, taken *slot, releases []*Seat) (*Seat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return nil, ErrClosed
	}
	seat := newSeat(c)
	seat.slot = taken
	left := c.takeOver(seat, releases)
	if seat.slot != nil {
		p.instanceID = seat.slot.instanceID
		seat.hasSlotFile, seat.warning = seat.slot.isLocked(), seat.slot.warning
	}
	seat.tokenOwner = c.transport.tokens.owner(p.machineID)
	var actions []action
	seat.machine, actions = newMachine(p, left, c.clock.read())
	c.seats[seat] = struct{}{}
	c.carryOut(seat, actions)
	c.setTimer()
	return seat, nil
}

func (c *Client) release(seat *Seat, ev releaseEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step(seat, ev)
	c.setTimer()
}

// leave stops the machine of a seat without a release; false if a release is under way. The release goes on.
func (c *Client) leave(seat *Seat) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isOurs := c.seats[seat]; !isOurs || seat.isReleasing() {
		return false
	}
	c.carryOut(seat, seat.machine.leave(seat.flight))
	c.setTimer()
	return true
}

// tick fires the timers that are due; after a sleep of the host, it steps every machine.
func (c *Client) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.firesAt = never
	now := c.clock.read()
	slept := now.sleptSince(c.last)
	c.last = now
	for _, seat := range c.schedule.takeDue(now.boot) {
		c.step(seat, tickEvent{})
		c.reschedule(seat)
	}
	if slept {
		for seat := range c.seats {
			c.step(seat, tickEvent{})
		}
	}
	c.setTimer()
}

// setTimer sees to a tick at the first time at which a machine must have one. A timer that fires sooner stays: its tick looks
// at the schedule. The caller holds the lock.
func (c *Client) setTimer() {
	if len(c.schedule) == 0 {
		if c.timer != nil {
			c.timer.Stop()
		}
		c.firesAt = never
		return
	}
	now := c.clock.boot()
	at := min(c.schedule[0].tickBy, now.after(lookInterval))
	if at >= c.firesAt {
		return
	}
	c.firesAt = at
	pause := max(0, time.Duration(at-now))
	if c.timer == nil {
		c.timer = time.AfterFunc(pause, c.tick)
	} else {
		c.timer.Reset(pause)
	}
}

// step steps the machine of a seat, and carries out the actions. The caller holds the lock.
func (c *Client) step(seat *Seat, ev event) {
	defer func() {
		// An error of the client itself must not end the program; the seat ends at its deadline.
		if panicked := recover(); panicked != nil {
			tellError(c.logger, "the client failed; the seat ends at its deadline", panicked)
		}
	}()
	if _, isOurs := c.seats[seat]; isOurs {
		if at := seat.activeAt.Load(); at != 0 {
			seat.machine.noteActivity(instant(at))
		}
		c.carryOut(seat, seat.machine.step(ev, c.clock.read(), rand.Float64()))
	}
}

func (c *Client) carryOut(seat *Seat, actions []action) {
	isTold := false
	for _, a := range actions {
		switch a := a.(type) {
		case sendAction:
			c.send(seat, a.request)
		case cancelAction:
			if seat.flight == a.request {
				seat.abort()
			}
		case refreshTokenAction:
			c.refreshToken(seat)
		case tellAction:
			isTold = true
		case finishAction:
			c.forget(seat)
			seat.finish(a.finish)
		}
	}
	seat.publish(isTold)
	c.watch(seat)
	c.reschedule(seat)
}

// reschedule puts a seat to the time of its next tick, or takes a finished seat out. The caller holds the lock.
func (c *Client) reschedule(seat *Seat) {
	if _, isOurs := c.seats[seat]; isOurs {
		c.schedule.set(seat)
	} else {
		c.schedule.remove(seat)
	}
}

// forget removes a seat, and the keeper of its token with the token's last seat.
func (c *Client) forget(seat *Seat) {
	delete(c.seats, seat)
	if seat.tokenOwner == "" {
		return
	}
	for other := range c.seats {
		if other.tokenOwner == seat.tokenOwner {
			return
		}
	}
	delete(c.keepers, seat.tokenOwner)
}

// keeper returns the keeper of an owner's token. The caller holds the lock.
func (c *Client) keeper(owner string) *tokenKeeper {
	if c.keepers[owner] == nil {
		c.keepers[owner] = &tokenKeeper{}
	}
	return c.keepers[owner]
}

// send sends a request from a goroutine of its own.
func (c *Client) send(seat *Seat, r request) {
	ctx, abort := context.WithCancel(context.Background())
	seat.flight, seat.abort, seat.sentWith = r.id, abort, c.keeper(seat.tokenOwner).current
	go func() {
		defer abort()
		ev := c.transport.answer(ctx, seat.tokenOwner, r)
		c.mu.Lock()
		defer c.mu.Unlock()
		if seat.flight == r.id {
			// The context of a finished request is not kept.
			seat.abort = func() {}
		}
		c.step(seat, ev)
		c.setTimer()
	}()
}

func (c *Client) refreshToken(seat *Seat) {
	switch c.keeper(seat.tokenOwner).reject(seat.sentWith) {
	case superseded:
		go c.tokenCame(seat)
	case refreshing:
		seat.wantsToken = true
	case refresh:
		seat.wantsToken = true
		go c.refresh(seat.tokenOwner)
	}
}

// tokenCame sends the request of a seat again, for a token that came since.
func (c *Client) tokenCame(seat *Seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step(seat, tokenReadyEvent{})
	c.setTimer()
}

// refresh asks the token source for all seats that wait for the token of owner.
func (c *Client) refresh(owner string) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	err := c.transport.tokens.refresh(ctx, owner)
	var ev event = tokenReadyEvent{}
	if err != nil {
		if ctx.Err() != nil {
			err = errTokenLate
		}
		ev = tokenFailedEvent{err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The last seat of the token may be gone, and its keeper with the seat.
	if keeper := c.keepers[owner]; keeper != nil {
		keeper.finish(err == nil)
	}
	for seat := range c.seats {
		if seat.wantsToken && seat.tokenOwner == owner {
			seat.wantsToken = false
			c.step(seat, ev)
		}
	}
	c.setTimer()
}
