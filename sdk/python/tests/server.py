"""A real ``seatkeeper serve`` for tests, from the binary that the variable ``SDK_TEST_SERVER`` names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Optional

BINARY = os.environ.get("SDK_TEST_SERVER")


class Server:
    """An embedded server with a data directory of its own."""

    def __init__(self) -> None:
        assert BINARY, "SDK_TEST_SERVER is not set"
        self.data_dir = tempfile.mkdtemp(prefix="seatkeeper-sdk-")
        self.url = ""
        self.process: Optional[subprocess.Popen[str]] = None
        self.start("127.0.0.1:0")

    def start(self, listen: str = "") -> None:
        """Starts the server, and waits until it listens; by default on the port of the last start."""
        listen = listen or self.url.removeprefix("http://")
        with open(os.path.join(self.data_dir, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(BINARY), "serve", "--listen", listen, "--data-dir", self.data_dir],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("listening on "):
                self.url = line.split()[-1]
                return
        raise AssertionError(f"the server did not start: see {self.data_dir}/log")

    def kill(self) -> None:
        """Ends the server as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def close(self) -> None:
        """Ends the server, and removes its data."""
        self.kill()
        shutil.rmtree(self.data_dir, ignore_errors=True)

    def run(self, *arguments: str) -> str:
        """Runs a command of the binary against this server."""
        place = ["--data-dir", self.data_dir]
        if arguments[0] != "token":
            place += ["--server", self.url]
        command = [str(BINARY), *arguments, *place]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def license(
        self, key: str, seats: int = 1, ttl_seconds: int = 3, clients: str = "token", count_per: str = "machine"
    ) -> str:
        """Creates a license, and returns its key."""
        terms = ["--seats", str(seats), "--ttl-seconds", str(ttl_seconds), "--clients", clients]
        terms += ["--count-per", count_per]
        self.run("license", "create", "--key", key, *terms)
        return key

    def license_id(self, key: str) -> str:
        """Returns the id of a license."""
        answer: Any = json.loads(self.run("license", "list", "--json"))
        return str(next(row["license_id"] for row in answer["items"] if row["license_key"] == key))

    def token(self, user: str = "ann") -> str:
        """Returns a bearer token for ``user``."""
        return self.run("token", "--user", user).strip()

    def revoke(self, session: Optional[str]) -> None:
        """Ends a session as an operator does."""
        self.run("sessions", "revoke", str(session))

    def live_machines(self) -> list[str]:
        """Returns the machines that hold a seat now, in order."""
        answer: Any = json.loads(self.run("sessions", "list", "--live", "--json"))
        return sorted(row["machine_id"] for row in answer["items"])
