package seatkeeper

// event moves the machine. Its types are those below and sessionEnd.
type event interface{}

type (
	// tickEvent: time has passed; due at machine.wakeAt, harmless at any time.
	tickEvent struct{}
	// wakeEvent: the host woke, or its network came back.
	wakeEvent struct{}
	// answeredEvent: a request was answered.
	answeredEvent struct {
		request  uint64
		response response
	}
	// failedEvent: a request got no response.
	failedEvent struct {
		request uint64
		fault   fault
	}
	// tokenReadyEvent: the token source gave a fresh token.
	tokenReadyEvent struct{}
	// tokenFailedEvent: the token source has no fresh token.
	tokenFailedEvent struct{ cause error }
	// streamOverEvent: the event stream of a session is over: its answer was 204 or 404.
	streamOverEvent struct{ session string }
	// releaseEvent: the program gives the seat up. isAbandoned says that nobody waits for the end of the release.
	releaseEvent struct{ isAbandoned bool }
	// acquireEvent: the program asks for a seat again after a loss, a refusal or a release.
	acquireEvent struct{}
)

// sessionEnd is the end of a session, as an event stream tells it.
type sessionEnd struct {
	session string
	reason  Reason
	by      string
}

// action is an action for the client, to be carried out in the order of the list. Its types are those below.
type action interface{}

type (
	// sendAction: send the request, and report its outcome.
	sendAction struct{ request request }
	// cancelAction: abort the request. The machine ignores a late outcome.
	cancelAction struct{ request uint64 }
	// refreshTokenAction: replace the rejected token, then report tokenReadyEvent or tokenFailedEvent.
	refreshTokenAction struct{}
	// tellAction: tell the program its new state. A deadline that merely moved is not told.
	tellAction struct{ state State }
	// finishAction: the release is over; the machine sends nothing more.
	finishAction struct{ finish finish }
)

// finish is the result of a release.
type finish string

const (
	// givenBack: the server holds no seat for this holder.
	givenBack finish = "given-back"
	// unconfirmed: the server did not confirm; the seat is free one TTL after the last heartbeat at the latest.
	unconfirmed finish = "unconfirmed"
	// left: the program left the seat to another program, and sent no release.
	left finish = "left"
)
