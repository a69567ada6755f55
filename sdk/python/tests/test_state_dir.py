"""The state directory: known answers of every language, killed processes, and directories that cannot be used."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional
from unittest import mock

from seatkeeper import AsyncClient, Client, Closed, Denied, NoResources, Offline, _state_dir
from seatkeeper._shared import Shared
from seatkeeper._slots import Slots
from seatkeeper._state_dir import SLOTS_MAX, UUID4, Holder, Slot, Unusable, default_base, take_slot
from seatkeeper._threads import call_in_thread
from seatkeeper.seat import SeatView

from . import server as servers
from .scripted import GRANT, Arrived, Reply, Scripted, scripted
from .test_streams import ACQUIRE, LONG, RELEASE, eventually, granting

PACKAGE = Path(__file__).resolve().parents[1]
KNOWN: Any = json.loads((PACKAGE.parent / "state-directory.json").read_text(encoding="utf-8"))
HOLDER = Holder("http://127.0.0.1:8080", "CAD-2030", "workstation-7")
#: A user of every Unix who is not the one that runs the tests.
NOBODY = 65_534
#: Takes a slot of the directory in the first argument, tells the id, and holds the slot until its end.
PROGRAM = """
import os, sys, time
from seatkeeper._state_dir import Holder, take_slot
slot = take_slot(sys.argv[1], Holder("http://127.0.0.1:8080", "CAD-2030", "workstation-7"))
{extra}
print(slot.instance_id, flush=True)
time.sleep(600)
"""
#: Holds a seat of the real server until its end.
HOLD = """
import os, sys, time, seatkeeper
client = seatkeeper.Client(os.environ["URL"], token=os.environ["TOKEN"], state_dir=sys.argv[1])
seat = client.license(os.environ["KEY"]).acquire(machine="m", per_process=True)
print(seat.session_id, flush=True)
time.sleep(600)
"""


@contextmanager
def running(program: str, base: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs a program in a process of its own, and yields the process with its first line; the end is a kill."""
    environ = {**os.environ, **variables, "PYTHONPATH": str(PACKAGE / "src")}
    command = [sys.executable, "-c", program, base]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def without_root() -> Iterator[None]:
    """Runs as an ordinary user, for whom permissions count."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


class StateDirCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.base = self.folder / "a" / "state"
        self.directory = self.base / HOLDER.directory()

    def take(self, base: Optional[Path] = None) -> Slot:
        slot = take_slot(base or self.base, HOLDER)
        self.addCleanup(slot.close)
        self.assertRegex(slot.instance_id, UUID4)
        return slot

    def unusable(self, reason: str, place: Path) -> None:
        """Expects a random id with a warning."""
        one, two = self.take(), self.take()
        self.assertNotEqual(one.instance_id, two.instance_id)
        self.assertEqual(one.warning, f"{reason}: {place}")


class SlotTest(StateDirCase):
    def test_each_known_answer_is_given(self) -> None:
        self.assertGreaterEqual(len(KNOWN), 14)
        for known in KNOWN:
            holder = Holder(known["server"], known["license"], known["machine_id"])
            self.assertEqual(holder.directory(), known["directory"], known)

    def test_each_system_has_its_base(self) -> None:
        home = {"HOME": "/home/ann", "XDG_STATE_HOME": "/state", "LOCALAPPDATA": "/local"}
        self.assertEqual(default_base("linux", home), "/state/seatkeeper")
        self.assertEqual(default_base("freebsd14", {**home, "XDG_STATE_HOME": ""}), "/home/ann/.local/state/seatkeeper")
        self.assertEqual(default_base("linux", {**home, "XDG_STATE_HOME": "s"}), "/home/ann/.local/state/seatkeeper")
        self.assertEqual(default_base("darwin", home), "/home/ann/Library/Application Support/Seatkeeper")
        self.assertEqual(default_base("win32", home), "/local/Seatkeeper")
        for platform in ("linux", "darwin", "win32"):
            with self.assertRaisesRegex(Unusable, "^no-home: "):
                default_base(platform, {"HOME": "here", "XDG_STATE_HOME": "", "LOCALAPPDATA": "there"})

    def test_two_seats_of_a_process_take_two_slots_and_a_slot_that_is_left_is_taken_again(self) -> None:
        one, two = self.take(), self.take()
        self.assertNotEqual(one.instance_id, two.instance_id)
        self.assertEqual(sorted(os.listdir(self.directory)), ["slot-1.lock", "slot-2.lock"])
        one.close()
        one.close()
        self.assertEqual(self.take().instance_id, one.instance_id)
        self.assertEqual((one.warning, two.warning), (None, None))

    def test_directories_and_files_are_for_their_user_alone(self) -> None:
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        slot = self.take()
        for path, mode in ((self.base.parent, 0o700), (self.base, 0o700), (self.directory, 0o700)):
            self.assertEqual(path.stat().st_mode & 0o777, mode, path)
        file = self.directory / "slot-1.lock"
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertEqual(json.loads(file.read_text()), {"version": 1, "instance_id": slot.instance_id})

    def test_the_successor_of_a_killed_process_has_its_id(self) -> None:
        with running(PROGRAM.format(extra=""), str(self.base)) as (first, id_of_first):
            with running(PROGRAM.format(extra=""), str(self.base)) as (_, id_of_second):
                self.assertNotEqual(id_of_first, id_of_second)
                first.send_signal(signal.SIGKILL)
                first.wait()
                self.assertEqual(self.take().instance_id, id_of_first)

    @unittest.skipUnless(hasattr(os, "fork"), "fork")
    def test_a_forked_child_neither_has_nor_keeps_the_slot_of_its_parent(self) -> None:
        told = self.folder / "child"
        extra = (
            "child = os.fork()\n"
            "if child == 0:\n"
            "    slot.close()\n"
            f"    own = take_slot(sys.argv[1], Holder('http://127.0.0.1:8080', 'CAD-2030', 'workstation-7'))\n"
            f"    open({str(told)!r} + '.new', 'w').write(f'{{os.getpid()}} {{own.instance_id}}')\n"
            f"    os.rename({str(told)!r} + '.new', {str(told)!r})\n"
            "    time.sleep(600)\n"
            f"while not os.path.exists({str(told)!r}): time.sleep(0.01)\n"
        )
        with running(PROGRAM.format(extra=extra), str(self.base)) as (parent, id_of_parent):
            pid, id_of_child = told.read_text().split()
            try:
                self.assertNotEqual(id_of_child, id_of_parent)
                self.assertNotIn(self.take().instance_id, (id_of_child, id_of_parent))
                parent.kill()
                parent.wait()
                self.assertEqual(self.take().instance_id, id_of_parent)
            finally:
                os.kill(int(pid), signal.SIGKILL)

    def test_content_that_is_not_valid_is_replaced_and_valid_content_stays(self) -> None:
        known = "0b9d3a52-6c0f-4f6e-9b0a-3f2a1d7c8e45"
        valid = json.dumps({"version": 1, "instance_id": known, "more": [1]})
        wrong = [
            "",
            "{",
            "[]",
            valid[:-1],
            valid.replace("1,", "2,", 1),
            valid.replace("1,", "true,", 1),
            valid.replace("4f6e", "1f6e"),
            valid.replace("-9b0a", "-1b0a"),
            valid.replace(known, known.upper()),
            valid.replace(known, known + "\\n"),
            valid + " " * 4_096,
            "[" * 4_000,
            "\x00" * 100,
        ]
        self.take().close()
        file = self.directory / "slot-1.lock"
        file.write_text(valid + " " * (4_096 - len(valid)))
        slot = self.take()
        self.assertEqual(slot.instance_id, known)
        slot.close()
        for content in [*(text.encode() for text in wrong), b"\xff\xfe", valid.encode("utf-16")]:
            file.write_bytes(content)
            slot = self.take()
            self.assertNotEqual(slot.instance_id, known)
            self.assertEqual(json.loads(file.read_bytes()), {"version": 1, "instance_id": slot.instance_id})
            slot.close()
            again = self.take()
            self.assertEqual(again.instance_id, slot.instance_id)
            again.close()

    def test_a_name_that_is_no_file_of_this_user_is_passed_over(self) -> None:
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, -1)
        with without_root():
            self.take().close()
            (self.directory / "slot-1.lock").chmod(0)
            (self.directory / "slot-2.lock").mkdir()
            os.mkfifo(self.directory / "slot-3.lock")
            (self.directory / "slot-4.lock").symlink_to(self.folder / "elsewhere")
            slot = self.take()
            self.assertIsNone(slot.warning)
            self.assertIn(slot.instance_id, (self.directory / "slot-5.lock").read_text())
            self.assertFalse((self.folder / "elsewhere").exists())


class UnusableTest(StateDirCase):
    def test_a_base_that_is_no_directory(self) -> None:
        self.base.parent.mkdir()
        self.base.write_text("")
        self.unusable("not-a-directory", self.base)
        self.base.unlink()
        (self.folder / "real").mkdir(mode=0o700)
        for target in (self.folder / "real", self.folder / "missing"):
            self.base.symlink_to(target)
            self.unusable("not-a-directory", self.base)
            self.assertEqual(take_slot(f"{self.base}/", HOLDER).warning, f"not-a-directory: {self.base}")
            self.base.unlink()

    def test_a_link_in_the_place_of_the_directory(self) -> None:
        (self.folder / "real").mkdir(mode=0o700)
        self.base.mkdir(0o700, parents=True)
        self.directory.symlink_to(self.folder / "real")
        self.unusable("not-a-directory", self.directory)
        self.assertEqual(os.listdir(self.folder / "real"), [])

    def test_directories_that_others_may_write_to(self) -> None:
        self.take().close()
        for path in (self.base, self.directory):
            for mode in (0o720, 0o702):
                path.chmod(mode)
                self.unusable("writable-by-others", path)
            path.chmod(0o755)
        self.assertIsNone(self.take().warning)
        self.assertEqual(self.directory.stat().st_mode & 0o777, 0o755)

    @unittest.skipUnless(hasattr(os, "geteuid") and os.geteuid() == 0, "needs root to give a directory away")
    def test_directories_of_another_user(self) -> None:
        self.take().close()
        for path in (self.directory, self.base):
            os.chown(path, NOBODY, -1)
            self.unusable("foreign-owner", path)

    def test_directories_that_cannot_be_created_or_written(self) -> None:
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, -1)
        with without_root():
            self.base.parent.mkdir(0o500)
            self.unusable("unusable", self.base)
            self.base.parent.chmod(0o700)
            self.base.mkdir(0o500)
            self.unusable("unusable", self.directory)
            self.base.chmod(0o700)
            self.directory.mkdir(0o500)
            self.unusable("unusable", self.directory / "slot-1.lock")
            self.directory.chmod(0o700)
            first = self.take()
            self.directory.chmod(0o500)
            # A slot that exists needs no right to create files.
            first.close()
            self.assertEqual(self.take().instance_id, first.instance_id)

    def test_a_file_in_the_way_and_a_path_that_is_none(self) -> None:
        self.base.parent.write_text("")
        self.unusable("unusable", self.base)
        self.assertRegex(str(take_slot("\x00", HOLDER).warning), "^unusable: ")

    def test_a_directory_without_a_free_slot(self) -> None:
        self.take().close()
        (self.directory / "slot-1.lock").unlink()
        for number in range(1, SLOTS_MAX + 1):
            (self.directory / f"slot-{number}.lock").symlink_to("nowhere")
        self.unusable("no-free-slot", self.directory)

    def test_a_directory_that_is_turned_off_gives_random_ids_without_a_warning(self) -> None:
        for off in (None, ""):
            one, two = take_slot(off, HOLDER), take_slot(off, HOLDER)
            self.assertNotEqual(one.instance_id, two.instance_id)
            self.assertIsNone(one.warning)

    def test_an_environment_without_a_home(self) -> None:
        program = (
            "from seatkeeper._state_dir import *\n"
            "slot = take_slot(Base.DEFAULT, Holder('http://h', 'l', 'm'))\n"
            "print(slot.warning)\n"
        )
        environ = {"PYTHONPATH": str(PACKAGE / "src"), "PATH": os.environ["PATH"]}
        told = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
        self.assertRegex(told.stdout, "^no-home: ")


class AcquireTest(StateDirCase):
    """The option in the hands of a program, against a server of the test."""

    def bodies(self, **options: Any) -> list[Any]:
        """Acquires two seats at once, and returns the bodies of the acquires."""

        def script(request: Arrived, _: int) -> Reply:
            return Reply(201, GRANT) if "acquire" in request.target else Reply(204)

        with scripted(script) as server:
            with Client(server.url, token="t", event_streams=False, state_dir=self.base) as client:
                seats = [client.license("CAD-2030").acquire(machine="workstation-7", **options) for _ in range(2)]
                self.warnings = [seat.warning for seat in seats]
            with Client(server.url, token="t", event_streams=False, state_dir=self.base) as client:
                client.license("CAD-2030").acquire(machine="workstation-7", **options)
            return [request.body for request in server.arrived("POST /api/v1/licenses/acquire")]

    def test_each_seat_has_an_id_and_a_release_leaves_the_id(self) -> None:
        one, two, after = (body["instance_id"] for body in self.bodies(per_process=True))
        self.assertNotEqual(one, two)
        self.assertEqual(one, after)
        self.assertEqual(self.warnings, [None, None])

    def test_without_the_option_or_with_an_id_of_the_program_no_file_is_made(self) -> None:
        self.assertNotIn("instance_id", self.bodies()[0])
        self.assertEqual(self.bodies(instance="own", per_process=True)[0]["instance_id"], "own")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_seat_is_held_without_a_directory_and_tells_the_reason(self) -> None:
        self.base.parent.write_text("")
        one, two, after = (body["instance_id"] for body in self.bodies(per_process=True))
        self.assertEqual(len({one, two, after}), 3)
        self.assertEqual(self.warnings, [f"unusable: {self.base}"] * 2)

    def test_a_denied_acquire_and_a_closed_client_leave_the_slot(self) -> None:
        with scripted(lambda *_: Reply(403, {"type": "/problems/license-full"})) as server:
            client = Client(server.url, token="t", state_dir=self.base)
            for _ in range(2):
                with self.assertRaises(Denied):
                    client.license("K").acquire(machine="m", per_process=True)
            client.close()
            with self.assertRaises(Closed):
                client.license("K").acquire(machine="m", per_process=True)
            slot = take_slot(self.base, Holder(server.url, "K", "m"))
            self.addCleanup(slot.close)
            self.assertEqual([str(path.name) for path in self.base.glob("*/*")], ["slot-1.lock"])

    def in_doubt(self, request: Arrived, earlier: int) -> Reply:
        """Answers 503 to the first acquire. The server may have granted a seat, so the release looks for a session."""
        if request.target != ACQUIRE:
            return granting(request, earlier)
        return Reply(503) if earlier == 0 else Reply(201, GRANT, delay=0.3 if earlier == 1 else 0)

    def expect_one_id(self, server: Scripted, targets: Sequence[str]) -> None:
        """Expects requests to these targets, and one instance id in all acquires."""
        self.assertEqual([request.target for request in server.arrived()], targets)
        self.assertEqual(len({request.body["instance_id"] for request in server.arrived(ACQUIRE)}), 1)

    def test_an_acquire_in_doubt_leaves_the_slot_before_it_fails(self) -> None:
        async def fail(url: str) -> None:
            async with AsyncClient(url, token="t", event_streams=False, state_dir=self.base) as client:
                with self.assertRaises(Offline):
                    await client.license("K").acquire(machine="m", per_process=True, patience=0)
                self.take_again(url)

        with scripted(self.in_doubt) as server:
            with Client(server.url, token="t", event_streams=False, state_dir=self.base) as client:
                with self.assertRaises(Offline):
                    client.license("K").acquire(machine="m", per_process=True, patience=0)
                self.take_again(server.url)
            self.expect_one_id(server, [ACQUIRE, ACQUIRE, RELEASE, ACQUIRE, RELEASE])
        with scripted(self.in_doubt) as server:
            asyncio.run(fail(server.url))
            self.expect_one_id(server, [ACQUIRE, ACQUIRE, RELEASE, ACQUIRE, RELEASE])

    def take_again(self, url: str) -> None:
        """Acquires by a client of its own, which waits for no release of another client."""
        with Client(url, token="t", event_streams=False, state_dir=self.base) as client:
            client.license("K").acquire(machine="m", per_process=True).check()

    def test_an_acquire_takes_the_slot_of_one_that_was_given_up(self) -> None:
        asked, given_up = threading.Event(), threading.Event()

        def script(request: Arrived, earlier: int) -> Reply:
            if request.target == ACQUIRE and earlier == 0:
                asked.set()
                given_up.wait(LONG)
                return Reply(201, GRANT, delay=0.3)
            return granting(request, earlier)

        def interrupt(*_: object) -> None:
            asked.wait(LONG)
            raise KeyboardInterrupt

        async def cancel(url: str) -> None:
            async with AsyncClient(url, token="t", event_streams=False, state_dir=self.base) as client:
                license = client.license("K")
                acquiring = asyncio.ensure_future(license.acquire(machine="m", per_process=True))
                await call_in_thread(lambda: asked.wait(LONG))
                acquiring.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await acquiring
                given_up.set()
                (await license.acquire(machine="m", per_process=True)).check()

        with scripted(script) as server:
            with Client(server.url, token="t", event_streams=False, state_dir=self.base) as client:
                license = client.license("K")
                with mock.patch.object(Shared, "wait_for", interrupt), self.assertRaises(KeyboardInterrupt):
                    license.acquire(machine="m", per_process=True)
                given_up.set()
                license.acquire(machine="m", per_process=True).check()
            self.expect_one_id(server, [ACQUIRE, RELEASE, ACQUIRE, RELEASE])
        asked.clear()
        given_up.clear()
        with scripted(script) as server:
            asyncio.run(cancel(server.url))
            self.expect_one_id(server, [ACQUIRE, RELEASE, ACQUIRE, RELEASE])

    def test_an_acquire_waits_for_the_end_of_a_slot(self) -> None:
        hangs = threading.Event()
        unlock = _state_dir._unlock

        def hang(fd: int) -> None:
            hangs.set()
            time.sleep(0.3)
            unlock(fd)

        with (
            mock.patch.object(_state_dir, "_unlock", hang),
            scripted(granting) as server,
            Client(server.url, token="t", event_streams=False, state_dir=self.base) as client,
        ):
            seat = client.license("K").acquire(machine="m", per_process=True)
            client._connection.driver().release(seat._key)
            self.assertTrue(hangs.wait(LONG), "the slot is not left")
            client.license("K").acquire(machine="m", per_process=True).check()
            self.expect_one_id(server, [ACQUIRE, RELEASE, ACQUIRE])

    def test_an_acquire_without_a_thread_leaves_the_slot_and_no_loop(self) -> None:
        loops: list[asyncio.AbstractEventLoop] = []

        def new_loop() -> asyncio.AbstractEventLoop:
            loops.append(asyncio.SelectorEventLoop())
            return loops[-1]

        with Client("http://127.0.0.1:1", token="t", state_dir=self.base) as client:
            with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
                with mock.patch("seatkeeper._driver._new_loop", new_loop), self.assertRaises(NoResources):
                    client.license("K").acquire(machine="m", per_process=True)
        slot = take_slot(self.base, Holder("http://127.0.0.1:1", "K", "m"))
        self.addCleanup(slot.close)
        self.assertEqual([str(path.name) for path in self.base.glob("*/*")], ["slot-1.lock"])
        self.assertEqual(loops, [])

    def test_a_file_server_that_hangs_holds_up_no_other_seat_and_no_release(self) -> None:
        answers = threading.Event()
        self.addCleanup(answers.set)
        unlock = _state_dir._unlock
        hangs: list[int] = []

        def hang(fd: int) -> None:
            hangs.append(fd)
            answers.wait(LONG)
            unlock(fd)

        with (
            mock.patch.object(_state_dir, "_unlock", hang),
            scripted(granting) as server,
            Client(server.url, token="t", event_streams=False, state_dir=self.base) as client,
        ):
            seats = [client.license("K").acquire(machine="m", per_process=True) for _ in range(3)]
            released = threading.Event()
            driver = client._connection.driver()
            driver.release(seats[0]._key)
            eventually(lambda: bool(hangs), "the slot is not left")
            driver._post(released.set)
            self.assertTrue(released.wait(LONG), "the thread of the client hangs")
            self.assertTrue(seats[0].release())
            self.assertTrue(seats[1].release())
            self.assertEqual(len(hangs), 1, "one thread at a time")
            answers.set()
            self.assertTrue(seats[2].release())
            eventually(lambda: len(hangs) == 3, "the other slots are not left")

    def test_a_slot_is_left_without_a_thread_as_well(self) -> None:
        with scripted(granting) as server:
            with Client(server.url, token="t", event_streams=False, state_dir=self.base) as client:
                seat = client.license("K").acquire(machine="m", per_process=True)
                full = mock.patch("seatkeeper._driver.call_in_thread", side_effect=RuntimeError("no new thread"))
                with full:
                    self.assertTrue(seat.release())
                slot = take_slot(self.base, Holder(server.url, "K", "m"))
                self.addCleanup(slot.close)
                self.assertEqual([path.name for path in self.base.glob("*/*")], ["slot-1.lock"])

    @contextmanager
    def hanging(self) -> Iterator[tuple[list[str], threading.Event]]:
        """Makes the search for a slot hang until the event, and yields the calls that hang."""
        answers = threading.Event()
        search = _state_dir._first_free
        hangs: list[str] = []

        def hang(directory: str) -> Slot:
            hangs.append(directory)
            answers.wait(LONG)
            return search(directory)

        with mock.patch.object(_state_dir, "_first_free", hang):
            try:
                yield hangs, answers
            finally:
                answers.set()

    def expect_random_ids(self, seats: Sequence[SeatView], server: Scripted) -> None:
        self.assertEqual([seat.warning for seat in seats], [f"unusable: {self.base}"] * len(seats))
        ids = {request.body["instance_id"] for request in server.arrived(ACQUIRE)}
        self.assertEqual(len(ids), len(seats))

    def test_a_directory_that_hangs_costs_an_acquire_a_moment_and_no_seat(self) -> None:
        with (
            self.hanging() as (hangs, answers),
            scripted(granting) as server,
            Client(server.url, token="t", event_streams=False, state_dir=self.base) as client,
        ):
            with mock.patch("seatkeeper._slots.SLOT_PATIENCE", 0.05):
                seats = [client.license("K").acquire(machine="m", per_process=True) for _ in range(3)]
            self.expect_random_ids(seats, server)
            self.assertEqual(len(hangs), 1, "one thread at a time")
            answers.set()
            # The slot that came too late is free.
            self.assertIsNone(client.license("K").acquire(machine="m", per_process=True).warning)
            self.assertEqual([path.name for path in self.base.glob("*/*")], ["slot-1.lock"])

    def test_a_directory_that_hangs_costs_no_seat_on_asyncio(self) -> None:
        async def acquire(server: Scripted, answers: threading.Event) -> None:
            async with AsyncClient(server.url, token="t", event_streams=False, state_dir=self.base) as client:
                license = client.license("K")
                with mock.patch("seatkeeper.aio.SLOT_PATIENCE", 0.05):
                    seat = await license.acquire(machine="m", per_process=True)
                self.expect_random_ids([seat], server)
                cancelled = asyncio.ensure_future(license.acquire(machine="m", per_process=True))
                await asyncio.wait([cancelled], timeout=0.1)
                cancelled.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await cancelled
                answers.set()
                self.assertIsNone((await license.acquire(machine="m", per_process=True)).warning)

        with self.hanging() as (_, answers), scripted(granting) as server:
            asyncio.run(acquire(server, answers))
            self.assertEqual([path.name for path in self.base.glob("*/*")], ["slot-1.lock"])

    def test_an_interrupt_leaves_the_slot_that_comes_later(self) -> None:
        with self.hanging() as (_, answers):
            slots = Slots(self.base)
            with mock.patch("concurrent.futures.wait", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    slots.start(HOLDER).wait()
            answers.set()
            slot = slots.start(HOLDER).wait()
            self.addCleanup(slot.close)
            self.assertEqual([path.name for path in self.base.glob("*/*")], ["slot-1.lock"])
            self.assertTrue(slot.is_locked)

    def test_a_slot_without_a_thread_is_a_random_id(self) -> None:
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            slot = Slots(self.base).start(HOLDER).wait()
        self.assertEqual((slot.warning, slot.is_locked), (f"unusable: {self.base}", False))

    def test_asyncio_takes_a_slot_as_well(self) -> None:
        async def hold(url: str) -> Optional[str]:
            async with AsyncClient(url, token="t", event_streams=False, state_dir=self.base) as client:
                async with await client.license("CAD-2030").acquire(machine="m", per_process=True) as seat:
                    return seat.warning

        with scripted(lambda request, _: Reply(201, GRANT) if "acquire" in request.target else Reply(204)) as server:
            self.assertIsNone(asyncio.run(hold(server.url)))
            slot = take_slot(self.base, Holder(server.url, "CAD-2030", "m"))
            self.addCleanup(slot.close)
            body = server.arrived("POST /api/v1/licenses/acquire")[0].body
            self.assertEqual(body["instance_id"], slot.instance_id)


@unittest.skipUnless(servers.BINARY, "SDK_TEST_SERVER names no server")
class RealServer(StateDirCase):
    def test_the_successor_of_a_killed_process_holds_the_one_seat_at_once(self) -> None:
        server = servers.Server()
        self.addCleanup(server.close)
        key = server.license("PROCESSES", seats=1, ttl_seconds=3_600, count_per="process")
        variables = {"URL": server.url, "TOKEN": server.token(), "KEY": key}
        with Client(server.url, token=server.token(), state_dir=self.base) as client:
            with running(HOLD, str(self.base), **variables) as (process, session):
                with self.assertRaises(Denied) as denied:
                    client.license(key).acquire(machine="m", per_process=True)
                self.assertEqual(denied.exception.code, "license-full")
                process.kill()
                process.wait()
                with client.license(key).acquire(machine="m", per_process=True) as seat:
                    self.assertEqual(seat.session_id, session)
                    seat.check()
            self.assertEqual(server.live_machines(), [])


if __name__ == "__main__":
    unittest.main()
