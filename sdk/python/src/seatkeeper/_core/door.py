"""The APIs behind which a seat is held: licenses and devices."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Optional

from .request import Call
from .slotted import slotted


class Door:
    """The calls of an API: to acquire, to keep and to give back."""

    __slots__ = ()

    #: The path of the API.
    base: str
    #: The kind of problem if every seat is in use.
    full: str
    #: An acquire takes a seat from nobody, so a release may send one to learn the session of a lost reply.
    finds: bool
    #: The server renews a session by 204, without terms. A renewal of a license always has its terms.
    renews_without_terms: bool
    #: The machine to which a license token would belong; ``None`` if the API takes no license tokens.
    machine_id: Optional[str]

    @property
    def holder(self) -> tuple[str, ...]:
        """The members that name the holder of a seat to the server."""
        raise NotImplementedError

    def acquire(self, session: Optional[str]) -> Call:
        """Returns the call that acquires a seat, or finds the holder's session again.

        ``session`` is the latest session that the machine was granted, if any.
        """
        raise NotImplementedError

    def heartbeat(self, session: str, times: dict[str, int]) -> Call:
        """Returns the call that renews a session, and tells the ``times`` that the program was idle or offline."""
        raise NotImplementedError

    def release(self, session: str) -> Call:
        """Returns the call that gives a session's seat back."""
        return Call("DELETE", f"{self.base}/sessions/{session}")

    def release_by_code(self, session: str, code: str) -> Call:
        """Returns the call that gives a session's seat back without a token."""
        body = {"session_id": session, "release_code": code}
        return Call("POST", f"{self.base}/sessions/release", body, bearer=False)

    @classmethod
    def events_path(cls, session: str, *others: str) -> str:
        """Returns the path of the event stream of a session; with ``others``, of a stream that they share."""
        path = f"{cls.base}/sessions/{session}/events"
        return f"{path}?with={','.join(others)}" if others else path


@slotted(frozen=True)
class LicenseDoor(Door):
    """A seat of a license, for a machine."""

    base = "/api/v1/licenses"
    full = "license-full"
    finds = True
    renews_without_terms = False

    license_key: str = field(repr=False)
    machine_id: str
    #: The process on the machine, for licenses that count processes.
    instance_id: Optional[str] = None
    #: The program's name for itself, for the audit log.
    user_agent: Optional[str] = None
    #: An object of the program's own, for the audit log.
    metadata: Optional[dict[str, Any]] = None
    #: The program and this package, for the audit log: ``name``, ``version`` and ``sdk``.
    client: Optional[dict[str, str]] = None
    #: True if the driver is to find an ``instance_id`` in the state directory.
    per_process: bool = False

    @property
    def holder(self) -> tuple[str, ...]:
        # A license that counts machines ignores the instance id.
        return self.license_key, self.machine_id

    def acquire(self, session: Optional[str]) -> Call:
        optional = {
            "instance_id": self.instance_id,
            "user_agent": self.user_agent,
            "metadata": self.metadata,
            "client": self.client,
        }
        body: dict[str, Any] = {"license_key": self.license_key, "machine_id": self.machine_id}
        return Call("POST", f"{self.base}/acquire", {**body, **_given(optional)})

    def heartbeat(self, session: str, times: dict[str, int]) -> Call:
        return Call("PATCH", f"{self.base}/sessions/{session}/heartbeat", times or None)


@slotted(frozen=True)
class DeviceDoor(Door):
    """A screen of a subscriber, for a device."""

    base = "/api/v1/devices"
    full = "devices-full"
    finds = False
    renews_without_terms = True
    machine_id = None

    device_id: str
    #: ``mobile``, ``tv``, ``browser`` or ``tablet``.
    device_type: str
    #: The owner's name for the device.
    device_name: Optional[str] = None
    #: The device's session in an earlier life of the program.
    session_id: Optional[str] = None
    #: The session that may end for this device, if all screens are in use.
    replace_session_id: Optional[str] = None

    @property
    def holder(self) -> tuple[str, ...]:
        return (self.device_id,)

    def acquire(self, session: Optional[str]) -> Call:
        # The choice of a session to end counts once.
        optional = {
            "device_name": self.device_name,
            "session_id": session or self.session_id,
            "replace_session_id": self.replace_session_id if session is None else None,
        }
        body: dict[str, Any] = {"device_id": self.device_id, "device_type": self.device_type}
        return Call("POST", f"{self.base}/sessions", {**body, **_given(optional)})

    def heartbeat(self, session: str, times: dict[str, int]) -> Call:
        return Call("POST", f"{self.base}/sessions/heartbeat", {"session_id": session, **times})


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
