"""What nobody should hand a live session: each gets a clear answer, the session goes on, and the log is whole."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.growing import grows_at_most
from tests.live.small import FEW, PROSE, call, goes_on, kinds
from tests.refusals import refused
from vmstore.core.decision import Cause
from vmstore.core.mutation import Create, Evict
from vmstore.core.page import Modality, PageType, Role
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import InputError, ReadOnlyError, RefusedError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store
from vmstore.testing.live_laws import mutations


@pytest.fixture
def store() -> Store:
    """A store in memory."""
    return vmstore.memory_store()


# ---- settings


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"l0_tokens_max": 400, "system": "word " * 300}, "takes 375 tokens, and the budget leaves 100 of 400"),
        ({"l0_tokens_max": 200}, "300 of it are reserved"),
        ({"l0_tokens_max": -3}, "a count from 0"),
        ({"l0_tokens_max": "8k"}, "int"),
        ({"colour": 3}, "no setting 'colour'"),
        ({"mark_soft": float("nan")}, "mark_soft is nan"),
        ({"mark_soft": 0.9, "mark_hard": 0.5}, "mark_soft <= mark_hard"),
        ({"rules": "lenient"}, "lenient"),
        ({"system": 5}, "system is a text"),
        ({"tools": [{"a": object()}]}, "not JSON"),
        ({"compressor": 5}, "cannot be called"),
        ({"finder": "claims"}, "cannot be called"),
    ],
)
def test_a_wrong_setting_writes_nothing(store: Store, fields: dict[str, Any], says: str) -> None:
    """A setting that cannot be, a budget below the system prompt included, is refused before the session exists."""
    with pytest.raises((InputError, RefusedError), match=says):
        store.live_session("s", **{**FEW, **fields})
    assert store.admin.log.ordinal == 0 and store.sessions() == []
    goes_on(store, store.live_session("s", **FEW))


def test_a_session_without_a_budget_is_none(store: Store) -> None:
    """Settings without a budget name what is missing."""
    with refused("no-budget", InputError):
        store.live_session("s", policy="lru")
    assert store.sessions() == []


def test_a_budget_below_what_is_pinned_is_refused(store: Store) -> None:
    """A smaller budget that what is pinned does not fit is refused, and the old one holds."""
    session = store.live_session("s", system="word " * 300, **FEW)
    with refused("pins-over-budget"):
        session.configure(l0_tokens_max=500)
    assert session.settings.l0_tokens_max == 3_000
    goes_on(store, session)


def test_what_was_recorded_says_what_to_do(store: Store) -> None:
    """A recorded session that is told to act names the way to a live one, and a live one how to record."""
    request, response = {"messages": [{"role": "user", "content": "x"}]}, {"role": "assistant", "content": "y"}
    store.record("r", request, response)
    with refused("recorded-session"):
        store.live_session("r", **FEW)
    recorded: Any = store.session("r")
    with pytest.raises(AttributeError, match=r"store\.admin\.redrive"):
        recorded.user("x")
    assert not hasattr(recorded, "page_fault")
    live = store.live_session("s", **FEW)
    with refused("manages-its-memory"):
        store.record("s", request, response)
    goes_on(store, live)


# ---- sizes


def test_a_page_larger_than_the_budget_is_shown_shorter(store: Store) -> None:
    """What no prompt could hold is shown as far as it fits, and every byte of it is there."""
    session = store.live_session("s", system="Hi.", **FEW)
    text = "Trains leave at noon from every station of the line. " * 4_000
    (page,) = session.user(text)
    packed = session.pack()
    assert page in packed.pages and packed.tokens <= packed.budget
    assert session.content(page) == text.encode()
    answer = session.page_fault(page, 0)
    assert answer.level != 0 and answer.denied_because == "no_room"
    goes_on(store, session)


def test_a_call_larger_than_the_budget_leaves(store: Store) -> None:
    """A tool call, of which nothing but the whole is one, leaves where it cannot fit; its answer still comes."""
    session = store.live_session("s", **FEW)
    session.user("Write it.")
    fields = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": "x" * 50_000}}
    (page,) = session.assistant({"role": "assistant", "content": None, "tool_calls": [fields]})
    session.tool("c1", "Written.")
    packed = session.pack()
    assert page not in packed.pages
    packed.messages()
    goes_on(store, session)


def test_pins_that_cannot_fit_are_refused(store: Store) -> None:
    """A page that does not fit beside what is pinned is refused by name and number, and nothing is written."""
    session = store.live_session("s", **FEW)
    pages = [session.attach(f"{n} lines, told again and again. ".encode() * 60, "text/plain") for n in range(8)]
    pinned = 0
    for page in pages:
        session.page_fault(page, 0)
        before = store.admin.log.ordinal
        try:
            session.pin(page)
        except RefusedError as error:
            assert "pinned already" in str(error) or "no room" in str(error)
            assert store.admin.log.ordinal == before
        else:
            pinned += 1
    assert 1 <= pinned < 8
    state = session.look(lambda runtime: runtime.state)
    assert state.pinned <= state.room
    goes_on(store, session)


def test_a_wild_report_does_not_move_the_pins(store: Store) -> None:
    """A provider who counts a thousand times what was estimated corrects the factor no further than pins fit."""
    session = store.live_session("s", system="word " * 1_200, **FEW)
    session.user("Hello.")
    session.pack()
    session.assistant("Hi.", tokens_in=10**12)
    state = session.look(lambda runtime: runtime.state)
    assert state.factor_ppm > 1_000_000 and state.pinned <= state.room
    session.pack()
    session.assistant("Hi.", tokens_in=1)
    assert session.look(lambda runtime: runtime.state.factor_ppm) >= 500_000
    assert session.pack().tokens <= session.look(lambda runtime: runtime.state.budget)
    assert store.verify().ok


HUGE = {"lines": "A line of a log, and nothing in it.\n", "one word": "x", "json": '{"a": 1},'}


def result_of(store: Store, kind: str, size: int) -> None:
    """Takes a tool's result of a size, which must be in the next prompt's budget and come back byte by byte."""
    session = store.live_session(f"s{size}-{len(store.sessions())}", **FEW)
    session.user("Read it.")
    text = HUGE[kind] * (size // len(HUGE[kind]))
    text = f"[{text}0]" if kind == "json" else text
    (page,) = session.tool(call(session, 1), text)
    packed = session.pack()
    assert page in packed.pages and packed.tokens <= packed.budget
    assert session.content(page) == text.encode()


@pytest.mark.parametrize("kind", HUGE)
@pytest.mark.parametrize("size", [10 << 20, pytest.param(50 << 20, marks=pytest.mark.nightly)], ids=["10", "50"])
def test_a_tool_result_of_many_megabytes(store: Store, kind: str, size: int) -> None:
    """Megabytes from a tool take a few times their size in memory, and come back byte by byte."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result_of(store, kind, size)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (1 if sys.platform == "darwin" else 1024)
    assert grown < 12 * size
    assert store.verify().ok


@pytest.mark.parametrize("kind", HUGE)
def test_the_work_on_a_tool_result_grows_with_it(store: Store, kind: str) -> None:
    """Eight times the result is at most sixteen times the work."""
    assert grows_at_most(lambda: result_of(store, kind, 1 << 15), lambda: result_of(store, kind, 1 << 18), 16)


# ---- faults

NOBODY = ("p999", "", "nobody", "a/b/c/d", "p 3", "\x00", "p\ud800", "x" * 100_000, "p3#level=9", "vm://other/s/p6",
          "r/p6", None, -1, 0, 2**70, b"p3", 1.5)  # fmt: skip


@pytest.mark.parametrize("page", NOBODY, ids=lambda page: repr(page)[:20])
def test_an_unknown_page_is_answered_and_logged(store: Store, page: Any) -> None:
    """A fault for what no page is called is denied as such, and the log tells what was asked for."""
    session = store.live_session("s", **FEW)
    session.user("Hello.")
    answer = session.page_fault(page, 0, by_model=True)
    assert (answer.granted, answer.denied_because, answer.content) == (False, "no_page", b"")
    assert kinds(store)["fault_denied"] == 1
    goes_on(store, session)


@pytest.mark.parametrize("act", ["pin", "unpin", "evict", "cite", "recall", "content"])
def test_an_unknown_page_of_the_program_is_an_error(store: Store, act: str) -> None:
    """A program that names a page which is none is told the nearest, and nothing is written."""
    session = store.live_session("s", **FEW)
    session.user("Hello.")
    session.assistant("Hello.")
    before = store.admin.log.ordinal
    with refused("no-page", UnknownError):
        getattr(session, act)("p999")
    assert store.admin.log.ordinal == before
    goes_on(store, session)


@pytest.mark.parametrize("level", [4, -1, None, "0", True, 0.0, 1.5])
def test_a_level_that_does_not_exist(store: Store, level: Any) -> None:
    """A level that is none is refused, naming those there are, for faults and compressions."""
    session = store.live_session("s", **FEW)
    (page,) = session.user(PROSE)
    before = store.admin.log.ordinal
    for ask in (session.page_fault, session.compress):
        with refused("no-level", InputError):
            ask(page, level)
    with refused("no-fault-reason", InputError):
        session.page_fault(page, 0, reason=level)
    assert store.admin.log.ordinal == before
    goes_on(store, session)


def test_a_fault_storm_is_answered_one_by_one(store: Store) -> None:
    """Of a hundred faults in a turn three are served, each other is denied and logged, and the next turn has three."""
    session = store.live_session("s", **FEW)
    pages = []
    for n in range(30):
        pages += session.user(f"Line {n} of the timetable. " * 40)
        session.pack()
        session.assistant(f"Read {n}.")
    session.user("Now think.")
    gone = [page for page in pages if page not in session.pack().pages]
    answers = [session.page_fault(page, 0, by_model=True) for page in (gone * 10)[:100]]
    assert sum(answer.came for answer in answers) == 3
    denied = {answer.denied_because for answer in answers if answer.denied_because}
    assert denied == {"faults_a_turn"}
    assert session.pack().tokens <= 3_000
    session.assistant("Done.")
    session.user("Once more.")
    again = next(page for page in gone if page not in session.pack().pages)
    assert session.page_fault(again, 0, by_model=True).came
    goes_on(store, session)


def test_the_programs_faults_are_not_the_models(store: Store) -> None:
    """What the program asks for does not use up what the model may ask for in a turn."""
    session = store.live_session("s", **FEW)
    pages = [session.attach(f"File {n}. ".encode() * 60, "text/plain") for n in range(8)]
    session.user("Read.")
    for page in pages[:5]:
        session.page_fault(page, 0)
    assert session.look(lambda runtime: runtime.state.left())[0] == 3
    assert session.page_fault(pages[6], 0, by_model=True).granted
    goes_on(store, session)


def test_a_pinned_fault_leaves_the_reserve(store: Store) -> None:
    """A pinned page that was shown short is shown in full only where the reserve for faults is left alone."""
    session = store.live_session("s", **{**FEW, "reserve_faults_tokens": 1_500})
    (page,) = session.user(PROSE[:9_000])
    session.pack()
    value = session.look(lambda runtime: runtime.state.here[int(page[1:])])
    assert value.level > 0
    session.pin(page)
    answer = session.page_fault(page, 0)
    state = session.look(lambda runtime: runtime.state)
    assert answer.level != 0 and estimate(PROSE[:9_000].encode(), Modality.TEXT) <= state.budget
    assert state.pinned <= state.room
    goes_on(store, session)


def test_arrivals_say_so(store: Store) -> None:
    """What arrives too large gives way by a cause of its own."""
    session = store.live_session("s", **FEW)
    session.user("Trains leave at noon from every station of the line. " * 4_000)
    assert [mutation.cause for _, mutation in mutations(session) if isinstance(mutation, Evict)] == [Cause.ARRIVAL]


def test_a_handle_for_reading_sees_and_does_not_act(store_path: Path) -> None:
    """Through a handle for reading a live session tells its settings, prompt and numbers, and acts are refused."""
    with vmstore.open(store_path) as store:
        session = store.live_session("s", **FEW)
        session.user("Hello.")
        session.pack()
        with vmstore.open(store_path, "r") as reading:
            seen = reading.session("s")
            assert isinstance(seen, Live) and seen.settings == session.settings and seen.stats().calls == 1
            assert "Hello." in seen.developer_message and len(seen.search("hello")) == 1
            session.assistant("Good morning.")
            assert "Good morning." in seen.developer_message
            for act in (seen.pack, lambda: seen.user("x"), lambda: reading.live_session("t", **FEW)):
                with pytest.raises(ReadOnlyError):
                    act()
        goes_on(store, session)


def test_what_a_batch_writes_is_decided_on_next(store: Store) -> None:
    """Pages that a program writes past the kernel are in the next act's decision, and the next pack in its budget."""
    session = store.live_session("s", **FEW)
    session.user("Hello.")
    with session.batch() as batch:
        for _ in range(40):
            batch.add(
                Create(
                    PageType.ARTIFACT,
                    Modality.TEXT,
                    Role.USER,
                    0,
                    0,
                    batch.cell(PROSE.encode()),
                    len(PROSE.encode()),
                    3_300,
                )
            )
    assert session.pack().tokens <= 3_000
    goes_on(store, session)


def test_what_is_asked_for_twice_stays(store: Store) -> None:
    """A page that came into the reserve and is asked for again does not leave while that is answered."""
    session = store.live_session("s", **FEW)
    (page,) = session.user(PROSE[:8_000])
    session.configure(l0_tokens_max=2_200)
    for _ in range(2):
        answer = session.page_fault(page, 0)
        assert (answer.granted, answer.level, answer.content) == (True, 0, PROSE[:8_000].encode())
    goes_on(store, session)
