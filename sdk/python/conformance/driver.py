"""Drives the Python client by JSON lines; ``crates/sdk-conformance/src/driver.rs`` explains the commands."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any, Optional

from seatkeeper import Client, LicenseKey, NotHeld, Seat, SeatkeeperError, State


class Driver:
    """The client and its seats."""

    def __init__(self) -> None:
        self._client: Optional[Client] = None
        self._seats: dict[str, Seat] = {}
        self._output = threading.Lock()

    def answer(self, command: dict[str, Any]) -> None:
        """Obeys a command, and prints the answer."""
        try:
            answer = getattr(self, "do_" + command["do"])(command)
        except SeatkeeperError as error:
            answer = {"error": {"code": error.code}}
        self._print({"id": command["id"], **answer})

    def do_open(self, command: dict[str, Any]) -> dict[str, Any]:
        self._client = new_client(command)
        return {"ok": True}

    def do_acquire(self, command: dict[str, Any]) -> dict[str, Any]:
        name = command["seat"]
        seat = (
            self._opened()
            .license(sys.intern(command["license_key"]))
            .acquire(
                machine=command["machine"],
                wait=command.get("wait"),
                patience=command["patience"],
            )
        )
        self._seats[name] = seat
        seat.on_change(Listener(self, name))
        return {"session": seat.session_id}

    def do_state(self, command: dict[str, Any]) -> dict[str, Any]:
        return {
            "states": {
                name: {"kind": seat.state.kind, "valid": is_held(seat)} for name, seat in list(self._seats.items())
            }
        }

    def do_activity(self, command: dict[str, Any]) -> dict[str, Any]:
        self._seats[command["seat"]].activity()
        return {"ok": True}

    def do_release(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"confirmed": self._seats[command["seat"]].release()}

    def do_close(self, command: dict[str, Any]) -> dict[str, Any]:
        self._opened().close()
        return {"ok": True}

    def do_check(self, command: dict[str, Any]) -> dict[str, Any]:
        calls = range(command["calls"])
        check = self._seats[command["seat"]].check
        rounds = []
        for _ in range(10):
            start = time.perf_counter_ns()
            for _ in calls:
                check()
            rounds.append((time.perf_counter_ns() - start) / len(calls))
        return {"nanoseconds": min(rounds)}

    def do_cycles(self, command: dict[str, Any]) -> dict[str, Any]:
        for _ in range(command["count"]):
            with new_client(command) as client:
                client.license(command["license_key"]).acquire(machine=command["machine"]).release()
        return {"ok": True}

    def do_crash(self, command: dict[str, Any]) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    def _opened(self) -> Client:
        if self._client is None:
            raise ValueError("open comes first")
        return self._client

    def tell(self, name: str, state: State) -> None:
        told: dict[str, Any] = {"kind": state.kind}
        if state.kind == "lost":
            told.update(reason=state.reason, by=state.by, retry=state.retry)
        self._print({"seat": name, "at": time.monotonic() * 1e3, "state": told})

    def _print(self, line: dict[str, Any]) -> None:
        with self._output:
            print(json.dumps(line), flush=True)


class Listener:
    """Tells the changes of a seat: a closure would be several times as large."""

    __slots__ = ("_driver", "_name")

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver = driver
        self._name = name

    def __call__(self, state: State) -> None:
        self._driver.tell(self._name, state)


def new_client(command: dict[str, Any]) -> Client:
    """Returns a client with the options of a command."""
    token, token_file = command.get("token"), command.get("token_file")
    return Client(
        command["url"].split(),
        token=token,
        token_file=token_file,
        token_source=None if token or token_file else LicenseKey(command["license_key"]),
        ca_file=command.get("ca_file"),
        event_streams=command["event_streams"],
    )


def is_held(seat: Seat) -> bool:
    """Returns the answer of ``check``."""
    try:
        seat.check()
    except NotHeld:
        return False
    return True


def main() -> None:
    driver = Driver()
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] in ("acquire", "release", "close", "cycles"):
            threading.Thread(target=driver.answer, args=(command,), daemon=True).start()
        else:
            driver.answer(command)


if __name__ == "__main__":
    main()
