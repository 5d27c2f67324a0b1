"""Commits of another log: gathered in runs of any length, adopted as they are, and rewritten with the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.author import engine_over
from tests.engine.test_gate import opened, say, two_engines
from tests.refusals import refused
from vmstore.core.page import Origin
from vmstore.engine.engine import Arrival, Engine, Ingested
from vmstore.engine.head import NewSession
from vmstore.engine.transfer import ingest as room
from vmstore.engine.transfer.ingest import CommitCollector, ForeignCommits, adopt, content_of, standing
from vmstore.engine.transfer.merge import LogMerge
from vmstore.engine.transfer.rewrite import opening_of, rewrite_session
from vmstore.errors import ConflictError, RefusedError
from vmstore.log.memory import MemoryLog
from vmstore.log.sqlite import SqliteLog


@pytest.fixture
def source() -> Engine:
    """Two sessions that wrote in turn, and a fork of one that went on; contents said twice, a request id."""
    engine = engine_over(seed=1)
    keys = [opened(engine, name) for name in "st"]
    for number, text in ((0, b"one"), (1, b"one"), (0, b"two")):
        batch = engine.batch(keys[number])
        batch.request(f"r-{text.decode()}", b"\xab" + text)
        say(batch, text)
        batch.end(7)
        say(batch, text) if number else None
        batch.commit(9)
        if number:
            child = engine.fork(keys[0], 3, "f", 5)
    batch = engine.batch(child)
    say(batch, b"one")
    say(batch, b"else")
    batch.commit(11)
    engine.follow()
    return engine


def names(engine: Engine) -> dict[int, str]:
    """What sessions are called, by their keys."""
    rows = engine.projection.db.execute("SELECT session, name FROM sessions ORDER BY session")
    return {int(key): str(name) for key, name in rows}


def gathered(engine: Engine, upto: int = 99) -> CommitCollector:
    """The commits of an engine's log, taken in one after the other."""
    collector, called = CommitCollector(MemoryLog()), names(engine)
    for commit in ForeignCommits(engine.log, range(1, min(upto, engine.log.ordinal) + 1)):
        collector.take(called[commit.session], commit)
    assert collector.prove()[1] == []
    return collector


def chains(engine: Engine) -> dict[str, list[bytes]]:
    """The hashes of each session's commits, by name."""
    called = names(engine)
    contents: dict[str, list[bytes]] = {name: [] for name in called.values()}
    for commit in engine.log.tail(0, 99):
        contents[called[commit.session]].append(commit.hash)
    return contents


@pytest.mark.parametrize(("commits", "size"), [(1, 4 << 20), (2, 4 << 20), (500, 1), (500, 70), (500, 4 << 20)])
def test_adopted_is_what_was_there(source: Engine, commits: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In runs of whatever length each session arrives with its very commits and cells, and only once."""
    monkeypatch.setattr(room, "RUN_COMMITS", commits)
    monkeypatch.setattr(room, "RUN_BYTES", size)
    there, target = gathered(source), engine_over(seed=2)
    opened(target, "before")
    counts = {name: len(hashes) for name, hashes in chains(source).items()}
    row = adopt(target, there)
    assert [(names(target)[item.session], item.commits) for item in row] == list(counts.items())
    right = {**chains(source), "before": chains(target)["before"]}
    assert chains(target) == right and target.log.ordinal == 1 + sum(counts.values())
    contents = [cell.content for cell in target.log.cells(range(3, 99)).values()]
    assert sorted(contents) == sorted(cell.content for cell in source.log.cells(range(1, 99)).values())
    assert [item.commits for item in adopt(target, gathered(source))] == [0] * len(counts)
    assert chains(target) == right
    assert say(target.batch(row[0].session), b"on") == source.head(1).position + 1


def test_adopted_in_pieces_is_adopted_whole(source: Engine) -> None:
    """Each piece brings what is not here yet and says how much; a piece that knows less brings nothing."""
    target, before = engine_over(seed=2), 0
    for upto in range(1, source.log.ordinal + 1):
        value = adopt(target, gathered(source, upto))
        assert sum(item.commits for item in value) == upto - before == target.log.ordinal - before
        before = upto
        assert sum(item.commits for item in adopt(target, gathered(source, 1 + upto // 2))) == 0
    assert chains(target) == chains(source)


def test_what_is_in_the_way_is_named_before_anything_is_written(source: Engine) -> None:
    """Where a name is taken or a session went on differently here, nothing of any session is written."""
    target = engine_over(seed=2)
    opened(target, "t")
    with refused("name-taken", ConflictError, "'t'"):
        adopt(target, gathered(source))
    assert target.log.ordinal == 1
    target = engine_over(seed=2)
    key = adopt(target, gathered(source, 1))[0].session
    batch = target.batch(key)
    say(batch, b"differently")
    batch.commit(0)
    with refused("diverged", ConflictError, "'s'", "position 3"):
        adopt(target, gathered(source))
    assert target.log.ordinal == 2
    assert [item.commits for item in adopt(target, gathered(source, 1))] == [0], "what it had then is here"


def test_a_content_is_found_where_it_was_sealed(source: Engine) -> None:
    """A commit's own cells are at hand; one of an earlier commit, inherited ones too, is read where it lies."""
    there = gathered(source)
    foreigns = {foreign.name: foreign for foreign in there.sessions()}
    commits = there.commits(foreigns["s"].session)
    lane = there.lane(foreigns["s"])
    assert [content_of(there.log, lane, commits[0], at) for at in range(2)] == [b"s", b'"hello s"']
    for ref, content in (((1, 1), b'"hello s"'), ((2, 0), b"s"), ((3, 1), b'"one"'), ((4, 1), b'"two"')):
        assert content_of(there.log, lane, commits[0], ref) == content
        assert content_of(there.log, lane, commits[-1], ref) == content
    child = there.lane(foreigns["f"])
    assert content_of(there.log, child, commits[-1], (3, 1)) == b'"one"'
    assert len(commits) == 3 and [c.hash for c in commits[1:]] == [commits[1].hash, commits[2].hash]
    assert [c.last for c in there.commits(foreigns["s"].session, after=commits[0].last)] == [3, 4]


def test_told_anew_a_session_says_the_same(source: Engine) -> None:
    """With ids, salts and hashes of this log there are as many commits, the same words, request ids and times."""
    there, target = gathered(source), engine_over(seed=3)
    keys: dict[bytes, int] = {}
    for foreign in there.sessions():
        opening = opening_of(there, foreign, keys, f"new {foreign.name}", "a file")
        assert (opening.name, opening.source, opening.meta) == (f"new {foreign.name}", "a file", {})
        assert (opening.origin is Origin.FORK) == (foreign.name == "f") == bool(opening.parent)
        session = rewrite_session(target, there, foreign, opening)
        commits = there.commits(foreign.session)
        assert session == Ingested(names_of(target)[opening.name], len(commits))
        keys[foreign.uid] = session.session
        assert target.head(session.session).position == foreign.position
        mine = [c for c in ForeignCommits(target.log, range(1, target.log.ordinal + 1)) if c.session == session.session]
        assert [(c.first, c.count, c.at) for c in mine] == [(c.first, c.count, c.at) for c in commits]
        asked = [c.cells[c.request].content for c in commits if c.request >= 0]
        assert [c.cells[c.request].content for c in mine if c.request >= 0] == asked
        assert {c.hash for c in mine}.isdisjoint(c.hash for c in commits)
        words = {cell.content for c in commits for cell in c.cells} - {foreign.name.encode()}
        again = {cell.content for c in mine for cell in c.cells} - {opening.name.encode(), b"a file"}
        assert words <= again <= words | {b'"one"'}, "a fork may seal what it inherited once more"
    assert source.log.ordinal == target.log.ordinal
    assert opening_of(there, there.sessions()[2], {}, "lost", "x").parent == 0


def names_of(engine: Engine) -> dict[str, int]:
    """The keys of sessions by what they are called."""
    return {name: key for key, name in names(engine).items()}


def test_meta_and_spawning_go_along() -> None:
    """What a session was opened with is told of the new one: its meta, and the call it was spawned by."""
    engine = engine_over(seed=1)
    parent = opened(engine, "parent")
    opening = NewSession("s", {"user": "u"}, Origin.SPAWN, parent, 2, "elsewhere", spawned_by=2)
    engine.begin(opening, 5).commit(5)
    engine.follow()
    there = gathered(engine)
    first, spawned = there.sessions()
    session = opening_of(there, spawned, {first.uid: 7}, "again", "here")
    assert session == NewSession("again", {"user": "u"}, Origin.SPAWN, 7, 2, "here", spawned_by=2)


# ---- through the gate


class Doorkeeper:
    """Refuses every write, or none, and remembers whether all others waited when it was asked."""

    who = ()

    def __init__(self, engine: Engine, refuses: bool) -> None:
        self.refuses = refuses
        self.alone: list[bool] = []
        self._log = engine.log

    def read(self) -> None:
        """Lets anybody read."""

    def change(self) -> None:
        """Lets anybody change."""

    def let(self, mutations: object, *, charter: bool) -> None:
        """Refuses, where it does."""
        assert isinstance(self._log, SqliteLog)
        self.alone.append(self._log.lock.held)
        if self.refuses:
            raise RefusedError("nothing can be written here (rule write_is_granted)")


@pytest.mark.parametrize("merged", [False, True])
def test_who_may_not_write_brings_nothing(source: Engine, tmp_path: Path, merged: bool) -> None:
    """Commits of another log, adopted or merged, are refused to whom the warden refuses, who cannot be overtaken."""
    target, _ = two_engines(tmp_path)
    there = gathered(source)

    def bring() -> None:
        if merged:
            merge = LogMerge(target, there.log, there.views)
            for guest in merge.guests():
                merge.bring(guest)
        else:
            adopt(target, there)

    target.warden = doorkeeper = Doorkeeper(target, refuses=True)
    with pytest.raises(RefusedError, match="nothing can be written here"):
        bring()
    assert target.log.ordinal == 0 and doorkeeper.alone == [True]
    doorkeeper.refuses = False
    bring()
    assert chains(target) == chains(source) and all(doorkeeper.alone)


def test_who_was_overtaken_looks_again_while_others_wait(source: Engine, tmp_path: Path) -> None:
    """Where another writer is first what is lacking is asked for once more, and then nobody can be first."""
    first, second = two_engines(tmp_path)
    there, items = gathered(source), list[bool]()

    def lacking() -> list[Arrival]:
        assert isinstance(first.log, SqliteLog)
        items.append(first.log.lock.held)
        places = [standing(first, there, foreign) for foreign in there.sessions()]
        if len(items) == 1:
            adopt(second, gathered(source, 2))
        return [Arrival(there.commits(place.foreign.session, place.position), *place[1:]) for place in places]

    ingested = first.ingest(lacking)
    assert items == [False, True]
    assert sum(item.commits for item in ingested) == source.log.ordinal - 2
    assert chains(first) == chains(source)


def test_a_head_moves_with_what_is_ingested(source: Engine) -> None:
    """A session whose head is remembered stands where its ingested commits end, and is written on from there."""
    target = engine_over(seed=2)
    key = adopt(target, gathered(source, 1))[0].session
    assert target.head(key).position < source.head(1).position
    adopt(target, gathered(source))
    remembered = target._heads[key]
    assert (remembered.position, remembered.hash) == (source.head(1).position, source.head(1).hash)
    batch = target.batch(key)
    say(batch, b"on")
    assert batch.commit(0)[0].first == remembered.position


def test_commits_that_do_not_follow_are_refused_once(source: Engine) -> None:
    """What another writer is not to blame for is raised at once, and nothing is written."""
    target, there, asked = engine_over(seed=2), gathered(source), list[int]()
    key = adopt(target, gathered(source, 1))[0].session

    def lacking() -> list[Arrival]:
        asked.append(1)
        return [Arrival(there.commits(1)[2:], key, target.head(key).position)]

    with refused("does-not-follow", ConflictError):
        target.ingest(lacking)
    assert len(asked) == target.log.ordinal == 1
