"""A brief of a task for people: its digest, what was decided and why, what is open, and where each word is from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

TOPIC_CHARS_MAX = 60
_HEADINGS = (
    ("decision", "Decisions"),
    ("constraint", "Constraints"),
    ("question", "Open questions"),
    ("fact", "Facts"),
    ("insight", "Insights"),
)
_LEFT_OUT = re.compile(r"[^\w]+")


class BriefSource(msgspec.Struct, frozen=True):
    """A page that something in a brief was made from: its address, what it is, and its text."""

    page: str
    type: str
    text: str


class BriefAtom(msgspec.Struct, frozen=True):
    """An atom of a brief, with the addresses of the pages it was made from."""

    page: str
    kind: str
    text: str
    sources: list[str]


class BriefFile(msgspec.Struct, frozen=True):
    """A file of a brief; its text where somebody approved it, or the session allows files."""

    page: str
    path: str | None
    mime: str
    sha256: str | None
    bytes: int
    text: str | None = None


class BriefContent(msgspec.Struct, frozen=True):
    """All that a brief is made of: the bundle that is written beside it."""

    kind: str
    session: str
    position: int
    made_at: str
    task: str
    title: str
    status: str
    digest: str
    goals: list[str]
    steps: list[dict[str, Any]]
    atoms: list[BriefAtom]
    files: list[BriefFile]
    sources: list[BriefSource]


def slug(topic: str) -> str:
    """A topic as a part of a file's name."""
    return _LEFT_OUT.sub("-", topic.casefold()).strip("-_")[:TOPIC_CHARS_MAX].strip("-_")


def markdown(of: BriefContent) -> str:
    """The brief as Markdown."""
    numbers = {source.page: number for number, source in enumerate(of.sources, 1)}
    lines = [f"# {_flat(of.title)}", "", f"{of.made_at[:10]} · {of.session} · {of.status}", "", _flat(of.digest)]
    lines += _section("Goals", [f"- {_flat(goal)}" for goal in of.goals])
    steps = [f"- [{'x' if step.get('done') else ' '}] {_flat(step['text'])}" for step in of.steps]
    lines += _section("Steps", steps)
    for kind, heading in _HEADINGS:
        atoms = [atom for atom in of.atoms if atom.kind == kind]
        lines += _section(heading, [f"- {_flat(atom.text)}{_cited(atom, numbers)}" for atom in atoms])
    files = [
        f"- `{file.path or file.page}`, {file.bytes:,} bytes, SHA-256 `{file.sha256 or 'masked'}`" for file in of.files
    ]
    lines += _section("Files", files)
    listed = [f"{number}. {page}: {_beginning(of.sources[number - 1].text)}" for page, number in numbers.items()]
    return "\n".join([*lines, *_section("Sources", listed), ""])


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    return ["", f"## {heading}", "", *lines] if lines else []


def _cited(atom: BriefAtom, numbers: dict[str, int]) -> str:
    marks = [f"[{numbers[source]}]" for source in atom.sources if source in numbers]
    return f" {' '.join(marks)}" if marks else f" ({atom.page})"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _beginning(text: str) -> str:
    flat = _flat(text)
    return flat if len(flat) <= 160 else flat[:159].rstrip() + "…"
