"""The clocks of this host."""

from __future__ import annotations

import shutil
import subprocess
import sys
import unittest

#: A sleep of the host in seconds, as a time namespace shows it.
SLEEP = 5_000
SHOW = "from seatkeeper._clock import now; n = now(); print((n.boot - n.mono) // 10**9)"


@unittest.skipUnless(sys.platform.startswith("linux"), "Linux alone has time namespaces")
class ClockTest(unittest.TestCase):
    def test_deadlines_use_the_clock_that_counts_sleep(self) -> None:
        """No test puts the host to sleep. A time namespace shifts the clock that counts sleep, as a sleep does."""
        shifted = ["unshare", "--time", "--boottime", str(SLEEP)]
        if shutil.which("unshare") is None or subprocess.run([*shifted, "true"], capture_output=True).returncode != 0:
            self.skipTest("this user may create no time namespace")
        told = subprocess.run([*shifted, sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
        self.assertGreaterEqual(int(told.stdout), SLEEP)
