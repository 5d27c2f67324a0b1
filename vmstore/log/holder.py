"""The holder of a lock: what its file states, and what the system knows of that process."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

PID_BYTES = 10
COMMAND_CHARS_MAX = 100
LOCKS = Path("/proc/locks")
STOPPED = ("T", "t")  # by a signal, by a debugger


class LockHolder(NamedTuple):
    """A process that took a lock: when (microseconds since 1970), and how it is now; pid 0 where nobody knows it."""

    pid: int
    since: int
    command: str
    alive: bool
    stopped: bool

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        if not self.pid:
            return f"a process that nobody here knows, since about {since}"
        named = f"process {self.pid}" + (f" ({self.command})" if self.command else "")
        how = ", which is stopped," if self.stopped else "" if self.alive else ", which is gone,"
        return f"{named}{how} since {since}"

    @property
    def remedy(self) -> str:
        """A remedy to put into an error message."""
        if not self.pid or not self.alive:
            return "find who has the file open (a child of that process, or one of another container) and end it"
        return f"let it go on (kill -CONT {self.pid}), or end it" if self.stopped else "wait until it ends, or end it"


def sign(file: int) -> None:
    """Writes into a lock's file who holds it; when it was written says since when."""
    with suppress(OSError):  # a full disk: it is held all the same
        os.pwrite(file, b"%-*d" % (PID_BYTES, os.getpid()), 0)


def holder_of(path: Path) -> LockHolder:
    """Reads which process holds the lock of a file."""
    pid, since = 0, 0
    with suppress(OSError, ValueError):
        status = path.stat()
        since = status.st_mtime_ns // 1_000
        pid = int(path.read_bytes()[:PID_BYTES] or b"0")
        others = _locking(status.st_ino)
        pid = pid if pid in others or not others else others[0]
    return LockHolder(pid, since, command(pid), pid > 0 and alive(pid), pid > 0 and stopped(pid))


def _locking(inode: int) -> list[int]:
    """The processes that hold a lock on a file, as Linux tells; none where it does not."""
    found = list[int]()
    with suppress(OSError, ValueError, IndexError):
        for line in LOCKS.read_text().splitlines():
            words = line.split()
            if words[1] != "->" and int(words[5].rpartition(":")[2]) == inode and int(words[4]) > 0:
                found.append(int(words[4]))
    return found


def alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def stopped(pid: int) -> bool:
    """Whether a process is stopped, by a signal or in a debugger, as far as the system tells."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in STOPPED
    return False


def command(pid: int) -> str:
    """The program of a process and its first argument, as far as the system tells; those after may be secret."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:2]
        line = b" ".join(word.rpartition(b"/")[2] for word in words).decode("utf-8", "replace").strip()
        return "".join(sign if sign.isprintable() else "?" for sign in line)[:COMMAND_CHARS_MAX]
    return ""
