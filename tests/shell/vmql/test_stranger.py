"""What a stranger wants to know of a recorded session, asked of `vmql` alone and held against the Python API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.shell.vmql.conftest import Shot
from vmstore import Call, UnknownError
from vmstore.store.session import Session

Ask = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def pi(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds a recorded session of pi."""
    path = tmp_path_factory.mktemp("stranger") / "pi.vms"
    with vmstore.open(path) as store:
        store.import_file(data / "pi" / "before-compaction.jsonl")
    return path


@pytest.fixture
def session(pi: Path) -> Iterator[Session]:
    """That session, as Python asks it."""
    with vmstore.open(pi, "r") as store:
        yield store.session(store.sessions()[0].session)


@pytest.fixture
def ask(pi: Path, shot: Shot) -> Ask:
    """Asks one question with `vmql STORE --json -c`; the rows of the answer."""

    def rows(question: str) -> list[dict[str, Any]]:
        picture = shot(pi, "--json", "-c", question)
        assert picture.returncode == 0, picture.stderr
        records: list[dict[str, Any]] = json.loads(picture.stdout)["rows"]
        return records

    return rows


def test_what_was_in_context_at_a_call(ask: Ask, session: Session) -> None:
    """CONTEXT AT CALL 200 tells every page the model saw there, in order, as Session.context does."""
    wanted = session.context(call=200).to_dict()["pages"]
    assert ask("CONTEXT AT CALL 200") == wanted and len(wanted) > 100


def test_which_page_takes_most_tokens(ask: Ask, session: Session) -> None:
    """The page with most tokens there is the first of the context by tokens."""
    (row,) = ask("CONTEXT order, page, tokens AT CALL 200 ORDER BY tokens DESC LIMIT 1")
    order, page = max(enumerate(session.context(call=200).pages, 1), key=lambda row: row[1].tokens)
    assert row == {"order": order, "page": page.page, "tokens": page.tokens}


def test_what_the_first_compaction_removed(ask: Ask, session: Session) -> None:
    """The first summary says at which call it came, and DIFF what had left by then."""
    (first,) = ask("PAGES page WHERE type = summary ORDER BY position LIMIT 1")
    call = ask(f"RESIDENCIES OF {first['page']}")[0]["from_call"]
    rows = ask(f"DIFF CONTEXT CALL {call - 1} TO CALL {call} WHERE change = 'left'")
    changes = session.diff(Call(call - 1), Call(call)).changes
    assert [row["page"] for row in rows] == [change.page for change in changes if change.change == "left"]
    assert sum(row["before"] for row in rows) > 50_000
    assert first["page"] in {change.page for change in changes if change.change == "entered"}


def test_in_which_calls_a_sentence_was_visible(ask: Ask, session: Session) -> None:
    """CALLS WHERE CONTEXT MATCHES names the calls whose context had a page that holds a sentence."""
    sentence = "Let me check theme.ts since it moved"
    rows = ask(f"CALLS call WHERE CONTEXT MATCHES '{sentence}'")
    holding = {page.position for page in session.pages() if sentence.encode() in content(session, page.page)}
    calls = [call.call for call in session.calls()]
    wanted = [call for call in calls if not holding.isdisjoint(session.context(call=call).page_ids)]
    assert [row["call"] for row in rows] == wanted and 0 < len(wanted) < len(calls)


def content(session: Session, page: str) -> bytes:
    """A page's content; nothing of one whose source never held it."""
    try:
        return session.content(page)
    except UnknownError:
        return b""


def test_what_changed_between_two_calls(ask: Ask, session: Session) -> None:
    """DIFF CONTEXT CALL 300 TO CALL 301 tells what Session.diff does."""
    rows = ask("DIFF CONTEXT CALL 300 TO CALL 301")
    wanted = session.diff(Call(300), Call(301)).changes
    other_rows = [(row["page"], row["change"], row["before"], row["after"], row["text"]) for row in rows]
    assert (
        other_rows
        == [(change.page, change.change, change.tokens_before, change.tokens_after, change.text) for change in wanted]
        and other_rows
    )
