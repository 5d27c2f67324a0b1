"""The texts of one topic: its summaries, or all that was said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from vmstore.core.address import page_position
from vmstore.errors import UnknownError
from vmstore.store.host import SessionHost
from vmstore.store.recall.memory import SessionMemory


class TopicSession(SessionHost, Protocol):
    """A session whose topics are told of."""

    @property
    def memory(self) -> SessionMemory: ...
    @property
    def pages(self) -> Callable[..., Any]: ...
    @property
    def page(self) -> Callable[..., Any]: ...
    @property
    def content(self) -> Callable[..., bytes]: ...


class TopicText(NamedTuple):
    """One text of a topic: its page, who said it and when (µs), its tokens; of a summary the turns it stands for."""

    page: str
    role: str
    at_us: int
    text: str
    tokens: int
    turns: tuple[int, int] | None = None


class TopicTexts(NamedTuple):
    """The texts of a topic that fit, in the order they were said, and how many did not."""

    texts: list[TopicText]
    left_out: int


def topic_texts(session: TopicSession, tag: str, depth: str, tokens: int | None = None) -> TopicTexts:
    """The texts of a topic within some tokens: its summaries where `depth` is `segments`, else its pages.

    A topic that nobody summed up yet has its pages alone. UnknownError where no page is about it.
    """
    shown: list[TopicText] = []
    texts = _summaries(session, tag) if depth == "segments" else []
    texts = texts or _pages(session, tag)
    for text in texts:
        if tokens is not None and (tokens := tokens - text.tokens) < 0:
            break
        shown.append(text)
    return TopicTexts(shown, len(texts) - len(shown))


def _summaries(session: TopicSession, tag: str) -> list[TopicText]:
    segments = [one for one in session.memory.segments.all() if tag in one.tags]
    return [
        _text(session, one.summary)._replace(turns=(one.first_turn, one.last_turn))
        for one in segments
        if one.summary is not None
    ]


def _pages(session: TopicSession, tag: str) -> list[TopicText]:
    pages = {page.page: page_position(page.page) or 0 for page in session.pages(tag=tag)}
    if not pages:
        known = ", ".join(sorted({info.canonical for info in session.memory.tags.all()})[:20])
        about = f"its topics are {known}" if known else "it has no topics yet"
        raise UnknownError(f"no page of {session.name!r} is about {tag!r:.60}; {about}", code="no-topic")
    barred = session._untold(list(pages.values()))
    return [_text(session, name) for name, number in pages.items() if number not in barred]


def _text(session: TopicSession, name: str) -> TopicText:
    page = session.page(name)
    text = session.content(name).decode("utf-8", "replace")
    return TopicText(name, page.role, page.created_at, text, page.tokens)
