"""The client against servers of the tests' own, with answers that no real server is made to give."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import datetime
import http.server
import json
import logging
import pickle
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import traceback
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable
from unittest import mock

from seatkeeper import (
    Client,
    Closed,
    Denied,
    Holder,
    Misuse,
    NoMachineId,
    NoResources,
    NotHeld,
    Offline,
    Problem,
    Seat,
    SeatkeeperError,
    SeatLost,
    State,
    _fork,
)
from seatkeeper._core.answer import Grant, read_acquire
from seatkeeper._core.clocks import SECOND, Now
from seatkeeper._core.door import LicenseDoor
from seatkeeper._core.events import Send
from seatkeeper._core.lease import Lease
from seatkeeper._core.machine import Machine
from seatkeeper._core.orphan import Orphan
from seatkeeper._core.plan import FOREVER, Plan
from seatkeeper._core.request import Failure, Request, Response
from seatkeeper._driver import Driver
from seatkeeper._shared import Shared
from seatkeeper._threads import post
from seatkeeper.aio import AsyncClient, AsyncSeat
from seatkeeper.client import license_plan

from . import certificates
from .scripted import GRANT as GRANTED
from .scripted import Arrived, Reply, scripted
from .test_streams import ACQUIRE, RELEASE, eventually, granting
from .test_tokens import in_time

KEY = "CANARY-LICENSE-7f3a91-KEY9"
TOKEN = "canary.token.5be2c04d"
CODE = "canary-code-91c3e7"
SESSION = "0198a0aa-0000-7000-8000-000000000001"
#: More than any wait in these tests needs.
LONG = 30.0
GRANT = json.dumps({"session_id": SESSION, "expires_in_seconds": 360, "release_code": CODE}).encode()


@contextmanager
def answering(status: int, body: bytes = b"{}", certificate: Path | None = None) -> Iterator[str]:
    """Starts a server with one answer to everything, and yields its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_DELETE = do_PATCH = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"{scheme}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class ErrorTest(unittest.TestCase):
    def error(self, reply: Reply) -> SeatkeeperError:
        """Returns the error of an acquire."""
        with scripted(lambda *_: reply) as server, Client(server.url, token="t") as client:
            with self.assertRaises(SeatkeeperError) as caught:
                client.license("K").acquire(machine="m", patience=0)
        return caught.exception

    def test_each_error_of_an_answer_has_the_id_of_the_request_and_a_remedy(self) -> None:
        wrong = {"title": "wrong", "errors": [{"field": "machine_id", "message": "is too long"}]}
        for reply, text in (
            (Reply(403, {"type": "/problems/license-full", "detail": "All in use."}), "full: All in use. Remedy: pass"),
            (Reply(422, {"type": "/problems/invalid-request", **wrong}), "wrong (machine_id is too long)"),
            (Reply(404, {"type": "/problems/not-found"}), "not-found. Remedy: correct the path"),
            (Reply(401, {}), "unauthenticated. Remedy: check the issuer"),
            (Reply(503, {}), "cannot answer now. Remedy: try again"),
            (Reply(501, {}), "cannot answer now. Remedy: try again"),
        ):
            error = self.error(dataclasses.replace(reply, request_id="r-7"))
            self.assertEqual(error.request_id, "r-7", error)
            self.assertIn(text, str(error))

    def test_an_error_without_an_answer_has_no_id_of_a_request(self) -> None:
        with Client("http://127.0.0.1:1", token="t") as client, self.assertRaises(Offline) as offline:
            client.license("K").acquire(machine="m", patience=0)
        self.assertIsNone(offline.exception.request_id)
        self.assertIn("Remedy: check the address", str(offline.exception))

    def test_a_loss_told_by_an_answer_has_the_id_of_the_request(self) -> None:
        def script(request: Arrived, _: int) -> Reply:
            if "heartbeat" in request.target:
                return Reply(410, {"type": "/problems/session-ended", "reason": "revoked"}, request_id="beat")
            return Reply(201, GRANTED)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            seat = client.license("K").acquire(machine="m")
            client.wake()
            lost = seat.wait_until_over(20)
            with self.assertRaises(SeatLost) as caught:
                seat.check()
        self.assertEqual((caught.exception.request_id, lost and lost.request_id), ("beat", "beat"))
        self.assertIn("revoked. Remedy: ask the operator", str(caught.exception))


class PickleTest(unittest.TestCase):
    def test_each_error_survives_a_pickle_and_a_copy(self) -> None:
        problem = Problem(403, "license-full", holders=(Holder("m", "i"),), retry_after_seconds=7, request_id="r-7")
        errors: list[SeatkeeperError] = [
            SeatkeeperError("told"),
            Misuse("told"),
            Denied(problem),
            Offline(Failure.TIMEOUT, "r-7"),
            NoResources("told"),
            Closed("told"),
            NoMachineId("container", "told"),
            NotHeld("released", "told"),
            SeatLost("evicted", "Kitchen TV", True, "r-7"),
        ]
        self.assertEqual(subclasses(SeatkeeperError), {type(error) for error in errors})
        for error in errors:
            copies = [copy.copy(error), copy.deepcopy(error)]
            copies += [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(6)]  # noqa: S301
            for other in copies:
                wanted = (type(error), error.args, vars(error), str(error), error.code, error.request_id)
                found = (type(other), other.args, vars(other), str(other), other.code, other.request_id)
                self.assertEqual(found, wanted)


def subclasses(kind: type[SeatkeeperError]) -> set[type[SeatkeeperError]]:
    return {kind}.union(*[subclasses(other) for other in kind.__subclasses__()])


class PatienceTest(unittest.TestCase):
    def test_a_request_of_an_acquire_takes_no_longer_than_the_patience(self) -> None:
        for patience, wait, timeout in (
            (2, None, 2),
            (0, None, 2),
            (4, 3 * SECOND, 4),
            (10, None, 10),
            (2, 7 * SECOND, 7),
            (2, FOREVER, 10),
            (60, None, 10),
        ):
            machine = Machine(Plan(LicenseDoor("K", "m"), wait, patience * SECOND), Now(0, 0, 0))
            (send,) = machine.begin()
            assert isinstance(send, Send)
            self.assertEqual(send.request.timeout, timeout * SECOND, (patience, wait))


class RetryTest(unittest.TestCase):
    def test_an_acquire_waits_for_the_release_of_one_that_had_no_answer(self) -> None:
        """The server carried the first acquire out, so the second one would resume a session that is being released."""
        last = threading.Event()

        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == ACQUIRE and earlier == 0:
                last.wait(LONG)
            elif request.target == ACQUIRE and request.body["metadata"] == {"number": 1}:
                return Reply(201, GRANTED, delay=0.5)
            return granting(request, earlier)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            license = client.license("K")
            with mock.patch("seatkeeper._core.acquiring.TIMEOUT", SECOND // 10), self.assertRaises(Offline):
                license.acquire(machine="m", patience=0, metadata={"number": 1})
            # Another holder waits for nobody.
            license.acquire(machine="other", metadata={"number": 2})
            license.acquire(machine="m", metadata={"number": 2}).check()
            last.set()
            arrived = [(request.target, request.body and request.body["machine_id"]) for request in server.arrived()]
        others = arrived.index((ACQUIRE, "other"))
        self.assertLess(others, arrived.index((RELEASE, None)))
        del arrived[others]
        self.assertEqual(arrived, [(ACQUIRE, "m"), (ACQUIRE, "m"), (RELEASE, None), (ACQUIRE, "m")])

    def test_an_acquire_waits_for_the_release_of_another_instance_of_its_machine(self) -> None:
        """A license that counts machines ignores the instance: the late DELETE would end the seat of the acquire."""
        answers = threading.Event()

        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == RELEASE and earlier == 0:
                answers.wait(LONG)
            return granting(request, earlier)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            license = client.license("K")
            seat = license.acquire(machine="m", instance="a")
            client._connection.driver().release(seat._key)
            acquiring = threading.Thread(target=lambda: license.acquire(machine="m", instance="b"))
            acquiring.start()
            acquiring.join(0.3)
            self.assertTrue(acquiring.is_alive(), "the acquire waits for no release")
            answers.set()
            acquiring.join(LONG)
            targets = [request.target for request in server.arrived()]
        self.assertEqual(targets, [ACQUIRE, RELEASE, ACQUIRE])


class CallbackTest(unittest.TestCase):
    def test_the_stop_of_a_callback_drops_the_changes_that_wait(self) -> None:
        told: list[State] = []
        is_busy, goes_on, is_over = threading.Event(), threading.Event(), threading.Event()

        def wait(_: State) -> None:
            is_busy.set()
            goes_on.wait(LONG)

        with scripted(granting) as server, Client(server.url, token="t", event_streams=False) as client:
            seat = client.license("K").acquire(machine="m", on_change=wait)
            self.assertTrue(is_busy.wait(LONG))
            stop = seat.on_change(told.append)
            seat.release()
            stop()
            seat.on_change(lambda _: is_over.set())
            goes_on.set()
            self.assertTrue(is_over.wait(LONG))
        self.assertEqual(told, [])


class CheckTest(unittest.TestCase):
    def test_a_check_during_a_change_tells_the_new_state(self) -> None:
        with scripted(granting) as server, Client(server.url, token="t", event_streams=False) as client:
            seat = client.license("K").acquire(machine="m")
            shared, errors = seat._shared, list[BaseException]()

            def check() -> None:
                try:
                    seat.check()
                except NotHeld as error:
                    errors.append(error)

            checking = threading.Thread(target=check, daemon=True)
            with shared._lock:
                # `publish`, in slow motion.
                shared.valid_until = 0
                checking.start()
                checking.join(0.3)
                shared._state = State("lost", reason="revoked")
            checking.join(LONG)
            self.assertEqual([type(error) for error in errors], [SeatLost])


class ForkTest(unittest.TestCase):
    def test_a_seat_of_the_parent_claims_and_waits_for_nothing_in_a_child(self) -> None:
        async def first_state(seat: Seat) -> None:
            async for _ in AsyncSeat(seat._key, seat._shared, seat._driver).states():
                return

        with scripted(lambda *_: Reply(201, GRANTED)) as server, Client(server.url, token="t") as client:
            seat = client.license("K").acquire(machine="m")
            self.assertGreater(seat.remaining, 0)
            self.assertIsNone(seat.wait_until_over(0))
            with mock.patch.object(_fork, "count", _fork.count + 1):
                self.assertEqual((seat.is_valid, seat.remaining), (False, 0))
                self.assertIsInstance(in_time(seat.wait_until_over), Closed)
                self.assertIsInstance(in_time(lambda: seat.state), Closed)
                with self.assertRaises(Closed):
                    asyncio.run(first_state(seat))


class MetadataTest(unittest.TestCase):
    def test_metadata_that_are_no_json_are_a_misuse(self) -> None:
        circle: dict[str, Any] = {}
        circle["self"] = circle
        with scripted(lambda *_: Reply(201, GRANTED)) as server, Client(server.url, token="t") as client:
            wrong: list[dict[Any, Any]] = [
                {"at": datetime.date(2026, 1, 1)},
                {"share": float("nan")},
                {(1, 2): "pair"},
                circle,
            ]
            for metadata in wrong:
                with self.assertRaises(Misuse) as misuse:
                    client.license("K").acquire(machine="m", metadata=metadata, patience=0)
                self.assertIn("metadata", str(misuse.exception))
            self.assertEqual(server.arrived(), [])

    def test_metadata_are_those_of_the_moment_of_the_call(self) -> None:
        metadata: dict[str, Any] = {"tags": ["first"]}
        plan = license_plan("K", "m", None, False, None, 0, None, metadata, None)
        metadata["tags"].append("late")
        body = plan.door.acquire(None).body
        assert body is not None
        self.assertEqual(body["metadata"], {"tags": ["first"]})


class SecretTest(unittest.TestCase):
    def test_no_output_shows_a_license_key_a_token_or_a_release_code(self) -> None:
        shown: list[str] = []
        handler = logging.Handler(logging.DEBUG)
        handler.emit = lambda record: shown.append(logging.Formatter().format(record))  # type: ignore[method-assign]
        logger = logging.getLogger("seatkeeper")
        propagate, logger.propagate = logger.propagate, False
        logger.addHandler(handler)
        self.addCleanup(setattr, logger, "propagate", propagate)
        self.addCleanup(logger.removeHandler, handler)
        answers = [(201, GRANT), (401, b"{}"), (403, b'{"type":"/problems/license-full"}'), (503, b"{}")]
        for status, body in answers:
            with answering(status, body) as url:
                shown += self.acquire(url)
        shown += self.acquire("http://127.0.0.1:1")
        shown += self.internals()
        text = "\n".join(shown)
        for secret in (KEY, TOKEN, CODE, "7f3a91", "5be2c04d", "91c3e7"):
            self.assertNotIn(secret, text)
        self.assertIn("'****KEY9'", text)
        self.assertIn("the program's own fault", text)

    def acquire(self, url: str) -> list[str]:
        def fails(state: State) -> None:
            raise RuntimeError("the program's own fault")

        with Client(url, token=TOKEN) as client:
            license = client.license(KEY)
            values: list[Any] = [client, license, [license]]
            shown: list[str] = []
            try:
                seat = license.acquire(machine="m", patience=0, on_change=fails)
                values += [seat, seat.state, seat._driver, seat._shared]
                seat.release()
            except SeatkeeperError as error:
                values += [error, error.args, vars(error)]
                shown.append(traceback.format_exc())
        return shown + [repr(value) + str(value) for value in values]

    def internals(self) -> list[str]:
        door = LicenseDoor(KEY, "m")
        plan = Plan(door)
        machine = Machine(plan, Now(0, 0, 0))

        async def license() -> str:
            async with AsyncClient("http://127.0.0.1:1", token=TOKEN) as client:
                return repr(client) + repr(client.license(KEY))

        grant = read_acquire(Response(201, None, GRANT))
        assert isinstance(grant, Grant)
        lease = Lease(grant, 0)
        orphan = Orphan.from_lease(lease)
        release = door.release_by_code("s", CODE)
        values = [
            plan,
            door,
            door.acquire(None),
            machine.begin(),
            grant,
            lease,
            orphan,
            release,
            Request(1, release, 1),
        ]
        return [*map(repr, values), asyncio.run(license())]


class CloseTest(unittest.TestCase):
    """An acquire that passes ``close``: another thread calls each of them."""

    def refused(self, client: Client) -> None:
        """Acquires, and expects the end of the client."""

        def acquire() -> None:
            client.license("K").acquire(machine="late", wait="forever")

        self.assertIsInstance(in_time(acquire), Closed)

    def close_before_start(self, client: Client) -> None:
        """Acquires while the end of the client goes before the acquire on the driver's thread."""
        driver = client._connection.driver()
        started = threading.Event()
        start = driver.start

        def start_late(plan: Plan, shared: Shared) -> int:
            key = start(plan, shared)
            started.set()
            return key

        def hold_up() -> None:
            started.wait(LONG)

        driver._post(hold_up)
        driver._post(driver._release_all)
        with mock.patch.object(driver, "start", start_late):
            self.refused(client)

    def test_an_acquire_behind_the_end_of_an_idle_client_is_refused(self) -> None:
        with Client("http://127.0.0.1:1", token="t") as client:
            self.close_before_start(client)

    def test_an_acquire_behind_the_release_of_another_seat_is_refused(self) -> None:
        go_on = threading.Event()

        def script(request: Arrived, _: int) -> Reply:
            if request.target.startswith("DELETE"):
                go_on.wait(LONG)
            return Reply(201, GRANTED)

        with scripted(script) as server, Client(server.url, token="t", event_streams=False) as client:
            client.license("K").acquire(machine="early")
            self.close_before_start(client)
            go_on.set()
            client.close()
        self.assertEqual([request.body["machine_id"] for request in server.arrived("POST")], ["early"])

    def test_an_acquire_that_no_turn_of_the_ended_loop_sees_is_refused(self) -> None:
        with Client("http://127.0.0.1:1", token="t") as client:
            driver = client._connection.driver()
            loop = driver._loop
            ended, posted = threading.Event(), threading.Event()
            close = loop.close

            def close_late() -> None:
                ended.set()
                posted.wait(LONG)
                close()

            def post_late(loop: asyncio.AbstractEventLoop, function: Callable[[Any], None], argument: Any) -> bool:
                post(loop, function, driver._release_all)
                ended.wait(LONG)
                is_open = post(loop, function, argument)
                posted.set()
                return is_open

            with mock.patch.object(loop, "close", close_late), mock.patch("seatkeeper._driver.post", post_late):
                self.refused(client)


#: A program whose callback closes the client, while the main thread comes to its end.
CLOSES_IN_A_CALLBACK = """
import atexit, sys, threading
import seatkeeper

atexit.register(lambda: print("ended" if not driver._thread.is_alive() else "cut off"))
closing = threading.Event()
client = seatkeeper.Client(sys.argv[1], token="t", event_streams=False)
seat = client.license("K").acquire(machine="m")
driver = client._connection.driver()

def close(state):
    if state.kind == "active":
        closing.set()
        client.close()

seat.on_change(close)
closing.wait(20)
while driver._closing is None:
    closing.wait(0.01)
"""


class ReleaseAfterCloseTest(unittest.TestCase):
    def test_a_release_tells_the_result_of_the_close(self) -> None:
        asked, goes_on = threading.Event(), threading.Event()

        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == RELEASE:
                asked.set()
                goes_on.wait(LONG)
            return granting(request, earlier)

        async def release(url: str) -> tuple[bool, bool]:
            client = AsyncClient(url, token="t", event_streams=False)
            seat = await client.license("K").acquire(machine="m")
            closing = asyncio.ensure_future(client.close())
            await asyncio.get_running_loop().run_in_executor(None, asked.wait, LONG)
            releasing = asyncio.ensure_future(seat.release())
            # One turn of the loop: the release has met the closed client.
            await asyncio.sleep(0)
            goes_on.set()
            during = await releasing
            await closing
            return during, await seat.release()

        with scripted(script) as server:
            client = Client(server.url, token="t", event_streams=False)
            seat = client.license("K").acquire(machine="m")
            closing = threading.Thread(target=client.close)
            closing.start()
            self.assertTrue(asked.wait(LONG))
            during: list[bool] = []
            releasing = threading.Thread(target=lambda: during.append(seat.release()))
            releasing.start()
            releasing.join(0.2)
            goes_on.set()
            for thread in (releasing, closing):
                thread.join(LONG)
            self.assertEqual((during, seat.release()), ([True], True))
            asked.clear()
            goes_on.clear()
            self.assertEqual(asyncio.run(release(server.url)), (True, True))


class SecondCloseTest(unittest.TestCase):
    def test_a_second_close_waits_for_the_releases_as_well(self) -> None:
        with scripted(releasing_late) as server:
            client = Client(server.url, token="t", event_streams=False)
            client.license("K").acquire(machine="m")
            thread = client._connection.driver()._thread
            first = threading.Thread(target=client.close)
            first.start()
            eventually(lambda: len(server.arrived(RELEASE)) == 1, "no release")
            client.close()
            self.assertFalse(thread.is_alive())
            first.join()

    def test_a_program_that_ends_during_a_close_waits_for_the_releases(self) -> None:
        with scripted(releasing_late) as server:
            command = [sys.executable, "-c", CLOSES_IN_A_CALLBACK, server.url]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=2 * LONG, check=False)
        self.assertEqual((ended.stdout, ended.stderr), ("ended\n", ""))


def releasing_late(request: Arrived, earlier: int) -> Reply:
    return Reply(204, delay=0.7) if request.target == RELEASE else granting(request, earlier)


class FinalizerTest(unittest.TestCase):
    """Calls on the thread of a client, where the garbage collector may run a finalizer of the program."""

    def test_a_release_on_the_thread_of_a_client_does_not_wait(self) -> None:
        released: list[bool] = []
        with scripted(granting) as server, Client(server.url, token="t", event_streams=False) as client:
            with Client(server.url, token="t") as other, mock.patch("seatkeeper.seat.RELEASE_TIMEOUT", 2 * LONG):
                for driver in (client._connection.driver(), other._connection.driver()):
                    seat = client.license("K").acquire(machine="m")
                    driver._post(lambda seat=seat: released.append(seat.release()))  # type: ignore[misc]
                    self.assertEqual(getattr(seat.wait_until_over(LONG), "kind", None), "released")
                    self.assertTrue(seat.release())
            self.assertEqual(released, [False, False])
            self.assertEqual(len(server.arrived(RELEASE)), 2)

    def test_a_close_on_the_thread_of_the_client_gives_the_seats_back(self) -> None:
        with scripted(granting) as server:
            client = Client(server.url, token="t", event_streams=False)
            client.license("K").acquire(machine="m")
            driver = client._connection.driver()
            driver._post(client.close)
            driver._thread.join(LONG)
            self.assertFalse(driver._thread.is_alive())
            self.assertEqual(len(server.arrived(RELEASE)), 1)


@mock.patch.multiple(Driver, release=mock.Mock(side_effect=Closed))
class ClosedMeanwhileTest(unittest.TestCase):
    """The end of an acquire whose client another thread closes."""

    def test_a_refusal_stays_the_refusal(self) -> None:
        full = Reply(403, {"type": "/problems/license-full"})
        with scripted(lambda *_: full) as server, Client(server.url, token="t") as client:
            with self.assertRaises(Denied):
                client.license("K").acquire(machine="m")
            with tempfile.TemporaryDirectory() as folder, self.assertRaises(Denied):
                client._connection._state_dir = folder
                client.license("K").acquire(machine="m", per_process=True)

    def test_an_interrupt_stays_the_interrupt(self) -> None:
        with Client("http://127.0.0.1:1", token="t") as client:
            with mock.patch.object(Shared, "wait_for", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    client.license("K").acquire(machine="m")

    def test_a_cancellation_stays_the_cancellation(self) -> None:
        async def acquire() -> None:
            async with AsyncClient("http://127.0.0.1:1", token="t") as client:
                acquiring = asyncio.ensure_future(client.license("K").acquire(machine="m", wait="forever"))
                # One turn starts the acquire, which then waits for its seat.
                await asyncio.sleep(0)
                acquiring.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await acquiring

        asyncio.run(acquire())


class CertificateTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("openssl"), "needs openssl for a certificate")
    def test_a_certificate_of_an_unknown_authority_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            certificate = certificates.make(folder)
            with answering(503, certificate=certificate) as url, Client(url, token="t") as client:
                with self.assertRaises(Offline) as offline:
                    client.license("K").acquire(machine="m", patience=0)
        self.assertIn("certificate was not accepted", str(offline.exception))


if __name__ == "__main__":
    unittest.main()
