package seatkeeper

// rejected is the step after a token was rejected.
type rejected int

const (
	// superseded: a fresh token came since the request was sent: send again at once.
	superseded rejected = iota
	// refreshing: a refresh is under way: wait for its result.
	refreshing
	// refresh: start the refresh, and call tokenKeeper.finish with its result.
	refresh
)

// tokenKeeper coalesces refreshes: at most one at a time, for all seats of a client.
type tokenKeeper struct {
	// current is the generation of the token to send; each fresh token has the next one.
	current      uint64
	isRefreshing bool
}

// reject decides on a request that was sent with the token of sentWith and answered 401.
func (k *tokenKeeper) reject(sentWith uint64) rejected {
	switch {
	case sentWith < k.current:
		return superseded
	case k.isRefreshing:
		return refreshing
	default:
		k.isRefreshing = true
		return refresh
	}
}

// finish ends the refresh; isFresh says that a token came.
func (k *tokenKeeper) finish(isFresh bool) {
	k.isRefreshing = false
	if isFresh {
		k.current++
	}
}
