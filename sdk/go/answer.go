package seatkeeper

import "time"

// grant is a granted acquire.
type grant struct {
	session, licenseID    string
	releaseCode           secret
	seatsUsed, seatsTotal int
	expiresIn, grace      time.Duration
	// interval is nil if the server told none.
	interval *time.Duration
	// reacquires is false if only the program may acquire again after expired.
	reacquires bool
}

// renewal is an answered heartbeat; nil keeps the last value.
type renewal struct {
	expiresIn, interval, grace *time.Duration
	reacquires                 *bool
}

// setbackKind is the kind of an answer that grants or renews nothing.
type setbackKind int

const (
	// transient: the server, or a proxy before it, cannot answer now: try again.
	transient setbackKind = iota
	// hopeless: the server cannot do this at all: the next try comes no sooner than the next heartbeat.
	hopeless
	// unauthenticated: the token is not accepted.
	unauthenticated
	// refused: the server refuses the request itself.
	refused
)

// setback is an answer that grants or renews nothing.
type setback struct {
	kind       setbackKind
	failure    Failure
	retryAfter time.Duration
	// isInDoubt says that the server may have carried the request out, in transient.
	isInDoubt bool
	// requestID is the id of the request in the server's log, in transient and hopeless.
	requestID string
	// problem is set in unauthenticated and refused.
	problem *Denied
}

const (
	// graceMax is the longest grace that a server may give: a week.
	graceMax = 7 * 24 * time.Hour
	// spanMax is the longest span that a server may tell: ten years.
	spanMax = 10 * 365 * 24 * time.Hour
	// retryAfterMax is the longest Retry-After that counts: a proxy's longer one would end the tries of a lost seat.
	retryAfterMax = time.Hour
)

// readAcquire reads the answer to an acquire; the setback is nil if the answer is a grant.
func readAcquire(r response) (grant, *setback) {
	if r.status != 200 && r.status != 201 {
		return grant{}, readSetback(r)
	}
	terms, ok := readTerms(r.body)
	if !ok || terms.expiresIn == nil || terms.session == "" {
		return grant{}, garbage()
	}
	granted := grant{
		session:     terms.session,
		licenseID:   terms.text("license_id"),
		releaseCode: newSecret(terms.text("release_code")),
		expiresIn:   *terms.expiresIn,
		interval:    terms.interval,
		reacquires:  terms.reacquires == nil || *terms.reacquires,
	}
	if terms.grace != nil {
		granted.grace = *terms.grace
	}
	granted.seatsUsed = terms.count("seats_used", "devices_in_use")
	granted.seatsTotal = terms.count("seats_total", "device_limit")
	return granted, nil
}

// readHeartbeat reads the answer to a heartbeat of session; the setback is nil if the answer is a renewal. The page of a
// gateway renews nothing, also as a JSON object.
func readHeartbeat(r response, session string, d door) (renewal, *setback) {
	switch {
	case r.status == 204 && d.renewsWithoutTerms():
		return renewal{}, nil
	case r.status == 200:
		terms, ok := readTerms(r.body)
		named := terms.members["session_id"]
		if !ok || terms.expiresIn == nil || (named != nil && named != session) {
			return renewal{}, garbage()
		}
		return terms.renewal, nil
	default:
		return renewal{}, readSetback(r)
	}
}

// goneReason returns the reason of a 410: the member reason, else by the kind of problem.
func goneReason(problem *Denied) Reason {
	switch {
	case problem.reason != "":
		return Reason(problem.reason)
	case problem.code == "session-expired":
		return ReasonExpired
	case problem.code == "session-entitlement-ended":
		return ReasonEntitlementEnded
	default:
		return ReasonEnded
	}
}

// terms are the terms of a seat.
type terms struct {
	members
	renewal
	session string
}

// readTerms reads the terms of a seat; false if the body is no object, or a span in it is none.
func readTerms(body []byte) (terms, bool) {
	parsed, ok := parseMembers(body)
	if !ok {
		return terms{}, false
	}
	told := terms{members: parsed, session: parsed.text("session_id")}
	read := func(name string, longest time.Duration) *time.Duration {
		if parsed[name] == nil {
			return nil
		}
		span, isSpan := parsed.span(name, longest)
		ok = ok && isSpan
		return &span
	}
	told.expiresIn = read("expires_in_seconds", spanMax)
	told.interval = read("heartbeat_interval_seconds", spanMax)
	told.grace = read("grace_seconds", graceMax)
	if policy := parsed["reacquire"]; policy != nil {
		// A policy that this version does not know forbids to acquire again.
		reacquires := policy == "expired_only"
		told.reacquires = &reacquires
	}
	return told, ok
}

func readSetback(r response) *setback {
	problem := parseProblem(r)
	switch status := r.status; {
	case status == 401:
		if problem == nil {
			problem = unnamedProblem(r)
		}
		return &setback{kind: unauthenticated, problem: problem}
	case status == 501 || status == 505:
		return &setback{kind: hopeless, requestID: r.requestID}
	case status == 408 || status == 429 || (status >= 500 && status <= 599):
		retryAfter := r.retryAfter
		if problem != nil {
			retryAfter = max(retryAfter, problem.RetryAfter)
		}
		retryAfter = min(retryAfter, retryAfterMax)
		// A rate limit rejects a request before any work.
		return &setback{
			kind: transient, failure: FailureUnavailable, retryAfter: retryAfter, isInDoubt: status != 429, requestID: r.requestID,
		}
	case status >= 400 && status <= 499 && problem != nil:
		return &setback{kind: refused, problem: problem}
	default:
		// A page of a proxy, a redirect or an unknown success tells nothing about the seat.
		return garbage()
	}
}

func garbage() *setback {
	return &setback{kind: transient, failure: FailureGarbage, isInDoubt: true}
}
