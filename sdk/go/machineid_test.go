package seatkeeper

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// machineIDs are the known answers of every language.
type machineIDs struct {
	Known []struct {
		OSID  string `json:"os_id"`
		AppID string `json:"app_id"`
		ID    string `json:"id"`
	} `json:"known"`
	AppID string `json:"app_id"`
	Hosts []struct {
		Name     string            `json:"name"`
		OS       string            `json:"os"`
		Files    map[string]string `json:"files"`
		Commands map[string]string `json:"commands"`
		ID       string            `json:"id"`
		Error    string            `json:"error"`
	} `json:"hosts"`
}

func readMachineIDs(t *testing.T) (ids machineIDs) {
	t.Helper()
	text, err := os.ReadFile("../machine-ids.json")
	if err == nil {
		err = json.Unmarshal(text, &ids)
	}
	if err != nil || len(ids.Known) < 6 || len(ids.Hosts) < 19 {
		t.Fatal(err, ids)
	}
	return ids
}

func TestEachKnownAnswerIsGiven(t *testing.T) {
	for _, known := range readMachineIDs(t).Known {
		if id := deriveID(known.OSID, known.AppID); id != known.ID {
			t.Errorf("%v: %s", known, id)
		}
	}
}

func TestEachHostHasItsIDOrItsError(t *testing.T) {
	ids := readMachineIDs(t)
	names := map[string]string{"linux": "linux", "macos": "darwin", "windows": "windows", "plan9": "plan9"}
	wrong := map[string]error{"": nil, "container": ErrContainer, "no-machine-id": ErrNoMachineID}
	for _, h := range ids.Hosts {
		read := func(path string) (string, bool) { text, ok := h.Files[path]; return text, ok }
		run := func(command ...string) (string, bool) {
			output, ok := h.Commands[strings.Join(command, " ")]
			return output, ok
		}
		found := host{names[h.OS], read, run}
		id, err := found.machineID(ids.AppID)
		if wanted, isKnown := wrong[h.Error]; !isKnown || id != h.ID || !errors.Is(err, wanted) {
			t.Errorf("%s: %s %v", h.Name, id, err)
		}
		if _, err := found.machineID(""); !errors.Is(err, errNoAppID) {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
}

func TestThisMachineHasTheSameIDTwiceOrAReason(t *testing.T) {
	first, err := MachineID("com.example.cad")
	again, errAgain := MachineID("com.example.cad")
	if first != again || !errors.Is(errAgain, err) {
		t.Error(first, err, again, errAgain)
	}
	if err != nil && !errors.Is(err, ErrContainer) && !errors.Is(err, ErrNoMachineID) {
		t.Error(err)
	}
}
