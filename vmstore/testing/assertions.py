"""Assertions about an agent's memory, with failures that explain themselves.

A page is named as everywhere, by its name, its hint or a reference; any other text is looked for in
what the pages showed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

from vmstore.core.address import page_name, page_position
from vmstore.core.asof import Moment, When
from vmstore.debug.whatif import WhatIfs
from vmstore.errors import InputError, UnknownError
from vmstore.replay.whatif import Run
from vmstore.store.live.live_session import Live
from vmstore.store.reads.context import Context
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.vm.metrics.report import Measures

BETTER_MORE = ("hits", "hit_rate", "prefetch_hits", "prefetch_hit_rate", "utilisation", "recall_success", "effective")
"""The numbers of a run that are better the greater they are; all others are costs."""
SHOWN_MAX = 5  # of pages that a failure names


class Memory:
    """The memory of one session, for a test's assertions."""

    def __init__(self, store: Store, session: Session) -> None:
        self.store = store
        self.session = session

    def assert_in_context(self, page_or_text: str, *, at: When | None = None, **moment: Unpack[Moment]) -> str:
        """Claims that a page, or a page with a text, was in the context of a call (default the last); its name.

        The moment is `call=`, `turn=`, `position=` or `time=`.
        """
        __tracebackhide__ = True
        context = self.session.context(at, **moment)
        page = self._page(page_or_text)
        if page is not None:
            if page in context.page_ids:
                return page_name(page)
            what = f"{self._named(page_or_text, page)} is not in {_where(context)}"
            raise AssertionError(f"{what}\n{self._why(page, context)}")
        found = _holding(context, page_or_text)
        if found:
            return found[0]
        elsewhere = self._elsewhere(page_or_text, context)
        raise AssertionError(f"no page of {_where(context)} holds {page_or_text!r}\n{elsewhere}")

    def assert_not_in_context(self, page_or_text: str, *, at: When | None = None, **moment: Unpack[Moment]) -> None:
        """Claims that no such page, and no page with such a text, was in the context of a call (default the last)."""
        __tracebackhide__ = True
        context = self.session.context(at, **moment)
        page = self._page(page_or_text)
        found = _holding(context, page_or_text) if page is None else [page_name(page)] * (page in context.page_ids)
        if found:
            what = f"{page_or_text!r}" if page is None else self._named(page_or_text, page)
            where = "" if page is not None else f", in {_listed(found)}"
            why = self._why(page_position(found[0]) or 0, context, there=True)
            raise AssertionError(f"{what} is in {_where(context)}{where}\n{why}")

    def assert_recalled(self, page_or_text: str, *, since_call: int = 0) -> str:
        """Claims that a page was asked for and came back into the prompt, after a call where one is given; its name."""
        __tracebackhide__ = True
        page = self._page(page_or_text)
        pages = [page] if page is not None else self._anywhere(page_or_text)
        faults = [fault for fault in self.session.debug.faults() if page_position(fault.page or "") in pages]
        for fault in faults:
            if fault.granted and fault.call >= since_call:
                return str(fault.page)
        what = repr(page_or_text) if page is None else self._named(page_or_text, page)
        after = f" since call {since_call}" if since_call else ""
        raise AssertionError(f"{what} was not recalled{after}\n" + "\n".join(self._unasked(pages, faults)))

    # ---- why

    def _page(self, named: str) -> int | None:
        """The position of a page by its name; None where there is none of that name."""
        try:
            return self.session.page(named).position
        except (UnknownError, InputError):
            return None

    def _named(self, given: str, page: int) -> str:
        return given if given == page_name(page) else f"{given} ({page_name(page)})"

    def _why(self, page: int, context: Context, *, there: bool = False) -> str:
        """VMQL's explanation of a page, and where the page was."""
        verb = "WHY" if there else "WHY NOT"
        rows = self.store.query(
            f"{verb} {page_name(page)} IN CONTEXT AT CALL $call", session=self.session.name, call=context.basis.call
        ).to_dicts()
        chosen = [*rows[-2:], rows[0]] if len(rows) > 2 else rows[::-1]  # the answer last, beneath what led to it
        lines = [f"  position {row['position']}, call {row['call']}: {row['event']}; {row['reason']}" for row in chosen]
        return "\n".join([*lines, f"  {self._stays(page)}"])

    def _stays(self, page: int) -> str:
        """From which call to which a page was in the prompt."""
        rows = self.store.query(
            "RESIDENCIES from_call, to_call WHERE page = $page", session=self.session.name, page=page_name(page)
        )
        spans: list[list[Any]] = []
        for begin, end in rows:
            if spans and spans[-1][1] == begin:  # shown otherwise, but there
                spans[-1][1] = end
            else:
                spans.append([begin, end])
        if not spans:
            return f"{page_name(page)} never was in the prompt"
        spans_in_words = [
            f"from call {begin} on" if end is None else f"calls {begin} to {end - 1}" for begin, end in spans
        ]
        return f"{page_name(page)} was in the prompt: {', '.join(spans_in_words)}"

    def _elsewhere(self, text: str, context: Context) -> str:
        """Other places of a text that is not in a context."""
        pages = self._anywhere(text)
        if pages:
            listed = "; ".join(self._stays(page) for page in pages[:SHOWN_MAX])
            return f"{self._why(pages[-1], context)}\n  pages that hold it: {listed}"
        return "\n".join(["  no page of the session ever held it", *self._near(text)])

    def _near(self, text: str) -> Iterator[str]:
        """Pages that are named or worded nearly so."""
        try:
            self.session.page(text)
        except (UnknownError, InputError) as error:
            if " " not in text:
                yield f"  {error}"
        try:
            hits = self.session.search(text, limit=3)
        except InputError:
            return
        for hit in hits:
            yield f"  it has words of {hit.page}: {hit.text[:100]!r}"

    def _anywhere(self, text: str) -> list[int]:
        """The pages that held a text in any version."""
        wanted = _flat(text)
        rows = self.store.query("VERSIONS page, text", session=self.session.name)
        found = (
            page_position(page) for page, shown_text in rows if shown_text is not None and wanted in _flat(shown_text)
        )
        return list(dict.fromkeys(page for page in found if page is not None))

    def _unasked(self, pages: list[int], faults: list[Any]) -> Iterator[str]:
        if not pages:
            yield "  no page of the session is called so, or ever held it"
        for fault in faults:
            answer = "it came" if fault.granted else f"denied: {fault.denied_because}"
            yield f"  {fault.page} was asked for at call {fault.call}: {answer}"
        if pages and not faults:
            yield "  nobody asked for it"
        for page in pages[:SHOWN_MAX]:
            yield f"  {self._stays(page)}"


def assert_policy_not_worse(
    session: Session, a: str, b: str, *, budget: int | None = None, by: str = "faults", slack: float = 0
) -> tuple[Measures, Measures]:
    """Claims that a session decided again under policy `a` is not worse than under `b`; the numbers of both.

    Both are under `budget`, by default the session's own; one that never had a budget needs it, and
    is first said again to a memory that manages itself, in a store of its own. `by` is a number of
    a run (see specs/replay.md), of which `a` may have `slack` more, or, where more is better, less.
    """
    __tracebackhide__ = True
    runs = {name: _run(session, name, budget) for name in dict.fromkeys((a, b))}
    measures = {name: rows[0] for name, rows in runs.items()}
    if not hasattr(measures[a], by):
        raise InputError(f"a run has no number {by!r}; it has {', '.join(Measures.__struct_fields__)}")
    mine, other = (getattr(measures[name], by) for name in (a, b))
    worse = mine is None or (other is not None and (other - mine if by in BETTER_MORE else mine - other) > slack)
    if worse and not (mine is None and other is None):
        lines = [f"{a} is worse than {b} for {session.name}: {by} {mine}, and {other} under {b}"]
        lines += [_line(name, *runs[name]) for name in runs]
        raise AssertionError("\n".join(lines))
    return measures[a], measures[b]


def _run(session: Session, policy: str, budget: int | None) -> tuple[Measures, Run | None]:
    """The numbers of a session under a policy."""
    if isinstance(session, Live):
        run = session.debug.replay(policy=policy, budget=budget)
        return run.measures, run
    driven = WhatIfs(Store(session._ns)).chosen(session.name, policy, budget).session
    assert isinstance(driven, Live), "a session redriven with a budget has one"
    return driven.stats(), None


def _line(name: str, found: Measures, run: Run | None) -> str:
    numbers = ("faults", "fault_tokens", "evictions", "compressions", "prefix_voided", "utilisation")
    numbers_in_words = ", ".join(f"{number} {getattr(found, number)}" for number in numbers)
    if run is not None and run.divergence is not None:
        first = run.divergence
        numbers_in_words += (
            f"; first other decision at position {first.position}, turn {first.turn}: {first.found or 'nothing'}"
        )
    return f"  {name}: {numbers_in_words}"


def _holding(context: Context, text: str) -> list[str]:
    """The pages of a context that showed a text, blanks and line ends alike."""
    wanted = _flat(text)
    shown = context.contents().items()
    return [page for page, content in shown if wanted in _flat(content.decode("utf-8", "replace"))]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _where(context: Context) -> str:
    return f"the context of call {context.basis.call} (turn {context.basis.turn}, {context.fidelity})"


def _listed(pages: list[str]) -> str:
    more = len(pages) - SHOWN_MAX
    return ", ".join(pages[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
