"""Older turns in one sentence each, for cold recall; those that say who somebody is stay as they were said.

A model is asked which turns are critical and for a sentence on each other, some turns at a time, outside of every
lock. Its answer is logged with what was written of it, so that nobody asks again. Where it fails, or says nothing of a
turn that can be used, the first sentences of the turn stand for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from vmstore.capture.facts import FactAnswer, write_answer
from vmstore.capture.facts import write as write_fact
from vmstore.core.address import page_name
from vmstore.core.asof import Head
from vmstore.core.decision import Cause
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import Evict
from vmstore.core.page import LinkKind, PageType, Role
from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.errors import InputError, VmstoreError
from vmstore.facts.fact import StatedFact, checked
from vmstore.providers.text_model import TextModel
from vmstore.search.passages import texts_of
from vmstore.store.host import SessionHost
from vmstore.store.recall.pen import Pen, write
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.reads.spoken_turns import SpokenMessage, newest_turns
from vmstore.views.reads.turn_tiers import HOT_TURNS, critical_turns, is_over, written_at
from vmstore.vm.compressors.callback import Outcome, heard

TurnModel = Callable[[str], Any] | TextModel
"""A function from a prompt to a text, or a text model."""
ACTOR = "turns@1"
TURNS_AT_ONCE = 20
TURN_CHARS = 800  # of each side, as the model is shown it
SUMMARY_TOKENS_MAX = 50
KEYWORDS_MAX, ANCHORS_MAX = 8, 5
STRENGTH = 900_000  # of an anchor, in parts per million
NO_TURNS = "no_turns"
PROMPT = """Below are turns of a conversation that is over, each with its number. Say which are critical: the person \
says who they are, something matters to them strongly, a decision is taken, or they move on to another stage. Of \
every other turn write one sentence of at most 40 words that keeps its names, numbers and outcome, with up to 8 \
keywords. Of a critical one give what it says of the person as name and value.
Answer with JSON alone: {"turns": [{"turn": 3, "critical": false, "summary": "…", "keywords": ["…"]}, \
{"turn": 4, "critical": true, "anchors": {"home": "Oslo"}}]}

"""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class TurnSummaries(msgspec.Struct, frozen=True):
    """What became of older turns: the pages of their sentences, the turns kept as they were said, and of how many the
    first sentences had to do because no model said anything that could be used.
    """

    summaries: list[str]
    critical: list[int]
    by_words: int


class _Turn(NamedTuple):
    number: int
    user: str
    reply: str
    pages: tuple[int, ...]


class _Note(NamedTuple):
    """What a model said of a turn."""

    critical: bool
    summary: str
    keywords: tuple[str, ...]
    anchors: dict[str, str]


def summarize_turns(session: SessionHost, model: TurnModel | None, timeout_s: float) -> TurnSummaries:
    """Says each turn in a sentence that is neither hot nor critical nor said so yet; of a session over there is no hot.

    A second time it finds none.
    """
    complete: Any = getattr(model, "complete", None) or model
    if model is not None and not callable(complete):
        raise InputError(f"{model!r:.60} cannot be asked about turns; give a function of a prompt or a text model")
    made = TurnSummaries([], [], 0)
    ns, waiting = session._ns, _older(session)
    while waiting:
        erasure, turns = _read_turns(session, waiting[:TURNS_AT_ONCE])
        log, notes = (None, {}) if complete is None or not turns else _asked(complete, turns, timeout_s)
        with ns.lock:
            if not ns.as_read(erasure):
                continue  # what was erased meanwhile may be in the answer: the turns are read and asked about again
            del waiting[:TURNS_AT_ONCE]
            if not turns:
                continue
            pages = write(session, partial(_written, turns=turns, log=log, notes=notes))
        made.summaries.extend(page_name(page) for page in pages)
        made.critical.extend(number for number, note in notes.items() if note.critical)
        said = {number for number, note in notes.items() if note.critical or note.summary}
        made = msgspec.structs.replace(made, by_words=made.by_words + sum(turn.number not in said for turn in turns))
    return made


def _older(session: SessionHost) -> list[Sequence[SpokenMessage]]:
    """The messages of each turn that is to be said in a sentence, oldest first."""
    ns = session._ns
    with ns.asking():
        lane = session._lane()
        position = basis(lane, Head()).position
        turns = newest_turns(lane, position, 1 << 40, 0)
        if not turns:
            return []
        now = max(ns.clock.now(), written_at(lane, position))
        near = 0 if is_over(lane, position, turns[0][-1].at_us, now) else HOT_TURNS
        left = _settled(lane, position)
        return [turn for turn in reversed(turns[near:]) if turn[0].turn not in left]


def _read_turns(session: SessionHost, turns: Sequence[Sequence[SpokenMessage]]) -> tuple[int, list[_Turn]]:
    """What was said in some turns, those without a word left out; and the last erasure before they were read."""
    ns = session._ns
    with ns.asking():
        lane, erasure = session._lane(), ns.projection.last_erasure
        pages = [page for turn in turns for message in turn for page in message.pages]
        texts = dict(texts_of(ns.log, lane, {lane.session: basis(lane, Head()).position}, pages))
    made = []
    for turn in turns:
        user, reply = (
            "\n".join(texts.get(page, "") for m in turn if m.role == role for page in m.pages).strip()
            for role in _ROLES
        )
        if user or reply:
            own = tuple(page for message in turn for page in message.pages if texts.get(page, "").strip())
            made.append(_Turn(turn[0].turn, user, reply, own))
    return erasure, made


def _settled(lane: Branch, position: int) -> frozenset[int]:
    """The turns that are critical, and those that have their sentence or were looked at by a model."""
    pages: list[Any] = [
        page
        for stretch in lane.upto(position)
        for (page,) in lane.db.execute(_SAID, (stretch.session, stretch.low, stretch.high, ACTOR))
    ]
    return critical_turns(lane, position) | {turn for (turn,) in lane.rows(_TURNS, pages)}


def _asked(complete: Callable[[str], Any], turns: Sequence[_Turn], timeout_s: float) -> tuple[bytes, dict[int, _Note]]:
    """The answer of a model as it is logged, and what it says of the turns it was asked about."""
    prompt = PROMPT + "\n\n".join(_shown(turn) for turn in turns)
    outcome, answer = heard(lambda: complete(prompt), timeout_s)
    text, notes = str(answer)[:200], dict[int, _Note]()
    word = outcome.word
    if outcome is Outcome.ANSWERED:
        text = getattr(answer, "text", answer)
        if isinstance(text, str):
            notes = _read(text, {turn.number for turn in turns})
            word = outcome.word if notes else NO_TURNS
        else:
            text, word = "", Outcome.WRONG_TYPE.word
    log = {"phase": "turns", "outcome": word, "turns": [turn.number for turn in turns], "answer": text[:20_000]}
    return json.dumps(log, ensure_ascii=False).encode("utf-8", "replace"), notes


def _shown(turn: _Turn) -> str:
    return f"turn {turn.number}\nUSER: {turn.user[:TURN_CHARS]}\nASSISTANT: {turn.reply[:TURN_CHARS]}"


def _read(text: str, asked: set[int]) -> dict[int, _Note]:
    """What an answer says of the turns that were asked about; of others, and in another form, nothing."""
    try:
        value = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return {}
    listed = value.get("turns") if isinstance(value, dict) else None
    notes: dict[int, _Note] = {}
    for item in listed if isinstance(listed, list) else ():
        number = item.get("turn") if isinstance(item, dict) else None
        if isinstance(number, bool) or not isinstance(number, int) or number not in asked:
            continue
        summary = " ".join(str(item.get("summary") or "").split())
        if len(summary) > SUMMARY_TOKENS_MAX * CHARACTERS_PER_TOKEN:
            summary = ""
        words = item.get("keywords") if isinstance(item.get("keywords"), list) else []
        keywords = [word for each in words[:KEYWORDS_MAX] if (word := str(each).strip().lower()[:40])]
        given = item.get("anchors") if isinstance(item.get("anchors"), dict) else {}
        anchors = {str(name)[:40]: str(said)[:200] for name, said in list(given.items())[:ANCHORS_MAX] if said}
        notes[number] = _Note(item.get("critical") is True, summary, tuple(dict.fromkeys(keywords)), anchors)
    return notes


def _written(pen: Pen, turns: Sequence[_Turn], log: bytes | None, notes: dict[int, _Note]) -> list[int]:
    """Writes a model's answer, a sentence a turn, and facts of who somebody is; the pages of the sentences."""
    shown = tuple(page for turn in turns for page in turn.pages)
    answer = None if log is None else write_answer(FactAnswer(log, shown), pen.page, pen.add)
    pages = []
    for turn in turns:
        note = notes.get(turn.number, _Note(False, "", (), {}))
        if note.critical:
            for name, value in note.anchors.items():
                _anchor(pen, turn, name, value, answer)
            continue
        pages.append(_sentence(pen, turn, note, answer))
    return pages


def _sentence(pen: Pen, turn: _Turn, note: _Note, answer: int | None) -> int:
    text = note.summary or _first(turn)
    links = [(int(LinkKind.DERIVES), page) for page in turn.pages]
    links += [] if answer is None or not note.summary else [(int(LinkKind.CAUSED_BY), answer)]
    part = Part(text.encode("utf-8", "replace"), type=PageType.SUMMARY)
    draft = Draft(Role.OTHER, b"", (part,), hint=f"turn {turn.number}", tags=note.keywords, actor=ACTOR)
    return _aside(pen, pen.page(draft, links))


def _anchor(pen: Pen, turn: _Turn, name: str, value: str, answer: int | None) -> None:
    """States what a critical turn says of the person; what is no fact is left out."""
    stated = StatedFact(
        subject="user",
        verb="has",
        what=value,
        text=f"{name}: {value}",
        attribute=name,
        strength=STRENGTH,
        method=ACTOR,
        sources=turn.pages[:1],
        links=() if answer is None else ((int(LinkKind.CAUSED_BY), answer),),
    )
    try:
        fact = checked(stated)
    except VmstoreError:
        return
    _aside(pen, write_fact(fact, pen.page, pen.cell, pen.add))


def _aside(pen: Pen, page: int) -> int:
    """Takes a new page out of the prompt of a live session, where recall brings it back."""
    here = None if pen.act is None else pen.act.state.here.get(page)
    if here is not None:
        pen.add(Evict(page, Cause.ASKED, here.tokens))
    return page


def _first(turn: _Turn) -> str:
    """The first sentence of each side, as far as there is room."""
    firsts = [_SENTENCE.split(" ".join(text.split()), maxsplit=1)[0] for text in (turn.user, turn.reply) if text]
    text = " ".join(firsts)
    chars = SUMMARY_TOKENS_MAX * CHARACTERS_PER_TOKEN
    return text if len(text) <= chars else text[: chars - 1].rstrip() + "…"


_ROLES = (int(Role.USER), int(Role.ASSISTANT))
_SAID = f"""SELECT l.target FROM pages p CROSS JOIN links l ON l.session = p.session AND l.source = p.page
  WHERE p.session = ? AND p.page > ? AND p.page <= ? AND p.type = {int(PageType.SUMMARY)}
  AND json_extract(p.labels, '$.actor') = ? AND l.kind = {int(LinkKind.DERIVES)}"""
_TURNS = "SELECT turn FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
