"""vBRIEF 0.2 documents of sessions: what was done, what is left, what was learned, with what reading it costs.

The fields are those of the format's extension for session memory; a tier there is a step of disclosure here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, cast

import msgspec

from vmstore.core.times import iso
from vmstore.errors import InputError
from vmstore.work.disclosure import LABELS, DisclosureStep
from vmstore.work.observation import Observation, compressed, key_facts, statistics, tokens

VERSION: Literal["0.2"] = "0.2"
COMPRESSION = "vmstore-facts-v1"
TITLE_CHARS = 60
ALIKE = 0.8  # of the words of two learnings: they are one
CATEGORIES = ("patterns", "gotchas")
Tier = Literal[0, 1, 2, 3, 4]
SessionStatus = Literal["active", "completed", "abandoned"]
TodoStatus = Literal["pending", "completed"]


class _Camel(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of a document, its fields in camel case, those that hold their default left out."""


class CapturedSession(_Camel, frozen=True):
    """A session as a document describes it; its context is what was asked first."""

    id: str
    start_time: str | None
    end_time: str | None
    agent: str
    context: str
    total_observations: int
    compression_ratio: float
    tokens_saved: int
    tools: list[str]
    status: SessionStatus


class CompressionStats(_Camel, frozen=True):
    """How much shorter a session's observations became, by tier and method."""

    total_observations: int
    original_tokens: int
    compressed_tokens: int
    tokens_saved: int
    compression_ratio: float
    average_ratio_by_tier: dict[str, float]
    method_usage: dict[str, int]


class BriefTier(_Camel, frozen=True):
    """A step of disclosure: its tokens are those its content takes."""

    tier: Tier
    label: str
    content: str
    token_cost: int
    loaded: bool


class VBriefInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The head of a document."""

    version: Literal["0.2"]
    author: str
    session_info: CapturedSession
    compression_stats: CompressionStats
    auto_generated: bool
    memory_tiers: list[BriefTier]
    compression_version: str


class TodoItem(msgspec.Struct, frozen=True, rename="camel"):
    """A todo that a tool was given in the session; `source_observation` is the page of that call."""

    title: str
    status: TodoStatus
    source_observation: str
    inferred_from_session: bool


class CompressionMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """How a learning was made shorter, and where the whole is."""

    original_tokens: int
    compressed_tokens: int
    compression_ratio: float
    method: str
    can_expand: bool
    full_content_ref: str


class PlaybookEntry(_Camel, frozen=True):
    """A learning: what was found out, or what failed again and again, with the observations it comes from."""

    category: str
    title: str
    content: str
    source_observations: list[str]
    compressed: bool
    compression_metadata: CompressionMetadata
    aggregated_from: list[str] = []


class TodoList(msgspec.Struct, frozen=True):
    """The todos of a session."""

    items: list[TodoItem]


class Playbook(msgspec.Struct, frozen=True):
    """The learnings of a session, or of several."""

    learnings: list[PlaybookEntry]


class VBriefDocument(msgspec.Struct, frozen=True):
    """A document of one session."""

    info: VBriefInfo = msgspec.field(name="vBRIEFInfo")
    todo_list: TodoList = msgspec.field(name="todoList")
    playbook: Playbook


class SessionFacts(msgspec.Struct, frozen=True):
    """A session as a document is made of it; times in microseconds since 1970, None where they are not known."""

    name: str
    began_at: int | None
    ended_at: int | None
    agent: str
    title: str
    status: SessionStatus
    todos: list[tuple[str, bool, str]]
    gotchas: list[tuple[str, list[str]]]


def document(of: SessionFacts, observations: Sequence[Observation], steps: Sequence[DisclosureStep]) -> VBriefDocument:
    """The document of a session."""
    forms = [compressed(one) for one in observations]
    saved = statistics(forms)
    before = max(saved["original_tokens"], 1)
    ratio = round(saved["compressed_tokens"] / before, 3)
    described = CapturedSession(
        of.name,
        None if of.began_at is None else iso(of.began_at),
        None if of.ended_at is None else iso(of.ended_at),
        of.agent,
        of.title,
        len(forms),
        ratio,
        saved["tokens_saved"],
        list(dict.fromkeys(one.tool for one in observations)),
        of.status,
    )
    stats = CompressionStats(
        len(forms),
        saved["original_tokens"],
        saved["compressed_tokens"],
        saved["tokens_saved"],
        ratio,
        {str(step.step): round(step.token_cost / before, 3) for step in steps},
        dict(Counter(form.method for form in forms)),
    )
    tiers = [
        BriefTier(cast(Tier, step.step), step.label, step.content, step.token_cost, step.step == 0) for step in steps
    ]
    todos = [TodoItem(text, "completed" if done else "pending", page, True) for text, done, page in of.todos]
    info = VBriefInfo(VERSION, of.agent, described, stats, True, tiers, COMPRESSION)
    return VBriefDocument(info, TodoList(todos), Playbook(learnings(of, observations)))


def learnings(of: SessionFacts, observations: Sequence[Observation]) -> list[PlaybookEntry]:
    """The learnings of a session: what it found out, sentence by sentence, and what failed again and again."""
    found = []
    for one in observations:
        for fact in key_facts(one):
            if fact.text.startswith(("learning:", "lesson:")):
                said = fact.text.partition(":")[2].strip()
                found.append(_entry("patterns", said, [one.page], of.name, one.tokens))
    whole = {one.page: one.tokens for one in observations}
    for text, pages in of.gotchas:
        found.append(_entry("gotchas", text, pages, of.name, sum(whole.get(page, 0) for page in pages)))
    return found


def _entry(category: str, content: str, pages: list[str], session: str, original: int) -> PlaybookEntry:
    after = tokens(content)
    title = content if len(content) <= TITLE_CHARS else content[:TITLE_CHARS].rpartition(" ")[0] + "…"
    before = max(original, after)
    about = CompressionMetadata(
        before, after, round(after / max(before, 1), 3), "semantic-extract", True, f"sessions/{session}/{pages[0]}"
    )
    return PlaybookEntry(category, title, content, pages, True, about)


def merged(found: Iterable[tuple[str, PlaybookEntry]]) -> list[PlaybookEntry]:
    """Learnings of several sessions, those that say the same as one, with the sessions that each comes from."""
    groups: list[list[tuple[str, PlaybookEntry]]] = []
    words: dict[int, frozenset[str]] = {}
    by_category: dict[str, list[int]] = defaultdict(list)
    for session, entry in found:
        own = frozenset(entry.content.lower().split())
        near = next((at for at in by_category[entry.category] if _alike(words[at], own)), None)
        if near is None:
            near = len(groups)
            groups.append([])
            words[near] = own
            by_category[entry.category].append(near)
        groups[near].append((session, entry))
    return [_together(group) for group in groups]


def _together(group: list[tuple[str, PlaybookEntry]]) -> PlaybookEntry:
    """One entry for several that say the same: the shortest, with all their observations."""
    _, shortest = min(group, key=lambda item: len(item[1].content))
    before = sum(entry.compression_metadata.original_tokens for _, entry in group)
    about = msgspec.structs.replace(
        shortest.compression_metadata,
        original_tokens=before,
        compression_ratio=round(shortest.compression_metadata.compressed_tokens / max(before, 1), 3),
    )
    return msgspec.structs.replace(
        shortest,
        source_observations=[f"{session}/{page}" for session, entry in group for page in entry.source_observations],
        compression_metadata=about,
        aggregated_from=list(dict.fromkeys(session for session, _ in group)),
    )


def shortened(
    entries: Sequence[PlaybookEntry], target_ratio: float, categories: Collection[str] | None
) -> list[PlaybookEntry]:
    """The entries of some categories that a share of their tokens has room for: those of most sessions first."""
    if isinstance(target_ratio, bool) or not isinstance(target_ratio, int | float) or not 0 < target_ratio <= 1:
        raise InputError(f"targetRatio {target_ratio!r:.40} is no share above 0, up to 1", code="not-a-share")
    chosen = [entry for entry in entries if categories is None or entry.category in categories]
    room = int(sum(entry.compression_metadata.original_tokens for entry in chosen) * target_ratio)
    kept = []
    for entry in sorted(chosen, key=lambda entry: -len(entry.aggregated_from)):
        if (cost := entry.compression_metadata.compressed_tokens) <= room:
            room -= cost
            kept.append(entry)
    return [entry for entry in chosen if entry in kept]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= ALIKE * len(one | other)


def schema() -> dict[str, Any]:
    """The JSON Schema of a document."""
    return msgspec.json.schema(VBriefDocument)


assert len(LABELS) == 5, "a document has five tiers"
