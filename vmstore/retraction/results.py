"""The report of a retraction: what is marked in each session, what is rebuilt, what a person should know first."""

from __future__ import annotations

import msgspec


class RetractedPage(msgspec.Struct, frozen=True):
    """A page that is marked, why it falls (`itself`, or the step that leads to it), and the beginning of its text."""

    page: str
    type: str
    hint: str | None
    because: str
    text: str


class RegeneratedPage(msgspec.Struct, frozen=True):
    """A page rebuilt from what is left; `page` is None before it is written, `replaces` the one it stands in for."""

    page: str | None
    type: str
    replaces: str
    text: str


class Conflict(msgspec.Struct, frozen=True):
    """A conflict that limits or forbids a mark: kind, place and detail; `page` is None for a session."""

    kind: str
    session: str
    page: str | None
    about: str


class RetractedSession(msgspec.Struct, frozen=True):
    """A retraction in one session: `already` pages are superseded, `calls` were sent any affected page."""

    session: str
    pages: list[RetractedPage]
    rebuilt: list[RegeneratedPage]
    already: int
    calls: int
    first_call: int | None
    last_call: int | None


class Retraction(msgspec.Struct, frozen=True):
    """Result of a retraction, or its plan where not `done`; `again` counts retries after other writers."""

    cause: str
    reason: str | None
    done: bool
    again: int
    sessions: list[RetractedSession]
    conflicts: list[Conflict]

    @property
    def pages(self) -> int:
        """How many pages are marked, in all sessions."""
        return sum(len(session.pages) for session in self.sessions)

    @property
    def work(self) -> bool:
        """Whether there is anything to mark, or was."""
        return any(session.pages for session in self.sessions)
