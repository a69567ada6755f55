"""A license key as the source of tokens, against servers of the tests' own."""

from __future__ import annotations

import asyncio
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from seatkeeper import Client, Denied, LicenseKey, Offline, _clock, _license_tokens
from seatkeeper._connection import TransportError
from seatkeeper._core.clocks import SECOND
from seatkeeper._license_tokens import LicenseTokens, _Token
from seatkeeper._servers import Servers
from seatkeeper._tokens import TokenCache, from_text
from seatkeeper._transport import Server

from .scripted import GRANT, Arrived, Reply, scripted

KEY = "CAD-2030-KEY"
TOKEN = "POST /api/v1/licenses/token"
ACQUIRE = "POST /api/v1/licenses/acquire"


def issue(request: Arrived, earlier: int) -> Reply:
    """Returns a token that names the machine, and the number of the token."""
    token = f"{request.body['machine_id']}.{earlier}"
    return Reply(200, {"token": token, "token_type": "Bearer", "expires_in_seconds": 900}, delay=0.1)


def acquire_and_release(client: Client, machine: str, instance: str) -> None:
    client.license(KEY).acquire(machine=machine, instance=instance).release()


class LicenseKeyTest(unittest.TestCase):
    def test_each_machine_has_a_token_and_one_request_serves_all_its_seats(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            return issue(request, earlier) if request.target == TOKEN else Reply(201, GRANT)

        with scripted(script) as server, Client(server.url, token_source=LicenseKey(KEY, tenant="acme")) as client:
            with ThreadPoolExecutor(10) as threads:
                list(threads.map(lambda n: acquire_and_release(client, f"m{n % 2}", str(n)), range(10)))
        asked = server.arrived(TOKEN)
        self.assertEqual({request.body["machine_id"] for request in asked}, {"m0", "m1"})
        self.assertEqual(len(asked), 2)
        for request in asked:
            self.assertIsNone(request.token)
            machine = request.body["machine_id"]
            self.assertEqual(request.body, {"license_key": KEY, "machine_id": machine, "tenant": "acme"})
        for request in server.arrived(ACQUIRE):
            self.assertEqual((request.token or "").split(".")[0], request.body["machine_id"])

    def test_a_rejected_license_token_is_replaced_once_for_all_seats_of_its_machine(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.token is None:
                return issue(request, earlier)
            return Reply(401) if request.token.endswith(".0") else Reply(201, GRANT)

        with scripted(script) as server, Client(server.url, token_source=LicenseKey(KEY)) as client:
            with ThreadPoolExecutor(10) as threads:
                list(threads.map(lambda n: acquire_and_release(client, "m", str(n)), range(10)))
        self.assertEqual(len(server.arrived(TOKEN)), 2)

    def test_a_key_that_is_not_good_is_a_denial_that_names_the_remedy(self) -> None:
        for kind, remedy in (("license-not-found", "--clients key"), ("not-found", "license_token_key_file")):
            problem = {"type": f"/problems/{kind}", "title": "Not found", "status": 404}
            reply = Reply(404, problem)
            with scripted(lambda *_, reply=reply: reply) as server:
                with Client(server.url, token_source=LicenseKey(KEY)) as client, self.assertRaises(Denied) as denied:
                    client.license(KEY).acquire(machine="m")
            self.assertEqual(denied.exception.code, kind)
            self.assertIn(remedy, str(denied.exception))
            self.assertNotIn(KEY, f"{denied.exception!r} {client!r} {LicenseKey(KEY)!r}")
            self.assertEqual((len(server.arrived(TOKEN)), len(server.arrived(ACQUIRE))), (1, 0))

    def test_a_busy_issuer_is_asked_again_and_an_absent_one_is_offline(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target != TOKEN:
                return Reply(201, GRANT)
            busy = [Reply(429, {"title": "slow down"}, retry_after=1), Reply(503)]
            return busy[earlier] if earlier < 2 else issue(request, earlier)

        with scripted(script) as server, Client(server.url, token_source=LicenseKey(KEY)) as client:
            client.license(KEY).acquire(machine="m", patience=60).release()
            self.assertEqual(len(server.arrived(TOKEN)), 3)
        with Client("http://127.0.0.1:1", token_source=LicenseKey(KEY)) as client, self.assertRaises(Offline):
            client.license(KEY).acquire(machine="m", patience=0)

    def test_a_refused_token_is_no_word_on_a_held_session(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == TOKEN:
                closed = Reply(404, {"type": "/problems/license-not-found", "title": "none"})
                return issue(request, earlier) if earlier == 0 else closed
            grant = {**GRANT, "expires_in_seconds": 3, "heartbeat_interval_seconds": 1}
            return Reply(201, grant) if request.target == ACQUIRE else Reply(401)

        with scripted(script) as server, Client(server.url, token_source=LicenseKey(KEY)) as client:
            seat = client.license(KEY).acquire(machine="m")
            end = time.monotonic() + 30
            while len(server.arrived(TOKEN)) < 3:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            self.assertEqual(len(server.arrived(ACQUIRE)), 1)
            self.assertFalse(seat.release(), "the server has not confirmed the release")

    def test_a_key_that_is_closed_before_the_seat_is_a_denial_and_no_outage(self) -> None:
        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == TOKEN and earlier > 0:
                return Reply(404, {"type": "/problems/license-not-found", "title": "none"})
            return issue(request, earlier) if request.target == TOKEN else Reply(401)

        with scripted(script) as server, Client(server.url, token_source=LicenseKey(KEY)) as client:
            with self.assertRaises(Denied) as denied:
                client.license(KEY).acquire(machine="m", patience=60)
        self.assertEqual(denied.exception.code, "license-not-found")


class LifeTest(unittest.TestCase):
    """The life of a token, on the event loop of the driver."""

    LIFE = 1_000

    def reply(self, request: Arrived, earlier: int) -> Reply:
        return Reply(200, {"token": f"t{earlier + 1}", "expires_in_seconds": self.LIFE}, delay=0.1)

    def tokens(self, url: str) -> LicenseTokens:
        return LicenseTokens(Servers([Server(url, None, 5.0)]), LicenseKey(KEY))

    def age(self, tokens: LicenseTokens, seconds: int) -> None:
        """Moves the times of the token, as if the token had been issued ``seconds`` ago."""
        slot = tokens._slot("m")
        assert slot.token is not None
        issued = _clock.boot() - seconds * SECOND
        slot.token = _Token(slot.token.text, issued + self.LIFE * 800_000_000, issued + self.LIFE * SECOND)

    def test_a_token_is_due_at_four_fifths_of_its_life_and_replaced_in_the_background(self) -> None:
        async def life(url: str) -> None:
            tokens, before = self.tokens(url), _clock.boot()
            self.assertIsNone(tokens.peek("m"))
            self.assertEqual(await tokens.current("m"), "t1")
            self.assertEqual(tokens.peek("m"), "t1")
            token = tokens._slot("m").token
            assert token is not None
            self.assertLessEqual(before, token.renew_at - self.LIFE * 800_000_000)
            self.assertLessEqual(token.renew_at - self.LIFE * 800_000_000, _clock.boot())
            self.assertEqual(token.over_at - token.renew_at, self.LIFE * 200_000_000)
            self.age(tokens, self.LIFE * 4 // 5 - 100)
            self.assertEqual(await tokens.current("m"), "t1")
            self.assertFalse(tokens._work, "nothing before four fifths of the life")
            self.age(tokens, self.LIFE * 4 // 5)
            for _ in range(20):
                self.assertEqual(await tokens.current("m"), "t1", "no request waits for the new token")
            await asyncio.gather(*tokens._work)
            self.assertEqual(await tokens.current("m"), "t2")
            self.age(tokens, self.LIFE)
            self.assertIsNone(tokens.peek("m"), "a token that is over")
            got = await asyncio.gather(*(tokens.current("m") for _ in range(20)))
            self.assertEqual(set(got), {"t3"})

        with scripted(self.reply) as server:
            asyncio.run(life(server.url))
        self.assertEqual(len(server.arrived(TOKEN)), 3)

    def test_a_look_at_the_token_of_the_moment_fetches_none(self) -> None:
        async def life() -> None:
            cache = TokenCache(from_text("t"))
            self.assertIsNone(cache.peek(""))
            self.assertEqual(await cache.current(""), "t")
            self.assertEqual(cache.peek(""), "t")

        asyncio.run(life())

    def test_a_replacement_that_fails_keeps_the_token_and_pauses(self) -> None:
        async def life() -> None:
            tokens = self.tokens("http://127.0.0.1:1")
            tokens._slot("m").token = _Token("old", 0, 1 << 62)
            for _ in range(2):
                self.assertEqual(await tokens.current("m"), "old")
                await asyncio.gather(*tokens._work)
            self.assertGreater(tokens._slot("m").pause_until, _clock.boot() + 5 * SECOND)
            with self.assertRaises(TransportError):
                await tokens.current("another machine")
            for number in range(1_000):
                tokens._slot(f"m{number}")
            self.assertLessEqual(len(tokens._machines), _license_tokens.MACHINES_KEPT)

        asyncio.run(life())

    def test_a_server_that_hangs_is_given_up(self) -> None:
        async def life(url: str) -> None:
            tokens = self.tokens(url)
            with self.assertRaises(TransportError):
                await tokens.current("m")
            self.assertFalse(await tokens.refresh("m"))

        with mock.patch("seatkeeper._license_tokens.TIMEOUT", 0.05), scripted(lambda *_: Reply(200, delay=5)) as server:
            began = time.monotonic()
            asyncio.run(life(server.url))
            self.assertLess(time.monotonic() - began, 4)


if __name__ == "__main__":
    unittest.main()
