"""What the debugger hands out after something was erased while it was open."""

from __future__ import annotations

from pathlib import Path

import vmstore
from tests.engine.stories import answer, chat
from vmstore.debug.api import DebugApi
from vmstore.debug.params import QueryParams
from vmstore.erasure.erase import erase

SECRET = "the kestrel flies at dawn"


def test_films_and_what_ifs_forget_what_is_erased(tmp_path: Path) -> None:
    """A film, a text and a what-if that were shown before an erasure are rebuilt after it, also in forks."""
    with vmstore.open(tmp_path / "a.vms") as store, vmstore.open(tmp_path / "a.vms") as other:
        store.record("s", chat(SECRET, "Noted.", "Else."), answer("So."))
        store.session("s").fork("f", call=1)
        answers = DebugApi(store, "a.vms", "default")
        asked = [
            ("/api/film", {"session": "f"}),
            ("/api/film", {"session": "s", "budget": "9000"}),
            ("/api/texts", {"session": "f", "at": "4,6"}),
            ("/api/request", {"session": "s", "call": "1"}),
        ]
        before = [answers.table[path](QueryParams(item)) for path, item in asked]
        assert sum(SECRET.encode() in item for item in before) >= 3
        assert b'"erased":0' in answers.table["/api/store"](QueryParams({}))
        erase(other, page=store.search(SECRET)[0].page, in_session="s")
        assert [SECRET.encode() in answers.table[path](QueryParams(item)) for path, item in asked] == [False] * 4
        assert b'"erased":0' not in answers.table["/api/store"](QueryParams({}))
