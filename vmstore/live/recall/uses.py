"""Detects which pages of its call an answer used: repeated words, names and numbers, files read again.

Uses are detected when an answer is recorded, and written to the log: a replay reads them there. A page that the
call was not sent cannot have been used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from vmstore.core.decision import Holder, Use
from vmstore.core.page import Modality, PageType
from vmstore.live.content_cache import ContentCache
from vmstore.live.transcript import Transcript
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.state import State
from vmstore.vm.protocol.tool_calls import arguments_in, tool_called
from vmstore.vm.protocol.tools import memory_tools
from vmstore.vm.recall.used_pages import HOLDERS_MAX, WORD, names_of, runs_of

CHARS_MAX = 200_000  # of a page or an answer
SHORT_WORDS_MIN = 4  # a shorter text says nothing that others would not say by themselves
NUMBER = re.compile(r"(?<![\w.,:-])\d[\d.,:]{2,20}\d(?![\w-])")
BEFORE_ALL = 1 << Holder.SYSTEM | 1 << Holder.TOOLS  # what stands before the conversation is always there


class PageTerms(NamedTuple):
    """The terms a page can be recognised by: names and numbers, word sequences, or all words of a short page."""

    names: frozenset[str]
    numbers: frozenset[str]
    runs: frozenset[str]
    short: str


class Holders(NamedTuple):
    """The pages that hold each text, by what kind of text it is."""

    names: dict[str, dict[int, None]]
    numbers: dict[str, dict[int, None]]
    runs: dict[str, dict[int, None]]
    short: dict[str, dict[int, None]]


class UsedPage(NamedTuple):
    """A page that an answer used, how, and the words that show it."""

    page: int
    use: Use
    evidence: str


NOTHING = PageTerms(frozenset(), frozenset(), frozenset(), "")


class UseDetector:
    """Reads what is in the prompt: each content once, while a call is sent it."""

    def __init__(self, state: State, spoken: Transcript, forms: ContentCache) -> None:
        self._state = state
        self._spoken = spoken
        self._forms = forms
        self._shown = Sent()

    def of(self, pages: Sequence[int], sent: Mapping[int, int]) -> list[UsedPage]:
        """The pages sent with the call that an answer's pages used, in the order they were made.

        `sent` gives the position of the content that each was sent with.
        """
        self._read(sent)
        shown = self._shown
        found: dict[int, UsedPage] = {}
        for page in pages:
            text, asks = self._text(page), self._asks(page)
            if text is None or self._is_memory(page):
                continue
            text = arguments_in(text) if asks else text
            for use in (*(self._files(text) if asks else ()), *shown.repeated(text)):
                used = self._again(use) if asks else use
                if used.page in shown and used.page not in pages:
                    found[used.page] = min(found.get(used.page, used), used, key=_strength)
        return [found[page] for page in sorted(found)]

    def _read(self, sent: Mapping[int, int]) -> None:
        """Reads the words of the pages that were sent, and lets those of other contents go."""
        pages, shown = self._state.pages, self._shown
        fit = {page: at for page, at in sent.items() if not pages[page].holders & BEFORE_ALL and _is_text(pages[page])}
        keys = {page: (position, self._call(page)) for page, position in fit.items()}
        for page, _ in shown.contents.items() - keys.items():
            shown.drop(page)
        missing = {page: key for page, key in keys.items() if page not in shown}
        contents = self._forms.all({position for position, _ in missing.values()})
        for page, key in missing.items():
            text = _decoded(contents[key[0]])
            words = arguments_in(text) if self._asks(page) else text
            shown.add(page, key, NOTHING if self._is_memory(page) else _words(words, pages[page]))

    def _call(self, page: int) -> int:
        """The position of what the call says that a page answers; 0 of none."""
        call = self._state.pages.get(self._state.pages[page].answers)
        form = None if call is None else call.forms[0]
        return 0 if form is None else form.position

    def _is_memory(self, page: int) -> bool:
        """Whether a page calls the memory's own tools or is answered by them: what they answer stands in pages."""
        call = page if self._asks(page) else self._state.pages[page].answers
        settings = self._state.settings
        own = memory_tools(settings is not None and settings.recall_tools)
        return bool(call) and tool_called(self._text(call) or "") in own

    def _text(self, page: int) -> str | None:
        managed = self._state.pages[page]
        full = managed.forms[0]
        return _decoded(self._forms.of(full.position)) if full is not None and _is_text(managed) else None

    def _asks(self, page: int) -> bool:
        """Whether a page is a tool's call."""
        known = self._spoken.known.get(page)
        return known is not None and known.call_id is not None

    def files(self, pages: Sequence[int]) -> dict[int, str]:
        """The pages of files that the calls among some pages name, wherever they are, and by which names."""
        calls = [self._text(page) for page in pages if self._asks(page) and not self._is_memory(page)]
        return {use.page: use.evidence for call in calls if call is not None for use in self._files(arguments_in(call))}

    def _files(self, text: str) -> Iterator[UsedPage]:
        """The pages of files that what a call was given names by their own names."""
        for name in names_of(text):
            page = self._spoken.named.get(name)
            if page is not None and self._state.pages[page].type is PageType.ARTIFACT:
                yield UsedPage(page, Use.TOOL, name)

    def _again(self, used: UsedPage) -> UsedPage:
        """The result of an earlier call, where a call takes up what that was called with: a tool reads it again."""
        if not self._asks(used.page):
            return used
        results = [page for page in self._shown.contents if self._state.pages[page].answers == used.page]
        return UsedPage(max(results), Use.TOOL, used.evidence) if results else used


class Sent:
    """The pages a call was sent, by their words; what comes and goes costs its own words, and none of the others'."""

    def __init__(self) -> None:
        self.contents: dict[
            int, tuple[int, int]
        ] = {}  # page -> the positions of its content and of the call it answers
        self._words: dict[int, PageTerms] = {}
        self._holders = Holders(names={}, numbers={}, runs={}, short={})

    def __contains__(self, page: int) -> bool:
        return page in self.contents

    def add(self, page: int, content: tuple[int, int], words: PageTerms) -> None:
        """A page is sent, with these words."""
        self.contents[page], self._words[page] = content, words
        for holders, texts in self._of(words):
            for text in texts:
                holders.setdefault(text, {})[page] = None

    def drop(self, page: int) -> None:
        """A page is not sent any more, or with other words."""
        del self.contents[page]
        for holders, texts in self._of(self._words.pop(page)):
            for text in texts:
                del holders[text][page]
                if not holders[text]:
                    del holders[text]

    def repeated(self, said: str) -> Iterator[UsedPage]:
        """The pages whose words an answer repeats: of a few that hold the same the newest."""
        folded = said.casefold()
        spoken = f" {' '.join(WORD.findall(folded))} "
        held = self._holders
        short = [(text, pages) for text, pages in held.short.items() if text in spoken]
        yield from (UsedPage(max(pages), Use.QUOTE, text.strip()) for text, pages in short if len(pages) <= HOLDERS_MAX)
        kinds = (
            (runs_of(folded), held.runs, Use.QUOTE, HOLDERS_MAX),
            (names_of(said), held.names, Use.REUSE, HOLDERS_MAX),
            (list(dict.fromkeys(NUMBER.findall(said))), held.numbers, Use.REUSE, 1),  # in many texts by chance
        )
        for listed, holders, use, holders_max in kinds:
            for text in listed:
                if 0 < len(pages := holders.get(text, ())) <= holders_max:
                    yield UsedPage(max(pages), use, text)

    def _of(self, words: PageTerms) -> Iterator[tuple[dict[str, dict[int, None]], Iterable[str]]]:
        holders = self._holders
        yield holders.names, words.names
        yield holders.numbers, words.numbers
        yield holders.runs, words.runs
        yield holders.short, (words.short,) if words.short else ()


def _is_text(managed: ManagedPage) -> bool:
    return not managed.opaque and managed.modality in (Modality.TEXT, Modality.STRUCTURED)


def _decoded(content: bytes) -> str:
    return content[: CHARS_MAX * 4].decode("utf-8", "replace")[:CHARS_MAX]


def _words(text: str, managed: ManagedPage) -> PageTerms:
    folded = text.casefold()
    runs = runs_of(folded)
    short = "" if runs else _short(folded.partition(": ")[2] if managed.type is PageType.CLAIM else folded)
    return PageTerms(frozenset(names_of(text)), frozenset(NUMBER.findall(text)), frozenset(runs), short)


def _short(text: str) -> str:
    """The words of a text that has too few for a run, between blanks; nothing where they are hardly any."""
    words = WORD.findall(text)
    return f" {' '.join(words)} " if len(words) >= SHORT_WORDS_MIN else ""


def _strength(used: UsedPage) -> tuple[int, int]:
    """Orders signs of use: a tool's reading, a quotation, then the longest words."""
    return (Use.TOOL, Use.QUOTE, Use.REUSE).index(used.use), -len(used.evidence)
