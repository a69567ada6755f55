//go:build unix

package seatkeeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is a user of every Unix who is not the one that runs the tests.
const nobody = 65_534

// withoutRoot runs the rest of the test as an ordinary user, for whom permissions count.
func (t stateDirTest) withoutRoot() {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	folder := filepath.Dir(filepath.Dir(t.base))
	// The folder of all tests of the function is for root alone.
	t.must(os.Chmod(filepath.Dir(folder), 0o755))
	t.must(os.Chown(folder, nobody, -1))
	t.must(syscall.Seteuid(nobody))
	t.Cleanup(func() { t.must(syscall.Seteuid(0)) })
}

func TestDirectoriesAndFilesAreForTheirUserAlone(t *testing.T) {
	s := newStateDirTest(t)
	before := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(before) })
	s.take()
	for path, mode := range map[string]os.FileMode{
		filepath.Dir(s.base): 0o700, s.base: 0o700, s.directory: 0o700, s.file(1): 0o600,
	} {
		found, err := os.Stat(path)
		s.must(err)
		if found.Mode().Perm() != mode {
			t.Error(path, found.Mode())
		}
	}
}

func TestANameThatIsNoFileOfThisUserIsPassedOver(t *testing.T) {
	s := newStateDirTest(t)
	s.withoutRoot()
	s.take().close()
	s.must(os.Chmod(s.file(1), 0))
	s.must(os.Mkdir(s.file(2), 0o700))
	s.must(syscall.Mkfifo(s.file(3), 0o600))
	s.must(os.Symlink(filepath.Join(s.base, "elsewhere"), s.file(4)))
	taken := s.take()
	text, err := os.ReadFile(s.file(5))
	if err != nil || taken.warning != "" || !strings.Contains(string(text), taken.instanceID) {
		t.Error(taken, err)
	}
	if _, err := os.Lstat(filepath.Join(s.base, "elsewhere")); err == nil {
		t.Error("the link was followed")
	}
}

func TestALinkInThePlaceOfADirectory(t *testing.T) {
	s := newStateDirTest(t)
	target := t.TempDir()
	s.must(os.MkdirAll(filepath.Dir(s.base), 0o700))
	for _, target := range []string{target, "missing"} {
		s.must(os.Symlink(target, s.base))
		s.expectWarning("not-a-directory", s.base)
		s.expectSlashChangesNothing()
		s.must(os.Remove(s.base))
	}
	s.must(os.Mkdir(s.base, 0o700))
	s.must(os.Symlink(target, s.directory))
	s.expectWarning("not-a-directory", s.directory)
}

// expectSlashChangesNothing expects that a slash at the end of the base follows no link.
func (t stateDirTest) expectSlashChangesNothing() {
	t.Helper()
	taken := stateDir{path: t.base + "/"}.take(slotServer, slotLicense, slotMachine)
	taken.close()
	if taken.warning != "not-a-directory: "+t.base {
		t.Error(taken)
	}
}

func TestDirectoriesThatOthersMayWriteTo(t *testing.T) {
	s := newStateDirTest(t)
	s.take().close()
	for _, path := range []string{s.base, s.directory} {
		for _, mode := range []os.FileMode{0o720, 0o702} {
			s.must(os.Chmod(path, mode))
			s.expectWarning("writable-by-others", path)
		}
		s.must(os.Chmod(path, 0o755))
	}
	if taken := s.take(); taken.warning != "" {
		t.Error(taken)
	}
}

func TestDirectoriesOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a directory away")
	}
	s := newStateDirTest(t)
	s.take().close()
	for _, path := range []string{s.directory, s.base} {
		s.must(os.Chown(path, nobody, -1))
		s.expectWarning("foreign-owner", path)
	}
}

func TestDirectoriesThatCannotBeCreatedOrWritten(t *testing.T) {
	s := newStateDirTest(t)
	s.withoutRoot()
	s.must(os.Mkdir(filepath.Dir(s.base), 0o500))
	s.expectWarning("unusable", s.base)
	s.must(os.Chmod(filepath.Dir(s.base), 0o700))
	s.must(os.Mkdir(s.base, 0o500))
	s.expectWarning("unusable", s.directory)
	s.must(os.Chmod(s.base, 0o700))
	s.must(os.Mkdir(s.directory, 0o500))
	s.expectWarning("unusable", s.file(1))
	s.must(os.Chmod(s.directory, 0o700))
	first := s.take()
	first.close()
	// A slot that exists needs no right to create files.
	s.must(os.Chmod(s.directory, 0o500))
	if again := s.take(); again.instanceID != first.instanceID {
		t.Error(again, first)
	}
}

func TestADirectoryWithoutAFreeSlot(t *testing.T) {
	s := newStateDirTest(t)
	s.take().close()
	s.must(os.Remove(s.file(1)))
	for number := 1; number <= slotsMax; number++ {
		s.must(os.Symlink("nowhere", filepath.Join(s.directory, fmt.Sprintf("slot-%d.lock", number))))
	}
	s.expectWarning("no-free-slot", s.directory)
}

func TestASlotThatComesAfterTheEndOfTheContextIsClosed(t *testing.T) {
	base := t.TempDir()
	take := func() *slot { return stateDir{path: base}.take(slotServer, slotLicense, slotMachine) }
	ctx, cancel := context.WithCancel(context.Background())
	began, goOn, isTaken := make(chan struct{}), make(chan struct{}), make(chan struct{})
	result := make(chan error, 1)
	var late *slot
	// The collector would close the file as well.
	defer func() { runtime.KeepAlive(late) }()
	go func() {
		_, err := newSlots().take(ctx, base, func() *slot {
			close(began)
			<-goOn
			defer close(isTaken)
			late = take()
			return late
		})
		result <- err
	}()
	<-began
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(goOn)
	<-isTaken
	// The slot is free again once the late one is closed.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		taken := take()
		isFirst := strings.HasSuffix(taken.file.Name(), "slot-1.lock")
		taken.close()
		if isFirst {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the late slot stays locked")
		}
	}
}
