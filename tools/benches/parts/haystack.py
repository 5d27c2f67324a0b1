"""Questions about long histories in the shape of LongMemEval: the talks, what answers, and what is found of it.

The file is a JSON list; each question has talks of its own (`haystack_sessions`, turns of `role` and `content`) with
their dates, the talks that answer it (`answer_session_ids`) and, on the turns that do, `has_answer`. A question whose
name ends with `_abs` has no answer in the talks: nothing is to be found for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import vmstore
from vmstore.core.clock import ManualClock
from vmstore.core.mutation import Create, Message
from vmstore.core.page import Modality, PageType, Role, Slot
from vmstore.core.times import microseconds

CHARS_A_TOKEN = 4
DEEP = 200  # hits that are looked at for places and budgets
TURN_PLACES, SESSION_PLACES = (5, 10, 20), (1, 3, 5, 10)
WEEKDAY = re.compile(r"\([A-Za-z]+\)")
DATES = ("%Y/%m/%d %H:%M", "%Y/%m/%d", "%Y-%m-%d %H:%M", "%Y-%m-%d")
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
ENVELOPES = {
    role: b'{"role":"%s","content":{"\\u0000t":0}}' % word.encode() for word, role in ROLES.items()
}  # as a message is kept whose text is its page
FIELDS = ("question_id", "question_type", "question", "answer", "haystack_sessions", "haystack_dates")


class DatasetError(ValueError):
    """The file is not of the shape; the message names the question and the field."""


class HaystackTurn(NamedTuple):
    """What was said: in which talk, when, and whether it answers the question."""

    session: int
    date: str
    role: str
    text: str
    answers: bool

    @property
    def line(self) -> str:
        """The turn as a reader sees it."""
        return f"[{self.date}] {self.role}: {self.text}"


class Haystack(NamedTuple):
    """A question with its talks, oldest first."""

    name: str
    kind: str
    question: str
    answer: str
    date: str
    asked_us: int | None
    turns: list[HaystackTurn]
    dates_us: list[int]
    answering: frozenset[int]
    """The talks that answer."""

    @property
    def abstains(self) -> bool:
        """Whether the talks do not answer it."""
        return self.name.endswith("_abs")


class FoundTurns(NamedTuple):
    """What a contender finds: turns by rank, and within a budget those it shows with the text it shows."""

    ranked: list[int]
    within: Callable[[int], tuple[list[int], str]]


def haystacks(path: Path) -> list[Haystack]:
    """The questions of a file; DatasetError where it has another shape."""
    try:
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(read, list) or not all(isinstance(item, dict) for item in read):
        raise DatasetError(f"{path} is no list of questions; LongMemEval's files are one JSON array")
    actual_haystacks = [_haystack(number, item) for number, item in enumerate(read)]
    names = [actual_haystack.name for actual_haystack in actual_haystacks]
    if len(set(names)) < len(names):
        raise DatasetError(f"{path} has a question_id twice; each question has its own")
    return actual_haystacks


def _haystack(number: int, fields: dict[str, Any]) -> Haystack:
    name = str(fields.get("question_id", f"question {number}"))
    missing = [field for field in FIELDS if field not in fields]
    if missing:
        raise DatasetError(f"{name} has no {', '.join(missing)}")
    talks, dates = fields["haystack_sessions"], fields["haystack_dates"]
    ids = fields.get("haystack_session_ids") or [str(place) for place in range(len(talks))]
    if not len(talks) == len(dates) == len(ids):
        raise DatasetError(f"{name} has {len(talks)} sessions, {len(dates)} dates and {len(ids)} ids")
    turns: list[HaystackTurn] = []
    moments = [date_us(name, date) for date in dates]
    order = sorted(range(len(talks)), key=lambda place: moments[place])
    for session, place in enumerate(order):
        for turn in talks[place]:
            role, text = turn.get("role"), turn.get("content")
            if role not in ROLES or not isinstance(text, str):
                raise DatasetError(f"{name}: a turn of {ids[place]} has no role of {list(ROLES)} or no content")
            turns.append(HaystackTurn(session, str(dates[place]), role, text, bool(turn.get("has_answer"))))
    wanted = set(map(str, fields.get("answer_session_ids") or ()))
    answering = frozenset(session for session, place in enumerate(order) if str(ids[place]) in wanted)
    asked = fields.get("question_date")
    return Haystack(
        name, str(fields["question_type"]), str(fields["question"]), str(fields["answer"]), str(asked or ""),
        date_us(name, asked) if asked else None, turns, [moments[place] for place in order], answering,
    )  # fmt: skip


def date_us(name: str, date: Any) -> int:
    """A date like '2023/05/20 (Sat) 02:36' in microseconds since 1970."""
    plain = " ".join(WEEKDAY.sub(" ", str(date)).split())
    for form in DATES:
        try:
            return microseconds(datetime.strptime(plain, form).replace(tzinfo=UTC))
        except ValueError:
            continue
    raise DatasetError(f"{name}: {date!r} is no date like '2023/05/20 (Sat) 02:36'")


def imported(store: vmstore.Store, haystack: Haystack) -> tuple[vmstore.Session, list[str]]:
    """A session with the talks, each a commit of its date, and the page of each turn."""
    session = store.session(f"haystack {haystack.name}", create=True)
    pages: list[str] = []
    for number, at_us in enumerate(haystack.dates_us):
        with session.batch(at_us=at_us) as batch:
            for turn in haystack.turns:
                if turn.session != number:
                    continue
                role, content = ROLES[turn.role], turn.text.encode()
                message = batch.add(Message(role, Slot.MESSAGES, batch.cell(ENVELOPES[role]), 0))
                kinds = PageType.TRANSCRIPT, Modality.TEXT, role
                tokens = -(-len(turn.text) // CHARS_A_TOKEN)
                page = batch.add(Create(*kinds, message, 0, batch.cell(content), len(content), tokens))
                pages.append(f"p{page}")
    return session, pages


def contenders(haystack: Haystack) -> Iterator[tuple[str, FoundTurns]]:
    """What finds the turns that answer: the store's memory, plain BM25, the newest turns, and all of them."""
    # The clock of the store is that of its talks: what it begins with is not later than what they say.
    with vmstore.memory_store(clock=ManualClock(min(haystack.dates_us, default=0))) as store:
        session, pages = imported(store, haystack)
        turns = {page: number for number, page in enumerate(pages)}
        moment: Any = {} if haystack.asked_us is None else {"time": haystack.asked_us}

        def recalled(tokens: int) -> tuple[list[int], str]:
            try:
                answer = session.memory.recall(haystack.question, tokens=tokens, **moment)
            except vmstore.UnknownError:  # nothing was said by then
                return [], ""
            shown = [(turns[text.page], text.text) for passage in answer.passages for text in passage.texts]
            lines = [haystack.turns[turn]._replace(text=text).line for turn, text in sorted(shown)]
            return [turn for turn, _ in shown], "\n".join(lines)

        def ranked(score: str) -> list[int]:
            try:
                hits = session.search(haystack.question, limit=DEEP, score=score, **moment)
            except (vmstore.InputError, vmstore.UnknownError):  # it has no word to look for, or nothing was said yet
                return []
            return [turns[hit.page] for hit in hits]

        def fitted(order: Sequence[int], skips: bool) -> Callable[[int], tuple[list[int], str]]:
            return lambda tokens: _fitting(haystack, order, tokens, skips)

        yield "vmstore", FoundTurns(ranked("score@5"), recalled)
        plain = ranked("score@1")
        yield "bm25", FoundTurns(plain, fitted(plain, True))
    row = [n for n, turn in enumerate(haystack.turns) if _is_told(haystack, turn)]
    yield "window", FoundTurns(row[::-1], fitted(row[::-1], False))
    yield "full", FoundTurns(row[::-1], lambda tokens: (row, "\n".join(haystack.turns[n].line for n in row)))


def _is_told(haystack: Haystack, turn: HaystackTurn) -> bool:
    """Whether a turn was said when the question is asked."""
    return haystack.asked_us is None or haystack.dates_us[turn.session] <= haystack.asked_us


def _fitting(haystack: Haystack, order: Sequence[int], tokens: int, skips: bool) -> tuple[list[int], str]:
    """The first turns that fit, whole; one that does not is skipped, or ends it as in a window."""
    room, kept = tokens * CHARS_A_TOKEN, []
    for number in order:
        length = len(haystack.turns[number].text)
        if length <= room:
            room -= length
            kept.append(number)
        elif not skips:
            break
    return kept, "\n".join(haystack.turns[number].line for number in sorted(kept))


def scores(haystack: Haystack, turns: FoundTurns, budgets: Sequence[int]) -> dict[str, float]:
    """The shares of the evidence that are found, by place and budget; nothing where there is no evidence."""
    wanted = {number for number, turn in enumerate(haystack.turns) if turn.answers}
    talks = list(dict.fromkeys(haystack.turns[number].session for number in turns.ranked))
    counts: dict[str, float] = {}
    shown = {tokens: turns.within(tokens) for tokens in budgets}
    if wanted and not haystack.abstains:
        counts |= {f"turns@{most}": _share(wanted, turns.ranked[:most]) for most in TURN_PLACES}
        counts |= {f"turns in {tokens}": _share(wanted, kept) for tokens, (kept, _) in shown.items()}
    if haystack.answering and not haystack.abstains:
        counts |= {f"sessions@{most}": _share(haystack.answering, talks[:most]) for most in SESSION_PLACES}
        for tokens, (kept, _) in shown.items():
            counts[f"sessions in {tokens}"] = _share(haystack.answering, [haystack.turns[n].session for n in kept])
    return counts | {
        f"tokens of {tokens}": float(-(-len(text) // CHARS_A_TOKEN)) for tokens, (_, text) in shown.items()
    }


def _share(wanted: set[int] | frozenset[int], numbers: Sequence[int]) -> float:
    return len(wanted.intersection(numbers)) / len(wanted)
