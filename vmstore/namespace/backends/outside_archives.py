"""Lets a log read the archives of it that lie in a cold tier."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.log.sqlite import SqliteLog

if TYPE_CHECKING:
    from vmstore.cold.outside import OutsideArchives


def reach_outside(log: SqliteLog, namespace: str) -> None:
    """Lets a log read what of it lies in a cold tier; nothing is loaded before somebody does."""
    log.archives.fetch = _Outside(namespace).fetch


class _Outside:
    """The archives of a namespace in cold tiers."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    @cached_property
    def _archives(self) -> OutsideArchives:
        from vmstore.cold.outside import OutsideArchives

        return OutsideArchives(self._namespace)

    def fetch(self, uid: bytes, address: str, newest: bool) -> Path:
        """A copy of a session's archive."""
        return self._archives.fetch(uid, address, newest=newest)
