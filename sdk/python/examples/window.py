"""A text editor in a window, which saves the work of its user and says so in a dialog when its seat is lost.

    python window.py LETTER.txt

The letter is saved when the window is closed.
"""

import os
import queue
import sys
import tkinter
from pathlib import Path
from tkinter import messagebox, ttk
from typing import Optional

import seatkeeper

KEY = "TOUR-2030"

#: The milliseconds between two looks at the states of the seat.
LOOK_EVERY = 50


class Editor(tkinter.Tk):
    """The window. Callbacks of the seat run on a thread of the client, which must not call Tk: they post states."""

    def __init__(self, path: Path, seat: seatkeeper.Seat) -> None:
        super().__init__()
        self.title(path.name)
        self.path = path
        self.text = tkinter.Text(self, undo=True)
        self.text.pack(fill="both", expand=True)
        self.status = ttk.Label(self)
        self.status.pack(fill="x")
        self.dialog: Optional[tkinter.Toplevel] = None
        # The server may end the seat of a user who does no work for a long time.
        self.text.bind("<Key>", lambda _: seat.activity())
        self.protocol("WM_DELETE_WINDOW", self.save_and_close)
        self._seat = seat
        self._states: queue.Queue[seatkeeper.State] = queue.Queue()
        self._next_look = self.after(LOOK_EVERY, self._look)
        seat.on_change(self._states.put)

    def destroy(self) -> None:
        self.after_cancel(self._next_look)
        super().destroy()

    def save_and_close(self) -> None:
        """Saves the letter, and closes the window."""
        self.path.write_text(self.text.get("1.0", "end-1c"), encoding="utf-8")
        self.destroy()

    def _look(self) -> None:
        while not self._states.empty():
            self._show(self._states.get())
        self._next_look = self.after(LOOK_EVERY, self._look)

    def _show(self, state: seatkeeper.State) -> None:
        if state.kind == "lost" and self.dialog is None:
            self._seat_lost(state)
        elif state.kind == "offline":
            self.status["text"] = "The license server does not answer. You can go on for now."
        elif state.kind == "grace":
            self.status["text"] = f"The license server is away. Save your work within {self._seat.remaining:.0f} s."
        elif state.kind == "active":
            self.status["text"] = ""

    def _seat_lost(self, state: seatkeeper.State) -> None:
        """Opens the dialog: the work is safe before the user has read a word."""
        rescued = self.path.with_suffix(".rescued")
        rescued.write_text(self.text.get("1.0", "end-1c"), encoding="utf-8")
        self.text["state"] = "disabled"
        cause = f" by {state.by}" if state.by else ""
        self.dialog = tkinter.Toplevel(self)
        self.dialog.title("Your seat is lost")
        told = f"Your seat is lost ({state.reason}{cause}). Your work is in {rescued}."
        ttk.Label(self.dialog, name="told", text=told).pack(padx=20, pady=20)
        ttk.Button(self.dialog, name="close", text="Close the editor", command=self.destroy).pack(pady=(0, 20))
        self.dialog.protocol("WM_DELETE_WINDOW", self.destroy)
        self.dialog.transient(self)


def main() -> int:
    path = Path(sys.argv[1])
    with seatkeeper.Client(os.environ["SEATS_URL"], token_source=seatkeeper.LicenseKey(KEY)) as client:
        try:
            machine = os.environ.get("SEATS_MACHINE") or seatkeeper.machine_id("com.example.tour")
            seat = client.license(KEY).acquire(machine=machine, user_agent="editor/1.0")
        except seatkeeper.SeatkeeperError as error:
            messagebox.showerror("The editor cannot start", str(error))
            return 1
        with seat:
            # Tk must end on its own thread, so the window outlives the threads of the client.
            window = Editor(path, seat)
            window.mainloop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
