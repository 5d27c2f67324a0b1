"""A page is erased: recorded, destroyed, forgotten, and everything that asks for it hears where."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.refusals import refused
from vmstore.core.mutation import Mark
from vmstore.erasure.erase import erase, plan_erasure
from vmstore.errors import ErasedError, OvertakenError

SECRET = "the combination is 4711-violet-9"
ALIKE = "as I said: the combination is 4711-violet-9, remember"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which a secret was said, and what came after it; a fork that inherits it."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        store.record("s", chat(SECRET, "Noted.", "Go on."), answer("Gone."))
        session = store.session("s")
        session.annotate("p6", tags=["violet-tag"], anchors={"lock": "violet-anchor"})
        session.fork("s-b", call=2)
        store.search("combination")
    return path


def test_every_answer_says_where_it_was_erased(path: Path) -> None:
    """Live, of the past, on a fork, rebuilt: one answer, and the rest of the context stays."""
    with vmstore.open(path) as store:
        session = store.session("s")
        page = next(p.page for p in session.pages() if p.role == "user" and session.content(p.page) == SECRET.encode())
        done = erase(store, page=page, in_session="s")
        assert done.plan.cells == 3
        assert (
            session.lineage.history(page)[-1].event == "erase" and session.lineage.history(page)[-1].detail == "asked"
        )
        assert "erase" not in [event.event for event in session.lineage.history(page, call=1)]
        at = next(info.position for info in store.sessions() if info.session == "s")
        other_text = f"erased at position {at}"
        for _ in range(2):
            for asked in (session, store.session("s-b")):
                for moment in ({}, {"call": 1}, {"position": 7}):
                    with pytest.raises(ErasedError, match=other_text):
                        asked.content(page, **moment)
                    with pytest.raises(ErasedError, match=other_text):
                        asked.open_content(page, **moment)
                with pytest.raises(ErasedError, match=other_text):
                    asked.context(call=1).request()
                assert f"[{other_text}]" in str(asked.context(call=1).messages())
                assert f"[{other_text}]" in asked.context(call=1).text()
                assert asked.context(call=2).messages()[-1]["content"] == "Go on."
                assert asked.page(page).tags == [] and asked.page(page).anchors == {}
            text = f"PAGES text IN SESSION s WHERE page = {page}"
            assert [row[0] for row in store.query(text)] == [f"[{other_text}]"]
            assert store.search("combination violet erased position") == []
            assert store.verify().ok
            store.admin.rebuild()


@pytest.mark.parametrize("clause", ["LIMIT 1", "ORDER BY tokens LIMIT 1", "AS OF CALL 1", "ACROSS SESSIONS"])
def test_a_condition_stands_alone(path: Path, clause: str) -> None:
    """A clause behind the condition is refused where it stands: a limit would leave out pages that it selects."""
    with vmstore.open(path) as store:
        assert store.trust.plan_erasure(where="role = user").cells > 1
        for ask in (store.trust.plan_erasure, partial(store.trust.retain, "1d", name="said")):
            with refused("clause-unused", vmstore.QueryError):
                ask(where=f"role = user {clause}")
        with refused("unknown-column", vmstore.QueryError):
            store.trust.plan_erasure(where="rolle = user")
        with pytest.raises(vmstore.QueryError):
            store.trust.retain("1d", where="role = user) OR (role = tool", name="said")


def test_nothing_is_left_in_any_file(path: Path) -> None:
    """No file of the store holds a word of it, open or closed, while another handle has it open; before, they did."""
    planted = [SECRET.encode(), b"violet-tag", b"violet-anchor"]
    assert found_in(path, planted).keys() == set(planted)
    with vmstore.open(path) as other:
        other.sessions()
        with vmstore.open(path) as store:
            page = next(p.page for p in store.session("s").pages() if p.role == "user")
            erase(store, page=page, in_session="s")
            assert found_in(path, planted) == {}
            assert other.verify().ok
            with pytest.raises(ErasedError):
                other.session("s").content(page)
    assert found_in(path, planted) == {}
    assert found_in(path.parent, planted) == {}


def test_what_is_said_again_is_written_anew(path: Path) -> None:
    """A content that was erased and is recorded again is there again, in a cell of its own."""
    with vmstore.open(path) as other, vmstore.open(path) as store:
        other.record("s", chat(SECRET, "Noted.", "Go on.", "Gone.", "More."), answer("Yes."))
        erase(store, page="p6", in_session="s")
        for nth, case in enumerate((store, other)):
            name = f"again-{nth}"
            case.record("s", chat("Say it.", SECRET), answer("Done."))
            case.record(name, chat(SECRET), answer("Done."))
            assert case.session(name).context().request()["messages"][1]["content"] == SECRET
            assert case.session("s").context().messages()[-1]["content"] == SECRET
            assert case.verify().ok
        fork = other.session("s-b")
        fork.record(chat(SECRET, "Noted.", "Go on.", "Gone.", SECRET), answer("Done."))
        assert fork.context().messages()[-1]["content"] == SECRET


def test_a_plan_writes_nothing(path: Path) -> None:
    """What would go and what would stay is told before, and the store stays as it was."""
    with vmstore.open(path) as store:
        store.record("t", chat(ALIKE), answer("I will."))
        before = store.admin.log.ordinal
        plan = plan_erasure(store, page="p6", in_session="s")
        assert [(page.page, page.why) for page in plan.pages] == [("s/p6", "named")]
        assert [(content.what, content.flag, content.why) for content in plan.untaken] == [
            ("t/p6", "copies", "quotes it")
        ]
        assert plan.forks == ["s-b"]
        assert store.admin.log.ordinal == before
        erase(store, page="p6", in_session="s", copies=True)
        assert store.search("combination") == []


def test_a_fork_names_nothing_that_was_erased_meanwhile(path: Path) -> None:
    """A batch that named a content of its past before another handle erased it is refused, and decides again."""
    with vmstore.open(path) as other, vmstore.open(path) as store:
        key = other._ns.key("s-b")
        assert key is not None
        batch = other._ns.engine.batch(key)
        assert isinstance(batch.cell(SECRET.encode()), tuple)
        batch.add(Mark(Mark.NAMED, name=batch.cell(SECRET.encode())))
        erase(store, page="p6", in_session="s")
        with refused("erased-meanwhile", OvertakenError):
            batch.commit(0)
        batch = other._ns.engine.batch(key)
        ref = batch.cell(SECRET.encode())
        assert isinstance(ref, int)
        batch.add(Mark(Mark.NAMED, name=ref))
        batch.commit(0)
        assert other.verify().ok and store.verify().ok
