"""The state directory: instance ids in files that their processes lock. The format is ``sdk/state-directory.md``."""

from __future__ import annotations

import contextlib
import enum
import hashlib
import json
import os
import re
import stat
import sys
import uuid
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union
from urllib.parse import urlsplit

if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        """Locks byte 0 of the file without waiting. Raises ``OSError``."""
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _unlock(fd: int) -> None:
        """Does nothing: the lock ends with its handle."""

    #: The errors of ``_lock`` if another handle has the lock.
    _LOCKED: tuple[type[OSError], ...] = (PermissionError,)
else:
    import fcntl

    def _lock(fd: int) -> None:
        """Locks the file without waiting. Raises ``OSError``."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(fd: int) -> None:
        """Unlocks the file, also for a forked child that still has the descriptor."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    _LOCKED = (BlockingIOError,)

VERSION = 1
SLOTS_MAX = 4_096
CONTENT_BYTES_MAX = 4_096
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
#: No link is followed, and no FIFO is waited for. Windows has none of these flags, but a text mode.
OPEN_FLAGS = os.O_RDWR | os.O_CREAT
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
    OPEN_FLAGS |= getattr(os, _flag, 0)


class Base(enum.Enum):
    """The base directory that a program does not name."""

    DEFAULT = "default"


#: ``Base.DEFAULT``, a path, or ``None`` to have no state directory.
StateDir = Union[str, Path, Base, None]


class Unusable(Exception):
    """The state directory cannot be used; the text is the warning for the program."""

    def __init__(self, reason: str, place: str) -> None:
        super().__init__(f"{reason}: {place}")


@dataclass(frozen=True)
class Holder:
    """The members that name the directory of a license."""

    server: str
    license: str
    machine_id: str

    def directory(self) -> str:
        """Returns the name of the directory: 16 hexadecimal digits."""
        text = "\n".join((normalised(self.server), self.license, self.machine_id))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Slot:
    """The instance id of one seat, and the lock that keeps the id from every other process.

    An id without a state directory is random, and has no lock.
    """

    def __init__(self, instance_id: str, fd: Optional[int] = None, warning: Optional[str] = None) -> None:
        self.instance_id = instance_id
        #: The reason for which the state directory was not used.
        self.warning = warning
        self._fd = fd
        self._pid = os.getpid()
        if fd is not None:
            _open_slots.add(self)

    @property
    def is_locked(self) -> bool:
        """True while the id belongs to this process alone."""
        return self._fd is not None

    def close(self) -> None:
        """Leaves the id to the next process. A second call has no effect, and neither has a call in a forked child."""
        fd, self._fd = self._fd, None
        if fd is None or os.getpid() != self._pid:
            return
        _open_slots.discard(self)
        # Where the unlock fails, the lock ends with the descriptor.
        with contextlib.suppress(OSError):
            _unlock(fd)
        _close(fd)

    def abandon(self) -> None:
        """Closes the descriptor that a forked child inherited, and leaves the parent's lock alone."""
        fd, self._fd = self._fd, None
        if fd is not None:
            _close(fd)


def _close(fd: int) -> None:
    """Closes a descriptor, which the program may have closed already."""
    with contextlib.suppress(OSError):
        os.close(fd)


_open_slots: weakref.WeakSet[Slot] = weakref.WeakSet()


def _abandon_all() -> None:
    for slot in list(_open_slots):
        slot.abandon()
    _open_slots.clear()


if hasattr(os, "register_at_fork"):
    # Otherwise the slot of a killed parent stays locked until the end of its child.
    os.register_at_fork(after_in_child=_abandon_all)


def take_slot(state_dir: StateDir, holder: Holder) -> Slot:
    """Takes the first free slot of a license; without a usable state directory, the id is random."""
    try:
        base = base_directory(state_dir)
        if base is None:
            return random_slot()
        _provide(base)
        directory = os.path.join(base, holder.directory())
        _provide(directory)
        return _first_free(directory)
    except Unusable as error:
        return random_slot(str(error))


def random_slot(warning: Optional[str] = None) -> Slot:
    """Returns an id without a lock."""
    return Slot(str(uuid.uuid4()), warning=warning)


def base_directory(state_dir: StateDir) -> Optional[str]:
    """Returns the base directory; ``None`` if the program wants none. Raises ``Unusable``."""
    if state_dir is None or state_dir == "":
        return None
    base = default_base(sys.platform, os.environ) if isinstance(state_dir, Base) else os.fspath(state_dir)
    # A slash at the end would follow a symbolic link.
    return base.rstrip(os.sep) or os.sep


def normalised(url: str) -> str:
    """Returns the URL of a server in the one spelling that all SDKs hash."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    default_port = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, default_port) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def default_base(platform: str, environ: Mapping[str, str]) -> str:
    """Returns the base directory that the environment names. Raises ``Unusable``."""
    if platform == "win32":
        places = [("LOCALAPPDATA", "Seatkeeper")]
    elif platform == "darwin":
        places = [("HOME", "Library/Application Support/Seatkeeper")]
    else:
        places = [("XDG_STATE_HOME", "seatkeeper"), ("HOME", ".local/state/seatkeeper")]
    for variable, rest in places:
        parent = environ.get(variable, "")
        if os.path.isabs(parent):
            return os.path.join(parent, rest)
    names = " nor ".join(variable for variable, _ in places)
    raise Unusable("no-home", f"{names} is an absolute path")


def _provide(directory: str) -> None:
    """Creates the directory with its parents if it is missing, and checks that nobody else can write to it."""
    try:
        _create(directory)
        found = os.lstat(directory)
    except (OSError, ValueError) as error:
        raise Unusable("unusable", directory) from error
    if not stat.S_ISDIR(found.st_mode):
        raise Unusable("not-a-directory", directory)
    if sys.platform == "win32":
        return
    if found.st_uid != os.geteuid():
        raise Unusable("foreign-owner", directory)
    if found.st_mode & 0o022:
        raise Unusable("writable-by-others", directory)


def _create(directory: str) -> None:
    """Creates each missing directory for this user alone; ``os.makedirs`` would open the parents to others."""
    if os.path.lexists(directory):
        return
    parent = os.path.dirname(directory.rstrip(os.sep))
    if parent and parent != directory:
        _create(parent)
    # Another process may be first.
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)


def _first_free(directory: str) -> Slot:
    for number in range(1, SLOTS_MAX + 1):
        path = os.path.join(directory, f"slot-{number}.lock")
        try:
            fd = os.open(path, OPEN_FLAGS, 0o600)
        except OSError as error:
            if os.path.lexists(path):
                continue
            raise Unusable("unusable", path) from error
        slot = None
        try:
            slot = _take(fd, path)
        finally:
            if slot is None:
                os.close(fd)
        if slot is not None:
            return slot
    raise Unusable("no-free-slot", directory)


def _take(fd: int, path: str) -> Optional[Slot]:
    """Locks an open file, and reads or writes its id; ``None`` if the slot is not free. Raises ``Unusable``."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return None
    try:
        _lock(fd)
    except _LOCKED:
        return None
    except OSError as error:
        # A file system without locks protects no id.
        raise Unusable("unusable", path) from error
    try:
        content = os.read(fd, CONTENT_BYTES_MAX + 1)
    except OSError:
        return None
    instance_id = read_instance_id(content)
    if instance_id is None:
        instance_id = str(uuid.uuid4())
        try:
            _write(fd, instance_id)
        except OSError as error:
            raise Unusable("unusable", path) from error
    return Slot(instance_id, fd)


def read_instance_id(content: bytes) -> Optional[str]:
    """Returns the id of a slot's content; ``None`` if the content is not valid."""
    if len(content) > CONTENT_BYTES_MAX:
        return None
    try:
        members: Any = json.loads(content.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    version, instance_id = members.get("version"), members.get("instance_id")
    if type(version) is not int or version != VERSION:
        return None
    return instance_id if isinstance(instance_id, str) and UUID4.fullmatch(instance_id) else None


def _write(fd: int, instance_id: str) -> None:
    content = json.dumps({"version": VERSION, "instance_id": instance_id}, separators=(",", ":")).encode()
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    if os.write(fd, content) != len(content):
        raise OSError("the file system is full")
