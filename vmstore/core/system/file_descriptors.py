"""How many files a process may have open: seen to be enough as a store is opened, and named where they are not."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from vmstore.errors import StoreError

if sys.platform != "win32":
    import resource

SPARE = 16  # what a store opens later, and modules that are loaded when they are first needed


def enough() -> None:
    """Raises StoreError where this process may open hardly any more files."""
    opened: list[int] = []
    try:
        with named():
            for _ in range(SPARE):
                opened.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for file in opened:
            os.close(file)


@contextmanager
def named() -> Iterator[None]:
    """Within it an error for want of descriptors becomes a StoreError that names the limit."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        raise StoreError(
            f"too many files are open: this process may have {limit} (RLIMIT_NOFILE), and a store needs {SPARE} spare "
            "ones; close some, or allow more with `ulimit -n`"
        ) from error
