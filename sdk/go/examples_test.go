package seatkeeper_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestThePageShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("examples/hold/main.go")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(page)
	if block == nil || string(block[1]) != string(example) {
		t.Error("README.md shows another program than examples/hold/main.go")
	}
}

func TestTheExampleRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.openLicense("TOUR-2030")
	command := exec.Command("go", "run", "./examples/hold")
	command.Env = append(os.Environ(), "SEATS_URL="+s.url, "SEATS_MACHINE=workstation-7")
	output, err := command.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(output), "is held\nstep 1\nstep 2\nstep 3\n") {
		t.Errorf("%v: %s", err, output)
	}
	s.expectLive()
}

func TestTheEditorSavesTheWorkWhenItsSeatIsLost(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.openLicense("TOUR-2030")
	folder := t.TempDir()
	program, letter := filepath.Join(folder, "editor"), filepath.Join(folder, "letter.txt")
	if output, err := exec.Command("go", "build", "-o", program, "./examples/editor").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	command := exec.Command(program, letter)
	command.Env = append(os.Environ(), "SEATS_URL="+s.url, "SEATS_MACHINE=workstation-7")
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	told := bufio.NewScanner(output)
	if !told.Scan() || !strings.HasPrefix(told.Text(), "Type your letter") {
		t.Fatal(told.Text())
	}
	if _, err := io.WriteString(input, "Dear server,\n"); err != nil {
		t.Fatal(err)
	}
	s.run("sessions", "revoke", "--license", s.licenseID("TOUR-2030"))
	if !told.Scan() || !strings.HasPrefix(told.Text(), "Your seat is lost (revoked). Your letter is in ") {
		t.Error(told.Text())
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Error(err)
	}
	if text, err := os.ReadFile(letter + ".rescued"); err != nil || string(text) != "Dear server,\n" {
		t.Errorf("%q, %v", text, err)
	}
}
