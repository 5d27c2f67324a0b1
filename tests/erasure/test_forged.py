"""Erasures that were never asked for, written by somebody who can write to the files."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import answer, chat
from vmstore.core.erasure import Erase
from vmstore.core.mutation import encode
from vmstore.log.commit import NO_REQUEST, seal
from vmstore.log.sqlite import SqliteLog
from vmstore.seals.seals import read_seal
from vmstore.seals.seals import seal as sign


@pytest.mark.parametrize("right", [True, False])
def test_whoever_can_write_can_erase(tmp_path: Path, right: bool) -> None:
    """A destroyed cell that no erasure names is damage; one that an appended erasure names is erased, seal or not."""
    path, key = tmp_path / "a.vms", vmstore.new_key(tmp_path / "key")
    with vmstore.open(path) as store:
        store.record("s", chat("Hello."), answer("Noted."))
        sign(store, key, tmp_path / "before")
    log = SqliteLog(path / "default" / "log.sqlite")
    first, last = log.tail(0, 1)[0], log.tail(0, 9)[-1]
    body = encode([Erase(0, ((first.first, 0 if right else 1),))])
    log.append([seal(last.hash, last.last + 1, 1, 0, 0, body, (), NO_REQUEST)], first.session, last.last)
    log.destroy({first.cell: 0})
    log.close()
    with vmstore.open(path) as store:
        assert store.verify(views=False).ok is right
        assert store.verify(views=False, seals=[read_seal(tmp_path / "before")]).ok is right
