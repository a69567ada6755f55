package seatkeeper

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"unicode/utf8"
)

const (
	// slotsMax is the number of slots of a directory: the processes of one machine on one license.
	slotsMax = 4096
	// slotBytesMax is the size of the longest content of a slot.
	slotBytesMax = 4096
	// slotMode is the mode of a new slot.
	slotMode = 0o600
)

var (
	// errLocked is the error of lockFile if another open file has the lock.
	errLocked = errors.New("seatkeeper: the slot is locked")
	// errNoFile is the error of a name that is no regular file.
	errNoFile = errors.New("seatkeeper: the slot is no regular file")

	uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// slot is the instance id of one seat, and the locked file that keeps the id from every other process. An id without a
// state directory is random, and has no file.
type slot struct {
	instanceID string
	file       *os.File
	// warning is the reason for which the state directory was not used.
	warning string
}

// take locks the first free slot of a license; without a usable state directory, the id is random.
func (d stateDir) take(server, license, machineID string) *slot {
	if d.isOff {
		return &slot{instanceID: newInstanceID()}
	}
	taken, err := d.firstFree(server, license, machineID)
	if err != nil {
		return &slot{instanceID: newInstanceID(), warning: err.Error()}
	}
	return taken
}

func (d stateDir) firstFree(server, license, machineID string) (*slot, error) {
	base, err := d.base()
	if err != nil {
		return nil, err
	}
	directory := filepath.Join(base, directoryName(server, license, machineID))
	for _, checked := range []string{base, directory} {
		if err := provide(checked); err != nil {
			return nil, err
		}
	}
	for number := 1; number <= slotsMax; number++ {
		path := filepath.Join(directory, fmt.Sprintf("slot-%d.lock", number))
		file, err := openSlot(path)
		if err != nil {
			if _, statErr := os.Lstat(path); statErr == nil {
				continue
			}
			return nil, &unusable{"unusable", path}
		}
		id, err := claim(file)
		if err == nil {
			return &slot{instanceID: id, file: file}, nil
		}
		file.Close()
		if !errors.Is(err, errLocked) && !errors.Is(err, errNoFile) {
			return nil, &unusable{"unusable", path}
		}
	}
	return nil, &unusable{"no-free-slot", directory}
}

// claim locks an open slot, and reads or writes its id.
func claim(file *os.File) (string, error) {
	found, err := file.Stat()
	if err != nil || !found.Mode().IsRegular() {
		return "", errNoFile
	}
	if err := lockFile(file); err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(file, slotBytesMax+1))
	if err != nil {
		return "", errNoFile
	}
	if id := readInstanceID(content); id != "" {
		return id, nil
	}
	return writeInstanceID(file)
}

// isLocked reports whether the id is a file that this process has locked.
func (s *slot) isLocked() bool { return s != nil && s.file != nil }

// close leaves the id to the next process.
func (s *slot) close() {
	if !s.isLocked() {
		return
	}
	// A child between fork and exec still has the file open: the end of the lock must not wait for its exec.
	unlockFile(s.file)
	s.file.Close()
	s.file = nil
}

// readInstanceID returns the id of a slot's content; empty if the content is not valid.
func readInstanceID(content []byte) string {
	// A map has the names of members as they are written, where a struct would also take others in capitals.
	var members map[string]json.RawMessage
	if len(content) > slotBytesMax || !utf8.Valid(content) || json.Unmarshal(content, &members) != nil {
		return ""
	}
	var id string
	if string(members["version"]) != "1" || json.Unmarshal(members["instance_id"], &id) != nil || !uuid4.MatchString(id) {
		return ""
	}
	return id
}

// writeInstanceID replaces the content of a slot by a new id.
func writeInstanceID(file *os.File) (string, error) {
	id := newInstanceID()
	if err := file.Truncate(0); err != nil {
		return "", err
	}
	_, err := file.WriteAt([]byte(`{"version":1,"instance_id":"`+id+`"}`), 0)
	return id, err
}

// newInstanceID returns a UUID of version 4.
func newInstanceID() string {
	var b [16]byte
	// crypto/rand fails on no system of today, and Go 1.24 ends the program instead.
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
