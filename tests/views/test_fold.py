"""The fold: what is kept at hand is only quicker, never other; and what cannot be folded is named."""

from __future__ import annotations

import gc

import apsw
import pytest
from hypothesis import example, given

from tests.engine.author import STORIES, Author, Deed, engine_over
from tests.refusals import refused
from tests.views.test_alphabet import STORY
from vmstore.cells.cell import Cell
from vmstore.core.mutation import Create, Open, Pack, Turn, encode
from vmstore.core.page import Origin
from vmstore.errors import CorruptError
from vmstore.log.commit import Commit, genesis, seal
from vmstore.log.memory import MemoryLog
from vmstore.views import cell_resolver, dispatch, fold, projection
from vmstore.views.dispatch import Dispatcher
from vmstore.views.projection import Projection
from vmstore.views.projectors.residency import ResidencyProjector

SALT = b"s" * 16


def digests(views: Projection) -> list[bytes]:
    """A digest of each view."""
    return [views.digest(projector.name) for projector in views.projectors]


def folded(log: MemoryLog, steps: int | None = None) -> list[bytes]:
    """The views of a log, folded at once or so many commits at a time."""
    views = Projection(log, apsw.Connection(":memory:"))
    for ordinal in range(0, log.ordinal, steps or log.ordinal):
        views.catch_up(upto=min(ordinal + (steps or log.ordinal), log.ordinal))
    return digests(views)


@given(story=STORIES)
@example(story=STORY)
def test_what_is_at_hand_is_only_quicker(story: list[Deed]) -> None:
    """A fold that forgets what it has at hand after every commit, or every three, gives what another gives."""
    log = MemoryLog()
    Author(engine_over(log)).write(story)
    whole = folded(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "SESSIONS_MAX", 0)
        patch.setattr(cell_resolver, "BYTES_MAX", 0)
        patch.setattr(cell_resolver, "FOUND_MAX", 0)
        assert folded(log, 1) == whole
        assert folded(log, 3) == whole


@given(story=STORIES)
@example(story=STORY)
def test_rows_may_be_written_within_a_commit(story: list[Deed]) -> None:
    """A fold that writes its rows after every mutation, because of the names it read, gives what another gives."""
    log = MemoryLog()
    Author(engine_over(log)).write(story)
    whole = folded(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "GIVEN_MAX", -1)
        patch.setattr(cell_resolver, "AHEAD_BYTES", 0)
        assert folded(log) == whole


def test_a_stay_forgotten_would_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: a fold that does not read open stays back gives other rows."""
    log = MemoryLog()
    Author(engine_over(log)).write(STORY)
    whole = folded(log)
    monkeypatch.setattr(fold, "SESSIONS_MAX", 0)
    right = ResidencyProjector._load

    def load(self: ResidencyProjector, session: int, position: int) -> object:
        here = right(self, session, position)
        here.stays.clear()
        return here

    monkeypatch.setattr(ResidencyProjector, "_load", load)
    assert folded(log, 1) != whole


def test_large_commits_make_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is bounded by its mutations, so that memory does not grow with the size of commits."""
    log = MemoryLog()
    Author(engine_over(log)).write([Deed("say", 1, 1, 1, 3)] * 40 + [Deed("end", 1)] * 2)
    monkeypatch.setattr(projection, "MUTATIONS_MAX", 1)
    views = Projection(log, apsw.Connection(":memory:"))
    seen: list[int] = []
    views.catch_up(lambda done, total: seen.append(done))
    assert seen[-1] == log.ordinal and digests(views) == folded(log)


def test_the_collector_is_left_as_it_was() -> None:
    """A batch pauses the garbage collector and leaves it on or off as it found it, also where it fails."""
    for on in (True, False):
        (gc.enable if on else gc.disable)()
        try:
            with pytest.raises(ValueError), dispatch.uncollected():
                assert not gc.isenabled()
                raise ValueError
            assert gc.isenabled() == on
        finally:
            gc.enable()


# ---- what cannot be folded


def opening(uid: bytes = b"u" * 16, **fields: object) -> Open:
    """A session's first mutation."""
    return Open(uid, 0, **fields)  # type: ignore[arg-type]


def log_of(*commits: Commit) -> MemoryLog:
    """A log of one session's commits, as somebody else might have written it."""
    log = MemoryLog()
    log.append(list(commits), 0, 0)
    return log


def first(mutation: Open | Turn, previous: bytes | None = None, cells: int = 1) -> Commit:
    """A rightly sealed first commit."""
    start = genesis(b"u" * 16) if previous is None else previous
    return seal(start, 1, 1, 0, 0, encode([mutation]), (Cell(SALT, b"s"),) * cells, -1)


def then(before: Commit, *mutations: Create | Pack, cells: int = 0) -> Commit:
    """A rightly sealed commit after another."""
    sealed = (Cell(SALT, b"c"),) * cells
    return seal(before.hash, before.last + 1, len(mutations), 0, 0, encode(mutations), sealed, -1)


BEGUN = first(opening())
PAGE = Create(0, 0, 1, 0, 0, 3, 1, 1)
FAULTS = {
    "no such cell": (log_of(BEGUN, then(BEGUN, PAGE, cells=1)), "names a cell that is not there"),
    "no such commit": (
        log_of(BEGUN, then(BEGUN, Create(0, 0, 1, 0, 0, (99, 0), 1, 1))),
        "position 99 of session 1 holds no commit",
    ),
    "nobody opened it": (log_of(first(Turn(1))), "belongs to a session that no commit opens"),
    "no parent": (
        log_of(first(opening(origin=Origin.FORK, parent=b"p" * 16, parent_position=1))),
        "forks from a session that is not there",
    ),
    "nothing in it": (log_of(seal(genesis(b"u" * 16), 1, 0, 0, 0, encode([]), (), -1)), "holds nothing"),
    "another hash": (log_of(first(opening(), b"x" * 32)), "does not match its hash"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_log_that_cannot_be_folded_is_named(fault: str) -> None:
    """What no gate would have written is an error that says what is wrong, and no view holds any of it."""
    log, message = FAULTS[fault]
    views = Projection(log, apsw.Connection(":memory:"))
    with pytest.raises(CorruptError, match=message):
        views.catch_up()
    assert views.ordinal == 0


def test_a_fork_where_nothing_ends_is_named() -> None:
    """A fork that stands inside a commit of its parent is an error that says where."""
    log = log_of(BEGUN)
    fork = opening(b"v" * 16, origin=Origin.FORK, parent=b"u" * 16, parent_position=7)
    log.append([seal(BEGUN.hash, 8, 1, 0, 0, encode([fork]), (Cell(SALT, b"v"),), -1)], 0, 0)
    with refused("commit-damaged", CorruptError, "position 7"):
        Projection(log, apsw.Connection(":memory:")).catch_up()


def test_a_log_that_counts_more_than_it_holds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the log has nothing beyond a position that it counts, the fold says so and does not go round for ever."""
    log = log_of(BEGUN)
    with refused("log-cut", CorruptError, "ordinal 1", "counts 5"):
        Projection(log, apsw.Connection(":memory:")).catch_up(upto=5)


@pytest.mark.parametrize(
    ("cells", "message"),
    [([], "cell 1 is missing"), ([Cell(SALT, b"t")], "cell 1 does not match"), ([Cell(b"", b"s")], "does not match")],
)
def test_a_name_that_cannot_be_read_is_named(cells: list[Cell], message: str) -> None:
    """A name whose cell is gone or is not what was sealed never becomes a row."""
    log = log_of(BEGUN)
    log._cells = cells
    with pytest.raises(CorruptError, match=message):
        Projection(log, apsw.Connection(":memory:")).catch_up()


@pytest.mark.parametrize("name", ["on_creat", "on_faultin", "on_commits", "on_defer"])
def test_a_handler_that_nothing_calls_is_refused(name: str) -> None:
    """A projector with a handler for no kind of mutation is refused as its class is made, one that inherits too."""
    with pytest.raises(TypeError, match=rf"Misspelt\.{name} would never be called"):
        type("Misspelt", (ResidencyProjector,), {name: lambda *_: None})
    handlers = type("Handlers", (), {"on_create": lambda *_: None, name: lambda *_: None})
    with pytest.raises(TypeError, match=rf"Mixed\.{name} would never be called"):
        type("Mixed", (handlers, ResidencyProjector), {})
    assert type("Sound", (ResidencyProjector,), {"on_mark": lambda *_: None}).kinds() == sorted(
        [*ResidencyProjector.kinds(), "mark"]
    )


def test_a_listener_that_is_no_projector_is_refused_as_well() -> None:
    """A walk along the log with a handler for no kind of mutation is refused before the first commit."""
    listener = type("Listener", (), {"on_commit": lambda *_: None, "on_turns": lambda *_: None})
    with pytest.raises(TypeError, match=r"Listener\.on_turns would never be called"):
        Dispatcher([listener()], lambda commit, first: (0, 0, b""), None)  # type: ignore[arg-type]
