"""Hypothesis strategies: chat requests as agents send them, and whole lives of agents on a store.

A life is a list of steps, plain values that shrink and print; `testing.life` plays them. They
are made so that what is rare happens often: the same words again, messages that come back,
tool outputs replaced, windows that slide, calls that fail, forks anywhere, a store closed and
opened, its views deleted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from vmstore.testing.agent import EDITS, WAYS, Agent, ConversationEdit, ModelAnswer
from vmstore.testing.provider_text import SHAPES

LISTING = "\n".join(f"{n:03} the quick brown fox jumps over the lazy dog" for n in range(12))
REPORT = "The build failed because the disk was full. " * 9
STEPS_MAX = 24


class AskStep(NamedTuple):
    """A call: the conversation is edited, sent and answered.

    Where `marked`, the agent says something nobody else says. `pause` moves the clock, also
    backwards. `elsewhere` records it through another handle, `broken` on a disk that is full.
    """

    session: int = 0
    edits: tuple[ConversationEdit, ...] = ()
    answer: ModelAnswer = ModelAnswer()
    marked: bool = False
    pause: int = 0
    request_id: str | None = None
    elsewhere: bool = False
    broken: bool = False


class GapStep(NamedTuple):
    """A call that could not be recorded."""

    session: int = 0
    reason: str = "lost"


class AnnotateStep(NamedTuple):
    """Page `n` of a session is annotated: with what, `k` chooses."""

    session: int = 0
    n: int = 0
    k: int = 0


class RetryStep(NamedTuple):
    """An earlier call with a request id is sent again; where `other`, with another content."""

    n: int = 0
    other: bool = False


class RefusedStep(NamedTuple):
    """A call nobody could record: one of `life.BAD`."""

    session: int = 0
    n: int = 0


class ForkStep(NamedTuple):
    """A fork at a turn, call, position, commit or the head; the number may fall outside what exists."""

    session: int = 0
    by: str = "head"
    number: int = 0
    name_taken: bool = False


class ReopenStep(NamedTuple):
    """The store is closed and opened, its views deleted in between where `forget`."""

    forget: bool = False


class RebuildStep(NamedTuple):
    """One view is folded again, or all of them."""

    n: int = 0


Step = AskStep | GapStep | AnnotateStep | RetryStep | RefusedStep | ForkStep | ReopenStep | RebuildStep


class Life(NamedTuple):
    """A life of an agent and its store, as steps."""

    shape: str = "chat"
    steps: tuple[Step, ...] = ()


numbers = st.integers(0, 40)
sessions = st.sampled_from([0, 0, 0, -1, -1, -1, 1, 2])  # mostly the first and the latest fork
texts = st.one_of(
    st.sampled_from(
        ["yes", "no", "go on", "", "Read the file.", LISTING, REPORT, "é☃ \ud800", "\0t", '{"id": "c1"}', "{oops"]
    ),
    st.sampled_from(["yes", "yes, please", LISTING, LISTING[:300], REPORT, REPORT + "done"]),
    st.text(st.characters(), max_size=12),
)
rarely = st.sampled_from([False] * 9 + [True])
OFTEN = ("clip", "clip", "omit", "omit", "rewrite", "grow", "restore", "compact", "slide", "back")
edits = st.builds(ConversationEdit, st.sampled_from([*sorted(EDITS), *OFTEN, *OFTEN]), numbers, numbers, texts)
growth = st.builds(
    ConversationEdit, st.sampled_from(["say", "say", "answer", "answer", "answer", "show"]), numbers, numbers, texts
)


@st.composite
def changes(draw: st.DrawFn) -> tuple[ConversationEdit, ...]:
    """Edits of an agent's conversation before a call: mostly it grows, often more happens."""
    some = [draw(edits) for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3, 5])))]
    grown = [draw(growth) for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2])))]
    return (*grown, *some) if draw(st.booleans()) else (*some, *grown)


answers = st.builds(
    ModelAnswer,
    st.sampled_from(["says", "says", "asks", "asks", "asks_twice", *WAYS]),
    texts,
    st.sampled_from([None, 0, 5, 40, 300, 900]),
)
STEPS: dict[str, st.SearchStrategy[Any]] = {
    "ask": st.builds(
        AskStep,
        sessions,
        changes(),
        answers,
        st.booleans(),
        st.sampled_from([0, 0, 1000, 60_000_000, -5000]),
        st.sampled_from([None, None, "r", "r1", "r 1", "é"]),
        rarely,
        rarely,
    ),
    "fork": st.builds(
        ForkStep,
        sessions,
        st.sampled_from(["turn", "call", "call", "commit", "commit", "position", "head"]),
        st.integers(0, 6),
        rarely,
    ),
    "gap": st.builds(GapStep, sessions, texts),
    "annotate": st.builds(AnnotateStep, sessions, numbers, numbers),
    "again": st.builds(RetryStep, numbers, st.booleans()),
    "refused": st.builds(RefusedStep, sessions, numbers),
    "reopen": st.builds(ReopenStep, st.booleans()),
    "rebuild": st.builds(RebuildStep, numbers),
}
SHARES = {"ask": 12, "fork": 3, "gap": 1, "annotate": 2, "again": 1, "refused": 1, "reopen": 1, "rebuild": 1}
KINDS = [kind for kind, share in SHARES.items() for _ in range(share)]


@st.composite
def lives(draw: st.DrawFn, steps_max: int = STEPS_MAX) -> Life:
    """Whole lives of agents: at first a call, then whatever happens."""
    some = st.lists(st.sampled_from(KINDS).flatmap(STEPS.__getitem__), max_size=steps_max // 2)
    steps = [draw(STEPS["ask"]), *draw(some), *draw(some)]  # two lists are longer than one, and shrink as well
    return Life(draw(st.sampled_from(SHAPES)), tuple(steps))


@st.composite
def conversations(draw: st.DrawFn, calls_max: int = 8) -> list[dict[str, Any]]:
    """The requests one agent sends, one after the other."""
    agent = Agent(draw(st.sampled_from(SHAPES)))
    requests = []
    for _ in range(draw(st.integers(1, calls_max))):
        for edit in draw(changes()):
            agent.edit(edit)
        requests.append(agent.request())
        agent.hears(draw(answers))
    return requests
