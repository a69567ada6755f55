package seatkeeper

import "time"

const (
	// triesMax bounds the requests of one seat within any interval.
	triesMax = 8
	// backoffFirst is the longest backoff before the second try; each later backoff doubles.
	backoffFirst = time.Second
	// waitMin is the shortest wait that waitBefore leaves of a longer Retry-After: an answer needs its time, and ever shorter
	// halves of the rest would spend the tries of an interval.
	waitMin = time.Second
)

// retry holds the latest requests of one seat, and the failures since the last success.
type retry struct {
	sent     []instant
	failures int
}

// count counts a request that is sent now.
func (r *retry) count(now instant) {
	if len(r.sent) == triesMax {
		r.sent = append(r.sent[:0], r.sent[1:]...)
	}
	r.sent = append(r.sent, now)
}

// isSpent reports whether a request at now would be the ninth within an interval.
func (r *retry) isSpent(now instant, interval time.Duration) bool {
	return len(r.sent) == triesMax && now < r.sent[0].after(interval)
}

// succeed starts the backoff anew; the bound on tries stays in force.
func (r *retry) succeed() {
	r.failures = 0
}

// afterFailure returns the time of the next try: retryAfter or a backoff, whichever is longer, within the bound on tries.
func (r *retry) afterFailure(now instant, interval, retryAfter time.Duration, jitter float64) instant {
	doubled := backoffFirst << min(r.failures, 16)
	backoff := part(min(doubled, interval/4), jitter)
	r.failures++
	soonest := now.after(max(backoff, retryAfter))
	if len(r.sent) == triesMax {
		soonest = max(soonest, r.sent[0].after(interval))
	}
	return soonest
}

// waitBefore returns the part of retryAfter that a holder waits before end: half of the rest at most, and waitMin at least. A
// holder that waits past end loses a seat that the server keeps.
func waitBefore(end instant, retryAfter time.Duration, now instant) time.Duration {
	return min(retryAfter, max(time.Duration(end-now)/2, waitMin))
}

// afterHopeless returns the time of the next try after an answer that a quick retry cannot change.
func afterHopeless(now instant, interval time.Duration, jitter float64) instant {
	return now.after(part(interval, between(0.9, 1.0, jitter)))
}
