package seatkeeper

import (
	"fmt"
	"io"
)

// secret is a text that no verb of package fmt shows. A pointer holds the text, because fmt ignores the methods of
// unexported fields, and shows the address of an inner pointer alone.
type secret struct {
	text *string
}

// newSecret returns the secret; the zero secret for an empty text.
func newSecret(text string) secret {
	if text == "" {
		return secret{}
	}
	return secret{&text}
}

func (s secret) isEmpty() bool { return s.text == nil }

// reveal returns the text, for a request to the server.
func (s secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format implements fmt.Formatter.
func (secret) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "****")
}
