package seatkeeper

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// applicationCharsMax is the length of the longest name or version that the server accepts.
const applicationCharsMax = 100

// newApplication returns the object that names a program and this package to the server.
func newApplication(name, version string) map[string]any {
	application := map[string]any{"name": name, "sdk": sdkName}
	if version != "" {
		application["version"] = version
	}
	return application
}

// checkApplication rejects a name or a version that the server would not accept.
func checkApplication(application map[string]any) error {
	for _, part := range application {
		text, _ := part.(string)
		if text == "" || utf8.RuneCountInString(text) > applicationCharsMax || strings.ContainsFunc(text, unicode.IsControl) {
			return errors.New("seatkeeper: Application wants a name, and parts of up to 100 characters without control characters")
		}
	}
	return nil
}
