"""Where a text answers a question: whether a phrase stands in it, and one line around its best place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from vmstore.relevance.characters import classes, folded
from vmstore.relevance.query import Asked, AskedPhrase, WordQuery
from vmstore.relevance.words import ESCAPE, Analyzer, has_signs, spans

EXCERPT_CHARS = 160
LEAD_CHARS = 40  # before the first word that was found

_PlaceOf = Callable[[int], int | None]


class Excerpt(NamedTuple):
    """One line of a text, and where in that line the words stand that were asked for."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    """Begin and end of each word that was found, in order."""

    def marked(self, begin: str, end: str) -> str:
        """The line with something before and after each word that was found."""
        parts: list[str] = []
        at = 0
        for start, stop in self.marks:
            parts += (self.text[at:start], begin, self.text[start:stop], end)
            at = stop
        return "".join(parts) + self.text[at:]


class _Answer(NamedTuple):
    """A word of the text that was asked for: where it stands, and which words of the question it answers."""

    start: int
    end: int
    words: tuple[int, ...]


def holds(text: str, phrase: AskedPhrase, analyzer: Analyzer) -> bool:
    """Whether the words of a phrase stand next to each other in a text, and its names as a whole."""
    if not phrase.sequence:
        return False
    forms = analyzer.forms(text)
    if phrase.wholes and not {whole for form in forms for whole in form.wholes}.issuperset(phrase.wholes):
        return False
    sequence = [term for form in forms for term in form.sequence]
    return next(runs(sequence, phrase.sequence), None) is not None


def runs(sequence: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Where some words stand in a sequence of words one after the other; in time that grows with their number."""
    back = [0] * len(wanted)  # after so many that fit, how many fit still when the next does not (Knuth, Morris, Pratt)
    fit = 0
    for at in range(1, len(wanted)):
        while fit and wanted[at] != wanted[fit]:
            fit = back[fit - 1]
        fit += wanted[at] == wanted[fit]
        back[at] = fit
    fit = 0
    for at, term in enumerate(sequence):
        while fit and (fit == len(wanted) or term != wanted[fit]):
            fit = back[fit - 1]
        fit += term == wanted[fit]
        if fit == len(wanted):
            yield at + 1 - fit


def has(text: str, wanted: Asked | AskedPhrase, analyzer: Analyzer) -> bool:
    """Whether a text has an asked word or phrase."""
    if isinstance(wanted, AskedPhrase):
        return holds(text, wanted, analyzer)
    terms, prefixes = frozenset(wanted.terms), wanted.prefixes
    for form in analyzer.forms(text):
        for known in (form.terms, form.wholes, form.stops):
            if not terms.isdisjoint(known) or (prefixes and any(term.startswith(prefixes) for term in known)):
                return True
    return False


def excerpt(
    text: str,
    query: WordQuery,
    analyzer: Analyzer,
    chars: int = EXCERPT_CHARS,
    weights: Mapping[str, float] | None = None,
) -> Excerpt:
    """One line of at most so many characters around the place that answers most of the question.

    `weights` says by the text of an asked word what it is worth; without it all are worth the same.
    """
    return next(excerpts((text,), query, analyzer, chars, weights))


def excerpts(
    texts: Iterable[str],
    query: WordQuery,
    analyzer: Analyzer,
    chars: int = EXCERPT_CHARS,
    weights: Mapping[str, float] | None = None,
) -> Iterator[Excerpt]:
    """An `excerpt` of each text for one question."""
    return map(ExcerptMaker(query, analyzer, chars, weights).of, texts)


class ExcerptMaker:
    """Makes an `excerpt` of one text after the other for one question; what it learns of words serves the next."""

    def __init__(
        self,
        query: WordQuery,
        analyzer: Analyzer,
        chars: int = EXCERPT_CHARS,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self._query, self._chars = query, chars
        self._numbers = _Numbers(query, analyzer)
        known = weights or {}
        value = [known.get(asked.text, 1.0) for asked in query.words]
        value += (sum(value[: len(query.words)]) + 1.0 for _ in query.phrases)
        self._value = value

    def of(self, text: str) -> Excerpt:
        """The excerpt of a text."""
        answers = sorted(_answers(text, self._query, self._numbers))
        first, last = _best(answers, self._value, self._chars)
        start = answers[first].start if answers else 0
        return _line(text, _begin(text, start, self._chars), self._chars, answers[first : last + 1])


class _Numbers(dict[str, tuple[int, ...]]):
    """Token to the numbers of the asked words that it answers, worked out once for a question."""

    def __init__(self, query: WordQuery, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer
        self.wanted: dict[str, list[int]] = {}
        for number, asked in enumerate(query.words):
            for term in (*asked.terms, *asked.parts):
                self.wanted.setdefault(term, []).append(number)
        self._begun = [(prefix, number) for number, asked in enumerate(query.words) for prefix in asked.prefixes]

        self._firsts = {term[:1] for term in self.wanted}
        self.runs = _Runs(self)

    def __missing__(self, token: str) -> tuple[int, ...]:
        known = self.analyzer.form(token).every
        numbers = [number for term in known for number in self.wanted.get(term, ())]
        numbers += (number for prefix, number in self._begun if any(term.startswith(prefix) for term in known))
        self[token] = found = tuple(dict.fromkeys(numbers))
        return found

    def answers(self, run: str) -> list[_Answer]:
        """The words of a run without white space, all ASCII, that were asked for, and where they stand in it."""
        if not self._begun:
            first = self.analyzer.first_sign(run)
            if first not in self._firsts if first else self.wanted.keys().isdisjoint(self.analyzer.every_term(run)):
                return []
        return [_Answer(start, end, found) for start, end, token in spans(run) if (found := self[token])]


class _Runs(dict[str, list[_Answer]]):
    """Runs of a text without white space to what answers in them: no token goes beyond one, and most answer nothing."""

    def __init__(self, numbers: _Numbers) -> None:
        super().__init__()
        self._numbers = numbers

    def __missing__(self, run: str) -> list[_Answer]:
        self[run] = found = self._numbers.answers(run)
        return found


def _answers(text: str, query: WordQuery, numbers: _Numbers) -> Iterator[_Answer]:
    """The words and phrases of a text that were asked for; the number of a phrase comes after those of the words."""
    no_signs = text.isascii()
    if no_signs and not query.phrases and "\x1b" not in text:
        known = numbers.runs
        for run in _RUN.finditer(text):
            if there := known[run.group()]:
                at = run.start()
                yield from (_Answer(at + one.start, at + one.end, one.words) for one in there)
        return
    order: list[_Answer] = []
    terms: list[str] = []
    for start, end, token in spans(text):
        if not no_signs and has_signs(token):
            for place, sign in _places(start, token):
                order.append(place)
                terms.append(sign)
            yield from _signs(start, token, numbers.wanted)
            continue
        if found := numbers[token]:
            yield _Answer(start, end, found)
        if query.phrases:
            sequence = numbers.analyzer.form(token).sequence
            order += (_Answer(start, end, ()) for _ in sequence)
            terms += sequence
    for number, phrase in enumerate(query.phrases, len(query.words)):
        for at in runs(terms, phrase.sequence):
            yield _Answer(order[at].start, order[at + len(phrase.sequence) - 1].end, (number,))


def _places(start: int, run: str) -> Iterator[tuple[_Answer, str]]:
    """The signs of a run and where each stands."""
    for piece in classes().sign.findall(run):
        yield _Answer(start, start + len(piece), ()), folded(piece)
        start += len(piece)


def _signs(start: int, run: str, wanted: Mapping[str, list[int]]) -> Iterator[_Answer]:
    """The signs of a run that were asked for, alone or with the one before or after."""
    places = list(_places(start, run))
    signs = [sign for _, sign in places]
    pairs = [wanted.get(before + sign, ()) for before, sign in zip(["", *signs], [*signs, ""], strict=True)]
    for at, (place, sign) in enumerate(places):
        if asked := dict.fromkeys((*pairs[at], *pairs[at + 1], *wanted.get(sign, ()))):
            yield place._replace(words=tuple(asked))


def _best(answers: list[_Answer], value: list[float], chars: int) -> tuple[int, int]:
    """The first and last answer of the stretch that answers most, of those the earliest."""
    here: Counter[int] = Counter()
    worth, best, place = 0.0, -1.0, (0, 0)
    first = 0
    for last, answer in enumerate(answers):
        for number in answer.words:
            worth += value[number] * (1.0 if not here[number] else _AGAIN)
            here[number] += 1
        while answer.end - answers[first].start > chars - LEAD_CHARS and first < last:
            for number in answers[first].words:
                here[number] -= 1
                worth -= value[number] * (1.0 if not here[number] else _AGAIN)
            first += 1
        if worth > best + _CLOSE:
            best, place = worth, (first, last)
    return place


def _begin(text: str, start: int, chars: int) -> int:
    """Where a line begins that shows what is at a place: at its sentence, or a few words before it."""
    if start <= LEAD_CHARS // 2 or len(text) <= chars:
        return 0
    lead = text[max(0, start - LEAD_CHARS) : start]
    for sign in "\n.!?\u3002":
        if (cut := lead.rfind(sign)) >= 0:
            return start - len(lead) + cut + 1
    cut = lead.find(" ")
    return start - len(lead) + cut + 1 if cut >= 0 else start


def _line(text: str, begin: int, chars: int, found: Sequence[_Answer]) -> Excerpt:
    """The text from a place on as one line, its white space and unprintable signs as single spaces."""
    lead = "\u2026" if text[:begin].strip() else ""
    room = chars - 1  # one is for the dots at the end
    at, line, places = (
        _as_it_is(text, begin, room, lead) or _laid(text, begin, room, lead) or _laid_by_signs(text, begin, room, lead)
    )
    if not text[at:].strip():
        shown = line.rstrip()
        return Excerpt(shown, _marks(found, places, len(shown)))
    gap = line.rfind(" ", max(len(line) - _TAIL_CHARS, 0))
    shown = (line[:gap] if gap >= 0 else line).rstrip()
    return Excerpt(shown + "\u2026", _marks(found, places, len(shown)))


def _as_it_is(text: str, begin: int, room: int, lead: str) -> tuple[int, str, _PlaceOf] | None:
    """The same as `_laid` of a text that stands in one line already, with single spaces, as most do; None of others."""
    some = text[begin : begin + room + _TAIL_CHARS]
    start = begin + len(some) - len(some.lstrip())
    piece = text[start : start + room - len(lead)]
    if not piece or not piece.isprintable() or "  " in piece or "\u2026 " in piece:
        return None
    end, shift = start + len(piece.rstrip()), len(lead) - start
    return start + len(piece), lead + piece, lambda place: place + shift if start <= place < end else None


def _laid(text: str, begin: int, room: int, lead: str) -> tuple[int, str, _PlaceOf] | None:
    """Where a line ends in the text, the line, and where in it a place of the text is; None where a word in it
    cannot be printed as it is.
    """
    line, at = lead, begin
    starts, shifts, end = [], [], begin
    for word in _WORD.finditer(text, begin):
        at, shown = word.start(), word.group()
        if line and line[-1] != "\u2026" and at > end:
            line += " "
        if len(line) >= room:
            break
        shown = shown[: room - len(line)]
        if not shown.isprintable():
            return None
        starts.append(at)
        shifts.append(len(line) - at)
        line += shown
        at = end = at + len(shown)
        if len(line) >= room:
            break
    else:
        at = len(text)

    def place_of(place: int) -> int | None:
        run = bisect_right(starts, place) - 1
        return place + shifts[run] if run >= 0 and place < end else None

    return at, line, place_of


def _laid_by_signs(text: str, begin: int, room: int, lead: str) -> tuple[int, str, _PlaceOf]:
    """The same, sign by sign."""
    line = [*lead]
    places: dict[int, int] = {}
    at = begin
    while at < len(text) and len(line) < room:
        sign = text[at]
        places[at] = len(line)
        if escape := ESCAPE.match(text, at):
            at = escape.end() - 1
        elif (sign.isprintable() or sign in JOINERS) and not sign.isspace():
            line.append(sign)
        elif line and line[-1] not in (" ", "\u2026"):
            line.append(" ")
        at += 1
    return at, "".join(line), places.get


def _marks(found: Sequence[_Answer], place_of: _PlaceOf, end: int) -> tuple[tuple[int, int], ...]:
    """Where the found words stand in a line that ends there, those that touch or overlap as one."""
    marks: list[tuple[int, int]] = []
    for one in found:
        start, last = place_of(one.start), place_of(one.end - 1)
        if start is None or last is None:
            continue
        if marks and start <= marks[-1][1]:
            marks[-1] = marks[-1][0], max(last + 1, marks[-1][1])
        else:
            marks.append((start, last + 1))
    return tuple((start, stop) for start, stop in marks if stop <= end)


JOINERS = "\u200c\u200d"  # unseen, and without them some words and pictures are others
_AGAIN = 0.01  # what an asked word is worth that is there already
_CLOSE = 1e-9  # sums of the same numbers in another order differ by less
_TAIL_CHARS = 24  # given up so that a line does not end within a word
_WORD = re.compile(r"\S{1,256}")
_RUN = re.compile(r"\S+")
