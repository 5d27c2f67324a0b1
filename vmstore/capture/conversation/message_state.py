"""A message the conversation holds: its identity in the log and what it says now."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from vmstore.core.draft import Draft, Part
from vmstore.core.page import Modality, Role, Slot
from vmstore.core.text.json_text import plain

Digest = bytes


def digest(content: bytes) -> Digest:
    """The digest that contents are compared by, in memory only: it never enters the log."""
    return blake2b(content, digest_size=16).digest()


class PageIdentity(NamedTuple):
    """The properties of a page that never change: its modality, and the tool call it makes or answers."""

    modality: int
    asks: str | None = None
    answers: str | None = None


def kin(part: Part) -> PageIdentity:
    """The identity of a part's page; call ids are cut to what a view can hold."""
    call_id = plain(part.call_id) or None  # an empty one names nothing
    if call_id is None:
        return _NAMELESS[part.modality]
    return PageIdentity(part.modality, call_id if part.is_call else None, call_id if part.is_result else None)


_NAMELESS = {modality: PageIdentity(modality) for modality in Modality}
"""What pages are that name no tool call: most, and one object serves all of a modality."""


class PageState:
    """A page of a message: the contents of its last version, and the one it shows now."""

    __slots__ = ("_contents", "full", "kin", "level", "of", "page", "position", "rank", "shown", "version")

    def __init__(self, page: int, first: Digest, kin: PageIdentity, of: MessageState) -> None:
        self.of = of
        self.page = page
        self.kin = kin
        self.version = 1
        self.level = 0
        self.rank: int | None = None  # in the context as last packed, where it is there
        self.shown = first
        self.position = page  # of the content it shows
        self.full = page  # the position of its last full content
        self._contents: dict[Digest, tuple[int, int]] | None = None  # None where it has its full one alone

    @property
    def contents(self) -> Mapping[Digest, tuple[int, int]]:
        """The contents of its last version by digest: position and level."""
        return {self.shown: (self.full, 0)} if self._contents is None else self._contents

    @contents.setter
    def contents(self, contents: dict[Digest, tuple[int, int]]) -> None:
        self._contents = contents

    def copy(self, of: MessageState) -> PageState:
        """A page that can be changed without changing this one, of a copy of its message."""
        other = PageState.__new__(PageState)
        other.page, other.kin, other.version, other.level = self.page, self.kin, self.version, self.level
        other.rank, other.shown, other.position, other.full = self.rank, self.shown, self.position, self.full
        other._contents = None if self._contents is None else self._contents.copy()
        other.of = of
        return other

    def show(self, content: Digest, position: int, level: int) -> None:
        """Shows a content made at a position; a new version forgets those of the one before."""
        if level == 0:
            self.shown, self.full, self.position, self.level, self._contents = content, position, position, 0, None
        else:
            self.contents = {**self.contents, content: (position, level)}
            self.show_again(content)

    def show_again(self, content: Digest) -> None:
        """Shows a content its last version had before."""
        self.shown = content
        self.position, self.level = self.contents[content]


class MessagePages:
    """Every page that a message ever had, found by its number; a table of them would be larger than they are."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._pages: list[PageState] = []

    def add(self, page: PageState) -> PageState:
        """Takes a page in, most often the last one."""
        at = bisect_left(self._numbers, page.page) if self._numbers and page.page < self._numbers[-1] else len(self)
        self._numbers.insert(at, page.page)
        self._pages.insert(at, page)
        return page

    def get(self, number: int) -> PageState | None:
        """The page of a number; None where no message had it."""
        at = bisect_left(self._numbers, number)
        return self._pages[at] if at < len(self) and self._numbers[at] == number else None

    def __len__(self) -> int:
        return len(self._pages)

    def __iter__(self) -> Iterator[PageState]:
        return iter(self._pages)


class MessageState:
    """A message: who says it in which part of the request, its skeleton, its pages."""

    __slots__ = ("message", "packed", "pages", "role", "seen", "skeleton", "slot", "value", "words")

    def __init__(self, message: int, role: Role, slot: Slot, skeleton: bytes) -> None:
        self.message = message
        self.role = role
        self.slot = slot
        self.skeleton = skeleton
        self.packed = skeleton  # the skeleton the log holds
        self.seen = False  # it stood in a pack
        self.pages: list[PageState] = []
        self.value: Any = None  # the message as last sent, kept to compare the next request with
        self.words: list[str] | None = None  # its keys in order, where its values are texts and nothing else

    def copy(self) -> MessageState:
        """A message that can be changed without changing this one, without its pages."""
        other = MessageState.__new__(MessageState)
        other.message, other.role, other.slot, other.seen = self.message, self.role, self.slot, self.seen
        other.skeleton, other.packed, other.value, other.words = self.skeleton, self.packed, self.value, self.words
        other.pages = []
        return other

    def take(self, value: Any) -> None:
        """Keeps the message as it was sent."""
        self.value, self.words = value, _words(value)

    def says(self, value: Any) -> bool:
        """Whether a message is equal to the one last sent, in every field, its type and the order of its keys."""
        if self.value is value:
            return True
        if isinstance(value, Draft):
            return self._stands_as(value)
        if self.value != value:
            return False
        return _same(self.value, value) if self.words is None else self.words == list(value)

    def _stands_as(self, draft: Draft) -> bool:
        """Whether a draft is what was sent last, be it known from the draft it was or from the log."""
        if draft.skeleton != self.skeleton or len(draft.parts) != len(self.pages):
            return False
        if isinstance(self.value, Draft):
            return [part.content for part in self.value.parts] == [part.content for part in draft.parts]
        return all(page.shown == digest(part.content) for page, part in zip(self.pages, draft.parts, strict=True))

    @property
    def key(self) -> Hashable:
        """Equal for messages that say the same; results of two calls are two, however alike."""
        return (self.slot, self.role, self.call_id, *(page.shown for page in self.pages))

    @property
    def call_id(self) -> str | None:
        """The tool call it answers, where it answers just one."""
        return _answered([page.kin for page in self.pages])

    @property
    def place(self) -> Hashable:
        """The call it answers, or who speaks where."""
        return self.call_id or (self.slot, self.role)


def _words(value: Any) -> list[str] | None:
    """The keys of an object of texts, which `==` and their order tell from any other; None for anything else."""
    plain = isinstance(value, dict) and all(item is None or isinstance(item, str) for item in value.values())
    return list(value) if plain else None


def _same(a: Any, b: Any) -> bool:
    """Whether values that are equal by `==` are in JSON too: 1, 1.0 and True are three, 0.0 and -0.0 two."""
    if isinstance(a, str):
        return True
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(item, b[key]) for key, item in a.items())
    if isinstance(a, list):
        return all(map(_same, a, b))
    return type(a) is type(b) and (a != 0 or repr(a) == repr(b))


class RecordedRequest:
    """The messages of a request as it was recorded, to tell at once that the next one begins with them."""

    __slots__ = ("pairs", "written")

    def __init__(self, pairs: list[tuple[Slot, Any]], written: bytes) -> None:
        self.pairs = pairs
        self.written = written  # one after the other

    def begins(self, values: Sequence[tuple[Slot, Any]], written: bytes) -> bool:
        """Whether a request begins with all of these, equal in every field, its type and the order of its keys.

        What is equal by `==` and is written alike is: `==` does not tell 1 from 1.0, and what is written
        does not tell a tuple from a list.
        """
        count = len(self.pairs)
        return len(values) >= count and written.startswith(self.written) and self.pairs == values[:count]


def written(values: Sequence[tuple[Slot, Any]]) -> bytes | None:
    """The messages of a request, one after the other; None where that cannot be said or is long."""
    try:
        found = _ENCODER.encode([*map(_VALUE, values)])
    except (TypeError, ValueError, OverflowError, RecursionError):  # a later check names the fault
        return None
    header = 1 if len(values) < 16 else 3 if len(values) < 1 << 16 else 5
    return found[header:] if len(found) <= WRITTEN_MAX else None


WRITTEN_MAX = 16 << 20
_ENCODER, _VALUE = msgspec.msgpack.Encoder(), itemgetter(1)


class IncomingMessage:
    """A message of a request before it is known which held message it is."""

    __slots__ = ("digests", "draft", "key", "value")

    def __init__(self, draft: Draft, value: Any = None) -> None:
        self.draft = draft
        self.value = value
        self.digests = [digest(part.content) for part in draft.parts]
        # Equal for messages that say the same; results of two calls are two, however alike.
        self.key: Hashable = (draft.slot, draft.role, result_of(draft), *self.digests)

    @property
    def place(self) -> Hashable:
        """The call it answers, or who speaks where."""
        return result_of(self.draft) or (self.draft.slot, self.draft.role)


def result_of(draft: Draft) -> str | None:
    """The tool call a message answers, where it answers just one."""
    return _answered([kin(part) for part in draft.parts])


def _answered(kins: Sequence[PageIdentity]) -> str | None:
    answers = {each.answers for each in kins}
    return answers.pop() if len(answers) == 1 else None
