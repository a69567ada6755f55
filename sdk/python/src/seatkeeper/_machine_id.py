"""A stable id of this machine, different for each program."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Callable, Optional

from .errors import Misuse, NoMachineId

MAC_COMMAND = ("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
WINDOWS_COMMAND = ("reg", "query", r"HKLM\SOFTWARE\Microsoft\Cryptography", "/v", "MachineGuid", "/reg:64")
#: The timeout of a command, in seconds.
COMMAND_TIMEOUT = 10
#: Files of Linux: the second serves hosts without systemd.
LINUX_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
#: The content of ``/etc/machine-id`` in an image that has not booted yet.
UNINITIALIZED = "uninitialized"
#: Files that exist in containers alone.
CONTAINER_FILES = (
    "/.dockerenv",
    "/run/.containerenv",
    "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
)
#: Parts of the control group of a container's first process, or of the source of its root directory.
CONTAINER_GROUPS = ("docker", "kubepods", "containerd", "libpod", "lxc")

CONTAINER = (
    "a container has no stable machine id: pass an id of your own as `machine`, such as the name of the host or of the "
    "pod's stateful set"
)
MISSING = (
    "the operating system names no machine id (Linux: /etc/machine-id is missing, empty or uninitialized): pass an id "
    "of your own as `machine`"
)

#: Reads a file; ``None`` if there is none.
Read = Callable[[str], Optional[str]]
#: Runs a command, and returns its output; ``None`` after a failure.
Run = Callable[[Sequence[str]], Optional[str]]


def machine_id(app_id: str) -> str:
    """Returns the id of this machine for the program ``app_id``, such as ``com.example.cad``: 32 hexadecimal digits.

    The id is the same after every start, and different for each program, so that two vendors cannot match their users.
    It is HMAC-SHA256 of ``app_id``, keyed with the id of the operating system, which never leaves the machine.

    Raises ``NoMachineId`` in a container, and on a machine without an id.
    """
    return machine_id_on(sys.platform, _read, _run, app_id)


def machine_id_on(platform: str, read: Read, run: Run, app_id: str) -> str:
    """Returns the id of a machine with these files and commands."""
    if not app_id:
        raise Misuse("app_id is empty: want a name of the program that stays the same, such as com.example.cad")
    found: Optional[str] = None
    if platform == "linux":
        if _is_container(read):
            raise NoMachineId("container", CONTAINER)
        found = next((text for text in map(read, LINUX_FILES) if text is not None), None)
    elif platform == "darwin":
        found = _value_after(run(MAC_COMMAND), '"IOPlatformUUID" =')
    elif platform == "win32":
        found = _value_after(run(WINDOWS_COMMAND), "REG_SZ")
    os_id = (found or "").strip().lower()
    if os_id in ("", UNINITIALIZED):
        raise NoMachineId("no-machine-id", MISSING)
    return derive(os_id, app_id)


def derive(os_id: str, app_id: str) -> str:
    """Returns the id of a program on the machine with this id of its operating system."""
    return hmac.new(os_id.encode(), app_id.encode(), hashlib.sha256).hexdigest()[:32]


def _is_container(read: Read) -> bool:
    group = read("/proc/1/cgroup") or ""
    # With cgroup 2, a container does not see its own group.
    mounts = (read("/proc/self/mountinfo") or "").splitlines()
    root = next((mount for mount in mounts if mount.split(" ")[4:5] == ["/"]), "")
    has_file = any(read(file) is not None for file in CONTAINER_FILES)
    return has_file or any(name in group or name in root for name in CONTAINER_GROUPS)


def _value_after(output: Optional[str], name: str) -> Optional[str]:
    """Returns the rest of the first line with ``name``, without quotes and spaces."""
    for line in (output or "").splitlines():
        _, found, value = line.partition(name)
        if found:
            return value.strip(' "\t\r')
    return None


def _read(path: str) -> Optional[str]:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return None


def _run(command: Sequence[str]) -> Optional[str]:
    try:
        ended = subprocess.run(  # noqa: S603
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_TIMEOUT, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout.decode(errors="replace")
