"""Choice of workers: a number of processes, a Ray cluster by its address, or workers that are there already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from vmstore.errors import InputError
from vmstore.workers.executor import Workers

Choice = int | str | Workers | None
"""How a caller says who works: a number of processes, `ray`, `ray://host:port`, workers; None for one a core."""


@contextmanager
def chosen(choice: Choice = None) -> Iterator[Workers | None]:
    """The workers of a choice while they are used; None where this process alone does the work."""
    if choice is not None and not isinstance(choice, int | str):
        yield choice  # the caller made them and closes them
        return
    text = str(choice).strip() if choice is not None else str(os.cpu_count() or 1)
    workers: Workers
    if text == "ray" or text.startswith("ray://"):
        from vmstore.workers.ray_cluster import RayCluster

        workers = RayCluster(text)
    elif text.isdecimal() and int(text):
        if int(text) == 1:
            yield None
            return
        from vmstore.workers.process import LocalPool

        workers = LocalPool(int(text))
    else:
        remedy = "give a number from 1 up, ray, or ray://host:port"
        raise InputError(
            f"{choice!r:.60} is no number of processes and no cluster; {remedy}", code="not-a-number-of-workers"
        )
    try:
        yield workers
    finally:
        workers.close()
