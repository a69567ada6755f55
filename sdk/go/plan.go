package seatkeeper

import "time"

// plan is the seat that a holder asks for, and how long to try.
type plan struct {
	licenseKey string
	machineID  string
	// instanceID is the process on the machine, for licenses that count processes.
	instanceID string
	// userAgent is the program's name for itself, for the audit log.
	userAgent string
	// metadata is an object of the program's own, for the audit log.
	metadata map[string]any
	// waits says that a denial for want of seats is not final for wait; a wait of waitForever has no end.
	waits bool
	wait  time.Duration
	// patience is how long to try a server that does not answer; a longer wait prevails.
	patience time.Duration
	// onChange is told each change of state.
	onChange func(State)
}

const (
	waitForever     = time.Duration(never)
	patienceDefault = 10 * time.Second
)
