"""A live session as an older version wrote it: the file in `tests/golden` is never written again."""

from __future__ import annotations

from pathlib import Path

from tests.transfer.moved import taken
from vmstore.store.live.live_session import Live

OLD = Path(__file__).parents[1] / "golden" / "live-1.jsonl"  # before calls were chosen, and images counted by size


def test_an_older_log_is_decided_as_it_was(tmp_path: Path) -> None:
    """Each decision and pack of a log from before there were windows is decided again byte by byte as it stands."""
    with taken(tmp_path, OLD.read_bytes(), exact=True) as store:
        session = store.session("old")
        assert isinstance(session, Live) and store.verify().ok
        checked = session.debug.check()
        assert checked.ok and checked.decisions > 30
        assert session.settings.window_tokens_max is None and not session.settings.conversation
        (picture,) = (page for page in session.pages() if page.modality == "image")
        assert picture.tokens == 1_000, "what it was counted at stands"


def test_an_older_log_goes_on(tmp_path: Path) -> None:
    """What was sent in an older session is what its calls say, thoughts and stand-ins included; it goes on so."""
    with taken(tmp_path, OLD.read_bytes(), exact=True) as store:
        session = store.session("old")
        assert isinstance(session, Live)
        pages = [page.page for page in session.context(call=2).pages]
        thought = next(page.page for page in session.pages(role="assistant"))
        assert session.content(thought).startswith(b"The cranes") and thought in pages
        session.user("Good.")
        packed = session.pack()
        assert packed.left == packed.lowered == () and session.debug.check().ok
        assert session.pack(conversation=True).messages().request and session.debug.check().ok
