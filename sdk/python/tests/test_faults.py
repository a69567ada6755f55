"""Faults of the program and of its machine: no call hangs, and each error says what to do."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import tempfile
import threading
import unittest
import uuid
from typing import Any, Callable
from unittest import mock

from seatkeeper import Client, Misuse, NoResources, Offline, Seat, State
from seatkeeper.aio import AsyncClient

from .scripted import GRANT, Reply, scripted
from .test_streams import RELEASE, eventually, granting

#: More than any wait in these tests needs, in seconds.
LONG = 30.0

#: A program that closes the descriptors of its client, and prints what happens to its seats.
CLOSES_EVERYTHING = """
import os, sys, threading
import seatkeeper

client = seatkeeper.Client(sys.argv[1], token="t", event_streams=False, state_dir=sys.argv[2])
seats = [client.license("K").acquire(machine="m", per_process=per_process) for per_process in (True, True, False)]
told = [threading.Event() for seat in seats]
for seat, event in zip(seats, told):
    seat.on_change(lambda state, event=event: state.kind == "lost" and event.set())
os.closerange(3, 4096)
for seat, event in zip(seats, told):
    lost = seat.wait_until_over(20)
    print(lost and (lost.kind, lost.reason, lost.retry), event.wait(20), seat.release())
try:
    client.license("K").acquire(machine="other", wait="forever")
except seatkeeper.Closed as error:
    print(error.code)
"""


class LostDescriptorsTest(unittest.TestCase):
    def test_a_program_that_closes_every_descriptor_hears_of_its_loss_and_hangs_nowhere(self) -> None:
        with scripted(lambda *_: Reply(201, GRANT)) as server, tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", CLOSES_EVERYTHING, server.url, folder]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=2 * LONG, check=False)
        said = 3 * "('lost', 'client_ended', False) True False\n" + "closed\n"
        self.assertEqual((ended.stdout, ended.stderr, ended.returncode), (said, "", 0))


class FailedSeatTest(unittest.TestCase):
    def test_the_failure_of_one_seat_keeps_no_other_from_its_loss(self) -> None:
        granted = scripted(lambda *_: Reply(201, GRANT))
        with granted as server, Client(server.url, token="t", event_streams=False) as client:
            seats = [client.license("K").acquire(machine=f"m{number}") for number in range(3)]

            def fail(state: State) -> None:
                if state.kind == "lost":
                    raise RuntimeError("one seat fails")

            seats[1]._shared.listen(fail)
            driver = client._connection.driver()

            def end() -> None:
                raise SystemExit

            with self.assertLogs("seatkeeper", "ERROR"):
                driver._loop.call_soon_threadsafe(end)
                driver._thread.join(LONG)
            self.assertEqual([seat.state.kind for seat in seats], ["lost"] * 3)


class NoThreadTest(unittest.TestCase):
    def setUp(self) -> None:
        server = scripted(lambda *_: Reply(201, GRANT))
        self.client = Client(server.__enter__().url, token="t", event_streams=False)
        self.addCleanup(server.__exit__, None, None, None)
        self.addCleanup(self.client.close)

    def refuses(self, call: Callable[[], Any]) -> None:
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            with self.assertRaises(NoResources) as refused:
                call()
        self.assertEqual(refused.exception.code, "no-resources")
        self.assertIn("Remedy: raise the limits", str(refused.exception))

    def test_a_moment_without_room_for_a_thread_costs_that_call_alone(self) -> None:
        self.refuses(lambda: self.client.license("K").acquire(machine="m"))
        seat = self.client.license("K").acquire(machine="m")
        self.refuses(lambda: seat.on_change(print))
        told = threading.Event()
        seat.on_change(lambda _: told.set())
        self.assertTrue(told.wait(LONG))

    def test_an_acquire_whose_callback_gets_no_thread_keeps_no_seat(self) -> None:
        seats: list[Seat] = []

        def refuse(seat: Seat, _: object) -> None:
            seats.append(seat)
            raise NoResources("no thread")

        with mock.patch("seatkeeper.seat.Seat.on_change", refuse):
            with self.assertRaises(NoResources):
                self.client.license("K").acquire(machine="m", on_change=print)
        over = seats[0].wait_until_over(LONG)
        self.assertEqual(over and over.kind, "released")


class NoThreadOnAsyncioTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_release_and_a_close_need_no_thread(self) -> None:
        start = threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            # The server of the test has threads of its own.
            if thread.name.startswith("seatkeeper"):
                raise RuntimeError("can't start new thread")
            start(thread)

        with scripted(granting) as server:
            client = AsyncClient(server.url, token="t", event_streams=False)
            first = await client.license("K").acquire(machine="first")
            second = await client.license("K").acquire(machine="second")
            driver = client._connection.driver()
            with mock.patch.object(threading.Thread, "start", refuse):
                self.assertTrue(await first.release())
                await client.close()
            self.assertEqual((len(server.arrived(RELEASE)), second.state.kind), (2, "released"))
            driver._thread.join(LONG)
            self.assertFalse(driver._thread.is_alive())


class WrongTypeTest(unittest.TestCase):
    def test_what_is_no_text_is_a_misuse_at_once(self) -> None:
        name: Any = uuid.uuid4()
        with Client("http://127.0.0.1:1", token="t") as client:
            wrong: list[Callable[[], object]] = [
                lambda: client.license("K").acquire(machine=name, wait="forever"),
                lambda: client.license(name).acquire(machine="m", wait="forever"),
                lambda: client.license("K").acquire(machine="m", instance=name, wait="forever"),
                lambda: client.device(name, "tv").admit(wait="forever"),
                lambda: client.device("d", "tv").admit(session=name, wait="forever"),
            ]
            for call in wrong:
                with self.assertRaises(Misuse) as misuse:
                    call()
                self.assertIn("UUID: want a text", str(misuse.exception))

    def test_a_callback_that_is_no_function_is_a_misuse(self) -> None:
        callback: Any = 5
        with scripted(lambda *_: Reply(201, GRANT)) as server, Client(server.url, token="t") as client:
            seat = client.license("K").acquire(machine="m")
            with self.assertRaises(Misuse):
                seat.on_change(callback)

    def test_an_address_beyond_ascii_is_a_misuse(self) -> None:
        for address, form in (
            ("http://127.0.0.1:1/früh", "%XX"),
            ("https://例え.jp", "xn--"),
            ("http://straße.example:80", "xn--"),
        ):
            with self.subTest(address), self.assertRaises(Misuse) as misuse:
                Client(address, token="t")
            self.assertIn(form, str(misuse.exception))
        Client("https://xn--r8jz45g.jp", token="t").close()


class LoopTest(unittest.TestCase):
    def test_the_loop_is_made_on_the_thread_of_the_client(self) -> None:
        makers: list[str] = []

        def new_loop() -> asyncio.AbstractEventLoop:
            makers.append(threading.current_thread().name)
            return asyncio.SelectorEventLoop()

        with mock.patch("seatkeeper._driver._new_loop", new_loop), Client("http://127.0.0.1:1", token="t") as client:
            client._connection.driver()
        self.assertEqual(makers, ["seatkeeper"])

    def test_a_loop_that_cannot_be_made_is_told_and_leaves_no_thread(self) -> None:
        before = set(threading.enumerate())
        full = mock.patch("seatkeeper._driver._new_loop", side_effect=OSError(errno.EMFILE, "Too many open files"))
        with full, Client("http://127.0.0.1:1", token="t") as client, self.assertRaises(NoResources):
            client.license("K").acquire(machine="m")
        eventually(lambda: set(threading.enumerate()) <= before, "the thread ends")


class ForeignLoopTest(unittest.TestCase):
    def test_the_programs_policy_of_event_loops_is_left_alone(self) -> None:
        with scripted(lambda *_: Reply(201, GRANT)) as server:
            foreign = mock.patch.object(asyncio, "new_event_loop", side_effect=AssertionError("a loop of the program"))
            with foreign, Client(server.url, token="t") as client:
                self.assertEqual(client.license("K").acquire(machine="m").state.kind, "active")


class NoDescriptorTest(unittest.TestCase):
    def test_a_process_without_a_free_descriptor_is_told_so(self) -> None:
        full = mock.patch.object(
            asyncio.SelectorEventLoop, "create_connection", side_effect=OSError(errno.EMFILE, "Too many open files")
        )
        with full, Client("http://127.0.0.1:1", token="t") as client:
            with self.assertRaises(Offline) as offline:
                client.license("K").acquire(machine="m", patience=0)
        self.assertIn("no file descriptor", str(offline.exception))
        self.assertIn("ulimit", str(offline.exception))


class FailedStreamTest(unittest.TestCase):
    def test_a_stream_that_cannot_be_opened_stops_no_heartbeat(self) -> None:
        def script(request: Any, _: int) -> Reply:
            return Reply(200 if "heartbeat" in request.target else 201, {**GRANT, "heartbeat_interval_seconds": 1})

        broken = mock.patch("seatkeeper._streams.EventStream", side_effect=RuntimeError("no stream"))
        beats: list[State] = []
        with broken, self.assertLogs("seatkeeper", "ERROR"), scripted(script) as server:
            with Client(server.url, token="t") as client:
                client.license("K").acquire(machine="m").on_change(beats.append)
                arrived = threading.Event()

                def look() -> None:
                    while not any("heartbeat" in request.target for request in server.arrived()):
                        if arrived.wait(0.02):
                            return
                    arrived.set()

                threading.Thread(target=look, daemon=True).start()
                self.assertTrue(arrived.wait(LONG))
