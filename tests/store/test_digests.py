"""Digests of tasks: made from plans as they stand, opened by depth, packed with cards into a budget."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from tests.refusals import refused
from tests.work.agents import failing, worked
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import ErasedError, InputError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store
from vmstore.work.digest import Expansion, TaskDigest, pack, references
from vmstore.work.observation import tokens

STEPS: list[Any] = ["Design", {"text": "Build", "after": ["Design"]}]


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def session(store: Store) -> Live:
    """A session of Ann's with a task and a decision of it."""
    live = store.live_session("s1", user="ann", l0_tokens_max=4_000, rules="short")
    live.user("Build us a login.")
    live.work.plans.create("login", goals=["users can log in"], steps=STEPS)
    live.work.plans.decide("login", "We use JWT.")
    return live


def uri(session: Live, depth: int) -> str:
    """The reference of the session's task at a depth."""
    return f"expand://task/{session.work.plans.get('login').page}?depth={depth}"


def test_a_digest_follows_its_plan_and_the_past_has_its_own(session: Live) -> None:
    """After a change the digest says what the plan says, and at an earlier position what it said then."""
    before, position = session.work.digests.get("login"), session.info().position
    assert before.short == "login: active, 0 of 2 steps done."
    assert before.tokens == tokens(before.paragraph) and "Next: Design." in before.paragraph
    session.work.plans.done("login", "Design")
    assert session.work.digests.get("login").short == "login: active, 1 of 2 steps done."
    assert session.work.digests.get("login", position=position) == before
    fork = session.fork("f", position=position)
    assert fork.work.digests.get("login") == before
    assert session.work.digests.all(position=position) == [before] != session.work.digests.all()


def test_a_task_opens_step_by_step_within_its_budget(session: Live) -> None:
    """Each depth says more, the last a decision in its words, and one over the budget is refused by its number."""
    texts = [session.work.digests.expand(uri(session, depth)) for depth in range(4)]
    assert "We use JWT." in texts[3] and "We use JWT." not in texts[2] and "(after Design)" in texts[2]
    with refused("over-budget", InputError, "depth 3", "depth 2"):
        session.work.digests.expand(uri(session, 3), tokens(texts[3]) - 1)
    assert session.work.digests.expand(uri(session, 3), tokens(texts[3])) == texts[3]


def test_what_was_erased_is_in_no_digest(store: Store, session: Live) -> None:
    """A decision that was erased is said to be gone, and a task whose plan was erased is refused as that."""
    plan = session.work.plans.get("login")
    store.trust.erase(page=plan.decisions[0])
    text = session.work.digests.expand(uri(session, 3))
    assert "JWT" not in text and "no longer there" in text
    store.trust.erase(page=f"s1/{plan.page}")
    assert session.work.digests.tasks() == store.work.tasks() == []
    with refused("erased", ErasedError):
        session.work.digests.expand(f"expand://task/{plan.page}")
    with refused("no-plan", UnknownError):
        session.work.digests.expand("expand://task/p999")


def test_a_fork_keeps_the_words_of_decisions(session: Live) -> None:
    """A decision of the session that a fork goes on from is opened there too."""
    assert "We use JWT." in session.fork("f").work.digests.expand(uri(session, 3))


def test_cards_are_of_the_user_and_go_with_what_was_erased(store: Store, session: Live) -> None:
    """A warning of the user's other session is a card, one of another user is none, nor is one that was erased."""
    worked(store, "other", failing(3), "ben")
    store.work.learn()
    assert session.work.digests.cards() == []
    worked(store, "own", failing(3), "ann")
    store.work.learn()
    (card,) = session.work.digests.cards()
    assert "book" in card and card in session.work.digests.pack(500).text
    assert session.work.digests.cards(0) == []
    (guard,) = store.work.guards(user="ann")
    store.trust.erase(page=guard.page, in_session="own")
    assert session.work.digests.cards() == []


def test_what_opens_nothing_is_refused(session: Live) -> None:
    """A reference that is none, a depth there is not, a budget of nothing."""
    digests = session.work.digests
    for reference, code in (("expand://task/", "not-an-address"), (uri(session, 4), "no-level")):
        with refused(code, InputError):
            digests.expand(reference)
    with refused("not-a-limit", InputError):
        digests.pack(0)
    with refused("over-budget", InputError):
        digests.pack(3)


def test_the_packer_names_the_task_and_what_it_opened(session: Live) -> None:
    """The newest active task is in the text, and an expansion is opened as far as the budget goes."""
    reference = uri(session, 3)
    whole = session.work.digests.pack(1_000, expand=[reference])
    assert whole.expanded == [reference] and whole.dropped == [] and "Goals: users can log in." in whole.text
    less = session.work.digests.pack(whole.tokens - 1, expand=[reference])
    assert less.dropped == [reference] and less.expanded == [uri(session, 2)]


def test_the_last_expansion_goes_first() -> None:
    """Of two expansions the one asked for first is there whole while the other is opened less far, then not at all."""
    both = [Expansion(references(name, 1), ["b" * 20, "a" * 200]) for name in ("p1", "p2")]
    first = "expand://task/p1?depth=1"
    assert pack("", None, [], both, 60).expanded == [first, "expand://task/p2?depth=0"]
    assert pack("", None, [], both, 50).expanded == [first]


@given(
    st.lists(st.text("abc ", min_size=1, max_size=80), max_size=6),
    st.lists(st.lists(st.text("xyz", min_size=1, max_size=90), min_size=1, max_size=4), max_size=4),
    st.integers(1, 120),
)
def test_the_budget_holds_and_expansions_go_before_cards(cards: list[str], texts: list[list[str]], budget: int) -> None:
    """A pack is within its budget, no card is left out while an expansion is in, and the last ones go first."""
    ordered = [sorted(each, key=len) for each in texts]
    expansions = [Expansion(references(f"p{at + 1}", len(each) - 1), each) for at, each in enumerate(ordered)]
    task = TaskDigest("p9", "t", "active", "short", "short and long", 4)
    try:
        packed = pack("system", task, cards, expansions, budget)
    except InputError:
        assert tokens("system\n\nshort") > budget
        return
    assert tokens(packed.text) == packed.tokens <= budget
    assert packed.text.startswith("system\n\nshort")
    assert all(whole.startswith(shown) for shown, whole in zip(packed.cards, cards, strict=False))
    assert not packed.expanded or packed.cards == cards
    opened = [reference.split("/")[3].split("?")[0] for reference in packed.expanded]
    assert opened == [f"p{at + 1}" for at in range(len(expansions))][: len(opened)]


# ---- written digests


def test_a_written_digest_holds_until_its_plan_changes(session: Live) -> None:
    """It is told in its words; once the plan changed it is said to be stale, and the digest is made of the plan."""
    digests = session.work.digests
    made = digests.get("login")
    written = digests.write("login", "The login waits for a vendor. Nothing is built yet.")
    assert written.short == "The login waits for a vendor." and not written.stale and written.written
    assert digests.pack(500).text.count("The login waits for a vendor.") == 1
    position = session.info().position
    session.work.plans.done("login", "Design")
    stale = digests.get("login")
    assert stale.stale and stale.written == written.written and stale.short == "login: active, 1 of 2 steps done."
    assert digests.get("login", position=position) == written and digests.all(position=position) == [written]
    again = digests.write("login", "Design is done.", short="Designed.")
    assert (again.short, again.stale) == ("Designed.", False) and again.written != written.written
    assert made.written is None and not made.stale


def test_a_written_digest_enters_no_prompt_by_itself(session: Live) -> None:
    """The session's own requests hold the plan and not what somebody wrote of it."""
    session.work.digests.write("login", "Wholly other words.")
    assert "Wholly other words" not in json.dumps(session.pack().request)


def test_a_digest_of_an_erased_source_is_gone(store: Store, session: Live) -> None:
    """With a decision, and with the plan, goes the digest that may quote it; asking for it names the erasure."""
    written = session.work.digests.write("login", "JWT it is.")
    store.trust.erase(page=session.work.plans.get("login").decisions[0])
    with refused("erased", ErasedError):
        session.content(written.written or "")
    assert session.work.digests.get("login").written is None
    again = session.work.digests.write("login", "JWT it is, again.")
    store.trust.erase(page=f"s1/{again.task}")
    for page in (again.task, again.written or ""):
        with refused("erased", ErasedError):
            session.work.digests.get(page)
    with refused("erased", ErasedError):
        session.work.digests.write(again.task, "Nothing.")
    assert session.work.digests.all() == [] and store.verify().ok


def test_a_digest_that_is_too_long_is_refused(session: Live) -> None:
    """A paragraph and a short form have their most, and nothing is written of what is over it."""
    position = session.info().position
    for paragraph, short in (("x" * 641, None), ("Fine.", "x" * 81), ("", None), (7, None)):
        with refused("not-a-text", InputError):
            session.work.digests.write("login", paragraph, short=short)  # type: ignore[arg-type]
    assert session.info().position == position


def test_a_digest_takes_twenty_tokens_at_step_0(session: Live) -> None:
    """The short form of any plan, and of what somebody wrote, is within twenty tokens, and costs are told first."""
    session.work.plans.create("A title that goes on and on, " * 16, steps=[f"step {at}" for at in range(100)])
    for digest in session.work.digests.all():
        assert digest.costs[0] == tokens(digest.short) <= 20
        assert [tokens(session.work.digests.expand(f"expand://task/{digest.task}?depth={at}")) for at in range(4)] == (
            digest.costs
        )


def test_a_task_opens_to_the_exact_bytes_in_three_steps(session: Live, tmp_path: Path) -> None:
    """The list names the task, the task its pages, and the page of a file holds it to the byte."""
    (tmp_path / "report.md").write_bytes(b"Exact \xe2\x82\xac bytes.\r\n")
    session.work.artifacts.add("report.md", root=tmp_path, task="login")
    (first,) = session.work.digests.all()
    second = session.work.digests.expand(f"expand://task/{first.task}?depth=3")
    page = re.findall(r"File \((p\d+)\)", second)[0]
    assert session.content(page) == b"Exact \xe2\x82\xac bytes.\r\n"


# ---- what a pack holds


def test_cards_tell_facts_too_the_surest_first(store: Store) -> None:
    """A fact that holds is a card, one that was replaced is none, and one of another user neither."""
    live = store.live_session("s", user="ann", l0_tokens_max=4_000)
    live.memory.facts.state("user", "lives in", "Oslo", attribute="home", one=True)
    live.memory.facts.state("user", "prefers", "tabs", confidence=0.4)
    live.memory.facts.state("user", "lives in", "Bergen", attribute="home", one=True)
    other = store.live_session("o", user="ben", l0_tokens_max=4_000)
    other.memory.facts.state("user", "lives in", "Rome")
    cards = live.work.digests.cards()
    assert cards == ["user lives in Bergen", "user prefers tabs"]
    worked(store, "own", failing(3), "ann")
    store.work.learn()
    assert [card.split()[0] for card in live.work.digests.cards()] == ["book", "user", "user"]


def test_the_system_digest_maps_what_the_session_holds(store: Store, session: Live, tmp_path: Path) -> None:
    """It counts pages, turns, atoms by kind and files, names tools and active tasks, and stays within 100 tokens."""
    (tmp_path / "a.txt").write_text("x")
    session.work.artifacts.add("a.txt", root=tmp_path)
    session.work.atoms.add("question", "Which vendor?")
    text = session.work.digests.system()
    assert "1 decision, 1 question, 1 file" in text and "Active tasks: login" in text
    worked(store, "r", [[("look", {}, "fine")]])
    assert "Tools: look." in store.session("r").work.digests.system()
    for at in range(40):
        session.work.plans.create(f"Plan {at} " + "that has a long title " * 9)
    assert tokens(session.work.digests.system()) <= 100


def test_no_digest_tells_a_secret(session: Live, tmp_path: Path) -> None:
    """A secret in a title, a decision, a fact, a file or a written digest is masked in all that is told of it."""
    secret = "sk-ant-api03-" + "Zq8xW3vT" * 11 + "AA"
    session.work.plans.create(f"rotate {secret}", goals=[f"no {secret}"])
    session.work.plans.decide(f"rotate {secret}", f"We drop {secret}.")
    session.memory.facts.state("user", "has the key", secret)
    (tmp_path / "k.txt").write_text(f"key {secret}")
    file = session.work.artifacts.add("k.txt", root=tmp_path)
    session.work.digests.write("login", f"The key is {secret}.")
    digests = session.work.digests
    page = digests.all()[-1].task
    items = [
        str(digests.all()),
        digests.system(),
        str(digests.cards()),
        digests.expand(f"expand://task/{page}?depth=3"),
    ]
    items.append(str(digests.pack(2_000, expand=[f"expand://task/{page}?depth=3", f"artifact://{file.page}"])))
    assert not [text for text in items if secret in text or secret[:24] in text]


def test_a_file_is_packed_where_somebody_approved_it(store: Store, tmp_path: Path) -> None:
    """Where files wait for approval one is named as denied, then opened; over the budget its name alone stands."""
    live = store.live_session("a", l0_tokens_max=4_000, artifacts="ask")
    (tmp_path / "report.md").write_text("The vendor is Acme. " * 20)
    file = live.work.artifacts.add("report.md", root=tmp_path)
    packed = live.work.digests.pack(400, expand=["artifact://report.md"])
    assert packed.denied == ["artifact://report.md"] and "Acme" not in packed.text
    live.work.artifacts.approve(file.page, who="Ann")
    packed = live.work.digests.pack(400, expand=["artifact://report.md"])
    assert packed.expanded == [f"artifact://{file.page}"] and "Acme" in packed.text
    less = live.work.digests.pack(packed.tokens - 1, expand=["artifact://report.md"])
    assert less.expanded == [f"artifact://{file.page}#level=reference"] and "report.md" in less.text
    live.work.artifacts.approve(file.page, who="Ann", granted=False)
    assert live.work.digests.pack(400, expand=["artifact://report.md"]).denied == ["artifact://report.md"]


def test_an_ended_task_goes_before_one_under_way() -> None:
    """Of two expansions that of the ended task is the less critical, whichever was asked for first."""
    ended = Expansion(references("p1", 0), ["a" * 100], current=False)
    under_way = Expansion(references("p2", 0), ["b" * 100])
    for asked in ([ended, under_way], [under_way, ended]):
        assert pack("", None, [], asked, 30).expanded == ["expand://task/p2?depth=0"]


def test_a_card_is_cut_to_a_sentence_before_it_is_left_out() -> None:
    """Cards go after expansions, the last first, and each says its first sentence before it goes; both are named."""
    cards = ["One is sure. It is long. " + "x" * 40, "Two is not. " + "y" * 60]
    packed = pack("", None, cards, [], 22)
    assert packed.cards == [cards[0], "Two is not."] and packed.dropped == [cards[1]]
    packed = pack("", None, cards, [], 17)
    assert packed.cards == [cards[0]] and packed.dropped == [cards[1]]
    assert pack("", None, cards, [], 4).cards == ["One is sure."]
