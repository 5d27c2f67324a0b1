"""The tools of the MCP server: what a model may ask of a store's sessions.

The first line of each docstring is what the model is told; the rest says how the arguments are read.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec

from mcp.server.mcpserver.exceptions import ToolError
from msgspec import to_builtins

from vmstore.errors import InputError, ReadOnlyError, UnknownError, VmstoreError
from vmstore.store.recall.topic_texts import TopicText, topic_texts
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.store.virtual_context.engine import TurnReport, VirtualContextEngine
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax.nodes import Fork

CONTEXT_TOKENS = 3_000
RECALL_TOKENS = 1_500
OVERVIEW_TOKENS = 2_900
TOPIC_TOKENS = {"segments": 2_000, "full": 8_000}
ROWS_MAX = 1_000
QUERY_S = 30.0
QUERY_MEMORY = 256 << 20
DEFAULT_SESSION = "default"  # what is compacted into where nobody names one
P = ParamSpec("P")
Answer = dict[str, Any]


class McpTools:
    """The tools over one store; `session` is asked where a call names none, by default the newest.

    Without `writes` those that change the store are refused.
    """

    def __init__(self, store: Store, session: str | None = None, *, writes: bool = False) -> None:
        self._store = store
        self._default = session
        self._writes = writes
        self._engines: dict[str, tuple[VirtualContextEngine, Lock]] = {}
        self._opening = Lock()

    def recall_context(
        self, message: str, session: str | None = None, tokens: int = CONTEXT_TOKENS, turn: int | None = None
    ) -> Answer:
        """The context a session's memory has for a message: its topics, facts, summaries and passages, in a budget.

        `turn` asks as the session stood at the end of that turn. `recent` are the newest turns that fit beside it.
        """
        asked = self._session(session)
        prompt = asked.memory.assemble(message, tokens=tokens, **self._moment(asked, turn))
        return {
            "context": "\n\n".join(text for text in (prompt.prepend, prompt.beside) if text),
            "recent": [f"{line['role']}: {_text(line)}" for line in prompt.messages[:-1] if _text(line)],
            "topics": prompt.topics,
            "tokens": prompt.tokens,
            "breakdown": prompt.breakdown,
            "pages": sorted({page for choice in prompt.chosen for page in choice.pages}),
            "left_out": len(prompt.left),
            "note": prompt.note,
        }

    def recall_all(
        self, session: str | None = None, tokens: int = OVERVIEW_TOKENS, turn: int | None = None
    ) -> Answer:  # fmt: skip
        """All that a session is about, oldest first: its topics with their summaries. Start here for an overview."""
        asked = self._session(session)
        return _plain(asked.memory.recall_all(tokens=tokens, **self._moment(asked, turn)))

    def remember_when(
        self, query: str | None = None, preset: str | None = None, start: str | None = None, end: str | None = None,
        session: str | None = None, tokens: int = RECALL_TOKENS, zone: str | None = None,
    ) -> Answer:  # fmt: skip
        """The passages said in a time, earliest first; with a query those that answer it.

        `preset` is like today, yesterday, last_week or last_month; `start` and `end` are dates like 2026-03-01 or
        times; `zone` is like Europe/Berlin.
        """
        asked = self._session(session)
        moment = self._moment(asked, None)
        return _plain(
            asked.memory.remember_when(query, preset=preset, start=start, end=end, tokens=tokens, zone=zone, **moment)
        )

    def compact_context(self, messages: list[dict[str, Any]], session: str | None = None) -> Answer:
        """Takes a conversation's messages into a session, what is new of them, and sums up what was said so far.

        A message has a role and a content. The session is made where there is none. Needs a server that may write.
        """
        self._check_writes("compact_context")
        engine, lock = self._engine(session or self._default or DEFAULT_SESSION)
        with lock:
            taken = engine.ingest_history(messages)
            report = engine.compact() if taken else TurnReport(0, 0, [], note="no message is new")
        return {"session": engine.session.name, "messages_taken": taken, **_plain(report)}

    def domain_status(self, session: str | None = None, turn: int | None = None) -> Answer:
        """The topics of a session, each with its pages, turns, tokens and related topics; and how much is summed up."""
        asked = self._session(session)
        moment = self._moment(asked, turn)
        segments = asked.memory.segments.all(**moment)
        return {
            "session": asked.name,
            "domains": _plain(asked.memory.tags.all(**moment)),
            "segments": len(segments),
            "summed_up": sum(segment.summary is not None for segment in segments),
            "sessions": [info.session for info in self._store.sessions()],
        }

    def expand_topic(
        self, tag: str, depth: str = "full", session: str | None = None, tokens: int | None = None
    ) -> Answer:  # fmt: skip
        """More of a topic than its summary: that of each of its segments (`segments`) or all that was said (`full`).

        A server that may write keeps it so in the contexts that are recalled from now on, until it is collapsed.
        """
        if depth not in TOPIC_TOKENS:
            raise InputError(f"{depth!r:.40} is no depth; a topic is expanded to {' or '.join(TOPIC_TOKENS)}")
        asked = self._session(session)
        found = topic_texts(asked, tag, depth, TOPIC_TOKENS[depth] if tokens is None else tokens)
        if self._writes:
            asked.memory.tags.expand(tag, depth)
        texts = [_topic(text) for text in found.texts]
        return {"tag": tag, "depth": depth, "texts": texts, "left_out": found.left_out, "kept": self._writes}

    def collapse_topic(self, tag: str, depth: str = "summary", session: str | None = None) -> Answer:
        """Less of a topic in the contexts that are recalled from now on: its `segments`, its `summary` or `none`.

        Needs a server that may write.
        """
        self._check_writes("collapse_topic")
        self._session(session).memory.tags.collapse(tag, depth)
        return {"tag": tag, "depth": depth}

    def find_quote(self, text: str, session: str | None = None, turn: int | None = None) -> Answer:
        """Finds where something was said in these words, exact ones first; in all sessions where none is named."""
        if session is None and self._default is None:
            if turn is not None:
                raise InputError("turns are of one session; name it, or leave the turn out")
            return _plain(self._store.memory.find_quote(text))
        asked = self._session(session)
        return _plain(asked.memory.find_quote(text, **self._moment(asked, turn)))

    def query_facts(
        self, subject: str | None = None, verb: str | None = None, object_contains: str | None = None,
        status: str | None = None, fact_type: str | None = None, session: str | None = None, ever: bool = False,
    ) -> Answer:  # fmt: skip
        """Facts that were stated, with their sources, by subject, verb, object, status or type; of all sessions.

        `session` narrows them to one; `ever` adds what holds no more, with what replaced it.
        """
        wanted = (subject, verb, object_contains, status, fact_type)
        if session is None and self._default is None:
            return _plain(self._store.memory.facts.query(*wanted, ever=ever))
        return _plain(self._session(session).memory.facts.query(*wanted, ever=ever))

    def ask_vmql(self, statement: str, session: str | None = None) -> Answer:
        """Answers one statement of VMQL, as `WHY NOT p51 IN CONTEXT AT CALL 174` or `CONTEXT AT TURN 42`.

        For what no other tool says: what a model was sent at any call, why a page was there or was not, where it came
        from. `DESCRIBE PAGES` lists what can be asked of pages. FORK needs a server that may write.
        """
        if isinstance(parse(statement), Fork):
            self._check_writes("FORK")
        name = self._session(session).name if session is not None or self._default is not None else None
        limits = (QUERY_S, ROWS_MAX, QUERY_MEMORY)
        return self._store._questions.ask(statement, session=name, params={}, limits=limits, for_prompt=True).to_json()

    def domains(self) -> list[str]:
        """The topics of the session that is asked where none is named."""
        return sorted({info.canonical for info in self._session(None).memory.tags.all()})

    def domain(self, tag: str) -> Answer:
        """The summaries of a topic."""
        found = topic_texts(self._session(None), tag, "segments")
        return {"tag": tag, "summaries": [_topic(text) for text in found.texts]}

    def _check_writes(self, tool: str) -> None:
        if not self._writes:
            raise ReadOnlyError(f"{tool} writes, and this server only reads; its owner starts it with --write")

    def _moment(self, session: Session, turn: int | None) -> Any:
        """The keywords of a moment; to a server that only reads the end of the session is one too.

        A session that manages its memory logs what is recalled of it, but for what is asked of a moment.
        """
        if turn is not None:
            return {"turn": turn}
        return {} if self._writes else {"position": session.info().position}

    def _session(self, name: str | None) -> Session:
        """A session by its whole name; where none is given that of the server, or the newest."""
        if name is not None or self._default is not None:
            return self._store.session(name if name is not None else str(self._default))
        newest = self._store.catalog.overview(limit=1)
        if not newest:
            raise UnknownError("the store holds no session yet", code="no-session")
        return self._store.session(newest[0].session)

    def _engine(self, name: str) -> tuple[VirtualContextEngine, Lock]:
        with self._opening:
            if name not in self._engines:
                self._engines[name] = VirtualContextEngine(self._store, name), Lock()
            return self._engines[name]


def answering(function: Callable[P, Answer]) -> Callable[P, Answer]:
    """A tool whose refusals reach the model in the words of the store, with their code."""

    @wraps(function)
    def answer(*args: P.args, **kwargs: P.kwargs) -> Answer:
        try:
            return function(*args, **kwargs)
        except VmstoreError as error:
            raise ToolError(f"{error} [{error.code}]") from error

    return answer


def _topic(text: TopicText) -> Answer:
    turns = {} if text.turns is None else {"turns": list(text.turns)}
    about = {"page": text.page, "role": text.role, "at": _time(text.at_us)}
    return {**turns, **about, "text": text.text, "tokens": text.tokens}


def _text(message: Any) -> str:
    """The text of a message in the shape of any provider; empty where it has none."""
    content = message.get("content", message.get("parts"))
    if isinstance(content, list):
        return " ".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return content if isinstance(content, str) else ""


def _plain(value: Any) -> Any:
    """An answer as JSON; what is counted in microseconds stands as a time."""
    return _timed(to_builtins(value))


def _timed(value: Any) -> Any:
    if isinstance(value, list):
        return [_timed(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name.removesuffix("_us"): _time(each) if name.endswith("_us") else _timed(each) for name, each in value.items()
    }


def _time(at_us: int | None) -> str | None:
    return None if at_us is None else datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="seconds")
