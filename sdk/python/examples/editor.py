"""A text editor for one line at a time, which saves the work of its user when its seat is lost.

    python editor.py LETTER.txt

Each line of the standard input is a line of the letter; the end of the input saves the letter.
"""

import os
import queue
import sys
import threading
from pathlib import Path
from typing import Union

import seatkeeper

KEY = "TOUR-2030"

#: A line that the user typed, a state of the seat, or ``None`` at the end of the input.
Event = Union[str, seatkeeper.State, None]


def edit(path: Path, seat: seatkeeper.Seat) -> int:
    """Runs the event loop of the program. Callbacks of the seat post events, as a window's toolkit wants it."""
    events: queue.Queue[Event] = queue.Queue()
    seat.on_change(events.put)
    threading.Thread(target=_read_lines, args=(events,), daemon=True).start()
    lines: list[str] = []
    while (event := events.get()) is not None:
        if isinstance(event, str):
            lines.append(event)
        elif event.kind == "offline":
            print("The license server does not answer. You can go on for now.", flush=True)
        elif event.kind == "grace":
            print(f"The license server is away. Save your work within {seat.remaining:.0f} s.", flush=True)
        elif event.kind == "lost":
            return _seat_lost(path, lines, event)
    path.write_text("".join(lines), encoding="utf-8")
    print(f"Saved {path}.", flush=True)
    return 0


def _seat_lost(path: Path, lines: list[str], state: seatkeeper.State) -> int:
    """The dialog of a program with windows: the work is safe before the user has read a word."""
    rescued = path.with_suffix(".rescued")
    rescued.write_text("".join(lines), encoding="utf-8")
    cause = f" by {state.by}" if state.by else ""
    print(f"Your seat is lost ({state.reason}{cause}). Your work is in {rescued}.", flush=True)
    return 1


def _read_lines(events: "queue.Queue[Event]") -> None:
    for line in sys.stdin:
        events.put(line)
    events.put(None)


def main() -> int:
    path = Path(sys.argv[1])
    with seatkeeper.Client(os.environ["SEATS_URL"], token_source=seatkeeper.LicenseKey(KEY)) as client:
        try:
            machine = os.environ.get("SEATS_MACHINE") or seatkeeper.machine_id("com.example.tour")
            seat = client.license(KEY).acquire(machine=machine, user_agent="editor/1.0")
        except seatkeeper.SeatkeeperError as error:
            print(f"The editor cannot start: {error}", flush=True)
            return 1
        with seat:
            print(f"Type your letter to {path}.", flush=True)
            return edit(path, seat)


if __name__ == "__main__":
    raise SystemExit(main())
