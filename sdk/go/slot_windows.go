package seatkeeper

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

const (
	// lockNow is LOCKFILE_EXCLUSIVE_LOCK and LOCKFILE_FAIL_IMMEDIATELY.
	lockNow = 3
	// errorLockViolation is ERROR_LOCK_VIOLATION.
	errorLockViolation = syscall.Errno(33)
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// checkOwner accepts every directory: the access list of %LOCALAPPDATA% keeps other users out.
func checkOwner(string, fs.FileInfo) error { return nil }

// openSlot opens or creates the file of a slot.
func openSlot(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, slotMode)
}

// lockFile locks byte 0 of the file without waiting. The lock belongs to the handle, and ends with the process.
func lockFile(file *os.File) error {
	var place syscall.Overlapped
	isLocked, _, err := lockFileEx.Call(file.Fd(), lockNow, 0, 1, 0, uintptr(unsafe.Pointer(&place)))
	switch {
	case isLocked != 0:
		return nil
	case errors.Is(err, errorLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return errLocked
	default:
		return err
	}
}

// unlockFile does nothing: the lock ends with its handle.
func unlockFile(*os.File) {}
