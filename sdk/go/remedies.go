package seatkeeper

import "strings"

// denialRemedies say what to do about a refusal, where the server's own text does not.
var denialRemedies = map[string]string{
	"devices-full":    "let the user choose one of Devices, and admit with Replace",
	"license-expired": "renew the license; ContactSupport names the person to ask",
	"license-full":    "pass Wait to wait for a seat, or ask one of Holders to end its program",
	"not-found":       "correct the path of the address, or update the older of client and server",
	"unauthenticated": "check the issuer, the audience and the end of the token",
}

// failureRemedies say what to do about a server that gives no usable answer. FailureCertificate has its own.
var failureRemedies = map[Failure]string{
	FailureRefused:         "check the address, and that the server runs",
	FailureUnresolved:      "check the address, and the name service of this machine",
	FailureResetBeforeSend: "check the network and the proxies on the way",
	FailureResetAfterSend:  "check the network and the proxies on the way",
	FailureTimeout:         "check the network, or raise Patience",
	FailureTruncated:       "check the network and the proxies on the way",
	FailureGarbage:         "check the address: another server or a proxy answers",
	FailureNoToken:         "check the function or the file that the token comes from",
	FailureUnavailable:     "try again later, or raise Patience",
}

// lossRemedies say what to do about a loss.
var lossRemedies = map[Reason]string{
	ReasonDeadline:         "the client acquires again once the server answers; check the network",
	ReasonUnauthorized:     "the token may no longer use the license: ask its issuer",
	ReasonEvicted:          "ask the user before the program acquires again",
	ReasonRevoked:          "ask the operator before the program acquires again",
	ReasonEntitlementEnded: "renew the license",
	ReasonIdle:             "acquire again when the user is back; Activity tells the server of work",
}

// withRemedy returns the text of an error with the next step of its reader.
func withRemedy(told, remedy string) string {
	if remedy == "" {
		return told
	}
	return strings.TrimSuffix(told, ".") + ". Remedy: " + remedy
}
