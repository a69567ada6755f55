"""Tries the client against a real server; without ``SDK_TEST_SERVER`` these tests are skipped."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any, Callable

from seatkeeper import AsyncClient, Client, Closed, Denied, LicenseKey, Misuse, NotHeld, Offline, Seat, SeatLost, State
from seatkeeper._tokens import TokenCache
from seatkeeper._version import VERSION

from . import relay as relays
from . import server as servers

#: More than any wait in these tests needs.
LONG = 30.0


def eventually(what: Callable[[], bool], message: str) -> None:
    """Waits until ``what`` is true."""
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end, message
        time.sleep(0.02)


class States:
    """Collects the states that a callback is told."""

    def __init__(self) -> None:
        self._told: list[State] = []
        self._changed = threading.Condition()

    def __call__(self, state: State) -> None:
        with self._changed:
            self._told.append(state)
            self._changed.notify_all()

    def kinds(self) -> list[str]:
        with self._changed:
            return [state.kind for state in self._told]

    def wait_for(self, kind: str) -> State:
        """Waits until a state of this kind was told."""
        with self._changed:
            found = self._changed.wait_for(lambda: [state for state in self._told if state.kind == kind], LONG)
            assert found, f"{kind} is not among {self._told}"
            return found[-1]


@unittest.skipUnless(servers.BINARY, "SDK_TEST_SERVER names no server")
class RealServer(unittest.TestCase):
    server: servers.Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = servers.Server()
        cls.addClassCleanup(cls.server.close)

    def client(self) -> Client:
        client = Client(self.server.url, token=self.server.token(self.id()))
        self.addCleanup(client.close)
        return client

    def test_a_seat_outlives_its_ttl_by_heartbeats_and_is_given_back(self) -> None:
        key = self.server.license("BEATS", ttl_seconds=2)
        states = States()
        with self.client() as client:
            with client.license(key).acquire(machine="beats", on_change=states) as seat:
                self.assertEqual(seat.seats, (1, 1))
                end = time.monotonic() + 5
                while time.monotonic() < end:
                    seat.check()
                    time.sleep(0.05)
                self.assertIn("beats", self.server.live_machines())
                self.assertGreater(seat.remaining, 0)
            self.assertNotIn("beats", self.server.live_machines())
            with self.assertRaises(NotHeld) as stop:
                seat.check()
            self.assertEqual(stop.exception.code, "released")
            states.wait_for("released")
        self.assertEqual(states.kinds(), ["active", "released"])

    def test_a_program_with_a_license_key_alone_holds_a_seat(self) -> None:
        key, shut = self.server.license("OPEN", ttl_seconds=2, clients="key"), self.server.license("SHUT")
        with Client(self.server.url, token_source=LicenseKey(key)) as client:
            with client.license(key).acquire(machine="keyed") as seat:
                time.sleep(3)
                seat.check()
                self.assertIn("keyed", self.server.live_machines())
        self.assertNotIn("keyed", self.server.live_machines())
        for source in (LicenseKey(shut), LicenseKey(key, tenant="another")):
            with Client(self.server.url, token_source=source) as client, self.assertRaises(Denied) as denied:
                client.license(source.key).acquire(machine="keyed")
            self.assertEqual(denied.exception.code, "license-not-found")

    def test_a_full_license_is_denied_and_a_wait_gets_the_seat(self) -> None:
        key = self.server.license("FULL", ttl_seconds=3)
        client = self.client()
        first = client.license(key).acquire(machine="first")
        with self.assertRaises(Denied) as denied:
            client.license(key).acquire(machine="second")
        self.assertEqual(denied.exception.code, "license-full")
        self.assertEqual([holder.machine_id for holder in denied.exception.holders], ["first"])
        timer = threading.Timer(0.5, first.release)
        timer.start()
        with client.license(key).acquire(machine="second", wait=LONG) as second:
            second.check()
        timer.join()

    def test_a_revoked_seat_is_told_with_its_reason(self) -> None:
        key = self.server.license("REVOKED")
        states = States()
        seat = self.client().license(key).acquire(machine="revoked", on_change=states)
        self.server.revoke(seat.session_id)
        lost = states.wait_for("lost")
        self.assertEqual((lost.reason, lost.retry), ("revoked", False))
        with self.assertRaises(SeatLost) as stop:
            seat.check()
        self.assertEqual(stop.exception.reason, "revoked")
        self.assertEqual(states.kinds(), ["active", "lost"])
        self.assertEqual(seat.wait_until_over(0), lost)
        self.assertTrue(seat.release())

    def test_a_dead_server_is_a_loss_at_the_deadline_and_its_return_a_seat_again(self) -> None:
        own = servers.Server()
        self.addCleanup(own.close)
        states = States()
        with Client(own.url, token=own.token()) as client:
            seat = client.license(own.license("CRASH", ttl_seconds=2)).acquire(machine="m", on_change=states)
            own.kill()
            lost = states.wait_for("lost")
            self.assertEqual((lost.reason, lost.retry), ("deadline", True))
            with self.assertRaises(SeatLost):
                seat.check()
            own.start()
            eventually(lambda: seat.is_valid, "the seat comes back")
            # The callback runs on a thread of its own, and may be later than the seat.
            eventually(lambda: states.kinds()[-1] == "active", "the seat is told")
            self.assertEqual(states.kinds()[:3], ["active", "offline", "lost"])

    def test_a_short_outage_costs_nothing(self) -> None:
        own = servers.Server()
        self.addCleanup(own.close)
        with Client(own.url, token=own.token()) as client:
            seat = client.license(own.license("SHORT", ttl_seconds=30)).acquire(machine="m")
            session = seat.session_id
            own.kill()
            own.start()
            client.wake()
            eventually(lambda: seat.state.kind == "active", "the seat is confirmed")
            self.assertEqual(seat.session_id, session)

    def test_a_program_that_ends_gives_its_seat_back(self) -> None:
        key = self.server.license("EXIT", ttl_seconds=3600)
        program = (
            "import os, seatkeeper\n"
            "client = seatkeeper.Client(os.environ['URL'], token=os.environ['TOKEN'])\n"
            "seat = client.license(os.environ['KEY']).acquire(machine=os.environ['MACHINE'])\n"
            "{end}\n"
        )
        for machine, end in (("ends", ""), ("fails", "raise RuntimeError"), ("exits", "raise SystemExit(3)")):
            variables = {"URL": self.server.url, "TOKEN": self.server.token(), "KEY": key, "MACHINE": machine}
            command = [sys.executable, "-c", program.format(end=end)]
            subprocess.run(command, env={**os.environ, **variables}, capture_output=True, timeout=LONG, check=False)
            self.assertNotIn(machine, self.server.live_machines())

    def test_a_program_on_localhost_resolves_its_name_at_exit(self) -> None:
        key = self.server.license("NAMED", ttl_seconds=3600)
        program = (
            "import os, seatkeeper\n"
            "client = seatkeeper.Client(os.environ['URL'], token=os.environ['TOKEN'])\n"
            "seat = client.license('NAMED').acquire(machine='named')\n"
        )
        url = self.server.url.replace("127.0.0.1", "localhost")
        variables = {"URL": url, "TOKEN": self.server.token()}
        command = [sys.executable, "-c", program]
        ended = subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=LONG, check=False
        )
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertNotIn("named", self.server.live_machines(), key)

    @unittest.skipUnless(hasattr(os, "fork"), "fork")
    def test_a_forked_child_neither_holds_nor_releases(self) -> None:
        key = self.server.license("FORK", ttl_seconds=60)
        seat = self.client().license(key).acquire(machine="fork")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                seat.check()
            except Closed:
                code = 0 if not seat.is_valid and not seat.release() else 2
            os._exit(code)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertIn("fork", self.server.live_machines())
        seat.check()

    @unittest.skipUnless(hasattr(signal, "SIGSTOP"), "SIGSTOP")
    def test_a_program_that_was_stopped_past_its_deadline_goes_on_without_a_seat_that_is_taken(self) -> None:
        key = self.server.license("STOPPED", ttl_seconds=2)
        program = (
            "import os, sys, seatkeeper\n"
            "client = seatkeeper.Client(os.environ['URL'], token=os.environ['TOKEN'])\n"
            "seat = client.license('STOPPED').acquire(machine='stopped')\n"
            "print('held', flush=True)\n"
            "sys.stdin.readline()\n"
            "print(seat.is_valid, seat.wait_until_over(30).reason, flush=True)\n"
        )
        variables = {"URL": self.server.url, "TOKEN": self.server.token()}
        command = [sys.executable, "-c", program]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env={**os.environ, **variables}, stdin=pipe, stdout=pipe, text=True) as stopped:
            assert stopped.stdin is not None
            assert stopped.stdout is not None
            self.assertEqual(stopped.stdout.readline(), "held\n")
            stopped.send_signal(signal.SIGSTOP)
            with self.client().license(key).acquire(machine="other", wait=LONG) as other:
                stopped.stdin.write("\n")
                stopped.stdin.flush()
                stopped.send_signal(signal.SIGCONT)
                self.assertIn(stopped.stdout.readline(), ("False deadline\n", "False expired\n"))
                other.check()

    def test_a_token_file_is_read_again_when_the_server_rejects_the_token(self) -> None:
        key = self.server.license("TOKENS", seats=2)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "token")
            path.write_text("not-a-token\n")
            with self.assertRaises(Denied) as denied, Client(self.server.url, token_file=path) as client:
                client.license(key).acquire(machine="file")
            self.assertEqual(denied.exception.code, "unauthenticated")
            asked: list[str] = []

            def source() -> str:
                asked.append("asked")
                return "stale" if len(asked) == 1 else self.server.token()

            with Client(self.server.url, token_source=source) as client:
                client.license(key).acquire(machine="source").check()
            self.assertEqual(len(asked), 2)

    def test_what_is_no_server_is_a_typed_error(self) -> None:
        for url in ("seats.example", "ftp://seats.example", "http://", "http://host:port"):
            with self.assertRaises(Misuse):
                Client(url, token="t")
        with self.assertRaises(Misuse):
            Client("http://localhost")
        with self.assertRaises(Misuse):
            self.client().license("K").acquire(machine="m", wait="for ages")
        with self.assertRaises(Offline), Client("http://127.0.0.1:1", token="t") as client:
            client.license("K").acquire(machine="m", patience=0.2)
        with self.assertRaises(Denied) as denied:
            self.client().license("NO-SUCH-KEY").acquire(machine="m")
        self.assertEqual(denied.exception.code, "license-not-found")

    def test_a_page_of_a_proxy_is_no_answer(self) -> None:
        page = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"
        for answer in (page, b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n<html>", b"SSH-2.0-OpenSSH\r\n", b""):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                threading.Thread(target=_answer_all, args=(listener, answer), daemon=True).start()
                url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                with self.assertRaises(Offline), Client(url, token="t") as client:
                    client.license("K").acquire(machine="m", patience=0.3)

    def test_a_callback_that_fails_or_sleeps_costs_no_seat(self) -> None:
        key = self.server.license("CALLBACK", ttl_seconds=2)

        def fails(state: State) -> None:
            time.sleep(3)
            raise RuntimeError("the program's own fault")

        with self.assertLogs("seatkeeper", "ERROR") as logs:
            seat = self.client().license(key).acquire(machine="callback", on_change=fails)
            eventually(lambda: bool(logs.output), "the error is logged")
        seat.check()

    def test_many_seats_share_one_thread(self) -> None:
        key = self.server.license("MANY", seats=100, ttl_seconds=3)
        before = set(threading.enumerate())
        clients = [Client(self.server.url, token=self.server.token(f"user-{number}")) for number in range(2)]
        seats = [clients[n % 2].license(key).acquire(machine=f"many-{n}") for n in range(16)]
        end = time.monotonic() + 4
        while time.monotonic() < end:
            # Heartbeats and event streams of all seats run on the one thread of their client.
            names = [thread.name for thread in threading.enumerate() if thread not in before]
            self.assertEqual(names, ["seatkeeper", "seatkeeper"])
            for seat in seats:
                seat.check()
            time.sleep(0.05)
        for client in clients:
            client.close()
        self.assertEqual([machine for machine in self.server.live_machines() if "many" in machine], [])
        eventually(lambda: set(threading.enumerate()) <= before, "the threads end")
        with self.assertRaises(Closed):
            clients[0].license(key).acquire(machine="late")


@unittest.skipUnless(servers.BINARY, "SDK_TEST_SERVER names no server")
class RealStreams(unittest.TestCase):
    """Event streams of a real server. Sessions live for an hour, so that no heartbeat tells an end in time."""

    server: servers.Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = servers.Server()
        cls.addClassCleanup(cls.server.close)

    def setUp(self) -> None:
        self.relay = self.enter(relays.relay(self.server.url))

    def enter(self, context: Any) -> Any:
        """Does what ``enterContext`` of Python 3.11 does."""
        self.addCleanup(context.__exit__, None, None, None)
        return context.__enter__()

    def acquire(self, ttl_seconds: int = 3_600, **options: Any) -> tuple[Client, Seat]:
        key = self.server.license(self.id(), ttl_seconds=ttl_seconds)
        client = Client(self.relay.url, token=self.server.token(self.id()), **options)
        self.addCleanup(client.close)
        return client, client.license(key).acquire(machine=key)

    def lost_within(self, seconds: float, seat: Seat) -> None:
        """Revokes a seat, and waits for the loss."""
        self.server.revoke(seat.session_id)
        lost = seat.wait_until_over(seconds)
        self.assertEqual(lost and (lost.kind, lost.reason), ("lost", "revoked"))

    def test_a_revoked_session_is_told_within_a_second(self) -> None:
        _, seat = self.acquire()
        eventually(lambda: self.relay.streams_begun == 1, "the stream")
        self.lost_within(1, seat)
        eventually(lambda: self.relay.open() == 0, "the stream is closed")

    def test_two_seats_share_a_stream_that_tells_the_end_of_one_within_a_second(self) -> None:
        key = self.server.license("SHARED", seats=2, ttl_seconds=3_600)
        client = Client(self.relay.url, token=self.server.token("shared"))
        self.addCleanup(client.close)
        first, second = (client.license(key).acquire(machine=machine) for machine in ("one", "two"))
        together = f"/sessions/{first.session_id}/events?with={second.session_id} ".encode()

        def is_shared() -> bool:
            relay = self.relay
            return relay.streams_begun == len(relay.lines) and relay.open_streams() == 1 and together in relay.lines[-1]

        eventually(is_shared, "the shared stream")
        self.lost_within(1, second)
        first.check()
        self.assertEqual(self.relay.open_streams(), 1, "the stream of the other seat goes on")
        self.lost_within(1, first)
        eventually(lambda: self.relay.open_streams() == 0, "the stream is closed")

    def test_a_stream_that_is_cut_comes_back(self) -> None:
        _, seat = self.acquire()
        eventually(lambda: self.relay.streams_begun == 1, "the stream")
        self.relay.cut_streams()
        eventually(lambda: self.relay.streams_begun == 2, "the stream again")
        self.assertEqual(seat.state.kind, "active")
        self.lost_within(1, seat)

    def test_a_stream_that_misses_the_end_hears_of_it_later(self) -> None:
        _, seat = self.acquire()
        eventually(lambda: self.relay.streams_begun == 1, "the stream")
        self.relay.swallows_streams = True
        self.relay.cut_streams()
        eventually(lambda: self.relay.streams_seen == 2, "the stream that is swallowed")
        self.server.revoke(seat.session_id)
        self.assertIsNone(seat.wait_until_over(0.5))
        self.relay.swallows_streams = False
        self.relay.cut_streams()
        lost = seat.wait_until_over(LONG)
        self.assertEqual(lost and lost.reason, "revoked")

    def test_a_proxy_that_swallows_streams_changes_nothing(self) -> None:
        self.relay.swallows_streams = True
        client, seat = self.acquire(ttl_seconds=2)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            seat.check()
            time.sleep(0.05)
        self.assertEqual(self.relay.streams_seen, 1)
        self.lost_within(LONG, seat)
        client.close()
        eventually(lambda: self.relay.open() == 0, "the stream is closed")

    def test_the_end_of_a_client_leaves_nothing(self) -> None:
        before = threading.active_count()
        client, seat = self.acquire()
        eventually(lambda: self.relay.streams_begun == 1, "the stream")
        self.assertTrue(seat.release())
        eventually(lambda: self.relay.open() == 0, "the stream of a released seat is closed")
        seat = client.license(self.id()).acquire(machine="again")
        eventually(lambda: self.relay.streams_begun == 2, "the stream")
        client.close()
        eventually(lambda: self.relay.open() == 0, "the connections end")
        eventually(lambda: threading.active_count() <= before, "the threads end")

    def test_a_client_without_streams_opens_none(self) -> None:
        _, seat = self.acquire(event_streams=False)
        self.server.revoke(seat.session_id)
        self.assertIsNone(seat.wait_until_over(1))
        self.assertEqual(self.relay.streams_seen, 0)

    def test_a_release_without_a_token_gives_the_seat_back_by_its_code(self) -> None:
        key = self.server.license("CODE", ttl_seconds=3_600)
        tokens = iter([self.server.token("coded")])
        with Client(self.server.url, token_source=lambda: next(tokens)) as client:
            seat = client.license(key).acquire(machine="coded")
            self.assertIn("coded", self.server.live_machines())
            cache = seat._driver._tokens
            assert isinstance(cache, TokenCache)
            cache._current = "expired"
            self.assertFalse(seat.release(), "no answer to a code confirms")
            self.assertNotIn("coded", self.server.live_machines())

    def test_the_program_is_on_record(self) -> None:
        key = self.server.license("NAMED")
        options = {"application": "cad", "application_version": "7.1"}
        with Client(self.server.url, token=self.server.token(), **options) as client:  # type: ignore[arg-type]
            with client.license(key).acquire(machine="named") as seat:
                self.assertIn(f"cad/7.1 (python/{VERSION})", self.server.run("audit", "list", "--json"))
                seat.activity()
                client.wake()
                eventually(lambda: seat.state.kind == "active", "the heartbeat that tells the idle time")
            for wrong in (
                {"application": ""},
                {"application": "x" * 101},
                {"application": "a\nb"},
                {"application_version": "1"},
            ):
                with self.assertRaises(Misuse):
                    Client(self.server.url, token="t", **wrong)  # type: ignore[arg-type]


@unittest.skipUnless(servers.BINARY, "SDK_TEST_SERVER names no server")
class RealServerOnAsyncio(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.server = servers.Server()
        self.addCleanup(self.server.close)

    async def test_a_seat_is_held_told_and_given_back(self) -> None:
        key, kinds = self.server.license("ASYNC", ttl_seconds=2), []

        async def token() -> str:
            return self.server.token()

        async with AsyncClient(self.server.url, token_source=token) as client:
            async with await client.license(key).acquire(machine="async") as seat:
                seat.check()
                with self.assertRaises(Denied):
                    await client.license(key).acquire(machine="other")
                await asyncio.sleep(3)
                seat.check()
                self.server.revoke(seat.session_id)
                async for state in seat.states():
                    kinds.append(state.kind)
                self.assertEqual(kinds[-1], "lost")
            waiting = asyncio.ensure_future(client.license(key).acquire(machine="async", wait="forever"))
            async with await waiting as seat:
                seat.check()
            self.assertEqual(self.server.live_machines(), [])

    async def test_a_revoked_session_is_told_within_a_second(self) -> None:
        key = self.server.license("ASYNC", ttl_seconds=3_600)
        async with AsyncClient(self.server.url, token=self.server.token()) as client:
            async with await client.license(key).acquire(machine="async") as seat:
                seat.activity()
                await asyncio.sleep(1)
                self.server.revoke(seat.session_id)
                revoked = time.monotonic()

                async def told() -> list[str]:
                    return [state.kind async for state in seat.states()]

                kinds = await asyncio.wait_for(told(), LONG)
                self.assertLess(time.monotonic() - revoked, 1)
                self.assertEqual(kinds[-1], "lost")

    async def test_a_cancelled_acquire_holds_nothing(self) -> None:
        key = self.server.license("CANCELLED", ttl_seconds=60)
        async with AsyncClient(self.server.url, token=self.server.token()) as client:
            async with await client.license(key).acquire(machine="first"):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.license(key).acquire(machine="second", wait="forever"), 0.5)
            self.assertEqual(self.server.live_machines(), [])


def _answer_all(listener: socket.socket, answer: bytes) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)


if __name__ == "__main__":
    unittest.main()
