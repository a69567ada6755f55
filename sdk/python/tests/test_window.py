"""Runs the tests of the example with a window on a display that nobody sees."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from pathlib import Path

from . import server as servers

PACKAGE = Path(__file__).resolve().parents[1]


@unittest.skipUnless(servers.BINARY, "SDK_TEST_SERVER names no server")
class Window(unittest.TestCase):
    def test_the_window_saves_the_work_when_its_seat_is_lost(self) -> None:
        # The X server chooses the number of its display. The tests have a process of their own: Tk keeps the connection
        # to the display until its process ends, and ends the process with the display.
        with subprocess.Popen(
            ["Xvfb", "-displayfd", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as screen:
            self.addCleanup(screen.kill)
            assert screen.stdout is not None
            display = ":" + screen.stdout.readline().strip()
            tests = subprocess.run(
                [sys.executable, "-m", "unittest", "tests.window"],
                cwd=PACKAGE,
                env={**os.environ, "DISPLAY": display, "PYTHONPATH": "src"},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            screen.terminate()
        self.assertEqual(tests.returncode, 0, tests.stderr)
        self.assertIn("Ran 2 tests", tests.stderr)


if __name__ == "__main__":
    unittest.main()
