"""The doors `session.work` and `store.work`: what they write, and what becomes of it everywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refusals import refused
from tests.work.agents import Done, failing, worked
from vmstore import Session, Store, memory_store
from vmstore.core.asof import Position
from vmstore.errors import ErasedError, InputError, UnknownError
from vmstore.store.work.calls import past_calls, past_failures
from vmstore.store.work.observations import observations
from vmstore.store.work.results import Lessons
from vmstore.work.observation import statistics


@pytest.fixture
def store() -> Store:
    """A store with a session whose tool failed three times, and of which two tools succeeded together six times."""
    store = memory_store()
    done: list[Done] = [("search", {"q": "x", "lang": "en"}, "[1]"), ("read", {"n": 1}, "text")]
    worked(store, "s", [*failing(3), *[done] * 6], user="ann")
    return store


def test_what_a_host_logs_of_a_call_is_in_tools(store: Store) -> None:
    """A tool's outcome, time, error, reasoning, tags and pages stand beside its call, as of when they were logged."""
    session = store.session("s")
    (before,) = store.query("TOOLS page, result, status WHERE tool = read LIMIT 1", session="s").to_dicts()
    call, result = before["page"], before["result"]
    at = session.info().position
    session.work.ran(
        call, outcome="error", result=result, duration_ms=12.5, error="gave up", reasoning="p4",
        pages_read=["p4"], pages_modified=[result], tags=["slow"],
    )  # fmt: skip
    asked = "TOOLS status, duration_ms, error, reasoning, tags, pages_read, pages_created, pages_modified, outcome_by"
    (after,) = store.query(f"{asked} WHERE page = '{call}'", session="s").to_dicts()
    assert after == {
        "status": "failed", "duration_ms": 12.5, "error": "gave up", "reasoning": "p4", "tags": ["slow"],
        "pages_read": ["p4"], "pages_created": [], "pages_modified": [result], "outcome_by": "host",
    }  # fmt: skip
    (past,) = store.query(f"TOOLS status, error AS OF POSITION {at} WHERE page = '{call}'", session="s").to_dicts()
    assert past == {"status": "ok", "error": None}
    session.work.ran(call)
    assert store.query(f"TOOLS status, error WHERE page = '{call}'", session="s").to_dicts() == [
        {"status": "ok", "error": None}
    ]


def test_what_cannot_be_logged_of_a_call_is_refused(store: Store) -> None:
    """A page that is not there, a word that is no outcome and a time that is none are named, and nothing is written."""
    work, at = store.session("s").work, store.session("s").info().position
    with refused("no-page", UnknownError):
        work.ran("p9999")
    with refused("no-outcome", UnknownError):
        work.ran("p7", outcome="fine")
    with pytest.raises(InputError):
        work.ran("p7", duration_ms=-1)
    assert store.session("s").info().position == at


def test_learning_writes_a_warning_and_a_skill_once(store: Store) -> None:
    """Three failures leave a guard with a warning page, six successes a skill page; said again nothing is new."""
    session = store.session("s")
    learned = session.work.learn()
    (guard,), (skill,) = learned.guards, learned.skills
    assert (guard.type, guard.tool, guard.count, len(guard.calls)) == ("failure", "book", 3, 3)
    assert (skill.skill, skill.successes, skill.tries, skill.importance) == ("search_then_read", 6, 6, 0.9)
    assert guard.warning is not None and skill.page is not None
    assert b"book" in session.content(guard.warning) and session.page(skill.page).importance == 0.9
    assert {link.target for link in session.lineage.ancestors(guard.warning, depth=1)} == set(guard.calls)
    again = session.work.learn()
    assert (again.guards, again.skills) == ([], [])
    assert session.work.guards() == [guard] and session.work.skills() == [skill]
    assert session.work.skills(["search"]) == [] and session.work.skills(["read", "search", "more"]) == [skill]
    assert store.verify().ok


def test_a_skill_that_is_tried_again_is_weighed_again(store: Store) -> None:
    """New tries change the counts, the content and the importance of the same page, and its past stays."""
    session = store.session("s")
    (before,) = session.work.learn().skills
    at = session.info().position
    done: list[Done] = [("search", {"q": "x", "lang": "en"}, "[1]"), ("read", {"n": 1}, "Error: no such page")]
    fine: list[Done] = [("search", {"q": "x", "lang": "en"}, "[1]"), ("read", {"n": 1}, "text")]
    worked(store, "s", [*failing(3), *[fine] * 6, done])
    (after,) = session.work.learn().skills
    assert (after.page, after.successes, after.tries) == (before.page, 6, 7)
    assert session.page(str(after.page)).importance < 0.9 and session.page(str(after.page)).version == 2
    assert session.work.skills(position=at) == [before]


FINE: list[Done] = [("search", {"q": "x", "lang": "en"}, "[1]"), ("read", {"n": 1}, "text")]


def test_an_abandoned_skill_comes_back_by_new_evidence_alone(store: Store) -> None:
    """What was shown before it was abandoned, and four successes more, write nothing; the fifth makes it a skill."""
    session = store.session("s")
    (skill,) = session.work.learn().skills
    session.annotate(str(skill.page), status="abandoned")
    assert session.work.learn().skills == store.work.learn().skills == session.work.skills() == []
    worked(store, "s", [*failing(3), *[FINE] * 10])
    assert session.work.learn().skills == []
    worked(store, "s", [*failing(3), *[FINE] * 11])
    (again,) = session.work.learn().skills
    assert again.page != skill.page and session.page(str(skill.page)).status == "abandoned"
    assert session.work.skills() == [again] and session.work.learn().skills == []


def test_a_skill_abandoned_in_one_session_stays_so_in_the_next_of_the_user() -> None:
    """Another session of the user does not write it by what was shown before; one of another user does."""
    store = memory_store()
    for name, user in (("one", "ann"), ("two", "ann"), ("bob", "bob")):
        worked(store, name, [FINE] * 10, user)
    (skill,) = store.session("one").work.learn().skills
    store.session("one").annotate(str(skill.page), status="abandoned")
    assert store.session("two").work.learn().skills == []
    assert [skill.session for skill in store.work.learn().skills] == ["bob"]


def test_the_failures_of_before_are_those_of_all_calls(store: Store) -> None:
    """Read alone they are the same calls, said to have failed by the answer or by who ran it; with a limit the last."""
    session = store.session("s")
    calls = past_calls(session)
    session.work.ran(calls[-1].page, outcome="error")
    session.work.ran(next(call for call in calls if call.failed).page, outcome="ok")
    failed = [call for call in past_calls(session) if call.failed]
    assert len(failed) == 3 and past_failures(session, 100) == failed
    assert past_failures(session, 2) == failed[-2:]


def test_an_erased_call_takes_its_warning_and_its_skill_along(store: Store) -> None:
    """Of a warning and a skill nothing is left once one of the calls they came from is erased."""
    session = store.session("s")
    learned = session.work.learn()
    (guard,), (skill,) = learned.guards, learned.skills
    store.trust.erase(page=f"s/{guard.calls[0]}")
    assert session.work.guards() == [] and is_erased(session, guard.warning)
    assert session.work.skills() == [skill]
    store.trust.erase(page=f"s/{skill.calls[-1]}")
    assert session.work.skills() == [] and is_erased(session, skill.page)
    assert store.query("SKILLS", session="s").to_dicts() == store.query("GUARDS", session="s").to_dicts() == []
    assert store.verify().ok


def is_erased(session: Session, page: str | None) -> bool:
    """Whether a page says only that it was erased."""
    with pytest.raises(ErasedError):
        session.content(str(page))
    return True


def test_an_error_goes_with_the_answer_that_says_it(store: Store) -> None:
    """What a tool failed with is erased with its call, and with its result alone too."""
    for field in ("page", "result"):
        (row,) = store.query("TOOLS page, result WHERE tool = book LIMIT 1", session="s").to_dicts()
        store.session("s").work.ran(row["page"], outcome="error", result=row["result"], error="secret-word")
        store.trust.erase(page=f"s/{row[field]}")
        assert store.query("TOOLS error WHERE error = 'secret-word'", session="s").to_dicts() == []


def test_the_failures_of_a_user_count_across_sessions_and_those_of_another_do_not() -> None:
    """The third failure of one user is told in their third session; two users with two each have none."""
    store = memory_store()
    for name, user in (("a1", "ann"), ("a2", "ann"), ("b1", "bob"), ("a3", "ann"), ("b2", "bob"), ("n1", None)):
        worked(store, name, failing(1), user=user)
    learned = store.work.learn()
    (guard,) = learned.guards
    assert (guard.session, guard.count, len(guard.calls)) == ("a3", 3, 1)
    assert store.work.guards(user="ann") == [guard] and store.work.guards(user="bob") == []
    assert store.work.learn() == Lessons([], [])


def test_a_fork_inherits_what_was_learned_and_a_rebuild_gives_the_same(store: Store, tmp_path: Path) -> None:
    """Guards and skills stand in forks from after they were written, in exports, and in views that are folded again."""
    session = store.session("s")
    before = session.info().position
    learned = session.work.learn()
    later = session.fork("later")
    earlier = session.fork("earlier", position=before)
    assert [guard.warning for guard in later.work.guards()] == [guard.warning for guard in learned.guards]
    assert earlier.work.guards() == [] and earlier.work.skills() == []
    rows = store.query("GUARDS ACROSS SESSIONS").to_dicts(), store.query("SKILLS ACROSS SESSIONS").to_dicts()
    store.admin.rebuild()
    assert (store.query("GUARDS ACROSS SESSIONS").to_dicts(), store.query("SKILLS ACROSS SESSIONS").to_dicts()) == rows
    bundle = tmp_path / "s.bundle"
    store.export(bundle, sessions=["s"])
    with memory_store() as other:
        other.import_file(bundle)
        copied = other.sessions()[0].session
        assert [guard.text for guard in other.session(copied).work.guards()] == [guard.text for guard in learned.guards]
        assert [skill.tools for skill in other.session(copied).work.skills()] == [["search", "read"]]


def test_avoidance_is_three_warnings_at_most(store: Store) -> None:
    """However many tools fail, three are told, the last first; of one tool its own."""
    turns: list[list[Done]] = [[(f"t{tool}", {"n": n}, "Error: broken")] for tool in range(5) for n in range(3)]
    worked(store, "many", turns)
    avoid = store.session("many").work.avoid()
    assert [text.split()[0] for text in avoid] == ["t4", "t3", "t2"]
    assert len(store.session("many").work.avoid("t0")) == 1 and store.session("many").work.avoid("t9") == []


def test_a_recorded_session_has_no_prompt_to_prepare(store: Store) -> None:
    """What a tool reads can be asked of any session; bringing it in is refused where there is no prompt."""
    work = store.session("s").work
    (row,) = store.query("TOOLS page WHERE tool = read LIMIT 1", session="s").to_dicts()
    work.ran(row["page"], pages_read=["p4"])
    assert work.suggest_pages("read") == ["p4"] and work.suggest_pages("search") == []
    with refused("no-budget", InputError):
        work.prepare("read")
    assert work.cheapest({"read": "10 tokens", "scan": "10K tokens"}, room=100) == ["read", "scan"]


def test_the_loop_is_measured(store: Store) -> None:
    """Failures after a warning count against it, and skills against the sequences there were."""
    worked(store, "more", failing(4), user="bob")
    store.session("more").work.learn()
    measures = store.session("more").work.measures()
    assert (measures.calls, measures.failed, measures.warned) == (4, 4, 1)
    assert (measures.repeated_after_warning, measures.avoided) == (1, 0.0)
    store.session("s").work.learn()
    assert store.session("s").work.measures().promotion_rate == 1.0


def test_sessions_say_which_tools_were_called_and_whether_little_happened(store: Store) -> None:
    """SESSIONS has the tools by how often they were called, the calls that were answered, and marks what is trivial."""
    worked(store, "small", [[]])
    asked = "SESSIONS session, tool_names, observations, trivial ORDER BY session"
    assert store.query(asked).to_dicts() == [
        {"session": "s", "tool_names": ["read", "search", "book"], "observations": 15, "trivial": False},
        {"session": "small", "tool_names": [], "observations": 0, "trivial": True},
    ]
    (then,) = store.query("SESSIONS tool_names, trivial IN SESSION s AS OF TURN 1").to_dicts()
    assert then == {"tool_names": ["book"], "trivial": False}
    store.session("small").close("abandoned", "nothing came of it")
    assert store.query("SESSIONS session, status WHERE trivial = TRUE").to_dicts() == [
        {"session": "small", "status": "abandoned"}
    ]


def test_sessions_say_what_the_shorter_forms_of_their_calls_save(store: Store) -> None:
    """Their own calls count: a fork has none of its parent's, an earlier moment none of what came later."""
    session = store.session("s")
    ratio = statistics(session.work.observations())
    session.fork("f")
    worked(store, "idle", [[]])
    columns = "SESSIONS session, tokens_saved, compression_ratio"
    rows_by_name = {row["session"]: row for row in store.query(columns).to_dicts()}
    assert rows_by_name["s"] == {
        "session": "s",
        "tokens_saved": ratio["tokens_saved"],
        "compression_ratio": ratio["ratio"],
    }
    assert {rows_by_name[name]["tokens_saved"] for name in ("f", "idle")} == {None}
    (before,) = store.query(f"{columns} IN SESSION s AS OF TURN 5").to_dicts()
    assert (
        before["tokens_saved"] == statistics(session.work.observations(turn=5))["tokens_saved"] < ratio["tokens_saved"]
    )


def test_how_a_tool_ran_is_told_as_of_the_moment() -> None:
    """What its host says later of a call changes no observation of a moment before."""
    called = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": None, "tool_calls": [called]}]
    with memory_store() as store:
        messages = [*asked, {"role": "tool", "tool_call_id": "c1", "content": "Nothing there."}]
        store.record("s", {"messages": messages}, None)
        session = store.session("s")
        before = session.info().position
        ((page,),) = store.query("TOOLS page")
        session.work.ran(page, outcome="error", error="it broke")
        past, head = (observations(session, at)[0].failed for at in (Position(before), None))
        assert (past, head) == (None, True)
