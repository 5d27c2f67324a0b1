"""The steps of the demo that ask: the context, a diff, a lineage, a compaction and what it took away."""

from __future__ import annotations

from typing import Any, NamedTuple

from vmstore.core.asof import Call
from vmstore.namespace.results import Diff, Page, PageLink
from vmstore.shell.commands.queries.inspect import lineage
from vmstore.shell.terminal import format_page, format_session, format_work
from vmstore.shell.terminal.layout import Block
from vmstore.store.store import Store

ROWS = 10
LESSONS = 4


class TourStep(NamedTuple):
    """One step of the demo: what it is about, the command that asks the same, what it shows."""

    title: str
    why: str
    command: str
    blocks: list[Block]
    facts: dict[str, Any]


class Tour:
    """The session under way: finds what is worth showing from what the store says."""

    def __init__(self, store: Store, session: str, named: str) -> None:
        self.session = store.session(session)
        self.asks = f"{named} {session}"
        self.pages = self.session.pages()
        self.summary = next(page for page in self.pages if page.type == "summary")
        calls = [call.call for call in self.session.calls() if call.position > self.summary.position]
        self.after = calls[0]
        self.before = self.after - 1

    def compaction(self) -> Diff:
        """What the compaction changed."""
        return self.session.diff(Call(self.before), Call(self.after))

    def reversal(self) -> Page:
        """The last decision that replaces an earlier one."""
        claims = [page for page in self.pages if page.type == "claim"]
        ancestors = self.session.lineage.ancestors
        return next(page for page in reversed(claims) if ancestors(page.page, depth=1, kinds=["supersedes"]))

    def decision_gone(self) -> Page:
        """A decision the compaction took out of the context and that was needed afterwards."""
        left = {item.page for item in self.compaction().changes if item.change == "left"}
        gone = [page for page in self.pages if page.type == "claim" and page.page in left]
        needed = [(self.needed(page)[0].position, page) for page in gone if self.needed(page)]
        return min(needed, key=lambda item: item[0])[1]

    def needed(self, page: Page) -> list[PageLink]:
        """The references to a page made after the compaction, the first one first."""
        references = self.session.lineage.descendants(page.page, depth=1, kinds=["references"])
        later = [reference for reference in references if reference.position > self.summary.position]
        return sorted(later, key=lambda reference: reference.position)

    def cell_of(self, page: Page) -> int:
        """The cell that holds what the model saw of a page before the compaction."""
        shown = self.session.context(call=self.before).shown
        return next(place.cell for place in shown if place.page == page.position and place.cell is not None)


def packed(tour: Tour) -> TourStep:
    """The context at the last call before the compaction."""
    context = tour.session.context(call=tour.before)
    total = len(context.page_ids)
    blocks = format_session.context(context, ROWS)
    return TourStep(
        f"What the model saw at call {tour.before}",
        "The context of any call comes back, page by page, checked against the root its pack recorded.",
        f"vmstore context {tour.asks} --call {tour.before} --limit {ROWS}",
        blocks,
        {"call": tour.before, "pages": total, "tokens": context.tokens, "fidelity": context.fidelity},
    )


def changed(tour: Tour) -> TourStep:
    """What came in around a decision."""
    call = tour.reversal().created_call
    difference = tour.session.diff(Call(call), Call(call + 1))
    return TourStep(
        "What changed between two calls",
        "+ entered, - left, ~ is shown otherwise.",
        f"vmstore diff {tour.asks} --calls {call} {call + 1}",
        format_session.diff(difference),
        {"calls": [call, call + 1], "changes": len(difference.changes), "unchanged": difference.unchanged},
    )


def lineage_of(tour: Tour) -> TourStep:
    """Where a reversed decision came from."""
    page = tour.reversal()
    name = page.hint or page.page
    relations = tour.session.lineage.ancestors(page.page, depth=2)
    lines = lineage(tour.session, page.page, relations, up=True)
    return TourStep(
        "Why a decision was made, and which one it replaced",
        "Each page knows what it was made from: the benchmark, the words of the user, the decision before.",
        f"vmstore sources {tour.asks} {name} --depth 2 --limit {ROWS}",
        [format_page.page_head(page, tour.session.name), *format_page.few_lines(lines, ROWS)],
        {"page": page.page, "hint": page.hint, "sources": len(relations)},
    )


def compacted(tour: Tour) -> TourStep:
    """What the compaction took out of the context."""
    difference = tour.compaction()
    left = [change for change in difference.changes if change.change == "left"]
    decisions = [change for change in left if change.type == "claim"]
    tokens = sum(change.tokens_before for change in left)
    blocks = format_session.diff(difference, ROWS)
    return TourStep(
        "What the compaction took away",
        f"Between call {tour.before} and call {tour.after} a summary took the place of most of the session.",
        f"vmstore diff {tour.asks} --calls {tour.before} {tour.after} --limit {ROWS}",
        blocks,
        {"left": len(left), "tokens": tokens, "decisions": len(decisions), "summary": tour.summary.page},
    )


def taught(tour: Tour) -> TourStep:
    """The failures and the sequences of tools that the session's calls show."""
    work = tour.session.work
    guards, skills, plans = work.alarms(), work.found_skills(), work.plans.all(status="active")
    return TourStep(
        "What its tools taught",
        "Which failures repeat and which sequences succeed, without a model, each with the calls that show it.",
        f"vmstore learn {tour.asks} --limit {LESSONS}",
        format_work.lessons(guards, skills, plans, LESSONS),
        {"calls": len(work.observations()), "failures": len(guards), "skills": len(skills)},
    )


def still_there(tour: Tour) -> TourStep:
    """A page that left the context, exact, and who needed it later."""
    page = tour.decision_gone()
    name = page.hint or page.page
    content = tour.session.content(page.page)
    quoted = tour.needed(page)[0]
    by = next(item for item in tour.pages if item.page == quoted.source)
    blocks: list[Block] = [content.decode()]
    return TourStep(
        "It left the context, not the store",
        f"Full stays full: here are its exact bytes; {by.page} came back to it at call {by.created_call}.",
        f"vmstore page {tour.asks} {name}",
        blocks,
        {"page": page.page, "hint": page.hint, "bytes": len(content), "needed_at_call": by.created_call},
    )
