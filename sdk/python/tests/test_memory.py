"""The memory of held seats: a program may hold thousands."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
import unittest
from pathlib import Path
from typing import Any

import seatkeeper
from seatkeeper import Client, Seat, State
from seatkeeper._core.clocks import SECOND, Now
from seatkeeper._core.door import LicenseDoor
from seatkeeper._core.events import Answered, Event, Send, Signal
from seatkeeper._core.holding import Holding
from seatkeeper._core.machine import Machine
from seatkeeper._core.plan import Plan
from seatkeeper._core.request import Response
from seatkeeper._core.retry import TIME_BYTES
from seatkeeper._stream_groups import SEATS_MAX

from .scripted import Arrived, Reply, scripted
from .test_streams import eventually

#: The files of the package, without those of the tests.
PACKAGE = str(Path(seatkeeper.__file__).parent / "*")
SEATS = 200
#: The objects of a seat with a listener take 1.4 KiB in CPython 3.11. In Python 3.9 fewer of them have slots.
BYTES_MAX = 1_550 if sys.version_info >= (3, 10) else 1_900
#: The share of a seat in its event stream.
STREAM_BYTES_MAX = 200
TTL = 360
TERMS = {
    "expires_in_seconds": TTL,
    "heartbeat_interval_seconds": TTL // 3,
    "grace_seconds": 0,
    "reacquire": "expired_only",
}


def answer(request: Arrived, _: int) -> Reply:
    """Grants a seat with the members of a real answer, and renews it."""
    if not request.target.endswith("/acquire"):
        return Reply(200, TERMS)
    grant: dict[str, Any] = {
        "session_id": f"0198a0aa-0000-7000-8000-{request.body['machine_id']:0>12}",
        "license_id": "0198a0aa-0000-7000-8000-00000000000f",
        "release_code": f"{request.body['machine_id']:0>45}",
        "seats_used": 999,
        "seats_total": 1_000,
    }
    return Reply(201, {**grant, **TERMS})


def ignore(_: State) -> None:
    """A listener."""


def hold(client: Client, first: int) -> list[Seat]:
    """Acquires ``SEATS`` seats, and listens to each."""
    license, numbers = client.license("K"), range(first, first + SEATS)
    return [license.acquire(machine=f"m{number}", on_change=ignore) for number in numbers]


def beat(client: Client, seats: list[Seat]) -> None:
    """Makes each seat send a heartbeat, and waits until the last answer has moved its deadline."""
    before = [seat._shared.valid_until for seat in seats]
    client.wake()

    def are_renewed() -> bool:
        return all(seat._shared.valid_until > until for seat, until in zip(seats, before))

    eventually(are_renewed, "the answers to the heartbeats")


class MemoryTest(unittest.TestCase):
    def measure(self, event_streams: bool) -> float:
        """Returns the bytes that a held seat takes."""
        streams = SEATS // SEATS_MAX if event_streams else 0
        with scripted(answer) as server, Client(server.url, token="t", event_streams=event_streams) as client:
            warm = hold(client, 0)
            beat(client, warm)
            eventually(lambda: server.streams == streams, "the first streams")
            tracemalloc.start(20)
            self.addCleanup(tracemalloc.stop)
            seats = hold(client, SEATS)
            eventually(lambda: server.streams == 2 * streams, "all streams")
            gc.collect()
            traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, PACKAGE, all_frames=True)])
            return sum(trace.size for trace in traces.traces) / len(seats)

    def test_a_held_seat_is_small(self) -> None:
        self.assertLess(self.measure(event_streams=False), BYTES_MAX)

    def test_a_held_seat_with_an_event_stream_is_small(self) -> None:
        self.assertLess(self.measure(event_streams=True), BYTES_MAX + STREAM_BYTES_MAX)

    def test_a_seat_has_one_timer(self) -> None:
        """A heartbeat in flight waits for the deadline, and its answer replaces this timer by an earlier one."""
        with scripted(answer) as server, Client(server.url, token="t", event_streams=False) as client:
            seats = hold(client, 0)
            for _ in range(3):
                beat(client, seats)
            self.assertEqual(len(client._connection.driver()._timers), len(seats))

    def test_a_seat_forgets_requests_that_bound_no_retry(self) -> None:
        body, now = json.dumps({"session_id": "s", **TERMS}).encode(), 0
        machine = Machine(Plan(LicenseDoor("K", "m")), Now(0, 0, 0))
        actions = machine.begin()
        for _ in range(20):
            for action in actions:
                assert isinstance(action, Send)
                event: Event = Answered(action.request.id, Response(200, None, body))
                machine.step(event, Now(now, now, now), 0.5)
            now = machine.wake_at() or 0
            actions = machine.step(Signal.TICK, Now(now, now, now), 0.5)
        assert isinstance(machine._phase, Holding)
        self.assertGreater(now, 19 * TTL // 3 * SECOND * 9 // 10)
        self.assertLessEqual(len(machine._phase._retry._sent), 3 * TIME_BYTES)
