package seatkeeper

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Errors of MachineID. The remedy is the same: pass an id of your own to Machine.
var (
	// ErrContainer is the error of a program in a container, whose machine id is that of an image or of nothing.
	ErrContainer = errors.New("seatkeeper: a container has no stable machine id: pass an id of your own to Machine, such as " +
		"the name of the host or of the pod's stateful set")
	// ErrNoMachineID is the error of a machine whose operating system names no machine id.
	ErrNoMachineID = errors.New("seatkeeper: the operating system names no machine id (Linux: /etc/machine-id is missing, " +
		"empty or uninitialized): pass an id of your own to Machine")
	errNoAppID = errors.New("seatkeeper: the app id is empty: want a name of the program that stays the same, such as " +
		"com.example.cad")
)

const (
	// commandTimeout is the timeout of a command that tells the machine id.
	commandTimeout = 10 * time.Second
	// uninitializedID is the content of /etc/machine-id in an image that has not booted yet.
	uninitializedID = "uninitialized"
)

// MachineID returns the id of this machine for the program appID, such as com.example.cad: 32 hexadecimal digits.
//
// The id is the same after every start, and different for each program, so that two vendors cannot match their users. It
// is HMAC-SHA256 of appID, keyed with the id of the operating system, which never leaves the machine. The error is
// ErrContainer in a container, and ErrNoMachineID on a machine without an id.
func MachineID(appID string) (string, error) {
	return host{runtime.GOOS, readText, runCommand}.machineID(appID)
}

// host is an operating system with its files and commands.
type host struct {
	os   string
	read func(path string) (string, bool)
	run  func(command ...string) (string, bool)
}

func (h host) machineID(appID string) (string, error) {
	if appID == "" {
		return "", errNoAppID
	}
	var osID string
	switch h.os {
	case "linux":
		if h.isContainer() {
			return "", ErrContainer
		}
		// The second file serves hosts without systemd.
		text, ok := h.read("/etc/machine-id")
		if !ok {
			text, _ = h.read("/var/lib/dbus/machine-id")
		}
		osID = text
	case "darwin":
		output, _ := h.run("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
		osID = valueAfter(output, `"IOPlatformUUID" =`)
	case "windows":
		output, _ := h.run("reg", "query", `HKLM\SOFTWARE\Microsoft\Cryptography`, "/v", "MachineGuid", "/reg:64")
		osID = valueAfter(output, "REG_SZ")
	}
	osID = strings.ToLower(strings.TrimSpace(osID))
	if osID == "" || osID == uninitializedID {
		return "", ErrNoMachineID
	}
	return deriveID(osID, appID), nil
}

func (h host) isContainer() bool {
	for _, file := range []string{"/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io/serviceaccount/namespace"} {
		if _, ok := h.read(file); ok {
			return true
		}
	}
	group, _ := h.read("/proc/1/cgroup")
	// With cgroup 2, a container does not see its own group.
	mounts, _ := h.read("/proc/self/mountinfo")
	root := rootMount(mounts)
	for _, name := range []string{"docker", "kubepods", "containerd", "libpod", "lxc"} {
		if strings.Contains(group, name) || strings.Contains(root, name) {
			return true
		}
	}
	return false
}

// rootMount returns the line of the root directory in a list of mounts.
func rootMount(mounts string) string {
	for _, mount := range strings.Split(mounts, "\n") {
		if fields := strings.Fields(mount); len(fields) > 4 && fields[4] == "/" {
			return mount
		}
	}
	return ""
}

// deriveID returns the id of a program on the machine with this id of its operating system.
func deriveID(osID, appID string) string {
	digest := hmac.New(sha256.New, []byte(osID))
	digest.Write([]byte(appID))
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// valueAfter returns the rest of the first line with name, without quotes and spaces.
func valueAfter(output, name string) string {
	for _, line := range strings.Split(output, "\n") {
		if _, value, ok := strings.Cut(line, name); ok {
			return strings.Trim(value, " \"\t\r")
		}
	}
	return ""
}

func readText(path string) (string, bool) {
	text, err := os.ReadFile(path)
	return string(text), err == nil
}

func runCommand(command ...string) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	output, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	return string(output), err == nil
}
