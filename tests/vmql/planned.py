"""TASKS, ATOMS, ARTIFACTS and SEGMENTS as the facts say them, read one by one."""

from __future__ import annotations

import json
from typing import Any

from tests.vmql.said import notes
from tests.vmql.worked import texts_of
from vmstore.core import mutation as m
from vmstore.core.decision import Denial
from vmstore.core.facts import FactType
from vmstore.core.page import MIME_TYPES, Level, LinkKind, Mime, Modality, PageType, Role, Standing
from vmstore.core.times import iso

Row = dict[str, Any]
LEARNED = {"warning", "skill"}


def tasks(naive: Any, session: str, position: int) -> list[Row]:
    """Each plan, as its content says it."""
    rows = []
    for page, row, tags in _pages(naive, session, position):
        if page.born.type != PageType.CLAIM or page.born.modality != Modality.STRUCTURED or "plan" not in tags:
            continue
        plan = _plan(row["text"])
        steps = None if plan is None else plan.get("steps", [])
        rows.append(
            {
                **row,
                "title": None if plan is None else plan["plan"],
                "progress": None if plan is None else plan.get("progress", 0.0),
                "steps": None if steps is None else len(steps),
                "done": None if steps is None else sum(bool(step.get("done")) for step in steps),
                "decisions": None if plan is None else plan.get("decisions", []),
                "continues": row["labels"].get("origin"),
                "created_at": row["at"],
            }
        )
    return rows


def atoms(naive: Any, session: str, position: int) -> list[Row]:
    """Each page that says one thing: claims that are no plan, and procedures that were learned."""
    seen = [fact.mutation for fact in naive.model.seen(session, position)]
    types = {mutation.page: mutation.type for mutation in seen if type(mutation) is m.Fact}
    rows = []
    for page, row, tags in _pages(naive, session, position):
        if "plan" in tags if page.born.type == PageType.CLAIM else not tags & LEARNED:
            continue
        if page.born.type not in (PageType.CLAIM, PageType.PROCEDURE):
            continue
        stated = [tag.removeprefix("atom:") for tag in sorted(tags) if tag.startswith("atom:")]
        kind = "insight" if tags & LEARNED else "decision"
        if page.page in types:
            kind = "decision" if types[page.page] == FactType.DECISION else "fact"
        rows.append({**row, "kind": stated[0] if stated else kind})
    return rows


def artifacts(naive: Any, session: str, position: int) -> list[Row]:
    """Each file that is a part of no message."""
    denied = [f.mutation for f in naive.model.seen(session, position) if type(f.mutation) is m.FaultDenied]
    asked = [mutation.page for mutation in denied if mutation.because == Denial.APPROVAL]
    words = _words(naive, session, position)
    return [
        {
            **row,
            **words.get(page.page, {"approval": None, "approved_by": None}),
            "mime": mime_of(page.born, row["labels"]),
            "path": row["labels"].get("path"),
            "sha256": row["labels"].get("sha256"),
            "refused": asked.count(page.page),
        }
        for page, row, _ in _pages(naive, session, position)
        if page.born.type == PageType.ARTIFACT and not page.born.message
    ]


def labels_of(naive: Any, session: str, page: int, born: Any) -> Row:
    """What a page's maker said of it."""
    labels: Row = {} if born.labels is None else json.loads(naive.model.cell(session, page, born.labels))
    return labels


def mime_of(born: Any, labels: Row) -> str:
    """The content type of a page: of one that has no number its own word for it."""
    known = MIME_TYPES[Mime(born.mime)]
    return str(labels.get("mime", known)) if born.mime == Mime.OTHER else known


def _words(naive: Any, session: str, position: int) -> dict[int, Row]:
    """What was said last of each file: an approval holds until the file is another."""
    words: dict[int, Row] = {}
    for fact in naive.model.seen(session, position):
        match fact.mutation:
            case m.Approve(page=page, granted=granted, who=who) if page:
                name = None if who is None else naive.model.cell(session, fact.position, who).decode()
                words[page] = {"approval": "approved" if granted else "denied", "approved_by": name}
            case m.Update(page=page) if words.get(page, {}).get("approval") == "approved":
                words[page] = {"approval": None, "approved_by": None}
    return words


def segments(naive: Any, session: str, position: int) -> list[Row]:
    """What was said between two cuts, and whether a summary of it is there and up to date; then summaries of tags."""
    return _Segments(naive, session, position).rows()


class _Segments:
    """What a session holds at a moment, as its segments count it."""

    def __init__(self, naive: Any, session: str, position: int) -> None:
        model = naive.model
        self.naive, self.session = naive, session
        listed = {page.page: (page, row, tags) for page, row, tags in _pages(naive, session, position)}
        self.pages = {number: row for number, row in listed.items() if _counts(*row[:2])}
        self.cuts = [f for f in model.seen(session, position) if type(f.mutation) is m.Segment]
        self.canonical = model.aliases(session, position)
        self.changed = {
            page: [c.position for c in listed if c.level == Level.FULL][-1]
            for page, listed in model.versions(session, position).items()
        }
        self.sources: dict[int, set[int]] = {page: set() for page in self.pages if self._sums(page)}
        for edge in model.links(session, position):
            if edge.kind == LinkKind.DERIVES and edge.source in self.sources and edge.target in self.pages:
                self.sources[edge.source].add(edge.target)
        self.of_tags = {page for page, of in self.sources.items() if of and all(map(self._sums, of))}

    def rows(self) -> list[Row]:
        spoken: dict[int, list[int]] = {}
        for page in sorted(self.pages):
            if self.pages[page][0].born.message and not self._sums(page):
                spoken.setdefault(self._segment(page), []).append(page)
        rows = [self._of_segment(number, spoken[number]) for number in sorted(spoken)]
        hints = {self._hint(page): page for page in sorted(self.of_tags)}
        return rows + [self._of_tag(hint, page, set(hints.values())) for hint, page in sorted(hints.items())]

    def _of_segment(self, number: int, pages: list[int]) -> Row:
        made = [page for page in sorted(self.sources) if self.sources[page] and page not in self.of_tags]
        made = [page for page in made if self._segment(min(self.sources[page])) == number]
        rest = [page for page in pages if not any(page in self.sources[summary] for summary in made)]
        under_way = self.cuts[-1].mutation.number + 1 if self.cuts else 1
        state = "open" if number == under_way else "ended"
        if made:
            state = "stale" if rest or any(map(self._renewed, made)) else "fresh"
        return self._row(number, pages, made, rest, state)

    def _of_tag(self, hint: str, summary: int, last: set[int]) -> Row:
        tag, parts = hint.removeprefix("topic_"), sorted(self.sources[summary])
        pages = sorted({page for part in parts for page in self.sources[part]})
        wanted = [s for s, of in self.sources.items() if s not in last and tag in self._tags(sorted(of))]
        stale = not set(wanted) <= set(parts) or self._renewed(summary)
        row = self._row(None, pages or parts, [summary], [], "stale" if stale else "fresh")
        return {**row, "tags": [tag], "layer": 2}

    def _row(self, number: int | None, pages: list[int], made: list[int], rest: list[int], state: str) -> Row:
        turns, tags = [self.pages[page][0].turn for page in pages], self._tags(pages)
        titles = {cut.mutation.summary: cut for cut in self.cuts if cut.mutation.summary}
        named = [self._title(titles[page]) for page in reversed(made) if page in titles]
        tokens = sum(self.pages[page][1]["tokens"] for page in pages)
        return {
            "session": self.session,
            "number": number,
            "layer": int(bool(made)),
            "tags": tags,
            "title": next((title for title in named if title), None) or ", ".join(tags) or None,
            "first_turn": min(turns),
            "last_turn": max(turns),
            "pages": len(pages),
            "tokens_before": tokens,
            "tokens_after": sum(self.pages[page][1]["tokens"] for page in (*made, *rest)) if made else tokens,
            "summary": f"p{made[-1]}" if made else None,
            "state": state,
        }

    def _segment(self, page: int) -> int:
        before = [cut.mutation.number for cut in self.cuts if cut.position < page]
        return before[-1] + 1 if before else 1

    def _sums(self, page: int) -> bool:
        return bool(self.pages[page][0].born.type == PageType.SUMMARY)

    def _renewed(self, summary: int) -> bool:
        return any(self.changed[page] > summary and self.changed[page] != page for page in self.sources[summary])

    def _tags(self, pages: list[int]) -> list[str]:
        listed = [_canonical(self.pages[page][2], self.canonical) for page in pages]
        return list(dict.fromkeys(tag for tags in listed for tag in tags))

    def _hint(self, page: int) -> str:
        hint: str = self.pages[page][1]["labels"].get("hint") or ""
        return hint

    def _title(self, cut: Any) -> str | None:
        ref = cut.mutation.title
        return None if ref is None else self.naive.model.cell(self.session, cut.position, ref).decode()


def _counts(page: Any, row: Row) -> bool:
    """Whether a page is a part of what segments hold: a summary, or what somebody said, unless that was taken back."""
    spoken = page.born.message and page.born.role in (Role.USER, Role.ASSISTANT, Role.TOOL)
    holds = page.turn and row["status"] not in ("superseded", "abandoned")
    return bool(holds and (spoken or page.born.type == PageType.SUMMARY))


def _canonical(tags: set[str], canonical: dict[str, str]) -> list[str]:
    return sorted(canonical.get(tag, tag) for tag in tags if not tag.startswith("topic:"))


def _plan(text: str | None) -> Row | None:
    """A plan of a content; None where it holds none."""
    try:
        plan: Row = json.loads(text or "")
    except ValueError:
        return None
    return plan


def _pages(naive: Any, session: str, position: int) -> list[tuple[Any, Row, set[str]]]:
    """Each page with what the relations of work tell alike of it, and its tags."""
    model = naive.model
    remarks, texts = notes(model, session, position), texts_of(naive, session, position)
    ats = {fact.position: fact.at for fact in model.seen(session, position)}
    parts = [edge for edge in model.links(session, position) if edge.kind == LinkKind.PART_OF]
    listed = []
    for page in model.pages(session, position):
        number, born, note = page.page, page.born, remarks[page.page]
        last = [c for c in model.versions(session, position)[number] if c.level == Level.FULL][-1]
        task = max((edge.target for edge in parts if edge.source == number), default=None)
        labels = labels_of(naive, session, number, born)
        row = {
            "page": f"p{number}",
            "session": naive.writer(session, number),
            "user": None,
            "text": texts[number],
            "status": Standing(note.get("status") or 0).word,
            "task": None if task is None else f"p{task}",
            "tags": sorted(note["tags"]),
            "tokens": last.told.tokens,
            "bytes": last.told.size,
            "turn": page.turn,
            "position": number,
            "at": iso(ats[number]),
            "updated_at": iso(ats[last.position]),
            "labels": labels,
        }
        listed.append((page, row, note["tags"]))
    return listed
