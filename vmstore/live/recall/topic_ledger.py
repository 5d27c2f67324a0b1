"""A ledger of the words and tags of a live session's turns, kept between acts: a turn costs what is new."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

from vmstore.core.page import Modality, PageType, Role
from vmstore.core.tags import TagMethod
from vmstore.live.transcript import Transcript
from vmstore.tags.history import TagHistory
from vmstore.views.reads.tags import canonical
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.state import State


class TopicLedger:
    """The spoken pages of each turn, the tags of the turns, the names that count as others, the tags splits have made.

    It follows the state and the transcript, and is rebuilt from them where the session was set back.
    """

    def __init__(self, state: State, spoken: Transcript) -> None:
        self.state, self.spoken = state, spoken
        self._begin()

    def _begin(self) -> None:
        self.pages: dict[int, list[int]] = {}
        self.history = TagHistory()
        self.aliases: dict[str, str] = {}
        self.narrowed: Counter[str] = Counter()  # by tag that a split has made, its pages
        self._split: dict[int, frozenset[str]] = {}  # by page, those of its tags
        self._upto = 0  # the last page that was looked at
        self._read = 0  # of the pages that were tagged, how many
        self._renamed = -1
        self._rewinds = self.spoken.rewinds

    def follow(self) -> TopicLedger:
        """Takes in what came since."""
        if self._rewinds != self.spoken.rewinds:
            self._begin()
        touched = self._new_pages()
        if self._renamed != self.spoken.realiased:
            self._renamed = self.spoken.realiased
            said = self.spoken.aliases
            self.aliases = {name: end for name in said if (end := canonical(name, said)) != name}
            touched = set(self.pages)
        tagged = self.spoken.tagged[self._read :] if self._read else list(self.spoken.tags)
        self._read = len(self.spoken.tagged)
        for page in tagged:
            if page in self.state.pages:
                touched.add(self.state.pages[page].created)
            self._note_split(page)
        for turn in sorted(touched):
            names = [name for page in self.pages.get(turn, ()) for name in self.spoken.tags.get(page, ())]
            self.history.put(turn, (self.aliases.get(name, name) for name in names))
        return self

    def _note_split(self, page: int) -> None:
        """Counts the tags of a page that a split has made, in the place of those it had."""
        tags = self.spoken.tags.get(page, {})
        names = frozenset(name for name, method in tags.items() if method == TagMethod.SPLIT)
        self.narrowed.subtract(self._split.get(page, ()))
        self.narrowed.update(names)
        self.narrowed = +self.narrowed  # without those that no page has any more
        self._split[page] = names

    def _new_pages(self) -> set[int]:
        """The turns of the spoken pages that came since."""
        turns = set()
        new = list(takewhile(lambda managed: managed.page > self._upto, reversed(self.state.pages.values())))
        for managed in reversed(new):
            self._upto = max(self._upto, managed.page)
            if self._is_said(managed):
                self.pages.setdefault(managed.created, []).append(managed.page)
                turns.add(managed.created)
        return turns

    def _is_said(self, managed: ManagedPage) -> bool:
        return bool(
            managed.message
            and managed.role in (Role.USER, Role.ASSISTANT)
            and managed.modality is Modality.TEXT
            and managed.type is PageType.TRANSCRIPT
            and managed.page not in self.spoken.thoughts
            and not self.spoken.undone(managed.page)
        )
