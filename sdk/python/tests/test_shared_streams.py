"""Event streams that several seats share, against servers of the tests' own."""

from __future__ import annotations

import threading
import time
import unittest
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Callable, Optional
from unittest import mock

from seatkeeper import Client, Seat, _streams

from .scripted import GRANT, Arrived, Reply, Scripted, Serve, Wire, hold, scripted
from .test_streams import ACQUIRE, LONG, answering, end_of, eventually, gone, quick

#: Longer than the acquires of two seats take, even on a busy host.
TOGETHER = 3.0


def session(number: int) -> str:
    """Returns the session of the machine with this number."""
    return f"0198a0aa-0000-7000-8000-{number:012}"


def stream(*numbers: int) -> str:
    """Returns the request for the stream of these sessions."""
    first, *others = (session(number) for number in numbers)
    return f"GET /api/v1/licenses/sessions/{first}/events" + (f"?with={','.join(others)}" if others else "")


def beat(number: int) -> str:
    return f"PATCH /api/v1/licenses/sessions/{session(number)}/heartbeat"


def unknown(number: int) -> str:
    """Returns the event about a session of which the server does not tell."""
    return f'event: unknown\ndata: {{"session_id": "{session(number)}"}}\n\n'


def granting(request: Arrived, _: int) -> Reply:
    """Grants each machine a session of an hour, and renews every session."""
    terms = {"expires_in_seconds": 3_600, "heartbeat_interval_seconds": 1_200}
    if request.target == ACQUIRE:
        return Reply(201, {**GRANT, **terms, "session_id": session(int(request.body["machine_id"]))})
    return Reply(200, terms) if request.target.startswith("PATCH") else Reply(204)


def revoked(*numbers: int) -> Callable[[Arrived, int], Reply]:
    """Answers as a server that has revoked the sessions."""
    beats = [beat(number) for number in numbers]
    return lambda request, earlier: gone("revoked") if request.target in beats else granting(request, earlier)


class Telling:
    """Serves streams, and sends the events that a test tells to the latest one."""

    def __init__(self) -> None:
        self.wire: Optional[Wire] = None

    def __call__(self, _: Arrived, __: int, wire: Wire) -> None:
        wire.head()
        self.wire = wire
        wire.is_closed(LONG)

    def tell(self, text: str) -> None:
        assert self.wire is not None
        self.wire.event(text)


class SharedStreams(unittest.TestCase):
    def setUp(self) -> None:
        self.resources = ExitStack()
        self.addCleanup(self.resources.close)

    def start(self, serve: Serve = hold, script: Callable[[Arrived, int], Reply] = granting) -> Scripted:
        """Starts a server and a client, whose reconnects are quick."""
        self.resources.enter_context(quick())
        self.server = self.resources.enter_context(scripted(script, serve))
        self.client = self.resources.enter_context(Client(self.server.url, token="t"))
        return self.server

    def acquire(self, *numbers: int) -> list[Seat]:
        """Acquires a seat for each machine within one pause for joins, which ends once every seat has joined."""
        driver = self.client._connection.driver()
        with mock.patch.object(_streams, "JOIN_PAUSE", LONG):
            seats = [self.client.license("K").acquire(machine=str(number)) for number in numbers]
            eventually(lambda: all(driver._seats[seat._key].group for seat in seats), "every seat has joined")
        self.end_join_pauses()
        return seats

    def end_join_pauses(self) -> None:
        driver = self.client._connection.driver()

        def end() -> None:
            for waiting in driver._streams._streams.values():
                if waiting._join_timer is not None:
                    waiting._cancel_join_timer()
                    waiting._reopen()

        driver._loop.call_soon_threadsafe(end)

    def streams(self) -> list[str]:
        return [request.target for request in self.server.arrived("GET")]

    def wait_for_streams(self, *wanted: str) -> None:
        """Waits until the requests for streams are the ``wanted`` ones, in any order."""
        eventually(lambda: len(self.streams()) >= len(wanted), f"{len(wanted)} requests")
        self.assertEqual(sorted(self.streams()), sorted(wanted))

    def wait_until_open(self) -> None:
        """Waits until the client has read the head of its one stream."""
        (found,) = self.client._connection.driver()._streams._streams.values()
        eventually(lambda: found._connection is not None and found._connection.is_open, "the stream is open")

    def check(self, seats: Sequence[Seat]) -> None:
        for seat in seats:
            seat.check()

    def test_seats_that_are_acquired_together_share_one_connection(self) -> None:
        server = self.start()
        seats = self.acquire(1, 2, 3)
        self.wait_for_streams(stream(1, 2, 3))
        eventually(lambda: server.streams == 1, "the stream")
        (request,) = server.arrived("GET")
        self.assertEqual((request.token, request.accept, request.last_event_id), ("t", "text/event-stream", None))
        self.check(seats)
        self.assertEqual(server.arrived("PATCH"), [])

    def test_joins_are_collected_for_a_tenth_of_a_second(self) -> None:
        self.assertEqual(_streams.JOIN_PAUSE, 0.1)
        self.start()
        with mock.patch.object(_streams, "JOIN_PAUSE", TOGETHER):
            self.check([self.client.license("K").acquire(machine=machine) for machine in ("1", "2")])
            self.wait_for_streams(stream(1, 2))

    def test_an_end_reaches_the_seat_of_the_session_alone_and_once(self) -> None:
        telling = Telling()
        server = self.start(telling, revoked(2))
        first, second, third = self.acquire(1, 2, 3)
        eventually(lambda: telling.wire is not None, "the stream")
        began = time.monotonic()
        telling.tell(end_of(session(2), "revoked", by={"device_name": "Den"}) * 50)
        lost = second.wait_until_over(LONG)
        assert lost is not None
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual((lost.reason, lost.by), ("revoked", "Den"))
        self.check([first, third])
        self.assertEqual([request.target for request in server.arrived("PATCH")], [beat(2)])
        self.assertEqual((server.streams, self.streams()), (1, [stream(1, 2, 3)]))

    def test_an_end_that_is_told_again_and_again_asks_once_for_each_connection(self) -> None:
        telling = Telling()
        server = self.start(telling)
        seats = self.acquire(1, 2)
        eventually(lambda: telling.wire is not None, "the stream")
        telling.tell(end_of(session(2), "revoked") * 50)
        eventually(lambda: len(server.arrived(beat(2))) == 1, "the heartbeat")
        telling.tell(end_of(session(2), "revoked") * 50)
        telling.tell(end_of(session(1), "revoked"))
        eventually(lambda: len(self.streams()) == 2, "a stream without sessions left is opened again")
        self.assertEqual((len(server.arrived(beat(1))), len(server.arrived(beat(2)))), (1, 1))
        self.check(seats)

    def test_a_session_that_is_unknown_gets_a_stream_of_its_own(self) -> None:
        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            wire.head()
            if "?with=" in request.target and session(2) in request.target:
                wire.event(unknown(2))
            wire.is_closed(LONG)

        server = self.start(serve)
        seats = self.acquire(1, 2, 3)
        self.wait_for_streams(stream(1, 2, 3), stream(2))
        eventually(lambda: server.streams == 2, "the streams")
        seats += self.acquire(4)
        self.wait_for_streams(stream(1, 2, 3), stream(2), stream(1, 3, 4))
        eventually(lambda: server.streams == 2, "the shared stream was opened again")
        self.assertEqual(server.arrived("PATCH"), [])
        self.check(seats)

    def test_a_first_session_that_is_unknown_gets_a_stream_of_its_own_whose_404_is_final(self) -> None:
        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            (answering(404) if request.target == stream(1) else telling)(request, earlier, wire)

        telling = Telling()
        server = self.start(serve)
        seats = self.acquire(1, 2, 3)
        eventually(lambda: telling.wire is not None, "the stream")
        telling.tell(unknown(1))
        self.wait_for_streams(stream(1, 2, 3), stream(1))
        eventually(lambda: len(server.arrived(beat(1))) == 1, "the heartbeat")
        seats += self.acquire(4)
        self.wait_for_streams(stream(1, 2, 3), stream(1), stream(2, 3, 4))
        self.client.wake()
        eventually(lambda: len(server.arrived("PATCH")) == 5, "heartbeats")
        self.check(seats)
        self.assertEqual(len(self.streams()), 3)

    def test_a_first_session_that_has_moved_is_followed_by_a_stream_of_its_own(self) -> None:
        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            (own if request.target == stream(1) else shared)(request, earlier, wire)

        own, shared = Telling(), Telling()
        server = self.start(serve, revoked(1))
        first, second = self.acquire(1, 2)
        eventually(lambda: shared.wire is not None, "the shared stream")
        shared.tell(unknown(1))
        eventually(lambda: own.wire is not None, "the stream of the first session")
        self.assertEqual(server.arrived("PATCH"), [])
        # A stream of one session says nothing of unknown sessions.
        own.tell(unknown(1) + end_of(session(1), "revoked"))
        lost = first.wait_until_over(LONG)
        self.assertEqual(lost and lost.reason, "revoked")
        second.check()
        self.assertEqual(sorted(self.streams()), sorted([stream(1, 2), stream(1)]))

    def test_a_refused_shared_stream_becomes_single_ones(self) -> None:
        for status in (204, 400, 403, 404):
            with self.subTest(status=status):

                def serve(request: Arrived, earlier: int, wire: Wire, status: int = status) -> None:
                    (answering(status) if "?with=" in request.target else hold)(request, earlier, wire)

                server = self.start(serve)
                seats = self.acquire(1, 2, 3)
                self.wait_for_streams(stream(1, 2, 3), stream(1), stream(2), stream(3))
                eventually(lambda server=server: server.streams == 3, "the streams")  # type: ignore[misc]
                seats += self.acquire(4)
                self.wait_for_streams(stream(1, 2, 3), stream(1), stream(2), stream(3), stream(4))
                self.assertEqual(server.arrived("PATCH"), [])
                self.check(seats)
                self.resources.close()

    def test_a_shared_stream_that_fails_is_opened_again_with_every_session(self) -> None:
        for status in (429, 500, 503):
            with self.subTest(status=status):

                def serve(request: Arrived, earlier: int, wire: Wire, status: int = status) -> None:
                    (answering(status) if earlier < 2 else hold)(request, earlier, wire)

                server = self.start(serve)
                self.check(self.acquire(1, 2))
                self.wait_for_streams(*[stream(1, 2)] * 3)
                self.assertEqual(server.arrived("PATCH"), [])
                self.resources.close()

    def test_a_shared_stream_with_a_rejected_token_waits_for_another(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            is_stale = request.target.startswith("PATCH") and request.token == "stale"
            return Reply(401) if is_stale else granting(request, earlier)

        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            (hold if request.token == "fresh" else answering(401))(request, earlier, wire)

        tokens = iter(["stale", "fresh"])
        self.resources.enter_context(quick())
        self.server = self.resources.enter_context(scripted(script, serve))
        self.client = self.resources.enter_context(Client(self.server.url, token_source=lambda: next(tokens)))
        self.acquire(1, 2)
        self.wait_for_streams(stream(1, 2))
        time.sleep(0.3)
        self.acquire(3)
        time.sleep(0.3)
        self.assertEqual(self.streams(), [stream(1, 2)])
        self.client.wake()
        self.wait_for_streams(stream(1, 2), stream(1, 2, 3))
        self.assertEqual([request.token for request in self.server.arrived("GET")], ["stale", "fresh"])

    def test_a_seat_that_joins_opens_the_stream_anew(self) -> None:
        server = self.start()
        seats = self.acquire(1)
        self.wait_for_streams(stream(1))
        seats += self.acquire(2, 3)
        self.wait_for_streams(stream(1), stream(1, 2, 3))
        eventually(lambda: server.streams == 1, "the earlier connection is closed")
        self.check(seats)

    def test_a_seat_that_joins_does_not_shorten_the_pause_of_a_stream_that_failed(self) -> None:
        pauses: list[float] = []

        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            if len(self.streams()) > 1:
                hold(request, earlier, wire)

        def pause(_: int, __: float) -> float:
            pauses.append(time.monotonic())
            return 1.0

        self.start(serve)
        with mock.patch.object(_streams, "backoff", pause):
            self.acquire(1, 2)
            eventually(lambda: len(pauses) == 1, "the stream fails")
            self.acquire(3)
            self.wait_for_streams(stream(1, 2), stream(1, 2, 3))
            self.assertGreaterEqual(time.monotonic() - pauses[0], 1.0)

    def test_a_seat_that_joins_cuts_no_opening_and_the_stream_opens_anew_after_its_head(self) -> None:
        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            if request.target == stream(1):
                cut.append(wire.is_closed(0.01) or not answer.wait(LONG) or wire.is_closed(0.01))
            hold(request, earlier, wire)

        answer = threading.Event()
        cut: list[bool] = []
        self.start(serve)
        self.acquire(1)
        self.wait_for_streams(stream(1))
        for number in (2, 3, 4):
            self.acquire(number)
            time.sleep(0.2)
        self.assertEqual(self.streams(), [stream(1)])
        answer.set()
        self.wait_for_streams(stream(1), stream(1, 2, 3, 4))
        self.assertEqual(cut, [False])

    def test_steady_joins_reopen_the_stream_after_longer_and_longer_pauses(self) -> None:
        times: list[float] = []

        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            times.append(time.monotonic())
            hold(request, earlier, wire)

        self.start(serve)
        with mock.patch.object(_streams, "JOIN_CALM", LONG):
            for number in range(5):
                self.client.license("K").acquire(machine=str(number))
                eventually(lambda number=number: len(times) > number, "the next stream")  # type: ignore[misc]
        self.assertEqual(self.streams()[-1], stream(*range(5)))
        for early, late, least in zip(times, times[1:], (0.1, 0.2, 0.4, 0.8)):
            # The clock of an event loop may fire a timer early by its resolution.
            self.assertGreaterEqual(late - early, least - 0.01)

    def test_a_seat_that_joins_an_opening_that_fails_is_named_after_the_backoff(self) -> None:
        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            if request.target == stream(1):
                answer.wait(LONG)
                answering(503)(request, earlier, wire)
            else:
                hold(request, earlier, wire)

        answer = threading.Event()
        self.start(serve)
        self.acquire(1)
        self.wait_for_streams(stream(1))
        self.acquire(2)
        answer.set()
        self.wait_for_streams(stream(1), stream(1, 2))

    def test_a_seat_that_joins_and_leaves_an_opening_opens_nothing(self) -> None:
        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            answer.wait(LONG)
            hold(request, earlier, wire)

        answer = threading.Event()
        server = self.start(serve)
        (first,) = self.acquire(1)
        self.wait_for_streams(stream(1))
        (second,) = self.acquire(2)
        self.assertTrue(second.release())
        answer.set()
        self.wait_until_open()
        time.sleep(0.3)
        self.assertEqual((server.streams, self.streams()), (1, [stream(1)]))
        first.check()

    def test_an_end_that_is_told_again_by_a_reopening_asks_once(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == beat(1):
                answer.wait(LONG)
                return gone("revoked")
            return granting(request, earlier)

        def serve(_: Arrived, __: int, wire: Wire) -> None:
            wire.head()
            wire.event(end_of(session(1), "revoked"))
            told.append(session(1))
            wire.is_closed(LONG)

        answer = threading.Event()
        self.addCleanup(answer.set)
        told: list[str] = []
        server = self.start(serve, script)
        first, second = self.acquire(1, 2)
        eventually(lambda: len(server.arrived(beat(1))) == 1, "the heartbeat")
        self.acquire(3)
        self.wait_for_streams(stream(1, 2), stream(1, 2, 3))
        eventually(lambda: len(told) == 2, "the end is told again")
        time.sleep(0.2)
        self.assertEqual(len(server.arrived(beat(1))), 1)
        answer.set()
        lost = first.wait_until_over(LONG)
        self.assertEqual(lost and lost.reason, "revoked")
        self.assertEqual(len(server.arrived(beat(1))), 1)
        second.check()

    def test_an_end_that_is_told_again_after_a_live_answer_asks_again(self) -> None:
        telling = Telling()
        server = self.start(telling)
        (first, _) = self.acquire(1, 2)
        for asked in (1, 2):
            eventually(lambda asked=asked: len(self.streams()) == asked, "the stream")  # type: ignore[misc]
            eventually(lambda: telling.wire is not None, "the head")
            telling.tell(end_of(session(1), "revoked"))
            eventually(lambda asked=asked: len(server.arrived(beat(1))) == asked, "the heartbeat")  # type: ignore[misc]
            entry = self.client._connection.driver()._seats[first._key]
            eventually(lambda entry=entry: entry.ending is None, "the answer")  # type: ignore[misc]
            telling.wire = None
            self.acquire(2 + asked)
        first.check()

    def test_the_time_that_a_stream_is_open_goes_on_over_a_reopening(self) -> None:
        drawn: list[int] = []

        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            if request.target == stream(1) and earlier < 2:
                return
            wire.head()
            if request.target == stream(1):
                wire.is_closed(LONG)
            else:
                wire.event(": a byte, and the end\n\n")

        def pause(failures: int, _: float) -> float:
            drawn.append(failures)
            return 0.05

        self.start(serve)
        with mock.patch.multiple(_streams, SETTLED_AFTER=0.5, backoff=pause):
            self.acquire(1)
            self.wait_for_streams(*[stream(1)] * 3)
            self.wait_until_open()
            time.sleep(0.6)
            self.acquire(2)
            eventually(lambda: len(drawn) >= 4, "the reopened stream breaks")
        self.assertEqual(drawn[:4], [0, 1, 0, 1])

    def test_a_seat_that_leaves_closes_nothing_and_the_last_one_closes_the_stream(self) -> None:
        telling = Telling()
        server = self.start(telling, revoked(3))
        first, second, third = self.acquire(1, 2, 3)
        eventually(lambda: telling.wire is not None, "the stream")
        self.assertTrue(first.release())
        second.leave()
        self.assertIsNotNone(second.wait_until_over(LONG))
        time.sleep(0.3)
        self.assertEqual((server.streams, self.streams()), (1, [stream(1, 2, 3)]))
        telling.tell(end_of(session(1), "revoked") + end_of(session(2), "revoked") + unknown(9))
        telling.tell(end_of(session(3), "revoked"))
        lost = third.wait_until_over(LONG)
        self.assertEqual(lost and lost.reason, "revoked")
        eventually(lambda: server.streams == 0, "the stream is closed")
        self.assertEqual([request.target for request in server.arrived("PATCH")], [beat(3)])
        self.assertEqual(len(self.streams()), 1)

    def test_a_seat_that_joins_and_leaves_at_once_opens_nothing(self) -> None:
        server = self.start()
        self.check(self.acquire(1))
        self.wait_for_streams(stream(1))
        eventually(lambda: server.streams == 1, "the stream")
        with mock.patch.object(_streams, "JOIN_PAUSE", LONG):
            self.assertTrue(self.client.license("K").acquire(machine="2").release())
        self.end_join_pauses()
        time.sleep(0.3)
        self.assertEqual((server.streams, self.streams()), (1, [stream(1)]))

    def test_a_session_that_is_left_alone_has_the_request_of_one_session(self) -> None:
        def serve(request: Arrived, earlier: int, wire: Wire) -> None:
            wire.head()
            wire.event(f"id: {session(1)[-1]}\n\n")
            telling.wire = wire
            wire.is_closed(LONG)

        telling = Telling()
        server = self.start(serve)
        (first,) = self.acquire(1)
        self.wait_for_streams(stream(1))
        self.acquire(2)
        self.wait_for_streams(stream(1), stream(1, 2))
        eventually(lambda: server.streams == 1, "the shared stream")
        self.assertTrue(first.release())
        assert telling.wire is not None
        telling.wire.send(b"0\r\n\r\n")
        self.wait_for_streams(stream(1), stream(1, 2), stream(2))
        self.assertEqual({request.last_event_id for request in server.arrived("GET")}, {None})

    def test_a_session_that_follows_joins_the_others(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == beat(2):
                return Reply(404, {"type": "/problems/session-not-found", "title": "none"})
            reply = granting(request, earlier)
            if request.target == ACQUIRE and request.body["machine_id"] == "2" and earlier > 1:
                return Reply(201, {**reply.body, "session_id": session(7)})
            return reply

        telling = Telling()
        server = self.start(telling, script)
        first, second = self.acquire(1, 2)
        eventually(lambda: telling.wire is not None, "the stream")
        telling.tell(end_of(session(2), "expired"))
        self.wait_for_streams(stream(1, 2), stream(1, 7))
        self.assertEqual(second.session_id, session(7))
        self.check([first, second])
        eventually(lambda: server.streams == 1, "the earlier connection is closed")

    def test_two_seats_of_one_session_are_named_once_and_told_both(self) -> None:
        telling = Telling()
        self.start(telling, revoked(1))
        seats = self.acquire(1, 1, 2)
        eventually(lambda: telling.wire is not None, "the stream")
        self.assertEqual(self.streams(), [stream(1, 2)])
        telling.tell(end_of(session(1), "revoked"))
        for seat in seats[:2]:
            lost = seat.wait_until_over(LONG)
            self.assertEqual(lost and lost.reason, "revoked")
        seats[2].check()

    def test_seats_of_two_apis_share_no_stream(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == "POST /api/v1/devices/sessions":
                return Reply(201, {**GRANT, "session_id": session(9), "expires_in_seconds": 3_600})
            return granting(request, earlier)

        self.start(script=script)
        with self.client.device("tv-1", "tv").admit():
            self.acquire(1)
            self.wait_for_streams(stream(1), stream(9).replace("licenses", "devices"))

    def test_101_seats_have_two_streams(self) -> None:
        server = self.start()
        seats = self.acquire(*range(101))
        wanted = {stream(*range(100)), stream(100)}
        eventually(lambda: server.streams == 2 and wanted <= set(self.streams()), "two streams")
        self.check(seats)
        self.client.close()
        eventually(lambda: server.streams == 0, "the streams are closed")


if __name__ == "__main__":
    unittest.main()
