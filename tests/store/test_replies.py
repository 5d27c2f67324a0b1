"""A call that is answered more than once: at each moment, and on each fork, the last answer there was."""

from __future__ import annotations

from vmstore.core.mutation import Reply
from vmstore.core.page import Status
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

ASKED = {"model": "m", "messages": [{"role": "user", "content": "Where?"}]}


def reply(session: Session, tokens: int) -> int:
    """Answers the last call; the position."""
    with session.batch(at_us=5) as batch:
        position = batch.add(
            Reply(batch.head.call, Status.OK, 1, tokens, 0, 1, aside=batch.cell(b'{"stop":"%d"}' % tokens))
        )
    return position


def calls_of(store: Store, session: Session, position: int | None = None) -> list[tuple[str, int | None, str | None]]:
    """What VMQL says of a session's calls at a position."""
    word = "" if position is None else f" AS OF POSITION {position}"
    rows = store.query(f"CALLS status, tokens_reported, stop{word}", session=session.name)
    return [(status, tokens, stop) for status, tokens, stop in rows]


def test_a_moment_shows_the_last_answer_there_was() -> None:
    """Between two answers a call has the first, after both the second, before them none; rebuilt views say the same."""
    store = memory_store()
    store.record("s", ASKED, None)
    session = store.session("s")
    first, second = reply(session, 10), reply(session, 20)
    for _ in range(2):
        assert calls_of(store, session, first) == [("ok", 10, "10")]
        assert calls_of(store, session, second) == calls_of(store, session) == [("ok", 20, "20")]
        assert [call.tokens_reported for call in session.calls()] == [20]
        store.admin.rebuild()
    assert store.verify().ok


def test_a_fork_answers_the_call_it_began_at() -> None:
    """A fork made between two answers keeps the first, and its own answer is seen by it alone."""
    store = memory_store()
    store.record("s", ASKED, None)
    session = store.session("s")
    first = reply(session, 10)
    fork, other = session.fork("fork", position=first), session.fork("other", position=first)
    reply(session, 20)
    assert [call.tokens_reported for call in fork.calls()] == [10]
    assert fork.context().tokens_reported == 10
    reply(fork, 30)
    reply(fork, 40)
    for seen, tokens in ((session, 20), (fork, 40), (other, 10)):
        assert [(call.tokens_reported, call.stop) for call in seen.calls()] == [(tokens, str(tokens))]
        assert seen.context().tokens_reported == tokens
        assert calls_of(store, seen) == [("ok", tokens, str(tokens))]
    assert store.verify().ok
