"""Processes that are started to be killed."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable


def start(work: Callable[[], None]) -> int:
    """Does some work in a forked process; its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    gc.freeze()  # a collection would copy all that the tests before left in memory, which takes a second
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)


def kill(pid: int) -> None:
    """Kills a child as a power cut would: no handler, no cleaning up."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def joined(pid: int) -> int:
    """Waits for a child; its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
