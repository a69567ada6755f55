"""Token sources and token files that fail, hang and change."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import threading
import time
import unittest
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional
from unittest import mock

from seatkeeper import Client, Offline, State
from seatkeeper._dispatcher import WAITING_MAX, Dispatcher, Relay
from seatkeeper._tokens import FileToken, NoToken, TokenCache, from_source
from seatkeeper.aio import AsyncClient

from .scripted import GRANT, Arrived, Reply, Scripted, scripted

#: The longest wait of a test, in seconds.
PATIENCE = 20.0


def admit_fresh(request: Arrived, _: int) -> Reply:
    """Answers an acquire: every token but ``stale`` gets a seat."""
    return Reply(401) if request.token == "stale" else Reply(201, GRANT)


def in_time(call: Callable[[], object]) -> Optional[BaseException]:
    """Calls on a thread, so that a call that hangs fails the test; returns the error of the call."""
    errors: list[Optional[BaseException]] = []

    def run() -> None:
        try:
            call()
        except Exception as error:
            errors.append(error)
        else:
            errors.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if not errors:
        raise AssertionError("the call hangs")
    return errors[0]


def calling_threads() -> int:
    """Returns the number of threads that call a token source or read a file."""
    return sum(thread.name == "seatkeeper-call" for thread in threading.enumerate())


class SourceTest(unittest.TestCase):
    def test_a_token_source_that_hangs_is_given_up(self) -> None:
        calls = iter(["stale"])
        hang = threading.Event()

        def source() -> str:
            token = next(calls, None)
            if token is None:
                hang.wait()
            return token or "late"

        began = time.monotonic()
        with mock.patch("seatkeeper._tokens.TOKEN_TIMEOUT", 200_000_000), scripted(admit_fresh) as server:
            with self.assertRaises(Offline) as offline, Client(server.url, token_source=source) as client:
                client.license("K").acquire(machine="m", patience=0)
        self.assertLess(time.monotonic() - began, PATIENCE)
        hang.set()
        self.assertIn("no token", str(offline.exception))

    def test_a_token_source_that_exits_ends_no_thread_of_the_client(self) -> None:
        for error in (SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration()):
            # The first call of each kind fails for lack of any token, the later one for lack of a fresh token.
            for tokens in ([error, "fresh"], ["stale", error, "fresh"]):
                with self.subTest(tokens=tokens), scripted(admit_fresh) as server:
                    client = Client(server.url, token_source=mock.Mock(side_effect=tokens))
                    acquire = partial(client.license("K").acquire, machine="m", patience=0)
                    offline = in_time(acquire)
                    self.assertIsInstance(offline, Offline)
                    self.assertIn("no token", str(offline))
                    self.assertIsNone(in_time(acquire))
                    client.close()

    def test_a_token_source_that_the_program_cancels_has_no_token(self) -> None:
        async def acquire(server: Scripted, tokens: list[Optional[str]]) -> None:
            left = iter(tokens)

            async def source() -> str:
                token = next(left)
                if token is None:
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                    await asyncio.sleep(PATIENCE)
                return token or ""

            async with AsyncClient(server.url, token_source=source) as client:
                acquire = partial(client.license("K").acquire, machine="m", patience=0)
                with self.assertRaises(Offline) as offline:
                    await asyncio.wait_for(acquire(), PATIENCE)
                self.assertIn("no token", str(offline.exception))
                await asyncio.wait_for(acquire(), PATIENCE)

        for tokens in ([None, "fresh"], ["stale", None, "fresh"]):
            with self.subTest(tokens=tokens), scripted(admit_fresh) as server:
                asyncio.run(acquire(server, tokens))

    def test_a_token_source_that_exits_from_the_programs_loop_has_no_token(self) -> None:
        async def source() -> str:
            sys.exit(1)

        home = asyncio.new_event_loop()

        def run() -> None:
            with contextlib.suppress(SystemExit):
                home.run_forever()
            # The end of a program's loop also runs the callbacks of its tasks.
            home.run_forever()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        with self.assertRaises(NoToken):
            asyncio.run(asyncio.wait_for(from_source(source, home)(), PATIENCE))
        home.call_soon_threadsafe(home.stop)
        thread.join(PATIENCE)
        home.close()


class CacheTest(unittest.IsolatedAsyncioTestCase):
    """A source that needs longer than its caller waits."""

    async def asyncSetUp(self) -> None:
        self.calls: list[None] = []
        self.answers = threading.Event()

    def source(self) -> str:
        self.calls.append(None)
        self.answers.wait(PATIENCE)
        return "fresh"

    async def until(self, happened: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not happened():
            self.assertLess(time.monotonic(), end)
            await asyncio.sleep(0.01)

    async def test_one_call_serves_requests_that_give_up_and_later_ones(self) -> None:
        tokens = TokenCache(from_source(self.source, None))
        for _ in range(3):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(tokens.current(""), 0.02)
        later = [asyncio.ensure_future(wait) for wait in (tokens.current(""), tokens.current(""), tokens.refresh(""))]
        await asyncio.sleep(0)
        self.answers.set()
        self.assertEqual(await asyncio.wait_for(asyncio.gather(*later), PATIENCE), ["fresh", "fresh", True])
        self.assertEqual(len(self.calls), 1)

    async def test_a_token_that_comes_after_every_caller_gave_up_is_kept(self) -> None:
        tokens = TokenCache(from_source(self.source, None))
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(tokens.current(""), 0.02)
        self.answers.set()
        await self.until(lambda: tokens.peek("") == "fresh")
        self.assertEqual((await tokens.current(""), len(self.calls)), ("fresh", 1))

    async def test_a_call_that_hangs_has_no_token_and_is_the_only_one_until_its_end(self) -> None:
        tokens = TokenCache(from_source(self.source, None))
        before = calling_threads()
        with mock.patch("seatkeeper._tokens.TOKEN_TIMEOUT", 20_000_000):
            with self.assertRaises(NoToken):
                await asyncio.wait_for(tokens.current(""), PATIENCE)
            for _ in range(4):
                self.assertFalse(await asyncio.wait_for(tokens.refresh(""), PATIENCE))
        self.assertEqual((len(self.calls), calling_threads()), (1, before + 1))
        self.answers.set()
        self.assertEqual(await asyncio.wait_for(tokens.current(""), PATIENCE), "fresh")
        self.assertEqual(len(self.calls), 2)


class CallbackTest(unittest.TestCase):
    def setUp(self) -> None:
        self.dispatcher = Dispatcher()
        self.addCleanup(self.dispatcher.close)
        self.dispatcher.start()
        self.goes_on = threading.Event()
        self.addCleanup(self.goes_on.set)
        self.told: list[State] = []

    def hold_up(self) -> None:
        """Keeps the thread of callbacks busy until ``goes_on``."""
        is_busy = threading.Event()

        def wait(_: State) -> None:
            is_busy.set()
            self.goes_on.wait(PATIENCE)

        Relay(self.dispatcher, wait)(State("active"))
        self.assertTrue(is_busy.wait(PATIENCE))

    def go_on(self) -> None:
        """Ends the wait of ``hold_up``, and returns after the changes that wait."""
        is_over = threading.Event()
        Relay(self.dispatcher, lambda _: is_over.set())(State("active"))
        self.goes_on.set()
        self.assertTrue(is_over.wait(PATIENCE))

    def test_a_callback_that_exits_does_not_end_the_thread_of_callbacks(self) -> None:
        with self.assertLogs("seatkeeper", "ERROR"):
            Relay(self.dispatcher, lambda _: sys.exit(1))(State("active"))
            self.go_on()

    def test_seats_that_share_a_slow_callback_lose_no_change(self) -> None:
        self.hold_up()
        changes = [State("active", until=number) for number in range(3 * WAITING_MAX)]
        callback = self.told.append
        for change in changes:
            Relay(self.dispatcher, callback)(change)
        self.go_on()
        self.assertEqual(self.told, changes)

    def test_a_slow_callback_is_told_the_latest_changes_and_each_loss(self) -> None:
        self.hold_up()
        relay = Relay(self.dispatcher, self.told.append)
        losses = [State("lost", reason=str(number)) for number in range(WAITING_MAX + 1)]
        changes = [State("active", until=number) for number in range(WAITING_MAX)]
        for change in (losses[0], *changes, *losses[1:]):
            relay(change)
        self.go_on()
        self.assertEqual(self.told, losses)

    def test_a_callback_is_not_called_after_its_stop(self) -> None:
        self.hold_up()
        relay, other = Relay(self.dispatcher, self.told.append), Relay(self.dispatcher, self.told.append)
        for number in range(3):
            relay(State("active", until=number))
        other(State("lost"))
        relay.stop()
        relay(State("released"))
        self.go_on()
        self.assertEqual(self.told, [State("lost")])


class FileTest(unittest.TestCase):
    def setUp(self) -> None:
        resources = contextlib.ExitStack()
        self.addCleanup(resources.close)
        self.folder = resources.enter_context(tempfile.TemporaryDirectory())
        self.file = Path(self.folder, "token")
        self.file.write_text("first\n")
        self.server = resources.enter_context(scripted(admit_fresh))
        self.client = resources.enter_context(Client(self.server.url, token_file=self.file, event_streams=False))

    def replace(self, text: str) -> None:
        fresh = Path(self.folder, "fresh")
        fresh.write_text(text)
        fresh.rename(self.file)

    def token_of_next_acquire(self) -> Any:
        self.assertIsNone(in_time(lambda: self.client.license("K").acquire(machine="m", patience=0)))
        return self.server.arrived("POST")[-1].token

    def expect(self, wanted: str) -> None:
        """Waits until the client sends the wanted token."""
        end = time.monotonic() + PATIENCE
        while (token := self.token_of_next_acquire()) != wanted and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(token, wanted)

    @mock.patch("seatkeeper._tokens.LOOK_INTERVAL", 0.0)
    def test_a_token_file_that_changes_is_read_before_the_server_rejects_the_old_token(self) -> None:
        self.assertEqual(self.token_of_next_acquire(), "first")
        for change in ("second", "third, which is no token", "fourth"):
            self.replace(change)
            self.assertEqual(self.token_of_next_acquire(), "second" if " " in change else change)
        self.file.unlink()
        self.assertEqual(self.token_of_next_acquire(), "fourth")

    @mock.patch("seatkeeper._tokens.LOOK_INTERVAL", 0.0)
    @mock.patch("seatkeeper._tokens.LOOK_PATIENCE", 0.1)
    def test_a_file_server_that_hangs_in_a_look_delays_one_request_for_a_moment(self) -> None:
        self.assertEqual(self.token_of_next_acquire(), "first")
        answers = threading.Event()
        look = FileToken._look
        looks = []

        def hang(file: FileToken) -> tuple[int, int, int]:
            looks.append(file)
            answers.wait(PATIENCE)
            return look(file)

        with mock.patch.object(FileToken, "_look", hang):
            self.replace("second")
            for _ in range(3):
                self.assertEqual(self.token_of_next_acquire(), "first")
            self.assertEqual(len(looks), 1, "one look waits at a time")
            answers.set()
            self.expect("second")

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs a named pipe, whose reader waits for a writer")
    @mock.patch("seatkeeper._tokens.LOOK_INTERVAL", 0.0)
    @mock.patch("seatkeeper._tokens.LOOK_PATIENCE", 0.1)
    def test_a_file_server_that_hangs_in_a_reading_delays_one_request_for_a_moment(self) -> None:
        self.assertEqual(self.token_of_next_acquire(), "first")
        self.file.unlink()
        os.mkfifo(self.file)
        for _ in range(3):
            self.assertEqual(self.token_of_next_acquire(), "first")
        self.file.write_text("second")
        self.expect("second")

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs a named pipe, whose reader waits for a writer")
    def test_a_file_server_that_hangs_keeps_one_thread_for_all_rejections(self) -> None:
        self.file.unlink()
        os.mkfifo(self.file)
        aside = Path(self.folder, "aside")
        tokens = TokenCache(FileToken(self.file))

        async def hang() -> None:
            with mock.patch("seatkeeper._tokens.TOKEN_TIMEOUT", 20_000_000):
                self.assertFalse(await asyncio.wait_for(tokens.refresh(""), PATIENCE))

        async def refresh() -> None:
            before = calling_threads()
            for _ in range(5):
                await hang()
            self.assertEqual(calling_threads(), before + 1)
            self.file.rename(aside)
            self.file.write_text("fresh")
            await hang()
            aside.write_text("late")  # noqa: ASYNC240
            self.assertTrue(await asyncio.wait_for(tokens.refresh(""), PATIENCE))
            self.assertEqual(tokens.peek(""), "fresh")

        asyncio.run(refresh())
