"""What a text is found by: its terms.

A word gives one term, its stem without accents. A name in parts (`retry_with_backoff`, `PageFaultHandler`, a path,
an address) gives the terms of its parts, and beside them itself as a whole. Writing without spaces gives a term for
each sign, and as wholes its pairs. How long a text is, is the number of its terms without stop words and wholes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, lru_cache
from itertools import chain
from operator import add
from typing import NamedTuple, TypeVar

from vmstore.errors import InputError
from vmstore.relevance.characters import APOSTROPHES, PAIRED, PICTURES, UNSEEN, classes, folded, plain, settled
from vmstore.relevance.irregular import FORMS, SPELLINGS
from vmstore.relevance.stems import forget_stems, snowball_version, stemmer
from vmstore.relevance.stops import STOP_WORDS

VERSION = 1  # of the rules of this module and of the two it reads
TERM_CHARS_MAX = 64  # a term is cut there: what is longer is a digest or an encoded picture
STEM_CHARS_MAX = 32
CACHED_CHARS_MAX = 64
CACHED_MAX = 1 << 16
# Letters that the parts of a name in camel case have on average: what has fewer is an encoded picture or a key.
HUMP_CHARS, LONG_HUMP_CHARS, SHORT_CHARS = 2.5, 3.0, 12
JOINTS_MAX = 24  # what has more is a table or an encoded picture, and falls into several names

# The codes of ISO 639 and the names of the Snowball algorithms; `none` has words without endings taken off.
LANGUAGES = {
    "none": "",
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}

T = TypeVar("T")


class TokenForm(NamedTuple):
    """What one token of a text is found by."""

    terms: tuple[str, ...] = ()
    """Its words without stop words, in order."""
    wholes: tuple[str, ...] = ()
    """A name of several parts as a whole, the last part of a path, the pairs of signs."""
    stops: tuple[str, ...] = ()
    """The stop words among its words."""
    sequence: tuple[str, ...] = ()
    """All its words in order, as a phrase compares them."""

    @property
    def every(self) -> tuple[str, ...]:
        """All that it is found by."""
        return self.terms if not self.wholes and not self.stops else self.terms + self.wholes + self.stops


class Analyzer:
    """Takes texts of one language apart; the same one reads the texts and what is asked of them."""

    def __init__(self, language: str = "en") -> None:
        if language not in LANGUAGES:
            known = ", ".join(LANGUAGES)
            raise InputError(f"there are no rules for the language {language!r}; choose one of {known}")
        self.language = language
        self._stops = STOP_WORDS.get(language, frozenset())
        self._stem = stemmer(LANGUAGES[language])
        self._irregular, self._spelled = (FORMS, SPELLINGS) if language == "en" else ({}, {})
        self._plain_first = language in ("en", "none")
        self._forms = WordMemo(self._form)
        self._terms = WordMemo(lambda token: self._forms[token].terms)
        self._every = WordMemo(lambda run: tuple(chain.from_iterable(self._forms[at].every for at in tokens(run))))
        self.lone_terms = WordMemo(self._lone_term)

    def forget(self) -> None:
        """Forgets every word it met."""
        for words in (self._forms, self._terms, self._every, self.lone_terms):
            words.clear()
        forget_stems()

    @cached_property
    def version(self) -> str:
        """Names the rules and the tables of endings; an index made by others is made again."""
        rules = f"words@{VERSION}/{self.language}"
        if not LANGUAGES[self.language]:
            return rules
        return f"{rules}/snowball {snowball_version()}"

    def terms(self, text: str) -> list[str]:
        """The terms of a text in order, as often as they stand in it, without stop words and wholes."""
        return list(chain.from_iterable(map(self._terms.__getitem__, tokens(text))))

    def forms(self, text: str) -> list[TokenForm]:
        """The tokens of a text in order, each with all it is found by."""
        return list(map(self._forms.__getitem__, tokens(text)))

    def form(self, token: str) -> TokenForm:
        """All that one of the `tokens` of a text is found by."""
        return self._forms[token]

    def asked(self, token: str) -> TokenForm:
        """What one of the `tokens` of a question asks for."""
        return self._forms[token]

    def first_sign(self, run: str) -> str:
        """The sign that the only term of a run begins with, where that is seen without making it; else nothing."""
        word = run.rstrip(_AFTER_WORD)
        if self._plain_first and word.isascii() and word.isalpha() and (word.islower() or word.istitle()):
            small = word.lower()
            return "" if small in self._irregular else small[0]
        return ""

    def every_term(self, run: str) -> tuple[str, ...]:
        """All that a run of a text without white space is found by."""
        return self._every[run]

    def sequence(self, text: str) -> list[str]:
        """All words of a text in order, stop words too: what phrases are compared with."""
        return [term for form in self.forms(text) for term in form.sequence]

    def word(self, word: str) -> str:
        """The term of a single word."""
        if self._plain_first:
            small = folded(word)
            small = self._irregular.get(small, small)
            stem = small
            if 2 < len(small) <= STEM_CHARS_MAX and small.isascii() and (small.isalpha() or not _DIGIT.search(small)):
                stem = self._stem(small)
            return self._spelled.get(stem, stem)[:TERM_CHARS_MAX]
        return folded(self._ending(word.casefold()))[:TERM_CHARS_MAX]

    def spellings(self, word: str, term: str) -> tuple[str, ...]:
        """The terms a typed word may stand for: its own, and that of the word without accents."""
        return (term,) if self._plain_first else tuple(dict.fromkeys((term, self.word(folded(word)))))

    def _ending(self, word: str) -> str:
        """A word without its ending, where it is one that can have an ending of the language."""
        return word if not 2 < len(word) <= STEM_CHARS_MAX or _DIGIT.search(word) else self._stem(word)

    def _lone_term(self, word: str) -> tuple[str, bool] | None:
        """The one term of an ASCII word in one piece, and whether it is more than a stop word; None of other tokens."""
        if word.isalpha() and word.isascii() and (word.islower() or not _HUMPED.search(word)):
            small = word.lower()
            return (small, False) if small in self._stops else (self.word(word), True)
        return None

    def _form(self, token: str) -> TokenForm:
        lone = self._lone_term(token)
        if lone is not None:
            term, counts = lone
            return TokenForm((term,), (), (), (term,)) if counts else TokenForm((), (), (term,), (term,))
        if not token.isascii():
            if classes().sign.search(token):
                return self._signs(token)
            if _A_PICTURE.match(token):
                return TokenForm((token,), (), (), (token,))
        return self._name(token)

    def _signs(self, token: str) -> TokenForm:
        """A run with signs in it: each a term, each two neighbours a whole; words between them as they are."""
        terms: list[str] = []
        wholes: list[str] = []
        stops: list[str] = []
        sequence: list[str] = []
        for run in pieces(token):
            if classes().sign.match(run):
                signs = signs_of(run)
                terms += signs
                sequence += signs
                wholes += map(add, signs, signs[1:])
                continue
            form = self._name(run)
            terms += form.terms
            wholes += form.wholes
            stops += form.stops
            sequence += form.sequence
        return TokenForm(tuple(terms), tuple(wholes), tuple(stops), tuple(sequence))

    def _name(self, token: str) -> TokenForm:
        """A token that may be a name of several parts."""
        if self._plain_first or _HUMPED.search(token):
            token = plain(token)
        core = token.lstrip("-")
        flag = token[: len(token) - len(core)]
        small = folded(core)
        if _NUMBER.fullmatch(small):
            return _number(small)
        if small.endswith(("++", "#")):
            name = small.rstrip("+#")
            if len(name) <= 2:
                return TokenForm((small,), (), (), (small,))
            return self._words(self._parts(name), [small])
        words: list[str] = []
        wholes: list[str] = []
        segments = _SEGMENTS.split(core)
        for segment in segments:
            if _NUMBER.fullmatch(number := folded(segment)):
                words.append(number.lstrip("v"))
                continue
            for name in segment.split("."):
                parts = self._parts(name)
                words += parts
                if len(parts) > 1:
                    wholes.append(self.word("".join(parts)))
                if name[:1] == "_" and parts:
                    wholes.append(folded(name)[:TERM_CHARS_MAX])
            if "." in segment:
                wholes.append(folded(segment)[:TERM_CHARS_MAX])
        if len(segments) > 1:
            wholes.append(small[: 2 * TERM_CHARS_MAX])
        if flag:
            wholes.append((flag + small)[:TERM_CHARS_MAX])
        return self._words(words, wholes)

    def _parts(self, name: str) -> list[str]:
        """The words of a name between its hyphens, underscores and capital letters."""
        found: list[str] = []
        for piece in _PIECES.split(name):
            if "'" in piece:
                piece = self._apostrophe(piece)
            if not piece:
                continue
            if _HUMPED.search(piece) and len(piece) <= TERM_CHARS_MAX:
                humps = _HUMP.findall(piece)
                if len(piece) >= len(humps) * (HUMP_CHARS if len(piece) <= SHORT_CHARS else LONG_HUMP_CHARS):
                    found += humps
                    continue
            found.append(piece)
        return found

    def _apostrophe(self, word: str) -> str:
        """A word without its contracted end, or without its apostrophes where it has none."""
        first, _, last = word.partition("'")
        if last.lower() in _CONTRACTED:
            return first
        if self.language in _ELIDED and first.lower() in _ELIDED[self.language]:
            return last
        return word.replace("'", "").lower()

    def _words(self, words: Iterable[str], wholes: list[str]) -> TokenForm:
        terms, stops, sequence = [], [], []
        for word in words:
            small = folded(word)
            if not small:
                continue
            if small in self._stops:
                stops.append(small)
                sequence.append(small)
            else:
                term = self.word(word)
                terms.append(term)
                sequence.append(term)
        others = dict.fromkeys(whole for whole in wholes if whole and whole not in terms)
        return TokenForm(tuple(terms), tuple(others), tuple(stops), tuple(sequence))


class WordMemo(dict[str, T]):
    """A word to what is made of it; what is long is made each time, and what is full begins again."""

    def __init__(self, make: Callable[[str], T], most: int = CACHED_MAX) -> None:
        super().__init__()
        self._make = make
        self._most = most

    def __missing__(self, word: str) -> T:
        made = self._make(word)
        if len(word) <= CACHED_CHARS_MAX:
            if len(self) >= self._most:
                self.clear()
            self[word] = made
        return made


def tokens(text: str) -> list[str]:
    """The tokens of a text in order: words, and names with what joins their parts."""
    if "\x1b" in text:
        text = ESCAPE.sub(" ", text)
    if not text.isascii():
        text = settled(text)
    return _pattern(text).findall(text)


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Where the tokens of a text stand in it as it is written, and what each is when it is settled."""
    if "\x1b" in text:
        text = ESCAPE.sub(lambda found: " " * len(found.group()), text)
    if text.isascii():
        for found in _TOKEN.finditer(text):
            yield found.start(), found.end(), found.group()
        return
    for found in _written_token().finditer(text):
        start = found.start()
        for run in sign_runs(found.group()):
            if token := settled(run):
                yield start, start + len(run), token
            start += len(run)


def _pattern(text: str) -> re.Pattern[str]:
    """What finds the tokens of a settled text: the less there is in it, the faster."""
    if text.isascii():
        return _TOKEN
    return _marked_token() if classes().mark.search(text) else _LETTER_TOKEN


def has_signs(token: str) -> bool:
    """Whether there are signs in it that stand for themselves."""
    return not token.isascii() and classes().sign.search(token) is not None


def sign_runs(token: str) -> list[str]:
    """A token cut where signs begin and end."""
    return [run for run in classes().signs.split(token) if run] if has_signs(token) else [token]


def pieces(token: str) -> list[str]:
    """The runs of signs in a token, and the tokens between them."""
    if not has_signs(token):
        return [token]
    return [piece for run in sign_runs(token) for piece in ([run] if has_signs(run) else tokens(run))]


def signs_of(run: str) -> list[str]:
    """The signs of a run of them, each with its marks, as terms."""
    return list(map(_sign, classes().sign.findall(run)))


@lru_cache(CACHED_MAX)
def _sign(sign: str) -> str:
    return folded(sign)


def is_number(token: str) -> bool:
    """Whether it is a version, an address or a time, which count as a whole."""
    return _NUMBER.fullmatch(folded(token)) is not None


def _number(small: str) -> TokenForm:
    """A version, an address or a time counts as a whole, a version by its first two numbers too."""
    small = small.lstrip("v")[:TERM_CHARS_MAX]
    numbers = small.split(".")
    shorter = (".".join(numbers[:2]),) if len(numbers) > 2 else ()
    return TokenForm((small,), shorter, (), (small,))


def _shape(letter: str, first: str, apostrophe: str = "'") -> str:
    """A token: runs of letters with joints between them, `++` or `#`; or that after a flag's or a dot file's begin."""
    joint = rf"(?:[-./@{apostrophe}]|::|(?<=\d):(?=\d))"
    run = rf"{letter}++(?:{joint}{letter}++){{0,{JOINTS_MAX}}}+(?:\+\+(?!\w)|\#(?!\w))?"
    return rf"{run}|(?:(?<![\w.])\.(?={first})|(?<![\w-])--?(?={first})){run}"


_PICTURE = f"[{PAIRED}]{{2}}|[{PICTURES}]"
_LETTER = r"[^\W\d_]"


@cache
def _marked_token() -> re.Pattern[str]:
    return re.compile(_shape(rf"[\w{classes().marks}]", _LETTER) + f"|{_PICTURE}")


@cache
def _written_token() -> re.Pattern[str]:
    """The tokens of a text that nobody has settled: with unseen signs in words and curly apostrophes."""
    return re.compile(_shape(rf"[\w{classes().marks}{UNSEEN}]", _LETTER, APOSTROPHES) + f"|{_PICTURE}")


ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*+[ -/]*+[@-~]?)?")
"""What tells a terminal its colours."""
_TOKEN = re.compile(_shape("[A-Za-z0-9_]", "[A-Za-z]"))
_LETTER_TOKEN = re.compile(_shape(r"\w", _LETTER) + f"|{_PICTURE}")
_DIGIT = re.compile("[0-9]")
_AFTER_WORD = ".,;:!?)"
_HUMPED = re.compile("[a-z][0-9]*[A-Z]|[A-Z]{2}(?!s(?![a-z]))[a-z]")
_HUMP = re.compile("[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_NUMBER = re.compile("v?[0-9]+(?:[.:][0-9]+)+[a-z]{0,3}[0-9]*")
_SEGMENTS = re.compile("::|[/@]|(?<=[0-9]-[0-9][0-9])[Tt](?=[0-9])")
_PIECES = re.compile("[-_:]+")
_CONTRACTED = frozenset(["s", "d", "ll", "re", "ve", "m"])
_ELIDED = {
    "fr": frozenset(["c", "d", "j", "l", "m", "n", "s", "t", "qu", "jusqu", "lorsqu", "puisqu"]),
    "it": frozenset(["l", "d", "un", "dell", "all", "nell", "sull", "c"]),
    "ca": frozenset(["l", "d", "m", "n", "s", "t"]),
}
_A_PICTURE = re.compile(_PICTURE)
