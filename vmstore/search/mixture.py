"""Several languages at once: how texts of sessions in different languages are asked, and shown, together.

A text is indexed by the rules of its own session's language. What is asked of several is read by the rules of each:
a word stands for its terms in all of them, and a stop word of any is one. Phrases are compared by those of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from vmstore.relevance.words import Analyzer, TokenForm, tokens


class Mixture(Analyzer):
    """The rules of several languages, the first of which stands for the store."""

    def __init__(self, analyzers: Sequence[Analyzer]) -> None:
        super().__init__(analyzers[0].language)
        self._all = tuple(analyzers)
        self._stops = frozenset(chain.from_iterable(each._stops for each in analyzers))

    @property
    def version(self) -> str:
        """Names the rules of every language."""
        return " and ".join(each.version for each in self._all)

    def terms(self, text: str) -> list[str]:
        """The terms of a text in every language."""
        return [term for form in self.forms(text) for term in form.terms]

    def forms(self, text: str) -> list[TokenForm]:
        """The tokens of a text in order, each with all it is found by in any language."""
        return list(map(self.form, tokens(text)))

    def form(self, token: str) -> TokenForm:
        """All that a token is found by in any language; its words in order are those of the first."""
        forms = [each.form(token) for each in self._all]
        own = super().form(token)
        terms = _each(forms, lambda form: form.terms) if own.terms else ()
        stops = (*own.stops, *(term for form in forms for term in form.stops if term not in own.stops))
        return TokenForm(terms, _each(forms, lambda form: form.wholes), stops, own.sequence)

    def asked(self, token: str) -> TokenForm:
        """What a token of a question asks for by the rules of the first language; `spellings` has the others'."""
        return super().form(token)

    def spellings(self, word: str, term: str) -> tuple[str, ...]:
        """The terms a typed word may stand for in any language."""
        others = (each.spellings(word, own) for each in self._all for own in each.form(word).terms)
        return tuple(dict.fromkeys((term, *chain.from_iterable(others))))

    def first_sign(self, run: str) -> str:
        """Nothing: a run may begin otherwise in each language."""
        return ""

    def every_term(self, run: str) -> tuple[str, ...]:
        """All that a run of a text without white space is found by in any language."""
        return tuple(chain.from_iterable(self.form(token).every for token in tokens(run)))


def _each(forms: Sequence[TokenForm], part: Callable[[TokenForm], tuple[str, ...]]) -> tuple[str, ...]:
    """A part of each of some forms, what is alike once."""
    return tuple(dict.fromkeys(chain.from_iterable(map(part, forms))))
