"""Ids of machines, with the known answers of every language."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any

from seatkeeper import Misuse, NoMachineId, machine_id
from seatkeeper._machine_id import derive, machine_id_on

FIXTURE: Any = json.loads((Path(__file__).resolve().parents[2] / "machine-ids.json").read_text(encoding="utf-8"))
PLATFORMS = {"linux": "linux", "macos": "darwin", "windows": "win32", "plan9": "plan9"}


class MachineIdTest(unittest.TestCase):
    def test_each_known_answer_is_given(self) -> None:
        self.assertGreaterEqual(len(FIXTURE["known"]), 6)
        for known in FIXTURE["known"]:
            self.assertEqual(derive(known["os_id"], known["app_id"]), known["id"], known)

    def test_each_host_has_its_id_or_its_error(self) -> None:
        self.assertGreaterEqual(len(FIXTURE["hosts"]), 19)
        for host in FIXTURE["hosts"]:
            files, commands = host.get("files", {}), host.get("commands", {})

            def found(app_id: str, host: Any = host, files: Any = files, commands: Any = commands) -> str:
                platform = PLATFORMS[host["os"]]
                return machine_id_on(platform, files.get, lambda words: commands.get(" ".join(words)), app_id)

            with self.subTest(host["name"]):
                if "id" in host:
                    self.assertEqual(found(FIXTURE["app_id"]), host["id"])
                else:
                    with self.assertRaises(NoMachineId) as error:
                        found(FIXTURE["app_id"])
                    self.assertEqual(error.exception.code, host["error"])
                    self.assertIn("`machine`", str(error.exception))
                with self.assertRaises(Misuse):
                    found("")

    def test_this_machine_has_the_same_id_twice_or_a_reason(self) -> None:
        try:
            self.assertEqual(machine_id("com.example.cad"), machine_id("com.example.cad"))
        except NoMachineId as error:
            self.assertIn(error.code, ("container", "no-machine-id"))


if __name__ == "__main__":
    unittest.main()
