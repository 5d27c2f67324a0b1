"""What a kernel was asked and decided leaves the store like everything else, and comes back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.transfer.moved import bundle, taken, views
from tests.transfer.test_tables import asked
from tests.views.test_alphabet import STORY, written


def test_every_kind_comes_back_in_a_bundle(tmp_path: Path) -> None:
    """A bundle of a story with every kind gives a store whose every view is the same."""
    store = written(STORY)
    with taken(tmp_path, bundle(store), exact=True) as again:
        assert views(again) == views(store)


def test_every_kind_has_its_row(tmp_path: Path) -> None:
    """The table of mutations has each kind's fields, and names a page only where there is one."""
    store = written(STORY)
    ask = asked(store, tmp_path, "sqlite")
    rows = {(session, position): (kind, page, fields) for session, position, kind, page, fields in ask(
        "SELECT session, position, kind, page, fields FROM mutations"
    )}  # fmt: skip
    entries = list(store.tail())
    assert {entry.kind for entry in entries} >= {"fault_in", "fault_denied", "evict", "prefetch", "pin", "settings"}
    for entry in entries:
        kind, page, fields = rows[entry.session, entry.position]
        assert kind == entry.kind
        if entry.mutation.get("why") is not None:
            assert json.loads(fields)["why"][:3] == list(entry.mutation["why"][:3])
        if "page" in entry.mutation:
            assert (page is None) == (entry.mutation["page"] == 0)


def test_their_contents_are_weighed() -> None:
    """What a kernel's mutations name in cells is weighed as what it is."""
    assert {"settings", "evidence", "queries"} <= {kind.what for kind in written(STORY).admin.usage().kinds}
