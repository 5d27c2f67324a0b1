"""What an exported file holds of a session: its film, each content once, the contests of decisions; masked or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from vmstore.core.mutation_kind import MUTATION_NAMES
from vmstore.core.page import Level, Modality
from vmstore.debug.contents import CUT_BYTES, ContentText, line_of_masked, texts
from vmstore.debug.json_bytes import strings
from vmstore.debug.request import request
from vmstore.debug.session_data import SessionData, film
from vmstore.redact.mask import Mask, MaskedValue
from vmstore.redact.span import HANDED_OUT
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import Decision, decided
from vmstore.vmql.execution.why import contest_json

READ_AT_ONCE = 500  # contents
REQUEST_TOKENS_MAX = 500_000  # of all calls: the same pages stand in each of them, so they are many times the texts
UNSEEN = "left out of a redacted export: nothing can be masked in an image, a sound or a film"
READABLE = (Modality.TEXT.word, Modality.STRUCTURED.word)


class Report(msgspec.Struct, frozen=True):
    """What was masked: how often of each kind, each value by its placeholder and where it stood.

    `unseen` are the images, sounds and films that were left out, `shown` those that are in the file.
    """

    redacted: bool
    counts: dict[str, int]
    masked: list[MaskedValue]
    unseen: int = 0
    shown: int = 0

    @property
    def times(self) -> int:
        """How many stretches were masked."""
        return sum(self.counts.values())


class SharedSession(msgspec.Struct):
    """One session, to be read without its store; `place` is where in it the page opens."""

    film: dict[str, Any]
    texts: dict[str, ContentText]
    contests: dict[str, Any]
    requests: dict[str, Any]
    redacted: Report
    place: str = ""


def shared(store: Store, session: Session, *, redact: bool = True) -> SharedSession:
    """Reads a session for those who have no store; by default with what is secret in it masked."""
    ns = store._ns
    with ns.asking():
        made = film(store, session)
        lane = Branch(ns.views, ns.key(session.name) or 0)
        contests = dict(_contests(lane, made.position))
        plain = msgspec.to_builtins(made)
        found = SharedSession(
            plain, _texts(store, session, made), contests, _requests(session, made), Report(False, {}, [])
        )
    unreadable = _unreadable(plain).intersection(at for at, text in found.texts.items() if text.text)
    if redact:
        return _cut(_masked(found, unreadable))
    found.redacted = Report(False, {}, [], shown=len(unreadable))
    return _cut(found)


def _masked(found: SharedSession, unreadable: set[str]) -> SharedSession:
    """The same without what is secret: what one text gives away is masked in all of them."""
    mask = Mask(HANDED_OUT)
    for at in unreadable:
        found.texts[at].text, found.texts[at].missing = "", UNSEEN
    if unreadable:  # they stand in the messages, too
        found.requests = {}
    for value in strings((found.film, found.requests, [text.text for text in found.texts.values()])):
        mask.learn(value)
    names = _names(found.film)
    for at, text in found.texts.items():
        text.asked = None
        text.text = mask.text(text.text, names.get(at, f"content {at}"))
        text.line = line_of_masked(text.text)
    found.film = mask.value(found.film, "names, hints and marks")
    found.requests = {call: mask.value(request, f"request of call {call}") for call, request in found.requests.items()}
    found.redacted = Report(True, mask.counts, mask.record, unseen=len(unreadable))
    return found


def _unreadable(film: dict[str, Any]) -> set[str]:
    """The contents that are no text: full ones of pages that hold something else, and thumbnails."""
    pages, words = film["pages"], film["words"]
    other = {index for index, modality in enumerate(pages["modality"]) if words[modality] not in READABLE}
    found = {pages["number"][index] for index in other}
    stays = film["stays"]
    for page, content, level in zip(stays["page"], stays["content"], stays["level"], strict=True):
        if page in other and level < Level.ABSTRACT:
            found.add(content)
    return set(map(str, found))


def _cut(found: SharedSession) -> SharedSession:
    """Long texts cut as the server cuts them, once they are masked: half a secret would not be known for one."""
    for text in found.texts.values():
        if text.mime is None and len(text.text) > CUT_BYTES:
            text.text, text.cut = text.text[:CUT_BYTES], True
    return found


def _texts(store: Store, session: Session, made: SessionData) -> dict[str, ContentText]:
    """Every content that was ever shown, and the full one of every page, once."""
    positions = sorted({*made.stays.content, *made.pages.number})
    found: dict[str, ContentText] = {}
    for start in range(0, len(positions), READ_AT_ONCE):
        found |= texts(store, session, positions[start : start + READ_AT_ONCE], whole=True)
    return found


def _contests(lane: Branch, position: int) -> Iterator[tuple[str, Any]]:
    """What each decision came from, by its position; what was decided together has the contest of the first."""
    known: dict[int, Decision] = {}
    for decision in decided(lane, position, MUTATION_NAMES):
        known[decision.position] = decision
        first = known.get(decision.cause or 0)
        shared = first.why if first is not None and first.kind == decision.kind else None
        contest = contest_json(decision._replace(why=decision.why or shared))
        if contest is not None:
            yield str(decision.position), msgspec.json.decode(contest)


def _requests(session: Session, made: SessionData) -> dict[str, Any]:
    """The messages of every call, where they are not too many."""
    if sum(made.calls.tokens) > REQUEST_TOKENS_MAX:
        return {}
    return {str(call): request(session, call) for call in made.calls.call}


def _names(film: dict[str, Any]) -> dict[str, str]:
    """What the record calls each content: the page that shows it."""
    pages, stays = film["pages"], film["stays"]
    names = {str(number): name for number, name in zip(pages["number"], pages["page"], strict=True)}
    for page, content in zip(stays["page"], stays["content"], strict=True):
        names.setdefault(str(content), pages["page"][page])
    return names
