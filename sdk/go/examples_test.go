package seatkeeper_test

import (
	"os"
	"os/exec"
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
