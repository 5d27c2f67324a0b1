"""A conversation with a model: a live session says what is sent, and everything said is logged there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from vmstore.chat.parts import ChatCall, PromptParts, prompt_parts
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.results import Page, PageLink
from vmstore.providers.streaming_model import StreamingModel
from vmstore.store.live.live_session import Live
from vmstore.store.recall.tags import TagInfo
from vmstore.store.store import Store

BUDGET = 32_000
LEAN = "page, position, role"
COLUMNS = f"{LEAN}, status, modality, level, created_turn, created_call, tokens, tags, line"
BRIEF = "Answer in two lines at most."
ENDINGS = {".chat.jsonl": "chat", ".jsonl": "jsonl", ".md": "markdown"}  # the longer one first
NEW: dict[str, Any] = {"tags": "keyword", "compaction": True, "rules": "passive", "paging": "runtime"}
ASKING: dict[str, Any] = {"rules": "short", "paging": "hybrid", "recall_tools": True}


class ChatEntry(msgspec.Struct, frozen=True):
    """Something a person or the model said: its page, and the turn and call it belongs to.

    `call` is the one that an answer came from; of a question the next one, 0 where nothing was asked since.
    """

    page: str
    position: int
    role: str
    text: str
    turn: int
    call: int
    tokens: int
    tags: list[str]


class ChatAnswer(msgspec.Struct, frozen=True):
    """The answer to a question, and what the last call for it took.

    `tokens` and `parts` are estimated, `tokens_in` and `tokens_out` the provider's. `calls` counts the requests.
    """

    asked: str
    answer: str
    status: str
    error: str | None
    turn: int
    call: int
    calls: int
    tokens: int
    budget: int
    tokens_in: int | None
    tokens_out: int | None
    latency_ms: float | None
    cost: float | None
    parts: dict[str, int]


class ChatPage(msgspec.Struct, frozen=True):
    """A page, why it is in a prompt or not, what it was made from, and its text."""

    page: Page
    why: list[str]
    sources: list[PageLink]
    text: str


class ChatSession:
    """A live session that is talked in with a model; begun where there is none, gone on with where there is.

    `asks` lets the model ask for pages by tools. `system` None leaves the instructions as they are. Not for two
    answers at once; `stop` is for another thread.
    """

    def __init__(
        self, store: Store, name: str, model: StreamingModel, model_name: str, *, budget: int | None = None,
        system: str | None = None, user: str | None = None, asks: bool = False,
    ) -> None:  # fmt: skip
        options: dict[str, Any] = {"model": model_name, "shape": model.shape, **(ASKING if asks else {})}
        if not is_there(store, name):
            options = {**NEW, "l0_tokens_max": BUDGET, **options}
        if budget is not None:
            options["l0_tokens_max"] = budget
        if system is not None:
            options["system"] = system
        self.store = store
        self.session: Live = store.live_session(name, user=user, **options)
        self.model_name = model_name
        self._model = model

    # ---- talking

    def say(self, text: str, *, brief: bool = False) -> str:
        """Logs what a person says, with the wish for a short answer if `brief`; the name of its page."""
        return self.session.user(f"{text}\n\n{BRIEF}" if brief else text)[0]

    def answer(self) -> Iterator[str]:
        """The model's answer to what was said last, as it comes; what it said before of a broken one is taken back.

        Raises TextModelError where the provider fails and AnswerStopped after `stop`; what came by then is logged.
        """
        self._model.ready()
        return self._answered()

    def _answered(self) -> Iterator[str]:
        for page in self._broken_off():
            self.session.delete(page)
        with self.session.stream(self._model) as streamed:
            yield from streamed

    def stop(self) -> None:
        """Ends the answer that is under way."""
        self._model.stop()

    def awaits_answer(self) -> bool:
        """Whether what was said last has no whole answer."""
        last = self._rows(LEAN, "AND role IN (user, assistant) ORDER BY position DESC LIMIT 1")
        if not last or last[0]["role"] == "user":
            return bool(last)
        call = self.last_call()
        return call is not None and call.status != "ok"

    def _broken_off(self) -> list[str]:
        """The pages of an answer to the last message that never came to its end."""
        last = self._rows(LEAN, "AND role = user ORDER BY position DESC LIMIT 1")
        if not last:
            raise InputError("nothing was said yet that could be answered; say something first")
        if not self.awaits_answer():
            return []
        after = self._rows(f"{LEAN}, status", f"AND role = assistant AND position > {last[0]['position']}")
        return [row["page"] for row in after if row["status"] is None]

    # ---- what there is

    def entries(self, *, limit: int, before: int | None = None) -> list[ChatEntry]:
        """The newest things said, or the newest before a position, the oldest of them first."""
        bound = "" if before is None else f"AND position < {before} "
        newest = self._rows(LEAN, f"AND role IN (user, assistant) {bound}ORDER BY position DESC LIMIT {limit}")
        if not newest:
            return []
        first, last = newest[-1]["position"], newest[0]["position"]
        rows = self._rows(COLUMNS, f"AND role IN (user, assistant) AND position >= {first} AND position <= {last} "
                          "ORDER BY position")  # fmt: skip
        topics = {tag.tag for tag in self.tags()}
        calls = self.session.info().calls
        return [self._entry(row, topics, calls) for row in rows if row["status"] is None]

    def _entry(self, row: dict[str, Any], topics: set[str], calls: int) -> ChatEntry:
        is_said = row["modality"] == "text" and row["level"] == 0
        text = self.session.content(row["page"]).decode("utf-8", "replace") if is_said else row["line"]
        call = row["created_call"] + (row["role"] == "user")
        return ChatEntry(
            row["page"], row["position"], row["role"], text, row["created_turn"], call if call <= calls else 0,
            row["tokens"], [tag for tag in row["tags"] or () if tag in topics],
        )  # fmt: skip

    def tags(self) -> list[TagInfo]:
        """The topics of the conversation, those that came up last first."""
        return sorted(self.session.memory.tags.all(), key=lambda tag: (-(tag.last_turn or 0), -tag.turns, tag.tag))

    def parts(self, call: int | None = None) -> PromptParts | None:
        """The prompt of a call by its parts, by default of the last; None before the first."""
        calls = [last] if call is None and (last := self.last_call()) else self._calls(f"WHERE call = {call or 0}")
        return self._parts(calls[0]) if calls else None

    def _parts(self, call: ChatCall) -> PromptParts:
        packs = self.store.query("CALLS position ORDER BY call", session=self.session.name).to_dicts()
        return prompt_parts(self.session, call, [row["position"] for row in packs])

    def last_call(self) -> ChatCall | None:
        """The last request to the model."""
        return next(iter(self._calls("ORDER BY call DESC LIMIT 1")), None)

    def _calls(self, tail: str) -> list[ChatCall]:
        columns = ", ".join(ChatCall.__struct_fields__)
        rows = self.store.query(f"CALLS {columns} {tail}", session=self.session.name).to_dicts()
        return [ChatCall(**row) for row in rows]

    def result(self, page: str) -> ChatAnswer | None:
        """The answer to the question on a page; None where the model was never asked it."""
        asked = self.session.page(page)
        turn, after = asked.created_turn, asked.position
        calls = self._calls(f"WHERE turn = {turn} AND position > {after} ORDER BY call")
        if not calls:
            return None
        rows = self._rows(
            f"{LEAN}, status",
            f"AND role = assistant AND created_turn = {turn} AND position > {after} AND modality = text "
            "ORDER BY position",
        )
        texts = [self._text(row["page"]) for row in rows if row["status"] is None]
        last, made = calls[-1], self._parts(calls[-1])
        return ChatAnswer(
            self._text(page), "\n\n".join(texts), last.status, last.error, last.turn, last.call, len(calls),
            made.tokens, made.budget, last.tokens_reported, last.tokens_out, last.latency_ms,
            last.cost if last.cost is not None else last.cost_estimated, made.parts,
        )  # fmt: skip

    def page(self, page: str, call: int = 0) -> ChatPage:
        """A page, and why it is in the prompt of a call or not; of the last one by default."""
        last = call or self.session.info().calls
        asked = f"WHY {page} IN CONTEXT AT CALL {last}" if last else f"WHY {page} IN CONTEXT"
        rows = self.store.query(asked, session=self.session.name).to_dicts()
        why = [str(row["reason"]) for row in rows if row["reason"]]
        return ChatPage(self.session.page(page), why, self.session.lineage.ancestors(page), self._text(page))

    def request(self, call: int) -> dict[str, Any]:
        """The request of a call, as the model was sent it."""
        return self.session.wire.request(call=call)

    # ---- what is done with it

    def compact(self) -> list[str]:
        """Sums up what was said before the last turns; the names of the summaries."""
        return self.session.compact()

    def export(self, file: str = "") -> Path:
        """Writes the session to a file: for people (.md), to be imported (.jsonl), as messages (.chat.jsonl).

        Without a name it is one of the session's that is free.
        """
        path = Path(file).expanduser() if file else self._free_path()
        form = next((form for ending, form in ENDINGS.items() if path.name.endswith(ending)), None)
        if form is None:
            raise InputError(f"no export ends like {path.name}; end it with {', '.join(ENDINGS)}", code="no-format")
        self.store.export(path, self.session.name, format=form)
        return path

    def _free_path(self) -> Path:
        stem = "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in self.session.name)
        names = (f"{stem}.md" if number == 1 else f"{stem}-{number}.md" for number in range(1, 10_000))
        return next(path for path in map(Path, names) if not path.exists())

    # ---- reading

    def _rows(self, columns: str, tail: str) -> list[dict[str, Any]]:
        """Rows of what was said; the longer columns cost a look at every page that the tail lets through."""
        asked = f"PAGES {columns} WHERE type = transcript {tail}"
        return self.store.query(asked, session=self.session.name).to_dicts()

    def _text(self, page: str) -> str:
        return self.session.content(page).decode("utf-8", "replace")


def is_there(store: Store, name: str) -> bool:
    """Whether a store has a session of a name."""
    try:
        store.session(name)
    except UnknownError:
        return False
    return True
