"""The client against servers of the tests' own, with answers that no real server is made to give."""

from __future__ import annotations

import asyncio
import dataclasses
import http.server
import json
import logging
import shutil
import ssl
import tempfile
import threading
import traceback
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seatkeeper import Client, Offline, SeatkeeperError, SeatLost, State
from seatkeeper._core.answer import Grant, read_acquire
from seatkeeper._core.clocks import Now
from seatkeeper._core.door import LicenseDoor
from seatkeeper._core.lease import Lease
from seatkeeper._core.machine import Machine
from seatkeeper._core.orphan import Orphan
from seatkeeper._core.plan import Plan
from seatkeeper._core.request import Request, Response
from seatkeeper.aio import AsyncClient

from . import certificates
from .scripted import GRANT as GRANTED
from .scripted import Arrived, Reply, scripted

KEY = "CANARY-LICENSE-7f3a91-KEY9"
TOKEN = "canary.token.5be2c04d"
CODE = "canary-code-91c3e7"
SESSION = "0198a0aa-0000-7000-8000-000000000001"
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
