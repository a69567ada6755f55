"""Holds a seat for a few seconds of work."""

import os
import time

import seatkeeper

with seatkeeper.Client(os.environ["SEATS_URL"], token=os.environ["SEATS_TOKEN"]) as client:
    try:
        seat = client.license("TOUR").acquire(machine="workstation-7", wait=300)
    except seatkeeper.Denied as denied:
        holders = ", ".join(holder.machine_id for holder in denied.holders)
        raise SystemExit(f"no seat ({denied.code}); held by: {holders}") from denied

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
