"""The outcomes view: how a session ended by the verdict of its source; that it was closed is another thing."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import apsw

from vmstore.core.text.json_text import plain
from vmstore.views.projector import PlacedMutation, Projector
from vmstore.views.projectors.pages import object_of

if TYPE_CHECKING:
    from vmstore.core.mutation import Mark, Open, Reply

WORD_CHARS_MAX = 256
SOLVED_BY = 1e-6  # how near to 1 tau-bench takes a reward for a task solved


class SessionOutcome(NamedTuple):
    """The outcome a source states of a session: a word of its own, and a number where it gives one."""

    outcome: str | None
    reward: float | None = None


class OutcomesProjector(Projector):
    """One row each time a source says how its session ended; the last one holds. Others say nothing."""

    name = "outcomes"
    schema: ClassVar = {
        "outcomes": "session INTEGER, position INTEGER, outcome TEXT, reward REAL, PRIMARY KEY(session, position)"
    }

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._formats: dict[int, str] = {}  # of sources, by session; empty where there is none

    def on_open(self, placed: PlacedMutation, m: Open) -> None:
        """Notes the format of its source."""
        self._formats[placed.session] = _format(placed.text(m.source))

    def on_mark(self, placed: PlacedMutation, m: Mark) -> None:
        """Reads what a source keeps beside the conversation, where it says its verdict there."""
        if m.note is not None and (read := NOTES.get(self._format(placed.session))):
            self._add(placed, read(object_of(placed.content(m.note))))

    def on_reply(self, placed: PlacedMutation, m: Reply) -> None:
        """Reads what it keeps beside an answer, where it says its verdict there."""
        if m.aside is not None and (read := REPLIES.get(self._format(placed.session))):
            beside = object_of(placed.content(m.aside)).get("response")
            self._add(placed, read(beside) if isinstance(beside, dict) else None)

    def _format(self, session: int) -> str:
        if session not in self._formats:
            source: Any = self.db.execute("SELECT source FROM sessions WHERE session = ?", (session,)).get
            self._formats[session] = _format(source)
        return self._formats[session]

    def _add(self, placed: PlacedMutation, verdict: SessionOutcome | None) -> None:
        if verdict is not None and verdict != (None, None):
            self.rows["outcomes"].append((placed.session, placed.position, *verdict))

    def forget(self) -> None:
        """Drops the formats too."""
        super().forget()
        self._formats.clear()


def _format(source: str | None) -> str:
    return (source or "").partition(":")[0]


def _tau_bench(note: dict[str, Any]) -> SessionOutcome | None:
    """A run's reward, and whether tau-bench counts its task as solved."""
    reward = _number(note.get("reward"))
    return None if reward is None else SessionOutcome("passed" if abs(reward - 1) <= SOLVED_BY else "failed", reward)


def _swe_agent(note: dict[str, Any]) -> SessionOutcome | None:
    """How a run ended, in SWE-agent's word."""
    run = note.get("run", note)
    info = run.get("info") if isinstance(run, dict) else None
    return SessionOutcome(_word(info.get("exit_status"))) if isinstance(info, dict) else None


def _header(note: dict[str, Any]) -> SessionOutcome | None:
    """The outcome in the `vm` key of a header."""
    return SessionOutcome(_word(note.get("outcome")), _number(note.get("reward")))


def _word(value: Any) -> str | None:
    text = plain(value)
    return text[:WORD_CHARS_MAX] if text else None


def _number(value: Any) -> float | None:
    sane = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and isfinite(value)
    return float(value) if sane else None


Read = Callable[[dict[str, Any]], SessionOutcome | None]
NOTES: dict[str, Read] = {"tau-bench": _tau_bench, "swe-agent": _swe_agent, "chat-completions": _header}
"""What reads a note of a source, by its format."""
REPLIES: dict[str, Read] = {"swe-agent": lambda beside: _swe_agent({"run": beside.get("run")})}

assert REPLIES.keys() <= NOTES.keys(), "a run that answered nothing has its verdict in a note"
