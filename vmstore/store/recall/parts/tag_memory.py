"""What a session is about: the tags of its pages, the names that count as one, and how much a prompt shows of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from vmstore.core.aliases import FormerMethod
from vmstore.core.asof import Moment, When, one_moment
from vmstore.store.host import SessionHost
from vmstore.store.recall.tags import AliasSuggestion, TagInfo, give, rename, show, suggestions, tags_at
from vmstore.views.reads.resolve_asof import basis


class TagMemory(FormerMethod):
    """The tags of a session: `session.memory.tags`."""

    _former = "SessionMemory.tags"

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def all(self, at: When | None = None, **moment: Unpack[Moment]) -> list[TagInfo]:
        """What the session is about: the tags of its pages, and names that count as one, in the order of the names."""
        with self._session._ns.asking():
            lane = self._session._lane()
            return tags_at(lane, basis(lane, one_moment(at, moment)).position)

    def give(self, page: str | int, *tags: str, remove: Iterable[str] = ()) -> list[str]:
        """Gives a page, or each page of a message (`m4`), tags, and takes those to `remove` away: the pages meant."""
        return give(self._session, page, tags, remove)

    def alias(self, name: str, canonical: str | None) -> None:
        """Has a name count as another tag from here on; as itself again where that is None."""
        rename(self._session, name, canonical)

    def suggest_aliases(self, at: When | None = None, **moment: Unpack[Moment]) -> list[AliasSuggestion]:
        """Names of tags that may mean the same: plurals, slips, short forms; `alias` says that they do."""
        with self._session._ns.asking():
            lane = self._session._lane()
            return suggestions(lane, basis(lane, one_moment(at, moment)).position)

    def expand(self, tag: str, depth: str = "full") -> None:
        """Has a prompt show more of a tag from here on: `segments` or `full`; it stays so until it is collapsed."""
        show(self._session, tag, depth)

    def collapse(self, tag: str, depth: str = "summary") -> None:
        """Has a prompt show less of a tag from here on: `segments`, `summary` or `none`."""
        show(self._session, tag, depth)
