"""A fact before it is logged: checked, with its sentence and where it comes from."""

from __future__ import annotations

import msgspec

from vmstore.core.facts import CERTAIN, FACT_STATUS, FactType, Precision
from vmstore.core.page import Standing
from vmstore.errors import InputError
from vmstore.facts.address import attribute_name, has_one

WORD_CHARS_MAX = 300
TEXT_CHARS_MAX = 1_000
BY_HAND = "hand@1"


class StatedFact(msgspec.Struct, frozen=True, kw_only=True):
    """What a sentence states. `sources` are the pages it was found on; shares are in parts per million.

    `links` are (kind, page) pairs beside the sources; `one` None leaves it to the attribute. `ends` are the words of
    what is no more since then, by which `vmstore/facts/reversal.py` looks for the fact it replaces.
    """

    subject: str
    verb: str
    what: str
    text: str = ""
    attribute: str | None = None
    type: FactType = FactType.GENERAL
    status: Standing = Standing.ACTIVE
    one: bool | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    precision: Precision = Precision.UNKNOWN
    confidence: int = CERTAIN
    strength: int = 0
    method: str = BY_HAND
    sources: tuple[int, ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    tags: tuple[str, ...] = ()
    ends: str = ""

    @property
    def sentence(self) -> str:
        """Its text, made of its words where nobody wrote one."""
        return self.text or f"{self.subject} {self.verb} {self.what}"


def checked(fact: StatedFact) -> StatedFact:
    """A fact as it can be logged; InputError names what cannot."""
    for name in ("subject", "verb", "what"):
        _text(name, getattr(fact, name), WORD_CHARS_MAX)
    _text("text", fact.sentence, TEXT_CHARS_MAX)
    attribute = None
    if fact.attribute is not None:
        attribute = attribute_name(_text("attribute", fact.attribute, WORD_CHARS_MAX))
    if fact.one and not attribute:
        raise InputError("one value at a time is of an attribute; name it, or leave out `one`")
    if fact.status not in FACT_STATUS:
        words = ", ".join(status.word for status in sorted(FACT_STATUS))
        raise InputError(f"a fact is stated to be {words}; retract takes one back")
    for name in ("confidence", "strength"):
        value = getattr(fact, name)
        if type(value) is not int or not 0 <= value <= CERTAIN:
            raise InputError(f"{name} {value!r:.40} is no share from 0 to 1")
    if fact.valid_from is not None and fact.valid_to is not None and fact.valid_from > fact.valid_to:
        raise InputError(f"a validity from {fact.valid_from} to {fact.valid_to} ends before it begins; swap the two")
    one = has_one(attribute) if fact.one is None else fact.one
    return msgspec.structs.replace(fact, attribute=attribute or None, one=bool(one and attribute))


def _text(name: str, text: object, chars_max: int) -> str:
    if not isinstance(text, str) or not text.strip() or len(text) > chars_max or "\0" in text:
        raise InputError(f"{text!r:.40} cannot be the {name} of a fact: a text of 1 to {chars_max} characters can")
    return text
