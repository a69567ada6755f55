"""Opens the window of ``examples/window.py``, and takes its seat away. ``test_window.py`` runs these tests."""

from __future__ import annotations

import gc
import importlib.util
import tempfile
import time
import unittest
from pathlib import Path
from types import ModuleType
from typing import Callable

import seatkeeper

from . import server as servers

WINDOW = Path(__file__).resolve().parents[1] / "examples" / "window.py"
KEY = "TOUR-2030"

#: Seconds until the window must have changed, on a busy machine.
PATIENCE = 60


def _example() -> ModuleType:
    """Loads the example."""
    spec = importlib.util.spec_from_file_location("window", WINDOW)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Window(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(self._collect_the_window)
        self.server = servers.Server()
        self.addCleanup(self.server.close)
        self.server.license(KEY, ttl_seconds=3, clients="key")
        client = seatkeeper.Client(self.server.url, token_source=seatkeeper.LicenseKey(KEY))
        self.addCleanup(client.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.letter = Path(folder.name, "letter.txt")
        self.seat = client.license(KEY).acquire(machine="workstation-7")
        self.editor = _example().Editor(self.letter, self.seat)

    def _collect_the_window(self) -> None:
        """Ends Tk on its own thread, after the threads of the client."""
        del self.editor
        gc.collect()

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        """Runs the event loop of the window until a condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), deadline, "the window has not changed")
            self.editor.update()
            time.sleep(0.01)

    def test_the_dialog_says_that_the_seat_is_lost_and_the_work_is_safe(self) -> None:
        self.editor.text.insert("end", "Dear server,")
        self.server.run("sessions", "revoke", "--license", self.server.license_id(KEY))
        self._wait_until(lambda: self.editor.dialog is not None)
        told = self.editor.dialog.nametowidget("told")["text"]
        self.assertRegex(told, r"Your seat is lost \(revoked.*letter\.rescued")
        self.assertEqual(self.letter.with_suffix(".rescued").read_text(encoding="utf-8"), "Dear server,")
        self.assertEqual(self.editor.text["state"], "disabled")
        self.editor.dialog.nametowidget("close").invoke()
        self.assertFalse(self.letter.exists(), "the letter is as it was")

    def test_the_window_tells_an_outage_and_its_end(self) -> None:
        self.server.kill()
        self._wait_until(lambda: "does not answer" in self.editor.status["text"])
        self.server.start()
        self._wait_until(lambda: self.editor.status["text"] == "")
        self.editor.text.insert("end", "Dear server,")
        self.editor.save_and_close()
        self.assertEqual(self.letter.read_text(encoding="utf-8"), "Dear server,")
        self.assertTrue(self.seat.release())


if __name__ == "__main__":
    unittest.main()
