"""Hold a license seat, or a device's screen, of a Seatkeeper server: acquire, heartbeats, loss, release.

The package installs no signal handler and prints nothing. Only ``acquire(per_process=True)`` reads the environment, for
the state directory, and only ``machine_id`` reads other files that the program does not name. Errors of callbacks go to
the logger ``seatkeeper``, which is silent unless the program configures it.
"""

from ._core.problem import DeviceSession, FieldError, Holder, Problem
from ._core.state import State
from ._license_tokens import LicenseKey
from ._machine_id import machine_id
from .aio import AsyncClient, AsyncDevice, AsyncLicense, AsyncSeat
from .client import Client, Device, License
from .errors import Closed, Denied, Misuse, NoMachineId, NoResources, NotHeld, Offline, SeatkeeperError, SeatLost
from .seat import Seat

__all__ = [
    "AsyncClient",
    "AsyncDevice",
    "AsyncLicense",
    "AsyncSeat",
    "Client",
    "Closed",
    "Denied",
    "Device",
    "DeviceSession",
    "FieldError",
    "Holder",
    "License",
    "LicenseKey",
    "Misuse",
    "NoMachineId",
    "NoResources",
    "NotHeld",
    "Offline",
    "Problem",
    "Seat",
    "SeatLost",
    "SeatkeeperError",
    "State",
    "machine_id",
]
