"""Holds a seat for a few seconds of work."""

import os
import time

import seatkeeper

KEY = "TOUR-2030"
# A container has no id of its own: SEATS_MACHINE names the machine there.
machine = os.environ.get("SEATS_MACHINE") or seatkeeper.machine_id("com.example.tour")

with seatkeeper.Client(os.environ["SEATS_URL"], token_source=seatkeeper.LicenseKey(KEY)) as client:
    try:
        seat = client.license(KEY).acquire(machine=machine, wait=300)
    except seatkeeper.Denied as denied:
        holders = ", ".join(holder.machine_id for holder in denied.holders)
        raise SystemExit(f"no seat: {denied}; held by: {holders or 'nobody'}") from denied

    with seat:
        print(f"seat {seat.session_id} is held")
        for step in range(1, 4):
            try:
                seat.check()
            except seatkeeper.SeatLost as lost:
                raise SystemExit(f"the seat is lost ({lost.reason}): stopped before step {step}") from lost
            print(f"step {step}")
            time.sleep(1)
    print("the seat is given back")
