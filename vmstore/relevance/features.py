"""The features of a text for a question: what the score is a sum of.

They are worked out with numpy from the postings and columns of the texts in force; no text is read. The window of a
row is the row itself four times, the row before three times where that asks something (else twice) and the row after
once; rows of another session, or on the other side of a long pause, stand in no window. Every feature is of the order
of one, whatever the question and however many texts there are. `vmstore.relevance.naive` says the same without numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmstore.core.page import Role
from vmstore.relevance.candidates import Floats, Found, Rows
from vmstore.relevance.measures import (
    AMONG,
    DAY_US,
    EARLY,
    FEATURES,
    K1,
    MIX,
    NEAR,
    NEAR_DAYS,
    NEARNESS,
    NEARNESS_ASKED,
    PAUSE_US,
    SHORT,
    SPAN,
    WINDOW,
    WINDOW_ASKED,
    WORK_SHARE,
    B,
)  # fmt: skip
from vmstore.relevance.question import Needle, Question, named, needles_of
from vmstore.relevance.texts import TextColumns, Texts
from vmstore.relevance.traits import Trait

LOOKED_AT = frozenset({"length", "session", "at_us", "traits", "role"})  # of the rows around one
LOOKED_INTO = frozenset({"length", "traits", "role", "at_us", "speaker", "tool"})  # of the row itself


class Around(NamedTuple):
    """Some rows with those around each: their numbers and columns, those of all around them, the same sitting."""

    rows: Rows
    wide: Rows
    own: TextColumns
    columns: TextColumns
    same: Floats


class Lookup(NamedTuple):
    """What is looked for among some texts: the needles, and the speakers whom the question names."""

    found: list[Found]
    spoken: frozenset[str]


def lookup(texts: Texts, question: Question, spoken: frozenset[str]) -> Lookup:
    """Looks for the needles of a question, without the names of those who speak."""
    return Lookup([_found(texts, needle) for needle in needles_of(texts, question, spoken)], spoken)


def _found(texts: Texts, needle: Needle) -> Found:
    lists = [texts.postings(term) for term in needle.terms]
    rows, counts = np.zeros(0, np.int64), np.zeros(0)
    if len(lists) == 1:
        rows, counts = lists[0][0].astype(np.int64), lists[0][1].astype(np.float64)
    elif lists:
        there = np.concatenate([rows for rows, _ in lists]).astype(np.int64)
        often = np.concatenate([counts for _, counts in lists]).astype(np.float64)
        rows, where = np.unique(there, return_inverse=True)
        counts = np.bincount(where, often, len(rows)).astype(np.float64)
    weight = float(np.log1p((texts.count - len(rows) + 0.5) / (len(rows) + 0.5))) * needle.weight
    likes = ((texts.postings(term)[0].astype(np.int64), alike) for term, alike in needle.likes)
    return Found(needle, rows, counts, weight, tuple(likes))


def around(texts: Texts, rows: Rows) -> Around:
    """Looks at the rows around some rows."""
    wide = rows[:, None] + np.arange(-NEAR, NEAR + 1)
    inside = (wide >= 0) & (wide < texts.count)
    wide = np.clip(wide, 0, max(texts.count - 1, 0))
    flat = texts.columns(wide.ravel(), LOOKED_AT)
    columns = TextColumns(*(np.asarray(column).reshape(wide.shape) for column in flat))
    step = inside[:, 1:] & inside[:, :-1] & (columns.session[:, 1:] == columns.session[:, :-1])
    step &= np.abs(np.diff(columns.at_us, axis=1)) <= PAUSE_US
    same = np.ones(wide.shape)
    same[:, NEAR + 1 :] = np.cumprod(step[:, NEAR:], axis=1)
    same[:, :NEAR] = np.cumprod(step[:, NEAR - 1 :: -1], axis=1)[:, ::-1]
    return Around(rows, wide, texts.columns(rows, LOOKED_INTO), columns, same)


def at_work(near: Around) -> bool:
    """Whether most of some rows stand beside what a tool wrote, or code."""
    work = (near.columns.role == int(Role.TOOL)) | ((near.columns.traits & int(Trait.CODE)) > 0)
    return len(near.rows) > 0 and float((work & (near.same > 0)).any(axis=1).mean()) >= WORK_SHARE


def features(texts: Texts, question: Question, looked: Lookup, near: Around) -> Floats:
    """The features of some rows, a column each in the order of `FEATURES`."""
    rows = near.rows
    values = {**_of_words(texts, looked.found, near), **_of_turns(texts, question, near)}
    values |= _of_sessions(texts, question, looked, near)
    agent = np.asarray(((near.columns.role == int(Role.TOOL)) & (near.same > 0)).any(axis=1), np.float64)
    values |= {"agent": agent, **{f"{name}_agent": agent * values[name] for name in ("own", "own_best", "near")}}
    return np.stack([values[name] for name in FEATURES], axis=1) if len(rows) else np.zeros((0, len(FEATURES)))


def _of_words(texts: Texts, found: Sequence[Found], near: Around) -> dict[str, Floats]:
    """What the asked words say."""
    weights = np.array([one.weight for one in found])
    total = float(weights.sum()) or 1.0
    counts = np.stack([_spread(one.rows, one.counts, near.rows) for one in found]) * near.same
    likes = (counts > 0).astype(np.float64)
    for number, one in enumerate(found):
        if one.likes:
            likes[number] = np.maximum(_likes(one, near.rows) * near.same, likes[number])
    length = near.columns.length * near.same
    own, own_length = counts[:, :, NEAR], length[:, NEAR]
    asked = _asked_before(near)
    mean = max(texts.words / texts.count, 1.0)

    window = np.tile(np.array(WINDOW), (len(asked), 1)) / WINDOW[1]
    window[asked, 0] = WINDOW_ASKED / WINDOW[1]
    inner = slice(NEAR - 1, NEAR + 2)
    shown, shown_length = (counts[:, :, inner] * window).sum(axis=2), (length[:, inner] * window).sum(axis=1)
    all_round, all_length = counts.sum(axis=2), length.sum(axis=1)
    nearness = np.tile(np.array(NEARNESS), (len(asked), 1))
    nearness[asked, NEAR - 1] = NEARNESS_ASKED
    everywhere = np.array([one.counts.sum() + 0.5 for one in found])[:, None] / max(texts.words, 1) * MIX[3]
    language = MIX[0] * own / np.maximum(own_length, SHORT) + MIX[1] * shown / np.maximum(shown_length, 1.0)
    language = np.log1p((language + MIX[2] * all_round / np.maximum(all_length, 1.0)) / everywhere)

    def weighed(values: NDArray[Any]) -> Floats:
        return np.asarray(weights @ values / total, np.float64)

    values = {
        "own": weighed(_bm25(own, own_length, mean)),
        "cover": weighed(own > 0),
        "near": weighed((likes * nearness).max(axis=2)),
        "share": (own > 0).mean(axis=0),
        "near_exact": weighed(((counts > 0) * nearness).max(axis=2)),
        "window_cover": weighed(shown > 0),
        "around": weighed(_bm25(all_round, all_length, mean * SPAN)),
        "around_cover": weighed(all_round > 0),
        "language": weighed(language) / 5,
    }
    bests = {f"{name}_best": _best(values[name]) for name in ("own", "near", "language")}
    return {**values, **bests}


def _of_turns(texts: Texts, question: Question, near: Around) -> dict[str, Floats]:
    """What kind of text it is, where it stands, and whether that is what is asked for."""
    columns = near.own
    mean = max(texts.words / texts.count, 1.0)
    length = np.log1p(columns.length) - np.log1p(mean)
    wants = question.wants

    def has(trait: Trait, wanted: bool = True) -> Floats:
        return ((columns.traits & int(trait)) > 0).astype(np.float64) * float(wanted)

    def wrote(role: Role) -> Floats:
        return np.asarray(columns.role == int(role), np.float64)

    days = _days(columns.at_us, question.spans)
    return {
        "follows": _asked_before(near).astype(np.float64),
        "speaker": np.isin(columns.speaker, named(texts.names("speaker"), question)).astype(np.float64),
        "tool": np.isin(columns.tool, named(texts.names("tool"), question)).astype(np.float64),
        "date_near": np.exp(-days / NEAR_DAYS),
        "time_asked": has(Trait.TIME, wants.time),
        "amount_asked": has(Trait.NUMBER, wants.amount),
        "name_asked": has(Trait.NAME, wants.name),
        "title_asked": has(Trait.TITLE, wants.title),
        "error_asked": has(Trait.ERROR, wants.error),
        "length": np.clip(length, -3.0, 3.0),
        "first": 1.0 - near.same[:, NEAR - 1],
        "asks": has(Trait.ASKS),
        "self": has(Trait.SELF),
        "code": has(Trait.CODE),
        "user": wrote(Role.USER),
        "assistant": wrote(Role.ASSISTANT),
        "result": wrote(Role.TOOL),
        "call": wrote(Role.ASSISTANT) * (columns.tool > 0),
        "user_asked": wrote(Role.USER) * float(wants.user),
        "end_asked": np.asarray(texts.places(near.rows), np.float64) * float(wants.end),
    }


def several(texts: Texts, rows: Rows) -> bool:
    """Whether rows are of texts of several sessions, of which one may be asked about."""
    if not len(rows):
        return False
    first, end = texts.lane_rows(texts.lanes(rows[:1]))
    return bool(end[0] - first[0] < texts.count)


def _of_sessions(texts: Texts, question: Question, looked: Lookup, near: Around) -> dict[str, Floats]:
    """Whether a text is of a session that is asked about, where several are searched."""
    rows = near.rows
    nothing = np.zeros(len(rows))
    if not several(texts, rows):
        return dict.fromkeys(AMONG, nothing)
    lanes, whose = np.unique(texts.lanes(rows), return_inverse=True)
    first, end = texts.lane_rows(lanes)
    total = sum(one.weight for one in looked.found) or 1.0
    cover = np.zeros(len(lanes))
    for one in looked.found:
        cover += one.weight * (np.searchsorted(one.rows, end) > np.searchsorted(one.rows, first))
    speaks = np.isin(near.own.speaker, named(texts.names("speaker"), question))
    spoken = np.isin(np.arange(len(lanes)), whose[speaks])
    names = {term for name in looked.spoken for term in texts.analyzer.terms(name)}
    naming = np.zeros(len(rows), np.bool_)
    for term in names:
        naming |= _has(texts.postings(term)[0], rows)
    values: list[Floats] = [cover[whose] / total, spoken[whose].astype(np.float64), naming.astype(np.float64)]
    return dict(zip(AMONG, values, strict=True))


def _has(listed: NDArray[Any], rows: Rows) -> NDArray[np.bool_]:
    """Whether each row is on an ascending list."""
    if not len(listed):
        return np.zeros(len(rows), np.bool_)
    return np.asarray(listed[np.minimum(np.searchsorted(listed, rows), len(listed) - 1)] == rows)


def _asked_before(near: Around) -> NDArray[np.bool_]:
    """Whether the row before each is of the same sitting and ends with a question."""
    asks: NDArray[np.bool_] = (near.columns.traits[:, NEAR - 1] & int(Trait.QUESTION)) > 0
    return asks & (near.same[:, NEAR - 1] > 0)


def _spread(listed: Rows, values: Floats, rows: Rows) -> Floats:
    """The values of a list at some rows and those around each: nothing where it has none."""
    found = np.zeros((len(rows), SPAN))
    low = np.searchsorted(listed, rows - NEAR)
    many = np.searchsorted(listed, rows + NEAR, "right") - low
    which = np.repeat(np.arange(len(rows)), many)
    at = np.arange(len(which)) + np.repeat(low - np.cumsum(many) + many, many)
    found[which, listed[at] - rows[which] + NEAR] = values[at]
    return found


def _likes(one: Found, rows: Rows) -> Floats:
    """How alike the best other spelling of a needle is at some rows and those around each."""
    best = np.zeros((len(rows), SPAN))
    for listed, alike in one.likes:
        best = np.maximum(best, _spread(listed, np.full(len(listed), alike), rows))
    return best


def _bm25(counts: Floats, length: Floats, mean: float) -> Floats:
    return counts * (K1 + 1) / (counts + K1 * (1 - B + B * length / mean))


def _best(values: Floats) -> Floats:
    """Values against the greatest of them."""
    greatest = float(values.max()) if len(values) else 0.0
    return values / greatest if greatest > 0 else values


def _days(at_us: NDArray[np.int64], spans: Sequence[tuple[int, int]]) -> Floats:
    """How many days rows are from the nearest of some times; very many where there is none."""
    best = np.full(len(at_us), 1e9)
    for first, last in spans:
        away = np.where(at_us < first, (first - at_us) * EARLY, np.where(at_us >= last, at_us - last + 1, 0)) / DAY_US
        best = np.minimum(best, away)
    return best
