"""Items of a conversation in a store, whichever framework they are of."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from vmstore.core.page import Role
from vmstore.integrations.items import ItemLog, as_json
from vmstore.store.session import Session


def add(log: ItemLog, *texts: str) -> None:
    """Adds items that a user said."""
    log.add([(Role.USER, as_json(text)) for text in texts])


def test_what_comes_while_items_are_read_is_read_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that another process adds between two reads of one look is there at the next, and can be taken away."""
    with vmstore.open(tmp_path / "a.vms") as first, vmstore.open(tmp_path / "a.vms") as two:
        here, there = ItemLog(first, "s", "t"), ItemLog(two, "s", "t")
        add(there, "one")
        info, late = Session.info, ["two"]

        def slowly(session: Session):
            """The counts of a session, which another process writes to just before."""
            if session._ns is first._ns and late:
                add(there, late.pop())
            return info(session)

        monkeypatch.setattr(Session, "info", slowly)
        here.items()
        assert here.items() == ["one", "two"]
        here.clear()
        assert there.items() == []
