"""Runs the example programs against a real server, and compares the page of the package with them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from . import server as servers

PACKAGE = Path(__file__).resolve().parents[1]
EXAMPLES = PACKAGE / "examples"


class Page(unittest.TestCase):
    def test_the_page_shows_the_example(self) -> None:
        page = (PACKAGE / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertEqual(blocks[0], (EXAMPLES / "hold.py").read_text(encoding="utf-8"))


@unittest.skipUnless(servers.BINARY, "SDK_TEST_SERVER names no server")
class Examples(unittest.TestCase):
    def setUp(self) -> None:
        self.server = servers.Server()
        self.addCleanup(self.server.close)
        self.server.license("TOUR-2030", ttl_seconds=3, clients="key")
        self.variables = {**os.environ, "SEATS_URL": self.server.url, "SEATS_MACHINE": "workstation-7"}

    def test_hold(self) -> None:
        ended = subprocess.run(
            [sys.executable, str(EXAMPLES / "hold.py")],
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertTrue(ended.stdout.endswith("step 3\nthe seat is given back\n"), ended.stdout)
        self.assertEqual(self.server.live_machines(), [])

    def test_the_editor_saves_the_work_when_its_seat_is_lost(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            letter = Path(folder, "letter.txt")
            with subprocess.Popen(
                [sys.executable, str(EXAMPLES / "editor.py"), str(letter)],
                env=self.variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as editor:
                assert editor.stdin is not None
                assert editor.stdout is not None
                self.assertIn("Type your letter", editor.stdout.readline())
                editor.stdin.write("Dear server,\n")
                editor.stdin.flush()
                self.server.run("sessions", "revoke", "--license", self.server.license_id("TOUR-2030"))
                self.assertRegex(editor.stdout.readline(), r"Your seat is lost \(revoked.*letter\.rescued")
                self.assertEqual(editor.wait(60), 1)
            self.assertEqual(letter.with_suffix(".rescued").read_text(encoding="utf-8"), "Dear server,\n")


if __name__ == "__main__":
    unittest.main()
