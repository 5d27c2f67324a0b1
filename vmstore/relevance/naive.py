"""The score of texts for a question without numpy: what the features mean, a row at a time.

It is what `vmstore.relevance.features` is compared with, and what answers where numpy is not installed. It takes
texts whose rows, counts and columns are lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vmstore.core.page import Role
from vmstore.relevance import measures as m
from vmstore.relevance.query import WordQuery
from vmstore.relevance.question import Needle, Question, named, needles_of, question_of, spoken_names, words_of
from vmstore.relevance.traits import Trait
from vmstore.relevance.weights import (
    DATED_AMONG,
    DATED_SHARE,
    DIGITS,
    VERSION,
    Ranked,
    ScoredRow,
    ScoredWord,
    most_candidates,
    weights,
)


class FoundNeedle(NamedTuple):
    """A needle among the texts: how often each row has it, what it weighs, how alike other spellings are by row."""

    needle: Needle
    counts: dict[int, float]
    weight: float
    likes: dict[int, float]
    sums: dict[int, float]
    """What other spellings add to a row where candidates are chosen."""


def score(
    texts: Any, query: WordQuery, *, now_us: int | None = None, limit: int | None = None, version: str = VERSION
) -> Ranked:
    """The texts that answer a query best, best first; `now_us` is when it is asked, by default at the last text."""
    if not texts.count:
        return Ranked([], 0)
    question = question_of(query, texts.columns([texts.count - 1]).at_us[0] if now_us is None else now_us)
    if not question.needles:
        return Ranked([], 0)
    spoken = named_here = spoken_names(texts, question)
    found = [_found(texts, needle) for needle in needles_of(texts, question, spoken)]
    most = most_candidates(limit)
    rows, total = _candidates(texts.count, found, question.sentence, most)
    if spoken and spoken != (there := spoken & _speakers(texts, rows)):
        named_here = there
        found = [_found(texts, needle) for needle in needles_of(texts, question, there)]
        rows, total = _candidates(texts.count, found, question.sentence, most)
    if question.spans and most is not None:
        rows = sorted({*rows, *_dated(texts, question, found, rows, most)})
    values, work = _features(texts, question, found, rows)
    for row, more in _of_sessions(texts, question, found, frozenset(named_here), rows).items():
        values[row].update(more)
    known = weights(version, question.sentence and work, len({*texts.lanes(range(texts.count))}) > 1)
    values = {row: {name: one for name, one in value.items() if name in known} for row, value in values.items()}
    sums = {row: round(sum(known[name] * one for name, one in value.items()), DIGITS) for row, value in values.items()}
    order = sorted(rows, key=lambda row: (-sums[row], row))[:limit]
    explained = ((row, {name: (one, one * known[name]) for name, one in values[row].items() if one}) for row in order)
    words = tuple(ScoredWord(one.needle, len(one.counts), one.weight) for one in found)
    return Ranked([ScoredRow(row, sums[row], parts) for row, parts in explained], total, version, words)


def _dated(texts: Any, question: Question, found: Sequence[FoundNeedle], rows: Sequence[int], most: int) -> list[int]:
    """See `score._dated`."""
    wide, _ = _candidates(texts.count, found, question.sentence, DATED_AMONG * most)
    others = sorted({*wide} - {*rows})
    times = zip(others, texts.columns(others).at_us, strict=True)
    then = [row for row, at in times if any(low <= at < high + m.DATED_US for low, high in question.spans)]
    return then if len(then) <= most // DATED_SHARE else []


def _speakers(texts: Any, rows: Sequence[int]) -> set[str]:
    names = texts.names("speaker")
    return {word for number in set(texts.columns(rows).speaker) for word in words_of(names[number])}


def _found(texts: Any, needle: Needle) -> FoundNeedle:
    counts: dict[int, float] = {}
    for term in needle.terms:
        for row, count in zip(*texts.postings(term), strict=True):
            counts[row] = counts.get(row, 0.0) + count
    weight = math.log1p((texts.count - len(counts) + 0.5) / (len(counts) + 0.5)) * needle.weight
    likes: dict[int, float] = {}
    sums: dict[int, float] = {}
    for term, alike in needle.likes:
        for row in texts.postings(term)[0]:
            likes[row] = max(likes.get(row, 0.0), alike)
            sums[row] = sums.get(row, 0.0) + m.LIKE * alike * weight
    return FoundNeedle(needle, counts, weight, likes, sums)


def _candidates(count: int, found: Sequence[FoundNeedle], sentence: bool, most: int | None) -> tuple[list[int], int]:
    """See `features.candidates`."""
    own: dict[int, float] = {}
    for one in found:
        for row, often in one.counts.items():
            own[row] = own.get(row, 0.0) + one.weight * often / (often + m.K1)
    total = len(own)
    near = dict(own)
    if sentence:
        for one in found:
            for row, more in one.sums.items():
                own[row] = own.get(row, 0.0) + more
        there = {row + far for row in own for far in range(-m.NEAR, m.NEAR + 1) if 0 <= row + far < count}
        near = {
            row: sum(share * own.get(row - m.NEAR + at, 0.0) for at, share in enumerate(m.SPREAD))
            for row in sorted(there)
        }
    rows = sorted(near)
    if most is None or len(rows) <= most:
        return rows, total
    some = max(most // 5, 1)
    least = sorted(near.values())[len(rows) - most + some]
    least_own = max(sorted(own.get(row, 0.0) for row in rows)[len(rows) - some], m.TINY)
    return [row for row in rows if near[row] >= least or own.get(row, 0.0) >= least_own], total


def _features(
    texts: Any, question: Question, found: Sequence[FoundNeedle], rows: Sequence[int]
) -> tuple[dict[int, dict[str, float]], bool]:
    """The features of rows, by row and name; whether most of them stand beside what a tool wrote, or code."""
    every = texts.columns(range(texts.count))
    speakers, tools = (set(named(texts.names(kind), question)) for kind in ("speaker", "tool"))
    mean = max(texts.words / texts.count, 1.0)
    values = {}
    work = 0
    for row, place in zip(rows, texts.places(rows), strict=True):
        same = sitting(every, row)
        work += any(every.role[at] == Role.TOOL or every.traits[at] & Trait.CODE for at in same.values())
        values[row] = {
            **_of_words(texts, found, every, row, same, mean),
            **_of_turn(question, every, row, same, mean),
            "speaker": float(every.speaker[row] in speakers),
            "tool": float(every.tool[row] in tools),
            "agent": float(any(every.role[at] == Role.TOOL for at in same.values())),
            "call": float(every.role[row] == Role.ASSISTANT and every.tool[row] > 0),
            "end_asked": place * question.wants.end,
        }
    for name in ("own", "near", "language"):
        greatest = max((value[name] for value in values.values()), default=0.0)
        for value in values.values():
            value[f"{name}_best"] = value[name] / greatest if greatest > 0 else value[name]
    for value in values.values():
        value.update({f"{name}_agent": value["agent"] * value[name] for name in ("own", "own_best", "near")})
    return values, len(rows) > 0 and work / len(rows) >= m.WORK_SHARE


def _of_sessions(
    texts: Any, question: Question, found: Sequence[FoundNeedle], spoken: frozenset[str], rows: Sequence[int]
) -> dict[int, dict[str, float]]:
    """Whether a row is of a session that is asked about, where several are searched."""
    columns, lanes = texts.columns(rows), texts.lanes(rows)
    several = len({*texts.lanes(range(texts.count))}) > 1
    speakers = set(named(texts.names("speaker"), question))
    spoken_in = {lane for lane, speaker in zip(lanes, columns.speaker, strict=True) if speaker in speakers}
    names = {term for name in spoken for term in texts.analyzer.terms(name)}
    saying = {row for term in names for row in texts.postings(term)[0]}
    total = sum(one.weight for one in found) or 1.0
    has = [{*texts.lanes(sorted(one.counts))} for one in found]
    values = {}
    for row, lane in zip(rows, lanes, strict=True):
        cover = sum(one.weight for one, there in zip(found, has, strict=True) if lane in there) / total
        values[row] = {
            "session_cover": cover * several,
            "session_speaker": float(several and lane in spoken_in),
            "speaker_said": float(several and row in saying),
        }
    return values


def sitting(every: Any, row: int) -> dict[int, int]:
    """The rows of the same sitting from four before to four after, by how far they are."""
    same = {0: row}
    for step in (-1, 1):
        for far in range(step, step * (m.NEAR + 1), step):
            last, place = row + far - step, row + far
            if not 0 <= place < len(every.length) or every.session[place] != every.session[last]:
                break
            if abs(every.at_us[place] - every.at_us[last]) > m.PAUSE_US:
                break
            same[far] = place
    return same


def _asked_before(every: Any, same: dict[int, int]) -> bool:
    return -1 in same and bool(every.traits[same[-1]] & Trait.QUESTION)


def _of_words(
    texts: Any, found: Sequence[FoundNeedle], every: Any, row: int, same: dict[int, int], mean: float
) -> dict[str, float]:
    """What the asked words say of a row."""
    total = sum(one.weight for one in found) or 1.0
    asked = _asked_before(every, same)
    shares = {-1: (m.WINDOW_ASKED if asked else m.WINDOW[0]), 0: m.WINDOW[1], 1: m.WINDOW[2]}
    shares = {far: share / m.WINDOW[1] for far, share in shares.items()}
    nearness = dict(zip(range(-m.NEAR, m.NEAR + 1), m.NEARNESS, strict=True))
    if asked:
        nearness[-1] = m.NEARNESS_ASKED
    length = {far: every.length[place] for far, place in same.items()}
    shown_length = sum(length.get(far, 0) * share for far, share in shares.items())
    all_length = sum(length.values())
    values = dict.fromkeys(("own", "cover", "near", "near_exact", "window_cover", "around", "around_cover"), 0.0)
    values.update(language=0.0, share=0.0)
    for one in found:
        counts = {far: one.counts.get(place, 0.0) for far, place in same.items()}
        own, all_round = counts[0], sum(counts.values())
        shown = sum(counts.get(far, 0.0) * share for far, share in shares.items())
        likes = {far: 1.0 if counts[far] else one.likes.get(place, 0.0) for far, place in same.items()}
        everywhere = (sum(one.counts.values()) + 0.5) / max(texts.words, 1) * m.MIX[3]
        here = m.MIX[0] * own / max(length[0], m.SHORT) + m.MIX[1] * shown / max(shown_length, 1.0)
        here += m.MIX[2] * all_round / max(all_length, 1.0)
        share = one.weight / total
        values["own"] += share * _bm25(own, length[0], mean)
        values["cover"] += share * (own > 0)
        values["share"] += (own > 0) / len(found)
        values["near"] += share * max(alike * nearness[far] for far, alike in likes.items())
        values["near_exact"] += share * max((often > 0) * nearness[far] for far, often in counts.items())
        values["window_cover"] += share * (shown > 0)
        values["around"] += share * _bm25(all_round, all_length, mean * m.SPAN)
        values["around_cover"] += share * (all_round > 0)
        values["language"] += share * math.log1p(here / everywhere) / 5
    return values


def _of_turn(question: Question, every: Any, row: int, same: dict[int, int], mean: float) -> dict[str, float]:
    """What kind of text a row is, where it stands, and whether that is what is asked for."""
    wants, traits, role = question.wants, every.traits[row], every.role[row]
    has: Callable[[Trait], float] = lambda trait: float(bool(traits & trait))  # noqa: E731
    return {
        "follows": float(_asked_before(every, same)),
        "date_near": math.exp(-_days(every.at_us[row], question) / m.NEAR_DAYS),
        "time_asked": has(Trait.TIME) * wants.time,
        "amount_asked": has(Trait.NUMBER) * wants.amount,
        "name_asked": has(Trait.NAME) * wants.name,
        "title_asked": has(Trait.TITLE) * wants.title,
        "error_asked": has(Trait.ERROR) * wants.error,
        "length": min(max(math.log1p(every.length[row]) - math.log1p(mean), -3.0), 3.0),
        "first": float(-1 not in same),
        "asks": has(Trait.ASKS),
        "self": has(Trait.SELF),
        "code": has(Trait.CODE),
        "user": float(role == Role.USER),
        "assistant": float(role == Role.ASSISTANT),
        "result": float(role == Role.TOOL),
        "user_asked": float(role == Role.USER) * wants.user,
    }


def _bm25(count: float, length: float, mean: float) -> float:
    return count * (m.K1 + 1) / (count + m.K1 * (1 - m.B + m.B * length / mean))


def _days(at_us: int, question: Question) -> float:
    best = 1e9
    for first, last in question.spans:
        away = (first - at_us) * m.EARLY if at_us < first else at_us - last + 1 if at_us >= last else 0
        best = min(best, away / m.DAY_US)
    return best
