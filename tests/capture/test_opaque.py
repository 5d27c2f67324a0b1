"""What a source omits: one opaque page, reckoned at the first call that reports usage, then the factor."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.capture.imports import in_lines, pi, write
from tests.capture.words import LONG, answer, entries, kinds, lines, model_text, request, user
from tests.refusals import refused
from vmstore.errors import UnknownError
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store


def reported(tokens: list[int | None]) -> list[dict[str, Any]]:
    """A pi session whose calls report these tokens."""
    records = pi(0)
    for n, count in enumerate(tokens):
        usage = {"input": count or 0, "output": 5 if count else 0, "cacheRead": 0, "cacheWrite": 0}
        for role, text in (("user", f"{n} {LONG}"), ("assistant", f"answer {n}")):
            content: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}]}
            if role == "assistant":
                content |= {"model": "m", "stopReason": "stop", "usage": usage}
            records.append({"type": "message", "message": content})
    return records


def imported(store: Store, path: Path, tokens: list[int | None]) -> Session:
    """The session of a pi file whose calls report these tokens."""
    store.import_file(lines(path / "pi.jsonl", reported(tokens)))
    return store.session("pi-1")


def opaque(session: Session) -> list[Any]:
    """The pages without content."""
    return [page for page in session.pages() if page.message is None and not page.bytes]


def test_the_first_reported_call_fixes_the_opaque_page(tmp_path: Path) -> None:
    """Its tokens are what was reported minus what was counted, so that call's context sums to the report."""
    with memory_store() as store:
        session = imported(store, tmp_path, [5000, 6000, 9000])
        (page,) = opaque(session)
        assert (page.type, page.role, page.version, page.hint) == ("procedure", "system", 1, "opaque")
        first = session.context(call=1)
        assert (first.tokens, first.tokens_reported) == (5000, 5000)
        assert page.tokens == 5000 - sum(p.tokens for p in first.pages if p.page != page.page)
        assert all(session.page(page.page, call=n).tokens == page.tokens for n in (1, 2, 3))
        assert kinds(store, "pi-1").count("update") == 0


def test_the_opaque_page_stands_first_in_every_later_context(tmp_path: Path) -> None:
    """It belongs to no message and stays at the head of the prompt; messages come without it."""
    with memory_store() as store:
        session = imported(store, tmp_path, [5000, 6000])
        (page,) = opaque(session)
        for call in (1, 2):
            context = session.context(call=call)
            assert [p.page for p in context.pages].index(page.page) == 0
            assert page.page not in context.contents()
            assert len(context.messages()) == len(context.pages) - 1
        assert "OPAQUE" in session.context().text()


def test_its_content_is_asked_for_in_vain(tmp_path: Path) -> None:
    """Asking for bytes the source never had is an error that says so, not an empty answer."""
    with memory_store() as store:
        session = imported(store, tmp_path, [5000])
        with refused("opaque", UnknownError):
            session.content("opaque")


def test_calls_before_the_first_report_have_none(tmp_path: Path) -> None:
    """Calls that report nothing, or zero, leave the question open until one reports."""
    with memory_store() as store:
        session = imported(store, tmp_path, [None, 0, 7000, 8000])
        value = [opaque(session)[0].page in [p.page for p in session.context(call=n).pages] for n in (1, 2, 3, 4)]
        assert value == [False, False, True, True]
        assert session.context(call=3).tokens == 7000


@pytest.mark.parametrize("tokens", [[1], [None, None]])
def test_where_nothing_is_omitted_there_is_no_opaque_page(tokens: list[int | None], tmp_path: Path) -> None:
    """Where no more was reported than counted, or nothing at all, nothing is opaque."""
    with memory_store() as store:
        session = imported(store, tmp_path, [*tokens, None])
        assert opaque(session) == []


def test_a_first_report_below_the_count_settles_it_for_ever(tmp_path: Path) -> None:
    """Once a report left nothing to reckon, a later one only moves the factor."""
    with memory_store() as store:
        session = imported(store, tmp_path, [100, 90_000])
        assert opaque(session) == []
        assert session.context().factor < 1  # what holds at a call is what was known before its answer
        assert "configure" in kinds(store, "pi-1")


def test_later_differences_move_the_factor(tmp_path: Path) -> None:
    """After the first report the estimator's factor follows, logged where it moved by more than 2 %."""
    with memory_store() as store:
        session = imported(store, tmp_path, [5000, 5400, 6300, 6700])
        (page,) = opaque(session)
        factors = [session.context(call=n).factor for n in (1, 2, 3, 4)]
        assert factors[0] == 1.0
        for call in (2, 3):
            context = session.context(call=call)
            counted = context.tokens - page.tokens
            assert context.tokens_reported is not None
            wanted = (context.tokens_reported - page.tokens) / counted
            assert abs(factors[call] - wanted) <= 0.02 + 1e-6
        logged = [e.mutation for e in entries(store, "pi-1") if e.kind == "configure"]
        assert all(abs(b["factor_ppm"] - a["factor_ppm"]) > 20_000 for a, b in pairwise(logged))


def test_a_grown_file_keeps_the_opaque_page_it_has(tmp_path: Path) -> None:
    """Whether calls report before or after an import was interrupted, there is one opaque page, of one size."""
    file = tmp_path / "pi.jsonl"
    with memory_store() as grown, memory_store() as whole:
        records = reported([None, 7000, 7600, None, 9000])
        for end in range(2, len(records) + 1):
            file.write_text(in_lines(records[:end]))
            grown.import_file(file)
        whole.import_file(file)
        first, other = grown.session("pi-1"), whole.session("pi-1")
        assert [p.tokens for p in opaque(first)] == [p.tokens for p in opaque(other)]
        assert [first.context(call=n).tokens for n in range(1, 6)] == [
            other.context(call=n).tokens for n in range(1, 6)
        ]
        assert [first.context(call=n).factor for n in range(1, 6)] == [
            other.context(call=n).factor for n in range(1, 6)
        ]


def test_a_derived_session_says_derived(tmp_path: Path) -> None:
    """No call of it gives a request, every context says its fidelity, and messages can be asked for."""
    with memory_store() as store:
        store.import_file(write(tmp_path / "pi.jsonl", "pi", 2))
        session = store.session("pi-1")
        assert session.info().fidelity == "derived"
        for call in session.calls():
            context = session.context(call=call.call)
            assert (call.fidelity, context.fidelity, context.to_dict()["fidelity"]) == ("derived",) * 3
            with refused("request-not-logged", UnknownError):
                session.wire.request(call=call.call)
            assert context.messages()


def test_a_recorded_session_omits_nothing() -> None:
    """Recording moves the factor only: what was sent is known whole."""
    with memory_store() as store:
        store.record("s", request([user(LONG)]), answer(model_text("a"), tokens=9000))
        store.record("s", request([user(LONG), model_text("a"), user("b")]), answer(model_text("c"), tokens=9000))
        assert opaque(store.session("s")) == []
        assert store.session("s").context(call=2).factor > 10
