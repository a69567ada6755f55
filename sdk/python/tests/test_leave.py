"""Seats that a program leaves to a second program: the client sends nothing more, and gives nothing back."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import unittest
from unittest import mock

from seatkeeper import Client, NotHeld, _fork, _state_dir
from seatkeeper.aio import AsyncClient

from .scripted import Arrived, Reply, scripted
from .test_streams import ACQUIRE, BEAT, LONG, RELEASE, STREAM, eventually, granting


class LeaveTest(unittest.TestCase):
    def test_a_seat_that_is_left_sends_nothing_more_and_closes_its_stream(self) -> None:
        with scripted(granting) as server, Client(server.url, token="t") as client:
            seat = client.license("K").acquire(machine="m")
            eventually(lambda: server.streams == 1, "no stream is open")
            told: list[str] = []
            seat.on_change(lambda state: told.append(state.kind))
            seat.leave()
            state = seat.wait_until_over(LONG)
            assert state is not None
            self.assertEqual(state.kind, "released")
            with self.assertRaises(NotHeld) as caught:
                seat.check()
            self.assertEqual(caught.exception.code, "released")
            eventually(lambda: server.streams == 0, "the stream is open")
            eventually(lambda: told == ["active", "released"], f"told {told}")
            client.wake()
            seat.leave()
            self.assertFalse(seat.release())
            client.close()
            self.assertEqual([request.target for request in server.arrived()], [ACQUIRE, STREAM])

    def test_leave_aborts_the_heartbeat_in_flight(self) -> None:
        gate = threading.Event()

        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == BEAT:
                gate.wait(LONG)
            return granting(request, earlier)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            seat = client.license("K").acquire(machine="m")
            flights = client._connection.driver()._seats
            client.wake()
            eventually(lambda: len(server.arrived(BEAT)) == 1, "no heartbeat")
            entry = flights[seat._key]
            seat.leave()
            self.assertIsNotNone(seat.wait_until_over(LONG))
            eventually(lambda: entry.flight is None and not flights, "the heartbeat goes on")
            gate.set()

    def test_a_release_under_way_goes_on(self) -> None:
        gate = threading.Event()

        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == RELEASE:
                gate.wait(LONG)
                return Reply(204)
            return granting(request, earlier)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            seat = client.license("K").acquire(machine="m")
            driver = client._connection.driver()
            driver.release(seat._key)
            eventually(lambda: len(server.arrived(RELEASE)) == 1, "no release")
            seat.leave()
            gate.set()
            self.assertTrue(seat.release())
            self.assertEqual(len(server.arrived(RELEASE)), 1)

    def test_a_seat_of_one_process_leaves_its_instance_id(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        state = directory.name
        with scripted(granting) as server, Client(server.url, token="t", state_dir=state) as client:
            for _ in range(2):
                seat = client.license("K").acquire(machine="m", per_process=True)
                seat.leave()
                # Waits until the seat has finished.
                self.assertFalse(seat.release())
            ids = {request.body["instance_id"] for request in server.arrived(ACQUIRE)}
            self.assertEqual(len(ids), 1, ids)

    def test_a_second_leave_changes_nothing_while_the_slot_is_on_its_way(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        answers = threading.Event()
        unlock = _state_dir._unlock

        def hang(fd: int) -> None:
            answers.wait(LONG)
            unlock(fd)

        with (
            mock.patch.object(_state_dir, "_unlock", hang),
            mock.patch("seatkeeper._driver.SLOT_TIMEOUT", LONG),
            mock.patch("seatkeeper._driver._log_error") as failed,
            scripted(granting) as server,
            Client(server.url, token="t", event_streams=False, state_dir=directory.name) as client,
        ):
            seat = client.license("K").acquire(machine="m", per_process=True)
            told: list[str] = []
            stop = seat._shared.listen(lambda state: told.append(state.kind))
            for _ in range(2):
                seat.leave()
            turned = threading.Event()
            client._connection.driver()._post(turned.set)
            self.assertTrue(turned.wait(LONG))
            self.assertEqual(told, ["active", "released"])
            stop()
            answers.set()
            self.assertFalse(seat.release())
        failed.assert_not_called()

    def test_the_end_of_the_block_gives_nothing_back(self) -> None:
        async def leave(url: str) -> None:
            async with AsyncClient(url, token="t", event_streams=False) as client:
                async with await client.license("K").acquire(machine="m") as seat:
                    seat.leave()
                self.assertEqual(seat.state.kind, "released")

        with scripted(granting) as server:
            asyncio.run(leave(server.url))
            self.assertEqual([request.target for request in server.arrived()], [ACQUIRE])

    def test_a_forked_child_leaves_nothing(self) -> None:
        with scripted(granting) as server, Client(server.url, token="t", event_streams=False) as client:
            seat = client.license("K").acquire(machine="m")
            with mock.patch.object(_fork, "count", _fork.count + 1):
                seat.leave()
            seat.check()
            self.assertTrue(seat.release())
