"""Commits of a session are read from the log as the views name them."""

from __future__ import annotations

import pytest

from tests.engine.author import engine_over
from tests.engine.test_gate import opened, say
from vmstore.engine.engine import Engine
from vmstore.errors import CorruptError
from vmstore.views import log_reader
from vmstore.views.log_reader import LogReader, commit_at, read_commits


@pytest.fixture
def engine() -> Engine:
    """Two sessions, whose commits of one and of three mutations lie between each other."""
    made = engine_over()
    keys = [opened(made, name) for name in "ab"]
    for turn in range(4):
        for key in (keys[0], keys[0], keys[1]):
            batch = made.batch(key)
            for _ in range(1 + turn % 2 * 2):
                say(batch, b"%d" % turn)
            batch.commit(0)
    made.follow()
    return made


@pytest.mark.parametrize("run", [1, 2, 500])
def test_a_sessions_commits_are_read_in_order(engine: Engine, monkeypatch: pytest.MonkeyPatch, run: int) -> None:
    """All that a session wrote, or what follows a position up to the commit that holds another, read in runs."""
    monkeypatch.setattr(log_reader, "RUN_MAX", run)
    reader = LogReader(engine.log, engine.projection.db)
    for session in (1, 2):
        every = [commit for commit in engine.log.tail(0, 99) if commit.session == session]
        assert list(reader.commits(session)) == every
        assert list(reader.commits(session, limit=2)) == every[:2]
        for after in range(every[-1].last + 1):
            assert list(reader.commits(session, after)) == [commit for commit in every if commit.last > after]
            for upto in range(after, every[-1].last + 2):
                between = [commit for commit in every if commit.last > after and commit.first <= upto]
                assert list(reader.commits(session, after, upto)) == between
            holding = next((commit for commit in every if commit.first <= after + 1 <= commit.last), None)
            assert reader.holding(session, after + 1) == holding
            ending = next((commit for commit in every if commit.last == after), None)
            assert reader.ending(session, after) == ending
    assert reader.ordinals(9) == [] and reader.holding(9, 1) is None


def test_a_commit_that_the_log_lacks_is_named(engine: Engine) -> None:
    """Where the views know more than the log the first missing commit is named, and no other is given for it."""
    end = engine.log.ordinal
    assert commit_at(engine.log, end).ordinal == end
    with pytest.raises(CorruptError, match=f"commit {end + 1} .*vmstore verify"):
        commit_at(engine.log, end + 1)
    with pytest.raises(CorruptError, match=f"commit {end} "):
        list(read_commits(engine.log, [1, end, end + 1]))
