"""Devices of subscribers: the same seat behind another API."""

from __future__ import annotations

import asyncio
import json
import time
import unittest
from typing import Any, ClassVar

from seatkeeper import AsyncClient, Client, Denied, DeviceSession, LicenseKey, Misuse

from . import server as servers
from . import vectors
from .scripted import Arrived, Reply, Scripted, Wire, scripted
from .test_streams import LONG, Told, end_of, eventually

FIRST, SECOND = "0198a0aa-0000-7000-8000-000000000001", "0198a0aa-0000-7000-8000-000000000002"
ADMIT = "POST /api/v1/devices/sessions"
BEAT = "POST /api/v1/devices/sessions/heartbeat"
TV = {"device_id": "tv-1", "device_type": "tv"}


def grant(session: str, **more: Any) -> Reply:
    terms = {"expires_in_seconds": 90, "heartbeat_interval_seconds": 30, "device_limit": 2, "devices_in_use": 1}
    return Reply(201, {"session_id": session, "outcome": "admitted", **terms, **more})


def bodies(server: Scripted, target: str) -> list[Any]:
    """Returns the bodies of the requests for a target."""
    return [request.body for request in server.arrived(target) if request.target == target]


class MachineTest(unittest.TestCase):
    """Cases of the machine beside the vectors."""

    ADMIT: ClassVar = {"method": "POST", "path": "/api/v1/devices/sessions"}
    DELETE: ClassVar = {"method": "DELETE", "path": "/api/v1/devices/sessions/$S"}

    def play(self, *steps: dict[str, Any]) -> None:
        vectors.Player({"given": {"device": TV}}).play(list(steps))

    def test_a_screen_that_a_release_gave_back_is_the_latest_session(self) -> None:
        self.play(
            {"expect": self.ADMIT},
            {"call": "release"},
            {"answer": {"status": 201, "json": {"session_id": "$S", "expires_in_seconds": 90}}},
            {"expect": self.DELETE},
            {"answer": {"status": 204}},
            {"call": "acquire"},
            {"expect": {**self.ADMIT, "json": {**TV, "session_id": "$S"}}},
        )

    def test_a_release_asks_for_no_screen_after_a_rejected_token(self) -> None:
        self.play(
            {"expect": self.ADMIT},
            {"fail": "reset-after-send"},
            {"advance": "500ms"},
            {"expect": self.ADMIT},
            {"call": "release"},
            {"answer": {"status": 401}},
            {"finish": "unconfirmed"},
            {"no_request_for": "1h"},
        )


class DeviceTest(unittest.TestCase):
    def test_a_device_is_admitted_kept_and_given_back(self) -> None:
        def script(request: Arrived, _: int) -> Reply:
            return grant(FIRST) if request.target == ADMIT else Reply(204)

        with scripted(script) as server, Client(server.url, token="t") as client:
            device = client.device("tv-1", "tv", name="Living room")
            with device.admit(session=SECOND, replace=FIRST) as seat:
                self.assertEqual((seat.session_id, seat.seats), (FIRST, (1, 2)))
                stream = f"GET /api/v1/devices/sessions/{FIRST}/events"
                eventually(lambda: len(server.arrived(stream)) == 1, "the stream")
                active_at = time.monotonic()
                seat.activity()
                client.wake()
                eventually(lambda: len(server.arrived(BEAT)) == 1, "the heartbeat")
                elapsed = time.monotonic() - active_at
                eventually(lambda: seat.state.kind == "active", "the answer")
            asked = {**TV, "device_name": "Living room", "session_id": SECOND, "replace_session_id": FIRST}
            self.assertEqual(bodies(server, ADMIT), [asked])
            (beat,) = bodies(server, BEAT)
            self.assertEqual(beat.keys(), {"session_id", "idle_seconds"})
            self.assertEqual(beat["session_id"], FIRST)
            self.assertLessEqual(beat["idle_seconds"], elapsed)
            self.assertEqual(len(server.arrived(f"DELETE /api/v1/devices/sessions/{FIRST}")), 1)

    def test_a_device_that_comes_back_names_its_session_and_replaces_nobody(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == BEAT:
                return Reply(404, {"type": "/problems/session-not-found", "title": "none"})
            return grant(SECOND if earlier else FIRST) if request.target == ADMIT else Reply(204)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            seat = client.device("tv-1", "tv").admit(replace=SECOND)
            client.wake()
            eventually(lambda: seat.session_id == SECOND, "the second session")
            asked = [{**TV, "replace_session_id": SECOND}, {**TV, "session_id": FIRST}]
            self.assertEqual(bodies(server, ADMIT), asked)

    def test_a_denial_has_the_devices_and_a_wait_gets_a_screen(self) -> None:
        session = {"session_id": FIRST, "device_type": "tv", "device_name": "Den", "started_at": "a", "current": False}
        problem = {
            "type": "/problems/devices-full",
            "title": "full",
            "retry_after_seconds": 1,
            "sessions": [{**session, "last_heartbeat_at": "b"}, {"session_id": SECOND}, {"device_type": "tv"}],
        }

        def script(request: Arrived, earlier: int) -> Reply:
            return Reply(403, problem) if request.target == ADMIT and earlier < 2 else grant(FIRST)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            device = client.device("tv-1", "tv")
            with self.assertRaises(Denied) as denied:
                device.admit()
            self.assertEqual(denied.exception.code, "devices-full")
            wanted = (DeviceSession(FIRST, "tv", "Den", "a", "b"), DeviceSession(SECOND))
            self.assertEqual(denied.exception.sessions, wanted)
            device.admit(wait=LONG).release()
            self.assertEqual(len(bodies(server, ADMIT)), 3)

    def test_an_eviction_is_told_by_name_and_final(self) -> None:
        def script(request: Arrived, _: int) -> Reply:
            if request.target == BEAT:
                return Reply(410, {"type": "/problems/session-ended", "title": "ended", "reason": "evicted"})
            return grant(FIRST) if request.target == ADMIT else Reply(404)

        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event(end_of(FIRST, "evicted", by={"session_id": SECOND, "device_name": "Ben"}))
            wire.is_closed(LONG)

        with scripted(script, serve) as server, Client(server.url, token="t") as client:
            told = Told()
            seat = client.device("tv-1", "tv").admit(on_change=told)
            lost = seat.wait_until_over(LONG)
            assert lost is not None
            self.assertEqual((lost.reason, lost.by, lost.retry), ("evicted", "Ben", False))
            time.sleep(0.2)
            self.assertEqual(len(bodies(server, ADMIT)), 1)

    def test_a_release_without_a_token_uses_the_code(self) -> None:
        def script(request: Arrived, _: int) -> Reply:
            if request.target == ADMIT:
                return grant(FIRST, release_code="c0de")
            return Reply(401) if request.token else Reply(204)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            self.assertFalse(client.device("tv-1", "tv").admit().release())
            (request,) = server.arrived("POST /api/v1/devices/sessions/release")
            self.assertEqual(request.body, {"session_id": FIRST, "release_code": "c0de"})
            self.assertIsNone(request.token)

    def test_a_device_needs_the_token_of_its_subscriber(self) -> None:
        with Client("http://127.0.0.1:1", token_source=LicenseKey("K")) as client, self.assertRaises(Misuse):
            client.device("tv-1", "tv").admit()


@unittest.skipUnless(servers.BINARY, "SDK_TEST_SERVER names no server")
class RealDevices(unittest.TestCase):
    server: servers.Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = servers.Server()
        cls.addClassCleanup(cls.server.close)

    def live(self, user: str) -> list[str]:
        """Returns the live sessions of a subscriber."""
        answer: Any = json.loads(self.server.run("sessions", "list", "--live", "--subscriber", user, "--json"))
        return [row["session_id"] for row in answer["items"]]

    def test_a_second_device_evicts_the_first_within_a_second(self) -> None:
        with Client(self.server.url, token=self.server.token("ann")) as client:
            tv = client.device("tv-0815", "tv", name="Living room").admit()
            eventually(lambda: self.live("ann") == [tv.session_id], "the screen is on record")
            time.sleep(0.5)
            phone = client.device("phone", "mobile", name="Ben").admit()
            lost = tv.wait_until_over(1)
            self.assertEqual(lost and (lost.reason, lost.by), ("evicted", "Ben"))
            phone.check()
            again = client.device("phone", "mobile").admit(session=phone.session_id)
            self.assertEqual(again.session_id, phone.session_id)
            self.assertTrue(phone.release())
            eventually(lambda: self.live("ann") == [], "the screen is free")

    def test_a_full_plan_shows_its_devices_and_one_is_replaced(self) -> None:
        self.server.run("plan", "create", "two", "--devices", "1", "--when-full", "deny")
        self.server.run("subscription", "create", "--user", "bob", "--plan", "two", "--ends-at", "2090-12-31T00:00:00Z")
        with Client(self.server.url, token=self.server.token("bob")) as client:
            tv = client.device("tv", "tv", name="Den").admit()
            time.sleep(0.5)
            phone = client.device("phone", "mobile")
            with self.assertRaises(Denied) as denied:
                phone.admit()
            (session,) = denied.exception.sessions
            self.assertEqual(
                (session.session_id, session.device_type, session.device_name), (tv.session_id, "tv", "Den")
            )
            with phone.admit(replace=session.session_id):
                lost = tv.wait_until_over(1)
                self.assertEqual(lost and lost.kind, "lost")

    def test_a_screen_outlives_its_ttl_by_heartbeats(self) -> None:
        self.server.run("plan", "create", "brief", "--devices", "1", "--ttl-seconds", "3")
        ends = ["--ends-at", "2090-12-31T00:00:00Z"]
        self.server.run("subscription", "create", "--user", "eve", "--plan", "brief", *ends)

        async def hold() -> None:
            async with AsyncClient(self.server.url, token=self.server.token("eve")) as client:
                async with await client.device("tv", "tv").admit() as seat:
                    await asyncio.sleep(5)
                    seat.check()
                    self.assertEqual(self.live("eve"), [seat.session_id])

        asyncio.run(hold())


if __name__ == "__main__":
    unittest.main()
