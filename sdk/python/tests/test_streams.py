"""Event streams against servers of the tests' own: what streams tell, and that no failure of a stream costs a seat."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Optional
from unittest import mock

from seatkeeper import Client, Seat, State, _stream_connection, _streams
from seatkeeper._connection import TransportError
from seatkeeper._core.door import LicenseDoor
from seatkeeper._core.events import SessionEnd
from seatkeeper._core.request import Call, Failure
from seatkeeper._servers import Servers
from seatkeeper._sse import ServerEvent
from seatkeeper._stream_connection import SILENCE_MAX, read_event
from seatkeeper._stream_groups import Groups, Member
from seatkeeper._streams import Credentials, EventStream, JoinPauses, backoff
from seatkeeper._tokens import NoToken
from seatkeeper._transport import OPENINGS_MAX, Server, Transport

from . import certificates
from .scripted import GRANT, Arrived, Reply, Serve, Wire, hold, scripted

SESSION = GRANT["session_id"]
ACQUIRE = "POST /api/v1/licenses/acquire"
BEAT = f"PATCH /api/v1/licenses/sessions/{SESSION}/heartbeat"
STREAM = f"GET /api/v1/licenses/sessions/{SESSION}/events"
RELEASE = f"DELETE /api/v1/licenses/sessions/{SESSION}"
#: More than any wait in these tests needs.
LONG = 30.0


def eventually(what: Callable[[], bool], message: str) -> None:
    """Waits until ``what`` is true."""
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end, message
        time.sleep(0.01)


def end_of(session: Any, reason: str, number: int = 1, **more: Any) -> str:
    """Returns the event of a session's end, as a server writes it."""
    data = json.dumps({"session_id": session, "reason": reason, "ended_at": "2026-01-01T00:00:00Z", **more})
    return f"id: {number}-ended\nevent: {reason}\ndata: {data}\n\n"


def gone(reason: str) -> Reply:
    return Reply(410, {"type": "/problems/session-ended", "title": "ended", "reason": reason})


def granting(request: Arrived, _: int) -> Reply:
    """Answers as a server whose sessions live for an hour, so that heartbeats are far."""
    grant = {**GRANT, "expires_in_seconds": 3_600, "heartbeat_interval_seconds": 1_200}
    if request.target == BEAT:
        return Reply(200, grant)
    return Reply(201, grant) if request.target == ACQUIRE else Reply(204)


def revoked(request: Arrived, earlier: int) -> Reply:
    """Answers as a server whose session is over at the first heartbeat."""
    return gone("revoked") if request.target == BEAT else granting(request, earlier)


@contextmanager
def quick(**constants: float) -> Iterator[None]:
    """Makes reconnects quick, and jitter none."""
    values: dict[str, Any] = {"BACKOFF_FIRST": 0.05, "BACKOFF_MAX": 0.05, **constants}
    with mock.patch.multiple(_streams, **values), mock.patch("random.random", lambda: 1.0):
        yield


class Told:
    """The kinds of states that a callback is told."""

    def __init__(self) -> None:
        self.states: list[State] = []

    def __call__(self, state: State) -> None:
        self.states.append(state)

    def kinds(self) -> list[str]:
        return [state.kind for state in self.states]


def acquire(client: Client, told: Optional[Told] = None) -> Seat:
    return client.license("K").acquire(machine="m", on_change=told)


class ToldEnds(unittest.TestCase):
    def test_an_end_is_confirmed_and_told_at_once(self) -> None:
        say = threading.Event()

        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event("id: 1\n\n: still here\n\n")
            say.wait(LONG)
            told = end_of(SESSION, "revoked", by={"session_id": "s", "device_type": "tv", "device_name": "Den"})
            wire.event(told[:20])
            wire.event(told[20:])
            wire.is_closed(LONG)

        with scripted(revoked, serve) as server, Client(server.url, token="t") as client:
            seat = acquire(client)
            eventually(lambda: server.streams == 1, "the stream is open")
            time.sleep(0.2)
            seat.check()
            said = time.monotonic()
            say.set()
            lost = seat.wait_until_over(LONG)
            assert lost is not None
            self.assertLess(time.monotonic() - said, 1)
            self.assertEqual((lost.kind, lost.reason, lost.by, lost.retry), ("lost", "revoked", "Den", False))
            self.assertEqual(len(server.arrived(BEAT)), 1)
            (request,) = server.arrived(STREAM)
            self.assertEqual((request.token, request.accept, request.last_event_id), ("t", "text/event-stream", None))
            eventually(lambda: server.streams == 0, "the stream of a lost seat is closed")

    def test_a_session_that_ended_while_its_stream_was_cut_is_lost_within_a_second(self) -> None:
        answered: list[float] = []
        for status in (204, 404):

            def serve(request: Arrived, earlier: int, wire: Wire, status: int = status) -> None:
                if earlier == 0:
                    wire.head()
                    wire.event("id: 1\n\n")
                else:
                    answered.append(time.monotonic())
                    answering(status)(request, earlier, wire)

            with quick(), scripted(revoked, serve) as server, Client(server.url, token="t") as client:
                lost = acquire(client).wait_until_over(LONG)
                self.assertEqual(lost and lost.reason, "revoked")
                self.assertLess(time.monotonic() - answered[-1], 1)
                self.assertEqual((len(server.arrived(STREAM)), len(server.arrived(BEAT))), (2, 1))

    def test_a_stream_that_lags_ends_nothing_and_one_that_repeats_itself_causes_no_storm(self) -> None:
        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event(end_of(SESSION, "revoked") * 50)
            wire.is_closed(LONG)

        with quick(BACKOFF_FIRST=0.3, BACKOFF_MAX=0.3):
            with scripted(granting, serve) as server, Client(server.url, token="t") as client:
                told = Told()
                seat = acquire(client, told)
                eventually(lambda: len(server.arrived(STREAM)) >= 3, "the stream comes back")
                seat.check()
                self.assertLessEqual(len(server.arrived(BEAT)), len(server.arrived(STREAM)))
                self.assertEqual(told.kinds(), ["active"])
                last_ids = [request.last_event_id for request in server.arrived(STREAM)]
                self.assertEqual(last_ids[:3], [None, "1-ended", "1-ended"])

    def test_what_ends_no_session_is_ignored(self) -> None:
        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event('event: license_changed\ndata: {"seats_total": 3, "reacquire": "never"}\n\n')
            wire.event("event: revoked\ndata: {\n\nevent: revoked\ndata: []\n\nevent: revoked\ndata: 7\n\n")
            wire.event(end_of("0198a0aa-0000-7000-8000-000000000009", "revoked"))

        with quick(), scripted(revoked, serve) as server, Client(server.url, token="t") as client:
            seat = acquire(client)
            eventually(lambda: len(server.arrived(STREAM)) >= 2, "the stream was read to its end")
            seat.check()
            self.assertEqual(server.arrived(BEAT), [])

    def test_the_cause_is_the_name_of_the_device(self) -> None:
        causes: list[tuple[Any, Optional[str]]] = [
            ({"session_id": "s", "device_type": "tv", "device_name": "Den"}, "Den"),
            ({"session_id": "s", "device_type": "tv"}, "tv"),
            ({"session_id": "s"}, "s"),
            ({}, None),
            ("ops", "ops"),
            (None, None),
            (7, None),
        ]
        for by, wanted in causes:
            data = json.dumps({"session_id": "x", "reason": "evicted", "by": by})
            self.assertEqual(read_event(ServerEvent("evicted", data)), SessionEnd("x", "evicted", wanted))
        for data in ('{"session_id": "x"}', '{"reason": "evicted"}', '{"session_id": 1, "reason": "x"}', "x"):
            self.assertIsNone(read_event(ServerEvent("evicted", data)))

    def test_a_session_that_follows_has_a_stream_of_its_own(self) -> None:
        second = "0198a0aa-0000-7000-8000-000000000002"

        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == BEAT:
                return Reply(404, {"type": "/problems/session-not-found", "title": "none"})
            if request.target == ACQUIRE and earlier > 0:
                return Reply(201, {**GRANT, "session_id": second})
            return granting(request, earlier)

        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            wire.head()
            wire.event("id: 5\n\n")
            if request.target == STREAM:
                wire.event(end_of(SESSION, "expired", 6))
            wire.is_closed(LONG)

        with quick(BACKOFF_FIRST=LONG, BACKOFF_MAX=LONG), scripted(script, serve) as server:
            client = Client(server.url, token="t")
            self.addCleanup(client.close)
            seat = acquire(client)
            path = f"GET /api/v1/licenses/sessions/{second}/events"
            eventually(lambda: len(server.arrived(path)) == 1, "the second session has a stream")
            self.assertEqual(seat.session_id, second)
            self.assertIsNone(server.arrived(path)[0].last_event_id)
            eventually(lambda: server.streams == 1, "the stream of the first session is closed")
            self.assertEqual(len(server.arrived(STREAM)), 1)

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl for a certificate")
    def test_a_stream_over_tls_tells_the_end(self) -> None:
        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event(end_of(SESSION, "revoked"))
            wire.is_closed(LONG)

        with tempfile.TemporaryDirectory() as folder:
            certificate = certificates.make(folder)
            with scripted(revoked, serve, certificate) as server:
                with Client(server.url, token="t", ca_file=certificate) as client:
                    lost = acquire(client).wait_until_over(LONG)
                    self.assertEqual(lost and lost.reason, "revoked")
                    eventually(lambda: server.streams == 0, "the stream is closed")


class Failures(unittest.TestCase):
    """Streams that fail. The seat of each stays active, and its program hears of nothing."""

    def reconnects(self, serve: Serve, least: int = 3) -> list[Arrived]:
        """Lets a stream fail ``least`` times, and returns the requests for it."""
        with self.without_logs(), quick():
            with scripted(granting, serve) as server, Client(server.url, token="t") as client:
                told = Told()
                seat = acquire(client, told)
                eventually(lambda: len(server.arrived(STREAM)) >= least, "the stream comes back")
                seat.check()
                self.assertEqual(told.kinds(), ["active"])
                self.assertTrue(seat.release())
                self.assertEqual(server.arrived(BEAT), [])
                return server.arrived(STREAM)

    def without_logs(self) -> Any:
        """Fails the test at the first line of a log."""
        return mock.patch("logging.Logger.handle", lambda _, record: self.fail(record.getMessage()))

    def test_a_stream_that_is_cut_is_connected_again_after_its_last_event(self) -> None:
        def serve(_: Arrived, earlier: int, wire: Wire) -> None:
            wire.head()
            wire.event(f"id: {earlier + 1}\n\n")
            wire.event("id: 99\ndata: cut before the line that ends the event\n")

        requests = self.reconnects(serve)
        self.assertEqual([request.last_event_id for request in requests[:3]], [None, "1", "2"])

    def test_a_stream_that_ends_is_connected_again(self) -> None:
        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event("id: 1\n\n")
            wire.send(b"0\r\n\r\n")
            wire.is_closed(LONG)

        self.reconnects(serve)

    def test_an_answer_that_is_no_stream_is_a_failure(self) -> None:
        page = "text/html"
        for status, kind in (
            (200, page),
            (500, page),
            (503, page),
            (302, page),
            (403, page),
            (201, "text/event-stream"),
        ):

            def serve(_: Arrived, __: int, wire: Wire, status: int = status, kind: str = kind) -> None:
                wire.head(status, kind)
                wire.event(end_of(SESSION, "revoked"))
                wire.is_closed(LONG)

            self.reconnects(serve)

    def test_garbage_is_a_failure(self) -> None:
        answers = [
            b"",
            b"SSH-2.0-OpenSSH\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"x" * 99_999,
        ]
        for answer in answers:

            def serve(_: Arrived, __: int, wire: Wire, answer: bytes = answer) -> None:
                wire.send(answer)
                if answer:
                    wire.is_closed(LONG)

            self.reconnects(serve)

    def test_an_id_that_fits_into_no_header_is_not_sent(self) -> None:
        for last in ("x" * 300, "\x01", "é"):

            def serve(_: Arrived, __: int, wire: Wire, last: str = last) -> None:
                wire.head()
                wire.event(f"id: {last}\n\n")

            self.assertEqual({request.last_event_id for request in self.reconnects(serve)}, {None})

    def test_204_and_404_are_final_and_ask_once(self) -> None:
        for status in (204, 404):
            with quick(), scripted(granting, answering(status)) as server, Client(server.url, token="t") as client:
                seat = acquire(client)
                eventually(lambda server=server: len(server.arrived(BEAT)) == 1, "a heartbeat")  # type: ignore[misc]
                time.sleep(0.5)
                self.assertEqual(len(server.arrived(BEAT)), 1)
                client.wake()
                eventually(lambda server=server: len(server.arrived(BEAT)) == 2, "a heartbeat")  # type: ignore[misc]
                time.sleep(0.2)
                seat.check()
                self.assertEqual((len(server.arrived(STREAM)), len(server.arrived(BEAT))), (1, 2))

    def test_a_stream_that_is_over_stays_over_when_an_acquire_resumes_its_session(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == BEAT:
                return Reply(404, {"type": "/problems/session-not-found", "title": "none"})
            return granting(request, earlier)

        with quick(), scripted(script, answering(404)) as server, Client(server.url, token="t") as client:
            seat = acquire(client)
            eventually(lambda: len(server.arrived(ACQUIRE)) == 2 and seat.is_valid, "the session is resumed")
            beats = len(server.arrived(BEAT))
            time.sleep(0.5)
            self.assertEqual(seat.session_id, SESSION)
            self.assertEqual((len(server.arrived(STREAM)), len(server.arrived(BEAT))), (1, beats))

    def test_401_waits_for_another_token(self) -> None:
        good = "fresh"

        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == BEAT and request.token != good:
                return Reply(401)
            return granting(request, earlier)

        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            if request.token == good:
                return hold(request, earlier, wire)
            wire.send(b"HTTP/1.1 401 Told\r\nContent-Length: 0\r\n\r\n")
            return None

        tokens = iter(["stale", good])
        with quick(), scripted(script, serve) as server:
            with Client(server.url, token_source=lambda: next(tokens)) as client:
                acquire(client)
                eventually(lambda: len(server.arrived(STREAM)) == 1, "the stream is refused")
                time.sleep(0.5)
                self.assertEqual([request.token for request in server.arrived(STREAM)], ["stale"])
                client.wake()
                eventually(lambda: server.streams == 1, "the stream is open")
                self.assertEqual([request.token for request in server.arrived(STREAM)], ["stale", good])

    def test_401_waits_for_another_text_of_a_file_that_no_refresh_has_brought(self) -> None:
        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            (hold if request.token == "fresh" else answering(401))(request, earlier, wire)

        with tempfile.TemporaryDirectory() as folder, quick(), scripted(granting, serve) as server:
            path = Path(folder) / "token"
            path.write_text("old")
            with mock.patch("seatkeeper._tokens.LOOK_INTERVAL", 0), Client(server.url, token_file=path) as client:
                acquire(client)
                eventually(lambda: len(server.arrived(STREAM)) == 1, "the stream is refused")
                path.write_text("fresh")
                client.wake()
                eventually(lambda: server.streams == 1, "the stream is open")
                self.assertEqual([request.token for request in server.arrived(STREAM)], ["old", "fresh"])
                self.assertEqual([request.token for request in server.arrived(BEAT)], ["fresh"])

    def test_a_rejected_token_that_comes_again_is_tried_once_for_each_refresh(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            return Reply(401) if request.target == BEAT else granting(request, earlier)

        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.send(b"HTTP/1.1 401 Told\r\nContent-Length: 0\r\n\r\n")

        with quick(), scripted(script, serve) as server, Client(server.url, token="t") as client:
            seat = acquire(client)
            eventually(lambda: len(server.arrived(STREAM)) == 1, "the stream is refused")
            client.wake()
            eventually(lambda: len(server.arrived(STREAM)) == 2, "the stream tries the token of the refresh")
            time.sleep(0.3)
            self.assertEqual(len(server.arrived(STREAM)), 2)
            self.assertTrue(seat.is_valid)

    def test_a_silent_connection_is_dead_and_comments_keep_one_alive(self) -> None:
        def silent(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event("id: 1\n\n")
            wire.is_closed(LONG)

        def swallowed(_: Arrived, __: int, wire: Wire) -> None:
            wire.is_closed(LONG)

        for serve in (silent, swallowed):
            with mock.patch.object(_stream_connection, "SILENCE_MAX", 0.3):
                self.reconnects(serve)

        def alive(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            while not wire.is_closed(0.1):
                wire.event(": still here\n\n")

        # A host that stops this process for two seconds would look like silence.
        with mock.patch.object(_stream_connection, "SILENCE_MAX", 2), scripted(granting, alive) as server:
            with Client(server.url, token="t") as client:
                acquire(client)
                time.sleep(3)
                self.assertEqual(len(server.arrived(STREAM)), 1)

    def test_silence_is_three_keep_alives_of_a_server(self) -> None:
        self.assertEqual(SILENCE_MAX, 45)

    def test_a_heartbeat_is_not_held_up_by_streams_that_cannot_open(self) -> None:
        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.is_closed(LONG)

        with mock.patch("seatkeeper._transport.CONNECTIONS_MAX", 1), scripted(granting, serve) as server:
            with Client(server.url, token="t") as client:
                seat = acquire(client)
                eventually(lambda: server.streams == 1, "the stream is swallowed")
                began = time.monotonic()
                client.wake()
                eventually(lambda: len(server.arrived(BEAT)) == 1, "the heartbeat")
                self.assertTrue(seat.release())
                self.assertLess(time.monotonic() - began, 5)


class OpeningsTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_stream_without_a_token_or_a_connection_is_tried_again(self) -> None:
        outcomes: list[Any] = [NoToken(), TransportError(Failure.REFUSED), "t"]

        async def current() -> str:
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return str(outcome)

        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event(end_of(SESSION, "revoked"))
            wire.is_closed(LONG)

        with quick(), scripted(granting, serve) as server:
            told = asyncio.get_running_loop().create_future()
            servers = Servers([Server(server.url, None, LONG)])
            group = Groups().join(Member(0), "", LicenseDoor, str(SESSION))
            assert group is not None
            stream = EventStream(group, servers, Credentials(current, lambda: (0, "t")), told.set_result)
            end = await asyncio.wait_for(told, LONG)
            stream.close()
            self.assertEqual(end.reason, "revoked")

    async def test_streams_that_hang_while_they_connect_hold_up_no_request(self) -> None:
        with scripted(granting) as server, mock.patch("seatkeeper._transport.CONNECTIONS_MAX", 1):
            transport = Transport(Server(server.url, None, LONG))
            connect = transport._connect
            hang = asyncio.get_running_loop().create_future()
            connecting = mock.Mock(return_value=hang)
            transport._connect = connecting  # type: ignore[method-assign]
            openings = [asyncio.ensure_future(transport.open(asyncio.Protocol)) for _ in range(100)]
            await asyncio.sleep(0.05)
            self.assertEqual(connecting.call_count, OPENINGS_MAX, "no more connections are opened at a time")
            transport._connect = connect  # type: ignore[method-assign]
            answer = await transport.send(Call("PATCH", "/"), "t", LONG)
            self.assertEqual(answer.status, 204)
            for opening in openings:
                opening.cancel()
            await asyncio.gather(*openings, return_exceptions=True)


class JoinPausesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.pauses = JoinPauses()

    def reopen(self, now: float) -> float:
        """Reopens the stream for a join at ``now``, and returns the pause."""
        pause = self.pauses.next(now)
        self.pauses.reopened()
        self.pauses.opened(now + pause)
        return pause

    def test_steady_joins_double_the_pause_up_to_1_6_seconds(self) -> None:
        self.pauses.opened(1_000.0)
        now, pauses = 1_000.0, []
        for _ in range(7):
            pauses.append(self.reopen(now))
            now += pauses[-1]
        self.assertEqual(pauses, [0.1, 0.2, 0.4, 0.8, 1.6, 1.6, 1.6])

    def test_a_stream_that_stays_open_for_two_seconds_starts_the_doubling_anew(self) -> None:
        self.pauses.opened(1_000.0)
        self.assertEqual([self.reopen(1_000.0), self.reopen(1_000.5)], [0.1, 0.2])
        self.assertEqual(self.pauses.next(1_002.6), 0.4)
        self.assertEqual([self.reopen(1_002.8), self.reopen(1_003.0)], [0.1, 0.2])

    def test_a_reopening_that_is_skipped_doubles_nothing(self) -> None:
        self.pauses.opened(1_000.0)
        self.assertEqual([self.pauses.next(1_000.0) for _ in range(3)], [0.1] * 3)


class Backoff(unittest.TestCase):
    def test_the_pause_doubles_from_one_second_to_a_minute_with_full_jitter(self) -> None:
        self.assertEqual([backoff(failures, 1.0) for failures in range(9)], [1, 2, 4, 8, 16, 32, 60, 60, 60])
        self.assertEqual(backoff(3, 0.0), 0)
        self.assertEqual(backoff(3, 0.25), 2)
        self.assertEqual(backoff(10_000, 1.0), 60)

    def test_failures_slow_down_and_a_stream_that_lived_starts_anew(self) -> None:
        times: list[float] = []

        def serve(_: Arrived, earlier: int, wire: Wire) -> None:
            times.append(time.monotonic())
            wire.head()
            if earlier == 3:
                time.sleep(0.4)
                wire.event(": lived\n\n")

        with quick(BACKOFF_FIRST=0.2, BACKOFF_MAX=30, SETTLED_AFTER=0.3):
            with scripted(granting, serve) as server, Client(server.url, token="t") as client:
                acquire(client)
                eventually(lambda: len(server.arrived(STREAM)) >= 5, "five streams")
        pauses = [late - early for early, late in zip(times, times[1:])]
        for pause, least in zip(pauses, (0.2, 0.4, 0.8)):
            self.assertGreaterEqual(pause, least)
        self.assertLess(pauses[3], 0.4 + 1.6)

    def test_a_break_ends_the_time_that_a_stream_was_open(self) -> None:
        drawn: list[int] = []

        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            # The silence after the last byte does not count.
            time.sleep(0.2)

        def pause(failures: int, _: float) -> float:
            drawn.append(failures)
            return 0.05

        with quick(SETTLED_AFTER=0.15), mock.patch.object(_streams, "backoff", pause):
            with scripted(granting, serve) as server, Client(server.url, token="t") as client:
                acquire(client)
                eventually(lambda: len(drawn) >= 4, "four breaks")
        self.assertEqual(drawn[:4], [0, 1, 2, 3])

    def test_jitter_is_drawn_anew_for_each_pause(self) -> None:
        drawn = iter([0.0] * 20)
        done: list[float] = []

        def draw() -> float:
            done.append(next(drawn, 1.0))
            return done[-1]

        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()

        with mock.patch("random.random", draw), scripted(granting, serve) as server:
            with Client(server.url, token="t") as client:
                began = time.monotonic()
                acquire(client)
                eventually(lambda: len(server.arrived(STREAM)) >= 6, "six streams without a pause")
                self.assertLess(time.monotonic() - began, 5)


class Closing(unittest.TestCase):
    def test_a_release_closes_the_stream_at_once(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            return Reply(204, delay=0.9) if request.target == RELEASE else granting(request, earlier)

        with scripted(script) as server, Client(server.url, token="t") as client:
            seat = acquire(client)
            eventually(lambda: server.streams == 1, "the stream is open")
            began = time.monotonic()
            client._connection.driver().release(seat._key)
            eventually(lambda: server.streams == 0, "the stream is closed")
            self.assertLess(time.monotonic() - began, 0.8)
            self.assertTrue(seat.release())

    def test_the_end_of_a_client_leaves_no_connection_and_no_thread(self) -> None:
        for serve in (hold, swallow):
            before = set(threading.enumerate())
            with scripted(granting, serve) as server:
                with Client(server.url, token="t") as client:
                    seats = [client.license("K").acquire(machine=f"m{number}") for number in range(20)]
                    eventually(lambda server=server: server.streams == 1, "the stream")  # type: ignore[misc]
                    mine = [thread for thread in threading.enumerate() if thread.name.startswith("seatkeeper")]
                    self.assertEqual([thread.name for thread in mine], ["seatkeeper"])
                eventually(lambda server=server: server.streams == 0, "the streams are closed")  # type: ignore[misc]
                self.assertEqual(len(seats), 20)
                self.assertFalse([thread for thread in mine if thread.is_alive() and thread not in before])

    def test_a_stream_is_closed_while_its_seat_is_lost_or_acquired_again(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == BEAT:
                return gone("expired")
            if request.target == ACQUIRE and earlier > 0:
                return Reply(503)
            return granting(request, earlier)

        with scripted(script) as server, Client(server.url, token="t") as client:
            seat = acquire(client)
            eventually(lambda: server.streams == 1, "the stream is open")
            client.wake()
            eventually(lambda: seat.state.kind == "reacquiring", "the session is over")
            eventually(lambda: server.streams == 0, "the stream is closed")

    def test_a_stream_stays_open_in_an_outage_and_in_the_grace(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == ACQUIRE and earlier == 0:
                terms = {"expires_in_seconds": 2, "heartbeat_interval_seconds": 1, "grace_seconds": 60}
                return Reply(201, {**GRANT, **terms})
            return Reply(204) if request.target == RELEASE else Reply(503, retry_after=1)

        with scripted(script) as server, Client(server.url, token="t") as client:
            seat = acquire(client)
            eventually(lambda: seat.state.kind == "offline", "the outage")
            self.assertEqual(server.streams, 1)
            eventually(lambda: seat.state.kind == "grace", "the grace")
            time.sleep(0.2)
            self.assertEqual((server.streams, len(server.arrived(STREAM))), (1, 1))

    def test_a_client_without_streams_opens_none(self) -> None:
        with scripted(granting) as server, Client(server.url, token="t", event_streams=False) as client:
            seat = acquire(client)
            time.sleep(0.3)
            seat.check()
            self.assertEqual(server.arrived("GET"), [])

    @unittest.skipUnless(hasattr(os, "fork"), "fork")
    def test_a_forked_child_neither_cuts_nor_holds_the_stream(self) -> None:
        say = threading.Event()

        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            if not say.wait(LONG):
                return
            wire.event(end_of(SESSION, "revoked"))
            wire.is_closed(LONG)

        with scripted(revoked, serve) as server, Client(server.url, token="t") as client:
            seat = acquire(client)
            eventually(lambda: server.streams == 1, "the stream is open")
            stream = _stream_of(seat)
            child = os.fork()
            if child == 0:
                # The child drops its copy of the stream, and goes on while the parent's stream must end.
                stream.close()
                stream._connection.abort()
                seat._driver._seats.clear()
                time.sleep(4 * LONG)
                os._exit(0)
            try:
                time.sleep(0.3)
                self.assertEqual((server.streams, len(server.arrived(STREAM))), (1, 1))
                say.set()
                lost = seat.wait_until_over(LONG)
                self.assertEqual(lost and lost.reason, "revoked")
                eventually(lambda: server.streams == 0, "the stream ends, although the child has its socket")
            finally:
                os.kill(child, 9)
                os.waitpid(child, 0)

    @unittest.skipUnless(hasattr(os, "fork"), "fork")
    def test_a_forked_child_with_a_seat_of_its_own_leaves_the_stream_alone(self) -> None:
        program = (
            "import gc, os, sys, seatkeeper\n"
            "client = seatkeeper.Client(sys.argv[1], token='t')\n"
            "seat = client.license('K').acquire(machine='m')\n"
            "sys.stdin.readline()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    client.license('K').acquire(machine='child').release()\n"
            "    del seat\n"
            "    gc.collect()\n"
            "    sys.exit(0)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)\n"
            "sys.stdin.readline()\n"
        )
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
        pipe = subprocess.PIPE
        with scripted(granting) as server:
            with subprocess.Popen(
                [*command, server.url], stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**os.environ}
            ) as parent:
                assert parent.stdin is not None
                assert parent.stdout is not None
                assert parent.stderr is not None
                eventually(lambda: server.streams == 1, "the stream is open")
                parent.stdin.write("\n")
                parent.stdin.flush()
                self.assertEqual(parent.stdout.readline(), "0\n")
                streams = server.arrived(STREAM)
                time.sleep(0.3)
                self.assertEqual(server.streams, 1, "the stream of the parent goes on")
                self.assertLessEqual(len(streams), 2, "one of the parent, one of the child")
                self.assertEqual(len(server.arrived(STREAM)), len(streams))
                parent.stdin.close()
                self.assertEqual(parent.wait(LONG), 0)
                self.assertEqual(parent.stderr.read(), "")


class SeveralServers(unittest.TestCase):
    def test_the_stream_goes_where_the_heartbeats_go(self) -> None:
        def leaving(request: Arrived, earlier: int) -> Reply:
            return Reply(503) if request.target == BEAT else granting(request, earlier)

        with quick(), scripted(leaving) as first, scripted(granting) as second:
            with Client([first.url, second.url], token="t") as client:
                seat = acquire(client)
                eventually(lambda: first.streams == 1, "a stream to the first node")
                self.assertEqual(second.arrived(), [])
                client.wake()
                eventually(lambda: second.streams == 1, "a stream to the second node")
                eventually(lambda: first.streams == 0, "none to the first")
                seat.check()
                self.assertEqual(second.arrived(STREAM)[0].last_event_id, "0")

    def test_a_stream_that_cannot_connect_moves_no_heartbeat(self) -> None:
        def refusing(request: Arrived, _: int, wire: Wire) -> None:
            wire.send(b"")

        with quick(), scripted(granting, refusing) as first, scripted(granting) as second:
            with Client([first.url, second.url], token="t") as client:
                acquire(client)
                eventually(lambda: len(first.arrived(STREAM)) >= 3, "the stream fails")
                client.wake()
                eventually(lambda: len(first.arrived(BEAT)) == 1, "the heartbeat stays")
                self.assertEqual(second.arrived(), [])


def answering(status: int) -> Serve:
    """Answers a request for a stream with a status alone."""

    def serve(_: Arrived, __: int, wire: Wire) -> None:
        wire.send(b"HTTP/1.1 %d Told\r\nContent-Length: 0\r\n\r\n" % status)

    return serve


def swallow(_: Arrived, __: int, wire: Wire) -> None:
    """Takes a request for a stream, and never answers."""
    wire.is_closed(LONG)


def _stream_of(seat: Seat) -> Any:
    driver = seat._driver
    group = driver._seats[seat._key].group
    assert group is not None
    return driver._streams._streams[group]


if __name__ == "__main__":
    unittest.main()
