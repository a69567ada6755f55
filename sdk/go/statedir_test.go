package seatkeeper

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	slotServer  = "http://127.0.0.1:8080"
	slotLicense = "CAD-2030"
	slotMachine = "workstation-7"
	// knownInstance is a valid id.
	knownInstance = "0b9d3a52-6c0f-4f6e-9b0a-3f2a1d7c8e45"
)

// stateDirTest is a base directory that no process has used yet.
type stateDirTest struct {
	*testing.T
	base, directory string
}

func newStateDirTest(t *testing.T) stateDirTest {
	base := filepath.Join(t.TempDir(), "a", "state")
	return stateDirTest{t, base, filepath.Join(base, directoryName(slotServer, slotLicense, slotMachine))}
}

func (t stateDirTest) file(number int) string {
	return filepath.Join(t.directory, fmt.Sprintf("slot-%d.lock", number))
}

func (t stateDirTest) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// take takes a slot until the end of the test.
func (t stateDirTest) take() *slot {
	t.Helper()
	taken := stateDir{path: t.base}.take(slotServer, slotLicense, slotMachine)
	t.Cleanup(taken.close)
	if !uuid4.MatchString(taken.instanceID) {
		t.Fatalf("%q is no id", taken.instanceID)
	}
	return taken
}

// expectWarning expects two random ids with a warning.
func (t stateDirTest) expectWarning(reason, place string) {
	t.Helper()
	one, two := t.take(), t.take()
	if one.instanceID == two.instanceID || one.warning != reason+": "+place {
		t.Errorf("%v and %v instead of random ids with %s: %s", one, two, reason, place)
	}
}

func TestEachKnownDirectoryIsFound(t *testing.T) {
	text, err := os.ReadFile("../state-directory.json")
	if err != nil {
		t.Fatal(err)
	}
	var known []struct {
		Server, License, Directory string
		MachineID                  string `json:"machine_id"`
	}
	if err := json.Unmarshal(text, &known); err != nil || len(known) < 14 {
		t.Fatal(err, len(known))
	}
	for _, k := range known {
		if found := directoryName(k.Server, k.License, k.MachineID); found != k.Directory {
			t.Errorf("%v is %s", k, found)
		}
	}
}

func TestEachSystemHasItsBase(t *testing.T) {
	type variables map[string]string
	home := variables{"HOME": "/home/ann", "XDG_STATE_HOME": "/state", "LOCALAPPDATA": "/local"}
	for _, test := range []struct {
		system      string
		environment variables
		base        string
	}{
		{"linux", home, "/state/seatkeeper"},
		{"freebsd", variables{"HOME": "/home/ann"}, "/home/ann/.local/state/seatkeeper"},
		{"linux", variables{"HOME": "/home/ann", "XDG_STATE_HOME": "s"}, "/home/ann/.local/state/seatkeeper"},
		{"darwin", home, "/home/ann/Library/Application Support/Seatkeeper"},
		{"windows", home, "/local/Seatkeeper"},
		{"linux", variables{"HOME": "here"}, ""},
		{"darwin", variables{}, ""},
		{"windows", variables{"HOME": "/home/ann"}, ""},
	} {
		base, err := defaultBase(test.system, func(name string) string { return test.environment[name] })
		if base != test.base || (base == "") != (err != nil && strings.HasPrefix(err.Error(), "no-home: ")) {
			t.Errorf("%v: %q, %v", test, base, err)
		}
	}
}

func TestTwoSeatsOfAProcessTakeTwoSlots(t *testing.T) {
	s := newStateDirTest(t)
	one, two := s.take(), s.take()
	if one.instanceID == two.instanceID || one.warning != "" || two.warning != "" {
		t.Error(one, two)
	}
	one.close()
	one.close()
	if again := s.take(); again.instanceID != one.instanceID {
		t.Error(again, one)
	}
}

func TestContentThatIsNotValidIsReplaced(t *testing.T) {
	s := newStateDirTest(t)
	valid := `{"version":1,"instance_id":"` + knownInstance + `","more":[1]}`
	s.take().close()
	s.must(os.WriteFile(s.file(1), []byte(valid+strings.Repeat(" ", slotBytesMax-len(valid))), 0o600))
	taken := s.take()
	if taken.instanceID != knownInstance {
		t.Error("valid content is replaced by", taken)
	}
	taken.close()
	for _, content := range []string{
		"", "{", "[]", "null", valid[:len(valid)-1], valid + strings.Repeat(" ", slotBytesMax), strings.Repeat("[", 4_000),
		strings.Replace(valid, "1,", "2,", 1), strings.Replace(valid, "1,", "true,", 1), strings.Replace(valid, "1,", `"1",`, 1),
		strings.Replace(valid, "version", "Version", 1), strings.Replace(valid, "4f6e", "1f6e", 1),
		strings.Replace(valid, "-9b0a", "-1b0a", 1), strings.ToUpper(valid), strings.Replace(valid, `45"`, `45\n"`, 1),
		valid[:len(valid)-5] + "\"\xff\"}", strings.Repeat("\x00", 100),
	} {
		s.must(os.WriteFile(s.file(1), []byte(content), 0o600))
		taken := s.take()
		text, err := os.ReadFile(s.file(1))
		s.must(err)
		if taken.instanceID == knownInstance || string(text) != `{"version":1,"instance_id":"`+taken.instanceID+`"}` {
			t.Errorf("%.60q gave %v with %s", content, taken, text)
		}
		taken.close()
		again := s.take()
		again.close()
		if again.instanceID != taken.instanceID {
			t.Errorf("%.60q: the new id is not kept", content)
		}
	}
}

func TestADirectoryThatIsTurnedOffGivesRandomIDs(t *testing.T) {
	off := stateDir{isOff: true}
	one, two := off.take(slotServer, slotLicense, slotMachine), off.take(slotServer, slotLicense, slotMachine)
	if one.instanceID == two.instanceID || one.warning+two.warning != "" || !uuid4.MatchString(one.instanceID) {
		t.Error(one, two)
	}
}

func TestAFileInTheWayOfTheBase(t *testing.T) {
	s := newStateDirTest(t)
	s.must(os.WriteFile(filepath.Dir(s.base), nil, 0o600))
	s.expectWarning("unusable", s.base)
	s.must(os.Remove(filepath.Dir(s.base)))
	s.must(os.Mkdir(filepath.Dir(s.base), 0o700))
	s.must(os.WriteFile(s.base, nil, 0o600))
	s.expectWarning("not-a-directory", s.base)
}

// TestSlotHolder is no test of its own: the tests of processes run it in a process of its own.
func TestSlotHolder(t *testing.T) {
	base := os.Getenv("SEATKEEPER_TEST_BASE")
	if base == "" {
		t.Skip("runs in the processes of other tests")
	}
	fmt.Println("holding", stateDir{path: base}.take(slotServer, slotLicense, slotMachine).instanceID)
	time.Sleep(10 * time.Minute)
}

// holdSlot takes a slot in a process of its own, and returns the id and a function that kills the process.
func (t stateDirTest) holdSlot() (id string, kill func()) {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestSlotHolder$")
	command.Env = append(os.Environ(), "SEATKEEPER_TEST_BASE="+t.base)
	output, err := command.StdoutPipe()
	t.must(err)
	t.must(command.Start())
	kill = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	t.Cleanup(kill)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "holding "); ok {
			return id, kill
		}
	}
	t.Fatal("the process took no slot")
	return "", nil
}

func TestTheSuccessorOfAKilledProcessHasItsID(t *testing.T) {
	s := newStateDirTest(t)
	first, kill := s.holdSlot()
	second, _ := s.holdSlot()
	if third := s.take(); first == second || third.instanceID == first || third.instanceID == second {
		t.Error("processes share an id:", first, second, third)
	}
	kill()
	if successor := s.take(); successor.instanceID != first {
		t.Error(successor, first)
	}
}

// acquireWith acquires two seats at once and a third one after their release, and returns the bodies and the seats.
func (t stateDirTest) acquireWith(options ...AcquireOption) (bodies []map[string]any, seats []*Seat) {
	t.Helper()
	s := newScripted(t.T, func(r arrived, _ int) reply {
		if strings.HasSuffix(r.target, "/acquire") {
			return reply{status: 201, body: scriptedGrant}
		}
		return reply{status: 204}
	})
	client, err := NewClient(s.url, Token("t"), EventStreams(false), StateDir(t.base))
	t.must(err)
	ctx := context.Background()
	hold := func() {
		seat, err := client.License(slotLicense).Acquire(ctx, append(options, Machine(slotMachine))...)
		t.must(err)
		seats = append(seats, seat)
	}
	hold()
	hold()
	t.must(seats[0].Release(ctx))
	hold()
	t.must(client.Close(ctx))
	for _, request := range s.arrived("POST /api/v1/licenses/acquire") {
		bodies = append(bodies, request.body)
	}
	return bodies, seats
}

func TestEachSeatHasAnIDAndAReleaseLeavesTheID(t *testing.T) {
	s := newStateDirTest(t)
	bodies, seats := s.acquireWith(PerProcess())
	one, two, after := bodies[0]["instance_id"], bodies[1]["instance_id"], bodies[2]["instance_id"]
	if one == two || one != after || !uuid4.MatchString(fmt.Sprint(one)) || seats[0].Warning() != "" {
		t.Error(one, two, after, seats[0].Warning())
	}
}

func TestWithoutPerProcessOrWithAnInstanceNoFileIsMade(t *testing.T) {
	s := newStateDirTest(t)
	if bodies, _ := s.acquireWith(); bodies[0]["instance_id"] != nil {
		t.Error(bodies[0])
	}
	if bodies, _ := s.acquireWith(Instance("own"), PerProcess()); bodies[0]["instance_id"] != "own" {
		t.Error(bodies[0])
	}
	if _, err := os.Lstat(filepath.Dir(s.base)); err == nil {
		t.Error("a directory was made")
	}
}

func TestASeatIsHeldWithoutADirectory(t *testing.T) {
	s := newStateDirTest(t)
	s.must(os.WriteFile(filepath.Dir(s.base), nil, 0o600))
	bodies, seats := s.acquireWith(PerProcess())
	if bodies[0]["instance_id"] == bodies[2]["instance_id"] || seats[0].Warning() != "unusable: "+s.base {
		t.Error(bodies, seats[0].Warning())
	}
}

func TestADeniedAcquireAndAClosedClientLeaveTheSlot(t *testing.T) {
	s := newStateDirTest(t)
	server := newScripted(t, func(arrived, int) reply {
		return reply{status: 403, body: `{"type":"/problems/license-full"}`}
	})
	client, err := NewClient(server.url, Token("t"), StateDir(s.base))
	s.must(err)
	acquire := func() {
		if seat, err := client.License("K").Acquire(context.Background(), Machine("m"), PerProcess()); err == nil {
			t.Error("a seat:", seat)
		}
	}
	acquire()
	acquire()
	s.must(client.Close(context.Background()))
	acquire()
	taken := stateDir{path: s.base}.take(server.url, "K", "m")
	taken.close()
	if found, _ := filepath.Glob(filepath.Join(s.base, "*", "*")); len(found) != 1 {
		t.Error(found)
	}
}
