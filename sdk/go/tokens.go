package seatkeeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// errNoToken is the error of a token source without a token.
var errNoToken = errors.New("seatkeeper: the token source has no token")

const (
	// fileLookInterval is the shortest pause between two looks at the file of a token.
	fileLookInterval = time.Second
	// fileLookPatience is the longest wait of a request for a look.
	fileLookPatience = time.Second
)

// tokenSource returns a fresh bearer token.
type tokenSource func(context.Context) (string, error)

func staticTokens(token string) tokenSource {
	return func(context.Context) (string, error) { return token, nil }
}

// tokenFile is a file with a token.
type tokenFile struct {
	path string

	mu sync.Mutex
	// seen is the file at the last reading.
	seen fs.FileInfo
	// lookAt is the time of the next look, and isLooking is true during a look: a file server may hang.
	lookAt    time.Time
	isLooking bool
}

// read is the source of the token.
func (f *tokenFile) read(context.Context) (string, error) {
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

// hasChanged tells whether the file is another one than at the last reading. The file is looked at once per second at most.
func (f *tokenFile) hasChanged() bool {
	if !f.startLook() {
		return false
	}
	result := make(chan bool, 1)
	go func() { result <- f.look() }()
	select {
	case isOther := <-result:
		return isOther
	case <-time.After(fileLookPatience):
		return false
	}
}

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

func (f *tokenFile) look() bool {
	found, err := os.Stat(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isLooking = false
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
	// fetching is held during a fetch.
	fetching sync.Mutex
	mu       sync.Mutex
	token    string
	tokens   announcer
}

// owner returns one name for all machines: they share the token.
func (c *tokenCache) owner(string) string { return "" }

// current returns the token of the moment; the first call fetches it, and so does a call after a change of the file.
func (c *tokenCache) current(ctx context.Context, _ string) (string, error) {
	if token := c.cached(); token != "" {
		if c.file == nil || !c.file.hasChanged() || !c.fetching.TryLock() {
			return token, nil
		}
		defer c.fetching.Unlock()
		if fresh, err := c.fetch(ctx); err == nil {
			return fresh, nil
		}
		return token, nil
	}
	c.fetching.Lock()
	defer c.fetching.Unlock()
	if token := c.cached(); token != "" {
		return token, nil
	}
	return c.fetch(ctx)
}

// refresh replaces the token by a fresh one; without a fresh one the old token stays.
func (c *tokenCache) refresh(ctx context.Context, _ string) error {
	c.fetching.Lock()
	defer c.fetching.Unlock()
	_, err := c.fetch(ctx)
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
	type answer struct {
		token string
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() {
			// A panic of the program's source must not end the program from a goroutine of the client.
			if panicked := recover(); panicked != nil {
				answers <- answer{err: fmt.Errorf("panic: %v", panicked)}
			}
		}()
		token, err := c.source(ctx)
		answers <- answer{token, err}
	}()
	select {
	case a := <-answers:
		return a.token, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (c *tokenCache) fetch(ctx context.Context) (string, error) {
	token, err := c.ask(ctx)
	token = strings.TrimSpace(token)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoToken, err)
	}
	if !isToken(token) {
		return "", fmt.Errorf("%w: a token is one line of ASCII", errNoToken)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
	c.tokens.announce()
	return token, nil
}
