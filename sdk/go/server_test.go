package seatkeeper_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// server is a real embedded server, from the binary that the variable SDK_TEST_SERVER names.
type server struct {
	t       *testing.T
	binary  string
	dataDir string
	url     string
	process *exec.Cmd
}

// newServer starts a server on a free port. Without SDK_TEST_SERVER the test is skipped.
func newServer(t *testing.T) *server {
	t.Helper()
	binary := os.Getenv("SDK_TEST_SERVER")
	if binary == "" {
		t.Skip("SDK_TEST_SERVER names no server")
	}
	s := &server{t: t, binary: binary, dataDir: t.TempDir(), url: "http://127.0.0.1:0"}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts the server on the port of the last start, and waits until it listens.
func (s *server) start() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dataDir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	listen := strings.TrimPrefix(s.url, "http://")
	s.process = exec.Command(s.binary, "serve", "--listen", listen, "--data-dir", s.dataDir)
	s.process.Stderr = log
	output, err := s.process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			s.url = url
			return
		}
	}
	s.t.Fatal("the server did not start")
}

// kill ends the server as a crash does.
func (s *server) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// run runs a command of the binary against this server.
func (s *server) run(command ...string) string {
	s.t.Helper()
	if command[0] != "token" {
		command = append(command, "--server", s.url)
	}
	output, err := exec.Command(s.binary, append(command, "--data-dir", s.dataDir)...).Output()
	if err != nil {
		s.t.Fatalf("%v: %v", command, err)
	}
	return string(output)
}

// license creates a license, and returns its key.
func (s *server) license(key string, seats, ttlSeconds int) string {
	s.t.Helper()
	s.run("license", "create", "--key", key, "--seats", strconv.Itoa(seats), "--ttl-seconds", strconv.Itoa(ttlSeconds))
	return key
}

// openLicense creates a license that is open to programs with its key, and returns the key.
func (s *server) openLicense(key string) string {
	s.t.Helper()
	s.run("license", "create", "--key", key, "--seats", "1", "--ttl-seconds", "2", "--clients", "key")
	return key
}

// licenseID returns the id of a license.
func (s *server) licenseID(key string) string {
	s.t.Helper()
	var answer struct {
		Items []struct {
			ID  string `json:"license_id"`
			Key string `json:"license_key"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(s.run("license", "list", "--json")), &answer); err != nil {
		s.t.Fatal(err)
	}
	for _, license := range answer.Items {
		if license.Key == key {
			return license.ID
		}
	}
	s.t.Fatalf("no license has the key %s", key)
	return ""
}

// token returns a bearer token.
func (s *server) token() string {
	s.t.Helper()
	return strings.TrimSpace(s.run("token", "--user", "ann"))
}

// expectLive compares the machines that hold a seat now, in order.
func (s *server) expectLive(machines ...string) {
	s.t.Helper()
	var answer struct {
		Items []struct {
			MachineID string `json:"machine_id"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(s.run("sessions", "list", "--live", "--json")), &answer); err != nil {
		s.t.Fatal(err)
	}
	var live []string
	for _, session := range answer.Items {
		live = append(live, session.MachineID)
	}
	slices.Sort(live)
	if !reflect.DeepEqual(live, machines) {
		s.t.Errorf("%v hold a seat instead of %v", live, machines)
	}
}
