package seatkeeper

// door is the part of the server's API at which a machine takes its seat: paths and bodies of the machine's requests.
type door interface {
	// acquire returns the call that takes a seat, or finds the holder's session again.
	acquire(p *plan) call
	// heartbeat returns the call that renews a session, and tells the times that the machine measured.
	heartbeat(session string, times map[string]any) call
	// release returns the call that gives a session's seat back.
	release(session string) call
	// releaseByCode returns the call that gives a session's seat back without a token.
	releaseByCode(session string, code secret) call
	// events returns the path of a session's event stream.
	events(session string) string
	// full returns the kind of problem of a denial for want of seats.
	full() string
	// isIdempotent says that an acquire of a holder with a session changes nothing, so that a release may learn the session's id
	// by an acquire.
	isIdempotent() bool
	// renewsWithoutTerms says that the server renews a session by 204, without a body.
	renewsWithoutTerms() bool
}

// licenseDoor is the door to the seats of licenses.
type licenseDoor struct{}

const licenseSessions = "/api/v1/licenses/sessions/"

func (licenseDoor) acquire(p *plan) call {
	body := map[string]any{"license_key": p.licenseKey, "machine_id": p.machineID}
	if p.instanceID != "" {
		body["instance_id"] = p.instanceID
	}
	if p.userAgent != "" {
		body["user_agent"] = p.userAgent
	}
	if p.metadata != nil {
		body["metadata"] = p.metadata
	}
	if p.application != nil {
		body["client"] = p.application
	}
	return call{method: "POST", path: "/api/v1/licenses/acquire", body: body, isAcquire: true}
}

func (licenseDoor) heartbeat(session string, times map[string]any) call {
	c := call{method: "PATCH", path: licenseSessions + session + "/heartbeat"}
	if len(times) > 0 {
		c.body = times
	}
	return c
}

func (licenseDoor) release(session string) call {
	return call{method: "DELETE", path: licenseSessions + session}
}

func (licenseDoor) releaseByCode(session string, code secret) call {
	body := map[string]any{"session_id": session, "release_code": code.reveal()}
	return call{method: "POST", path: licenseSessions + "release", body: body, isTokenless: true}
}

func (licenseDoor) events(session string) string {
	return licenseSessions + session + "/events"
}

func (licenseDoor) full() string { return "license-full" }

func (licenseDoor) isIdempotent() bool { return true }

func (licenseDoor) renewsWithoutTerms() bool { return false }
