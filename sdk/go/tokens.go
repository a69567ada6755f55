package seatkeeper

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// errNotAToken is the error of a text that is no token.
var errNotAToken = errors.New("a token is one line of ASCII")

const (
	// fileLookInterval is the shortest pause between two looks at the file of a token.
	fileLookInterval = time.Second
	// fileLookPatience is the longest wait of a request for the file: a file server may hang.
	fileLookPatience = time.Second
)

// tokenSource returns a fresh bearer token.
type tokenSource func(context.Context) (string, error)

// oneAtATime returns a source that calls the program's source after the end of the call before: a source that hangs keeps one
// goroutine, also after every caller has given up.
func oneAtATime(source tokenSource) tokenSource {
	calls := newGate()
	return func(ctx context.Context) (string, error) {
		if err := calls.enter(ctx); err != nil {
			return "", err
		}
		defer calls.leave()
		return source(ctx)
	}
}

func staticTokens(token string) tokenSource {
	return func(context.Context) (string, error) { return token, nil }
}

// tokenFile is a file with a token.
type tokenFile struct {
	path  string
	calls gate

	mu sync.Mutex
	// seen is the file at the last reading.
	seen fs.FileInfo
	// lookAt is the time of the next look. isLooking is true from a look to the end of the reading that follows, so that a
	// file server that hangs gets no second look.
	lookAt    time.Time
	isLooking bool
}

// newTokenFile returns the file at path.
func newTokenFile(path string) *tokenFile {
	return &tokenFile{path: path, calls: newGate()}
}

// read is the source of the token.
func (f *tokenFile) read(ctx context.Context) (string, error) {
	if err := f.calls.enter(ctx); err != nil {
		return "", err
	}
	defer f.calls.leave()
	// A change after this look is seen by the next look.
	seen, err := os.Stat(f.path)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = seen
	return string(text), err
}

// startLook reports whether a look is due: once per second at most, and never during another look.
func (f *tokenFile) startLook() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.isLooking || now.Before(f.lookAt) {
		return false
	}
	f.isLooking, f.lookAt = true, now.Add(fileLookInterval)
	return true
}

func (f *tokenFile) endLook() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isLooking = false
}

// hasChanged reports whether the file is another one than at the last reading.
func (f *tokenFile) hasChanged() bool {
	if f.calls.enter(context.Background()) != nil {
		return false
	}
	found, err := os.Stat(f.path)
	f.calls.leave()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.seen == nil {
		return err == nil
	}
	return !os.SameFile(found, f.seen) || !found.ModTime().Equal(f.seen.ModTime()) || found.Size() != f.seen.Size()
}

// tokenStore has the tokens of a client, each under the name of its owner.
type tokenStore interface {
	// owner returns the owner of the token for a seat of this machine.
	owner(machineID string) string
	// current returns the token of the moment; the first call fetches it.
	current(ctx context.Context, owner string) (string, error)
	// refresh replaces a rejected token.
	refresh(ctx context.Context, owner string) error
	// fresh returns a channel that is closed when a token comes after the call.
	fresh(owner string) <-chan struct{}
}

// announcer tells all who wait of the next event.
type announcer struct {
	mu   sync.Mutex
	news chan struct{}
}

// next returns a channel that the next announce closes.
func (a *announcer) next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.news == nil {
		a.news = make(chan struct{})
	}
	return a.news
}

func (a *announcer) announce() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.news != nil {
		close(a.news)
		a.news = nil
	}
}

// isToken returns true for one line of ASCII without spaces.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// tokenCache is the token of the moment, fetched once for all requests that need it.
type tokenCache struct {
	source tokenSource
	// file is the file that source reads; nil for every other source.
	file *tokenFile
	// timeout is the time of one call of the source; zero is tokenTimeout.
	timeout time.Duration

	mu    sync.Mutex
	token string
	// fetching is the call of the source under way; nil is none.
	fetching *tokenFetch
	tokens   announcer
}

// tokenFetch is one call of a token source, whose result serves every request that waits.
type tokenFetch struct {
	// over is closed after the call; token and err are set before.
	over  chan struct{}
	token string
	err   error
}

// wait returns the result of the call. The call goes on for other requests after ctx is done.
func (f *tokenFetch) wait(ctx context.Context) (string, error) {
	select {
	case <-f.over:
		return f.token, f.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// owner returns one name for all machines: they share the token.
func (c *tokenCache) owner(string) string { return "" }

// current returns the token of the moment; the first call fetches it, and so does a call after a change of the file.
func (c *tokenCache) current(ctx context.Context, _ string) (string, error) {
	if c.file != nil && c.cached() != "" {
		c.followFile()
	}
	c.mu.Lock()
	if c.token != "" {
		defer c.mu.Unlock()
		return c.token, nil
	}
	fetching := c.fetch()
	c.mu.Unlock()
	return fetching.wait(ctx)
}

// followFile reads the file again if the file has changed, and waits for fileLookPatience at most. A file that takes longer
// replaces the token for a later request; without a good token in the file the old one stays.
func (c *tokenCache) followFile() {
	if !c.file.startLook() {
		return
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer c.file.endLook()
		if c.file.hasChanged() {
			_ = c.refresh(context.Background(), "")
		}
	}()
	timer := time.NewTimer(fileLookPatience)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	}
}

// refresh replaces the token by a fresh one; without a fresh one the old token stays.
func (c *tokenCache) refresh(ctx context.Context, _ string) error {
	c.mu.Lock()
	fetching := c.fetch()
	c.mu.Unlock()
	_, err := fetching.wait(ctx)
	return err
}

// fresh returns a channel that is closed when a token comes after the call.
func (c *tokenCache) fresh(string) <-chan struct{} { return c.tokens.next() }

func (c *tokenCache) cached() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// ask calls the source until ctx is done, also a source that does not heed ctx.
func (c *tokenCache) ask(ctx context.Context) (string, error) {
	return contain(ctx, func() (string, error) { return c.source(ctx) }, nil)
}

// fetch joins the call of the source under way, or starts one. The caller holds the lock.
func (c *tokenCache) fetch() *tokenFetch {
	if c.fetching == nil {
		c.fetching = &tokenFetch{over: make(chan struct{})}
		go c.finish(c.fetching)
	}
	return c.fetching
}

// finish calls the source, and keeps a fresh token. A source that hangs counts as failed after the timeout.
func (c *tokenCache) finish(fetching *tokenFetch) {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(c.timeout, tokenTimeout))
	defer cancel()
	token, err := c.ask(ctx)
	token = strings.TrimSpace(token)
	switch {
	case err != nil && ctx.Err() != nil:
		token, err = "", errTokenLate
	case err != nil:
		token = ""
	case !isToken(token):
		token, err = "", errNotAToken
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.token = token
		c.tokens.announce()
	}
	c.fetching, fetching.token, fetching.err = nil, token, err
	close(fetching.over)
}
