package seatkeeper

// orphan is the session of this holder that a release has to end. A holder has at most one live session. The zero value says
// that no session of this holder lives.
type orphan struct {
	// session is the id of the last lease, whose session may live.
	session string
	// code is the release code of the session.
	code secret
	// isUnknown says that the reply to an acquire is lost, so a session with an unknown id may live. An acquire is idempotent
	// by holder: another acquire tells the id, also that of an earlier session.
	isUnknown bool
}

var unknownOrphan = orphan{isUnknown: true}

// acquireFailed notes an acquire without a response.
func (o *orphan) acquireFailed(failure Failure) {
	switch failure {
	case FailureRefused, FailureUnresolved, FailureCertificate, FailureResetBeforeSend, FailureNoToken:
		// The server has seen no request.
	default:
		*o = unknownOrphan
	}
}

// acquireSetBack notes an acquire without a grant. A server with every seat in use would have resumed a session of this
// holder.
func (o *orphan) acquireSetBack(back *setback, d door) {
	switch {
	case back.kind == transient && back.isInDoubt:
		*o = unknownOrphan
	case back.kind == refused && back.problem.code == d.full():
		*o = orphan{}
	}
}
