"""Facts as mutations: the claim page with a fact's sentence, and what it states."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import Annotate, AnyMutation, CellRef, Fact, Link
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role
from vmstore.facts.addition import Addition
from vmstore.facts.fact import StatedFact

ANSWERED = "facts-model"  # who made a page with what a model answered
IMPORTANCE = 800_000  # in parts per million, of the page of a fact that is certain


def write(
    fact: StatedFact,
    page: Callable[[Draft, list[tuple[int, int]]], int],
    cell: Callable[[bytes], CellRef],
    tell: Callable[[AnyMutation], int],
) -> int:
    """Writes a fact that was checked: `page` makes its page, `cell` seals its words; the page."""
    part = Part(_bytes(fact.sentence), type=PageType.CLAIM)
    importance = fact.confidence * IMPORTANCE // 1_000_000
    draft = Draft(Role.ASSISTANT, b"", (part,), tags=fact.tags, importance=importance, actor=fact.method)
    links = [(int(LinkKind.DERIVES), source) for source in fact.sources]
    number = page(draft, [*links, *fact.links])
    words = [cell(_bytes(word)) for word in (fact.subject, fact.verb, fact.what)]
    attribute = None if fact.attribute is None else cell(_bytes(fact.attribute))
    stated = (int(fact.type), int(fact.status), int(bool(fact.one)), fact.valid_from, fact.valid_to)
    weighed = (int(fact.precision), fact.confidence, fact.strength, cell(_bytes(fact.method)))
    tell(Fact(number, words[0], words[1], words[2], attribute, *stated, *weighed))
    return number


class FactAnswer(NamedTuple):
    """A model's answer as JSON: the pages it was shown, and facts it states about known facts.

    `links` are (from, kind, to), `stands` (fact, status).
    """

    content: bytes
    shown: tuple[int, ...]
    links: tuple[tuple[int, int, int], ...] = ()
    stands: tuple[tuple[int, int], ...] = ()


def write_answer(
    answer: FactAnswer, page: Callable[[Draft, list[tuple[int, int]]], int], tell: Callable[[AnyMutation], int]
) -> int:
    """Writes what a model answered as a page that no prompt shows, and what it says of known facts; the page."""
    part = Part(answer.content, Modality.STRUCTURED, Mime.JSON, PageType.VALUE)
    draft = Draft(Role.OTHER, b"", (part,), actor=ANSWERED)
    number = page(draft, [(int(LinkKind.DERIVES), shown) for shown in answer.shown])
    for source, kind, target in answer.links:
        tell(Link(source, target, kind))
    for fact, status in answer.stands:
        tell(Annotate(fact, status=status))
    return number


def caused_by(added: Iterable[Addition], answer: int) -> list[Addition]:
    """Additions whose facts say which page holds the answer that they were read in."""
    cause = int(LinkKind.CAUSED_BY), answer
    return [
        one
        if one.fact is None
        else one._replace(fact=msgspec.structs.replace(one.fact, links=(*one.fact.links, cause)))
        for one in added
    ]


def write_additions(
    added: Iterable[Addition], state: Callable[[StatedFact], int], tell: Callable[[AnyMutation], object]
) -> list[int]:
    """Writes what was added: `state` writes a fact and gives its page, `tell` what is learned of one that is known."""
    pages: dict[int, int] = {}
    for place, addition in enumerate(added):
        if addition.fact is None:
            assert addition.old is not None, "what is learned without a fact is of one that is known"
            known = addition.old.page
            if addition.begins is not None:
                tell(Annotate(known, valid_from=addition.begins))
            else:
                tell(Link(known, addition.source, LinkKind.DERIVES))
            continue
        fact = addition.fact
        if addition.old is not None:
            old = addition.old.page or pages[addition.old.place]
            fact = msgspec.structs.replace(fact, links=(*fact.links, (int(LinkKind.SUPERSEDES), old)))
        pages[place] = state(fact)
    return list(pages.values())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
