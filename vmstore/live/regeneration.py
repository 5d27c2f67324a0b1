"""Regenerates pages of a live session after a retraction: claims found again, summaries without the retracted pages.

The code that made them first makes them again, from what is left. What a model, a person or a
callback wrote cannot be regenerated here, and is left to its author.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from vmstore.core.page import IMPORTANCE, LinkKind, Modality, PageType, Role
from vmstore.core.tags import TOPIC
from vmstore.live.extraction import CLAIM_IMPORTANCE, HEARD, summed
from vmstore.live.messages import page
from vmstore.live.runtime import Act, Runtime
from vmstore.views.branch import Branch
from vmstore.views.projectors.lineage import ended
from vmstore.views.reads.annotations import notes_of
from vmstore.vm.claims.claims import FINDER, Claim, ClaimSource, find
from vmstore.vm.recall.topics import topics

MAKER = "vm"  # who makes summaries of segments


class Renewal(NamedTuple):
    """A page to be written in the place of one that falls: what it says, what it is made from, who makes it."""

    replaces: int
    type: PageType
    name: str | None
    content: bytes
    sources: tuple[int, ...]
    actor: str


def renewals(runtime: Runtime, lane: Branch, marked: Sequence[int], fallen: Container[int]) -> list[Renewal]:
    """Regenerates what it can of the marked pages from those that are not retracted; nothing is written."""
    renewing = _Renewing(runtime, lane, fallen)
    found = (renewing.one(number) for number in marked)
    return [renewal for renewal in found if renewal is not None]


def write(act: Act, renewal: Renewal) -> int:
    """Writes a regenerated page; its position."""
    is_claim = renewal.type is PageType.CLAIM
    about = topics(renewal.content.decode("utf-8", "replace")) if is_claim else ()
    return page(
        act,
        renewal.type,
        renewal.content,
        role=Role.ASSISTANT if is_claim else Role.SYSTEM,
        name=renewal.name,
        links=[(int(LinkKind.DERIVES), source) for source in renewal.sources],
        tags=[TOPIC + topic for topic in about],
        importance=CLAIM_IMPORTANCE if is_claim else IMPORTANCE,
        actor=renewal.actor,
    )


class _Renewing:
    """One look at a session."""

    def __init__(self, runtime: Runtime, lane: Branch, fallen: Container[int]) -> None:
        self._state, self._spoken, self._forms = runtime.state, runtime.spoken, runtime.forms
        self._lane = lane
        self._fallen = fallen

    def one(self, number: int) -> Renewal | None:
        """A regenerated page; None where nothing that is left makes it."""
        if self._state.pages[number].type is PageType.CLAIM:
            return self._found_again(number) or self._before(number)
        return self._summary(number) if self._state.pages[number].type is PageType.SUMMARY else None

    def _sound(self, number: int) -> bool:
        return number not in self._fallen and number not in self._state.barred

    # ---- claims

    def _found_again(self, number: int) -> Renewal | None:
        """A claim that what is left of what was said still makes."""
        name = self._spoken.known[number].name if number in self._spoken.known else None
        for source in filter(self._sound, self._spoken.sources.get(number, ())):
            for claim in self._claims(self._state.pages[source].message):
                if claim.name == name and claim.sources:
                    return Renewal(number, PageType.CLAIM, name, claim.text.encode(), claim.sources, FINDER)
        return None

    def _claims(self, message: int) -> Sequence[Claim]:
        """The claims that are found in a message, of what was said before it as far as it stands."""
        messages = [one for one in self._spoken.messages.values() if one.role in (Role.USER, Role.ASSISTANT)]
        turn = [text for one in messages if one.message == message for text in self._texts(one.parts)]
        earlier = [one for one in messages if one.message < message][-HEARD:]
        return find(turn, [text for one in earlier for text in self._texts(one.parts)]) if turn else ()

    def _before(self, number: int) -> Renewal | None:
        """The sound claim whose place a claim took, stated again."""
        for old in self._replaced.get(number, ()):
            managed = self._state.pages[old]
            if self._sound(old) and managed.type is PageType.CLAIM:
                known = self._spoken.known.get(old)
                content = self._forms.of(managed.forms[0].position if managed.forms[0] is not None else old)
                return Renewal(number, PageType.CLAIM, known.name if known else None, content, (old,), FINDER)
        return None

    @cached_property
    def _replaced(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        gone, kind = ended(self._lane, self._state.position), int(LinkKind.SUPERSEDES)
        for stretch in self._lane.upto(self._state.position):
            for new, old, at in self._lane.db.execute(_REPLACED, (stretch.session, stretch.high)):
                if at > gone.get((new, old, kind), 0):
                    found.setdefault(new, []).append(old)
        return found

    # ---- summaries

    def _summary(self, number: int) -> Renewal | None:
        """A segment's summary without what fell, where this code made it; its title is kept."""
        managed, sources = self._state.pages[number], self._spoken.sources.get(number, ())
        claims = [
            page.page
            for page in self._state.pages.values()
            if page.segment == managed.segment and page.type is PageType.CLAIM and page.page < number
        ]
        notes = notes_of(self._lane, number - 1, claims)
        held_then = [page for page in claims if page not in notes or notes[page].importance != 0]
        was, summary = self._forms.of(number).decode("utf-8", "replace"), self._summed("", held_then, sources)
        if was != summary and not was.endswith("\n" + summary):
            return None
        title = "" if was == summary else was[: -len(summary) - 1]
        left = [source for source in sources if self._sound(source)]
        standing = [page for page in held_then if self._sound(page)]
        if not left and not standing:
            return None
        known = self._spoken.known.get(number)
        content = self._summed(title, standing, left).encode("utf-8", "backslashreplace")
        return Renewal(number, PageType.SUMMARY, known.name if known else None, content, tuple(left), MAKER)

    def _summed(self, title: str, claims: Sequence[int], messages: Sequence[int]) -> str:
        texts = [self._forms.of(claim).decode("utf-8", "replace") for claim in claims]
        return summed(title, texts, [claim.text for claim in self._read(messages)])

    def _texts(self, pages: Sequence[int]) -> Iterator[ClaimSource]:
        return self._read([page for page in pages if self._sound(page)])

    def _read(self, pages: Sequence[int]) -> Iterator[ClaimSource]:
        """The texts of user and model on some pages."""
        for number in pages:
            managed = self._state.pages[number]
            is_said = managed.role in (Role.USER, Role.ASSISTANT) and number not in self._spoken.thoughts
            if is_said and managed.message and managed.modality is Modality.TEXT:
                yield ClaimSource(number, Role(managed.role), self._forms.of(number).decode("utf-8", "replace"))


_REPLACED = f"""SELECT source, target, position FROM links
  WHERE session = ? AND position <= ? AND kind = {int(LinkKind.SUPERSEDES)}"""
