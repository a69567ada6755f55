package seatkeeper_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seatkeeper.dev/seatkeeper"
)

// TestSeatHolder is no test of its own: the next test runs it in a process of its own, which that test kills.
func TestSeatHolder(t *testing.T) {
	url := os.Getenv("SEATKEEPER_TEST_URL")
	if url == "" {
		t.Skip("runs in the process of another test")
	}
	client, err := seatkeeper.NewClient(url, seatkeeper.Token(os.Getenv("SEATKEEPER_TEST_TOKEN")),
		seatkeeper.StateDir(os.Getenv("SEATKEEPER_TEST_STATE")))
	if err != nil {
		t.Fatal(err)
	}
	seat := acquire(t, client, "PROCESSES", seatkeeper.Machine("m"), seatkeeper.PerProcess())
	fmt.Println("holding", seat.SessionID())
	time.Sleep(10 * time.Minute)
}

func TestTheSuccessorOfAKilledProcessHoldsTheOneSeatAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.run("license", "create", "--key", "PROCESSES", "--seats", "1", "--ttl-seconds", "3600", "--count-per", "process")
	state := filepath.Join(t.TempDir(), "state")
	command := exec.Command(os.Args[0], "-test.run=^TestSeatHolder$")
	command.Env = append(os.Environ(), "SEATKEEPER_TEST_URL="+s.url, "SEATKEEPER_TEST_TOKEN="+s.token(),
		"SEATKEEPER_TEST_STATE="+state)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	t.Cleanup(kill)
	session, isHeld := "", false
	for lines := bufio.NewScanner(output); !isHeld && lines.Scan(); {
		session, isHeld = strings.CutPrefix(lines.Text(), "holding ")
	}
	client := newClient(t, s, seatkeeper.Token(s.token()), seatkeeper.StateDir(state))
	options := []seatkeeper.AcquireOption{seatkeeper.Machine("m"), seatkeeper.PerProcess()}
	if _, err := client.License("PROCESSES").Acquire(context.Background(), options...); code(err) != "license-full" {
		t.Error("a second process: ", err)
	}
	kill()
	seat := acquire(t, client, "PROCESSES", options...)
	if seat.SessionID() != session || seat.Check() != nil {
		t.Error(seat.SessionID(), "instead of", session)
	}
}
