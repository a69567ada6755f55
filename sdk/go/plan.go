package seatkeeper

import (
	"encoding/json"
	"time"
)

// plan is the seat that a holder asks for, and how long to try.
type plan struct {
	// door is the API that has the seat.
	door       door
	licenseKey string
	machineID  string
	// instanceID is the process on the machine, for licenses that count processes.
	instanceID string
	// perProcess says that the client finds an instanceID in the state directory.
	perProcess bool
	// userAgent is the program's name for itself, for the audit log.
	userAgent string
	// metadata is the JSON of an object of the program's own, for the audit log: the program may change its map while the
	// client sends requests. metadataErr is the error of an object without JSON.
	metadata    json.RawMessage
	metadataErr error
	// application names the program and this package, for the audit log.
	application map[string]any
	// deviceID, deviceType and deviceName describe a device.
	deviceID   string
	deviceType DeviceType
	deviceName string
	// lastSession is the session that the device had before. A grant sets the field.
	lastSession string
	// replaces is the session that ends, if all screens are in use. A grant clears the field.
	replaces string
	// waits says that a denial for want of seats is not final for wait; a wait of waitForever has no end.
	waits bool
	wait  time.Duration
	// patience is how long to try a server that does not answer; a longer wait prevails.
	patience time.Duration
	// onChange is told each change of state.
	onChange func(State)
}

// hasHolder reports whether the server may take both seats for seats of one holder. A license that counts machines ignores the
// instance id.
func (p *plan) hasHolder(other *plan) bool {
	return p.door == other.door && p.licenseKey == other.licenseKey && p.machineID == other.machineID &&
		p.deviceID == other.deviceID
}

const (
	waitForever     = time.Duration(never)
	patienceDefault = 10 * time.Second
)
