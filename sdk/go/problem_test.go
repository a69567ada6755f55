package seatkeeper

import (
	"reflect"
	"testing"
	"time"
)

func TestADenialOfADeviceListsTheLiveDevices(t *testing.T) {
	problem := parseProblem(response{status: 403, body: []byte(`{"type":"/problems/devices-full","title":"full","device_limit":2,"devices_in_use":2,
		"sessions":[{"session_id":"S","device_type":"tv","device_name":"Living room","ip":"192.0.2.7","current":false,
		"started_at":"2030-01-02T03:04:05Z","last_heartbeat_at":"2030-01-02T03:04:06.5Z"},{"session_id":"T"},{},7]}`)})
	wanted := []DeviceSession{{
		SessionID:       "S",
		DeviceType:      DeviceTV,
		DeviceName:      "Living room",
		IP:              "192.0.2.7",
		StartedAt:       time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		LastHeartbeatAt: time.Date(2030, 1, 2, 3, 4, 6, 500_000_000, time.UTC),
	}, {SessionID: "T"}}
	if problem.Code() != "devices-full" || problem.SeatsTotal != 2 || !reflect.DeepEqual(problem.Devices, wanted) {
		t.Errorf("%+v", problem)
	}
}
