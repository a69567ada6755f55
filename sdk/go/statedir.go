package seatkeeper

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// directoryMode is the mode of a new directory: for its user alone.
const directoryMode = 0o700

// stateDir is the place of the instance ids of processes; sdk/state-directory.md is the format.
type stateDir struct {
	// isOff says that the program wants no directory.
	isOff bool
	// path is the base; empty is the default of the user.
	path string
}

// unusable is the reason for which the state directory is not used.
type unusable struct{ reason, place string }

func (u *unusable) Error() string { return u.reason + ": " + u.place }

// base returns the base directory.
func (d stateDir) base() (string, error) {
	if d.path != "" {
		// A slash at the end would follow a symbolic link.
		return filepath.Clean(d.path), nil
	}
	return defaultBase(runtime.GOOS, os.Getenv)
}

// defaultBase returns the base directory that the environment names.
func defaultBase(system string, variable func(string) string) (string, error) {
	type place struct{ variable, rest string }
	places := []place{{"XDG_STATE_HOME", "seatkeeper"}, {"HOME", ".local/state/seatkeeper"}}
	switch system {
	case "darwin":
		places = []place{{"HOME", "Library/Application Support/Seatkeeper"}}
	case "windows":
		places = []place{{"LOCALAPPDATA", "Seatkeeper"}}
	}
	var names []string
	for _, p := range places {
		if parent := variable(p.variable); filepath.IsAbs(parent) {
			return filepath.Join(parent, p.rest), nil
		}
		names = append(names, p.variable)
	}
	return "", &unusable{"no-home", strings.Join(names, " nor ") + " is an absolute path"}
}

// directoryName returns the name of the directory of a license: 16 hexadecimal digits.
func directoryName(server, license, machineID string) string {
	digest := sha256.Sum256([]byte(serverName(server) + "\n" + license + "\n" + machineID))
	return hex.EncodeToString(digest[:8])
}

// serverName returns the URL of a server in the one spelling that all SDKs hash.
func serverName(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	scheme, host, port := strings.ToLower(parsed.Scheme), strings.ToLower(parsed.Hostname()), parsed.Port()
	if port == (map[string]string{"http": "80", "https": "443"})[scheme] {
		port = ""
	}
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return scheme + "://" + host + strings.TrimRight(parsed.EscapedPath(), "/")
}

// provide creates a directory with its parents if it is missing, and checks that nobody else can write to it.
func provide(directory string) error {
	err := os.MkdirAll(directory, directoryMode)
	found, statErr := os.Lstat(directory)
	switch {
	case statErr != nil:
		return &unusable{"unusable", directory}
	case !found.IsDir():
		return &unusable{"not-a-directory", directory}
	case err != nil:
		return &unusable{"unusable", directory}
	default:
		return checkOwner(directory, found)
	}
}
