"""Reads LoCoMo: a JSON list of long conversations between two people, with questions about them.

No model was asked anything, so every call is derived, by the rule `locomo`:
 - The second speaker stands for the agent: each of their lines is a call that saw all lines before
   it. The first speaker's lines are the person's.
 - After the conversation come the dataset's own pages: summaries and observations, which derive
   from the lines they name, in no context.
 - Then each question is asked by itself, of the whole conversation: a call that saw every line and
   the question. The question references its evidence.
Lines are named as the dataset names them (`D1:3`), a session's summary `S1`, its observations
`O1.1` on, questions `Q1` on, their answers `A1` on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from vmstore.capture.importers.formats.jsonl import SourceFile
from vmstore.capture.steps import (
    CallStep,
    DetachedPages,
    MessageRef,
    MessageStep,
    MetadataStep,
    ParsedSource,
    RewriteStep,
    Step,
    Track,
    UnreadableStep,
)
from vmstore.core.draft import Draft, ReplyDraft
from vmstore.core.page import LinkKind, PageType, Slot, Status
from vmstore.core.times import microseconds
from vmstore.providers import Shape, take_message
from vmstore.providers.message import json_bytes, name_of

Record = dict[str, Any]

LINE = re.compile(r"D\d+:\d+")
SESSION = re.compile(r"session_(\d+)")
DATE = "%I:%M %p on %d %B, %Y"
SECOND_US = 1_000_000
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


def recognises(source: SourceFile) -> bool:
    """Whether a file holds a conversation of the dataset's."""
    return any(map(_is_sample, _samples(source.document)))


def read_locomo(source: SourceFile) -> ParsedSource:
    """A session for each conversation."""
    tracks = []
    for n, sample in enumerate(_samples(source.document), 1):
        key = (name_of(sample.get("sample_id")) if isinstance(sample, dict) else None) or f"conversation{n}"
        steps = _Conversation(sample).steps() if _is_sample(sample) else [_stray(sample, n)]
        tracks.append(Track(key=key, name=key, part="" if n == 1 else key, steps=steps))
    return ParsedSource(format="locomo", tracks=tracks)


def _samples(document: Any) -> list[Any]:
    return document if isinstance(document, list) else [document]


def _is_sample(value: Any) -> bool:
    talk = value.get("conversation") if isinstance(value, dict) else None
    return isinstance(talk, dict) and any(SESSION.fullmatch(key) and isinstance(talk[key], list) for key in talk)


def _stray(value: Any, n: int) -> UnreadableStep:
    return UnreadableStep(raw=json_bytes(value), line=n, reason="no conversation: no object with sessions")


class _Conversation:
    """One sample: its lines, what the dataset made of them, its questions."""

    def __init__(self, sample: Record) -> None:
        self.sample = sample
        self.talk: Record = sample["conversation"]
        self.made: list[Step] = []
        self.lines: list[MessageRef] = []
        self.at: int | None = None

    def steps(self) -> list[Step]:
        """The conversation, then the dataset's pages, then its questions."""
        for number in sorted(int(found[1]) for key in self.talk if (found := SESSION.fullmatch(key))):
            self._session(number)
        self._notes()
        for n, question in enumerate(_list(self.sample.get("qa")), 1):
            self._question(n, question)
        return self.made

    def _session(self, number: int) -> None:
        lines = _list(self.talk.get(f"session_{number}"))
        self.at = _date(self.talk.get(f"session_{number}_date_time")) if lines else self.at
        for n, line in enumerate(lines):
            text = line.get("text") if isinstance(line, dict) else None
            if not isinstance(line, dict) or not isinstance(text, str):
                self.made.append(
                    UnreadableStep(raw=json_bytes(line), line=number, reason="no line: no object with a text")
                )
                continue
            # All lines of a session have its date; a second apart they stay in order.
            fields = {
                "raw": json_bytes(line),
                "line": number,
                "at": None if self.at is None else self.at + n * SECOND_US,
            }
            self.lines.append(MessageRef(len(self.made)))
            self.made.append(self._spoken(line, text, fields))

    def _spoken(self, line: Record, text: str, fields: Record) -> Step:
        """An utterance; a picture is given by its caption, as the dataset's own readers see it."""
        speaker = name_of(line.get("speaker"))
        shown = line.get("blip_caption")
        content = f"{text}\n[shows {shown}]" if isinstance(shown, str) else text
        agent = speaker == self.talk.get("speaker_b")
        draft = take_message(Shape.CHAT, Slot.MESSAGES, {"role": "assistant" if agent else "user", "content": content})
        beside = {key: value for key, value in line.items() if key not in ("speaker", "text", "dia_id")}
        draft = msgspec.structs.replace(
            draft,
            hint=name_of(line.get("dia_id")),
            actor=speaker,
            aside=json_bytes(beside) if beside else None,
        )
        return (
            CallStep(**fields, reply=ReplyDraft(Status.OK, (draft,), final=True))
            if agent
            else MessageStep(**fields, draft=draft)
        )

    # ---- what the dataset says of the conversation

    def _notes(self) -> None:
        """Summaries and observations as pages that derive from lines, and its events as a note."""
        for number, text in _numbered(self.sample.get("session_summary"), "summary"):
            spoken = _list(self.talk.get(f"session_{number}"))
            named = (name_of(line.get("dia_id")) for line in spoken if isinstance(line, dict))
            draft = _page(text, PageType.SUMMARY, f"S{number}", LinkKind.DERIVES, filter(None, named))
            self.made.append(DetachedPages(raw=json_bytes([number, text]), line=number, draft=draft))
        for number, observations in _numbered(self.sample.get("observation"), "observation"):
            found = _observations(observations)
            for n, (speaker, text, lines) in enumerate(found, 1):
                draft = _page(text, PageType.CLAIM, f"O{number}.{n}", LinkKind.DERIVES, lines, tags=(speaker,))
                self.made.append(
                    DetachedPages(raw=json_bytes([number, speaker, text, lines]), line=number, draft=draft)
                )
        if (events := self.sample.get("event_summary")) is not None:
            raw = json_bytes(events)
            self.made.append(MetadataStep(raw=raw, line=1, aside=raw))

    def _question(self, n: int, question: Any) -> None:
        """One question, asked of the lines alone, and its answer; the question before leaves."""
        text = question.get("question") if isinstance(question, dict) else None
        if not isinstance(text, str):
            self.made.append(UnreadableStep(raw=json_bytes(question), line=n, reason="no question: no object with one"))
            return
        lines = LINE.findall(" ".join(map(str, _list(question.get("evidence")))))
        category = question.get("category")
        tags = (CATEGORIES[category],) if type(category) is int and category in CATEGORIES else ()
        asked = _page(text, PageType.TRANSCRIPT, f"Q{n}", LinkKind.REFERENCES, lines, tags=tags)
        asked = msgspec.structs.replace(asked, aside=json_bytes(question))
        raw = json_bytes(question)
        self.made.append(RewriteStep(raw=raw, line=n, stands=(*self.lines, asked)))
        answer = question.get("answer", question.get("adversarial_answer"))
        message = {"role": "assistant", "content": str(answer)}
        draft = msgspec.structs.replace(take_message(Shape.CHAT, Slot.MESSAGES, message), hint=f"A{n}")
        reply = ReplyDraft(Status.OK, (draft,) if answer is not None else (), final=True)
        self.made.append(CallStep(raw=raw, line=n, reply=reply, joins=False))


def _page(
    text: str, type_: PageType, hint: str, kind: LinkKind, lines: Iterable[str], tags: tuple[str, ...] = ()
) -> Draft:
    """A text of the dataset's that leads back to lines; what is asked opens a turn of its own."""
    asked = type_ is PageType.TRANSCRIPT
    draft = take_message(Shape.CHAT, Slot.MESSAGES, {"role": "user" if asked else "dataset", "content": text})
    parts = tuple(msgspec.structs.replace(part, type=type_) for part in draft.parts)
    links = tuple((kind, line) for line in dict.fromkeys(lines))
    return msgspec.structs.replace(draft, parts=parts, hint=hint, links=links, tags=tags, human=asked)


def _numbered(value: Any, word: str) -> Iterator[tuple[int, Any]]:
    """The values an object holds under `session_N_word`, by N."""
    found = value if isinstance(value, dict) else {}
    keys = {int(m[1]): key for key in found if (m := re.fullmatch(rf"session_(\d+)_{word}", key))}
    return ((number, found[keys[number]]) for number in sorted(keys))


def _observations(value: Any) -> list[tuple[str, str, list[str]]]:
    """Observations: the person, the text, and the lines it was seen in."""
    found = value if isinstance(value, dict) else {}
    return [
        (speaker, text, LINE.findall(" ".join(map(str, rest))))
        for speaker, entries in found.items()
        for text, *rest in (entry for entry in _list(entries) if isinstance(entry, list) and entry)
        if isinstance(text, str)
    ]


def _date(value: Any) -> int | None:
    """Microseconds since 1970 of a date as the dataset writes it."""
    try:
        parsed = datetime.strptime(str(value).replace("pm", "PM").replace("am", "AM"), DATE)
    except ValueError:
        return None
    return microseconds(parsed)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
