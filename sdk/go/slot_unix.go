//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package seatkeeper

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// othersMayWrite are the bits of a mode that let group or others write.
const othersMayWrite = 0o022

// checkOwner returns an error if another user may put a file into the directory.
func checkOwner(directory string, found fs.FileInfo) error {
	status, isKnown := found.Sys().(*syscall.Stat_t)
	switch {
	case !isKnown || int(status.Uid) != os.Geteuid():
		return &unusable{"foreign-owner", directory}
	case found.Mode().Perm()&othersMayWrite != 0:
		return &unusable{"writable-by-others", directory}
	default:
		return nil
	}
}

// openSlot opens or creates the file of a slot. No link is followed, and no FIFO is waited for.
func openSlot(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, slotMode)
}

// lockFile locks the file without waiting. The lock belongs to the open file, and ends with the process.
func lockFile(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}

func unlockFile(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
