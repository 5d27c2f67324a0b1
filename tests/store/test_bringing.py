"""Pages of regions are copied into sessions by value, and say where they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests import refusals
from tests.engine.stories import answer, chat
from vmstore.errors import InputError, UnknownError

LESSON = "vm://lessons/pins/p4"


def lessons(path: Path, *who: str) -> vmstore.Store:
    """A region with a lesson that has two versions, shared with some."""
    keeper = vmstore.open(path, namespace="lessons")
    request = {"model": "m-1", "messages": [{"role": "user", "content": "Pin the plan first."}]}
    keeper.record("pins", request, answer("Noted."))
    keeper.session("pins").annotate("p4", importance=0.8, tags=["how"])
    for item in who:
        vmstore.share(keeper, item)
    return keeper


def test_a_copy_says_where_it_comes_from(store_path: Path) -> None:
    """A copy has the bytes, the kind and the tags of what it was made from, and names its version; it is made once."""
    with lessons(store_path, "team-a"), vmstore.open(store_path, namespace="team-a") as home:
        home.record("s", chat("hello"), None)
        session = home.session("s")
        name = vmstore.bring(session, LESSON)
        page = session.page(name)
        assert session.content(name) == b"Pin the plan first."
        assert (page.hint, page.tags, page.importance) == ("lessons:pins:p4.v1", ["from:lessons", "how"], 0.8)
        assert vmstore.origin(session, name) == "vm://lessons/pins/p4@position:4"
        assert vmstore.bring(session, LESSON) == name and vmstore.origin(session, "p4") is None
        assert home.verify().ok


def test_a_copy_outlives_its_region(store_path: Path) -> None:
    """After the region was taken back and is gone, the session answers, replays and verifies as before."""
    keeper = lessons(store_path, "session:team-a/live")
    with vmstore.open(store_path, namespace="team-a") as home:
        live = home.live_session("live", l0_tokens_max=4_000)
        live.user("How do we begin?")
        live.pack()
        actual_answer = live.page_fault(LESSON, by_model=True)
        assert actual_answer.granted and actual_answer.content == b"Pin the plan first."
        live.pack()
        vmstore.revoke(keeper, "session:team-a/live")
        keeper.close()
        for file in sorted((store_path / "lessons").rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        (store_path / "lessons").rmdir()
        assert "lessons:pins:p4.v1" in live.pack().pages and live.content(actual_answer.page) == b"Pin the plan first."
        assert live.debug.check().ok and home.verify().ok
        assert live.page_fault("vm://lessons/pins/p6").denied_because == "no_page"


def test_a_new_version_is_a_new_copy(store_path: Path) -> None:
    """What a copy was made from may change: the copy stays, and the newer version is copied beside it."""
    with lessons(store_path, "team-a") as keeper, vmstore.open(store_path, namespace="team-a") as home:
        session = home.session("s", create=True)
        first = vmstore.bring(session, LESSON)
        changed = {"model": "m-1", "messages": [{"role": "user", "content": "Pin the plan first. Always."}]}
        keeper.record("pins", changed, None)
        newest = max(keeper.session("pins").pages(), key=lambda page: page.version)
        if newest.version == 1:  # taken for a new page: then that is what is brought
            newest = keeper.session("pins").pages()[-1]
        second = vmstore.bring(session, f"vm://lessons/pins/{newest.page}")
        assert second != first
        assert session.content(first) == b"Pin the plan first."
        assert session.content(second) == b"Pin the plan first. Always."
        assert session.content(vmstore.bring(session, f"{LESSON}@position:5")) == b"Pin the plan first."


def test_what_may_not_be_read_cannot_be_brought(store_path: Path) -> None:
    """Without a grant a region's page is as unknown as one of no region, for who brings it and for a model."""
    with lessons(store_path, "user:ann"), vmstore.open(store_path, namespace="team-a") as home:
        for name, user in (("anns", "ann"), ("bobs", "bob")):
            home.live_session(name, l0_tokens_max=4_000, user=user).user("Hello.")
        assert home.session("anns").page_fault(LESSON).granted  # type: ignore[attr-defined]
        bobs = home.session("bobs")
        texts = []
        for address in (LESSON, LESSON.replace("lessons", "nothing")):
            with pytest.raises(UnknownError) as refused:
                vmstore.bring(bobs, address)
            texts.append(str(refused.value).replace("lessons", "nothing"))
            actual_answer = bobs.page_fault(address)  # type: ignore[attr-defined]
            assert (actual_answer.denied_because, actual_answer.content) == ("no_page", b"")
        assert texts[0] == texts[1]
        with refusals.refused("not-an-address", InputError):
            vmstore.bring(bobs, "p4")
