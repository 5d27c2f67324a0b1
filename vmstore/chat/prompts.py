"""Lists of prompts, from a file or from what a person said in a session, asked one after another.

How far a list came is kept in the session with each question, so that asking it again goes on there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import msgspec

from vmstore.chat.chat import ChatAnswer, ChatSession
from vmstore.errors import InputError
from vmstore.store.session import Session
from vmstore.store.store import Store

TEXTS = ("prompt", "content", "text")  # where a line's object may have what is asked


class PromptRun:
    """A list of prompts in a conversation; `done` of them were answered before."""

    def __init__(self, chat: ChatSession, prompts: list[str]) -> None:
        if not prompts:
            raise InputError("the list holds no prompt; write one a line")
        self.prompts = prompts
        self._chat = chat
        self._kept = f"prompts-{hashlib.sha256(msgspec.json.encode(prompts)).hexdigest()[:16]}"
        self._pages: list[str] = chat.session.values().get(self._kept) or []
        results = [chat.result(page) for page in self._pages]
        self.done = sum(result is not None and result.status == "ok" for result in results)

    def answers(self) -> Iterator[ChatAnswer]:
        """The answer to each prompt, those given before too; ends with the first that the provider fails."""
        for number, prompt in enumerate(self.prompts, 1):
            if number > len(self._pages):
                self._say(prompt)
            page = self._pages[number - 1]
            if number > self.done:
                for _ in self._chat.answer():
                    pass
            result = self._chat.result(page)
            assert result is not None, "it was asked just now"
            yield result

    def _say(self, prompt: str) -> None:
        """Logs a question, and how far the list came, at once."""
        with self._chat.session.turn():
            self._pages.append(self._chat.say(prompt))
            self._chat.session.keep(self._kept, self._pages)


def prompts_of(text: str, *, is_jsonl: bool) -> list[str]:
    """The prompts of a file: one a line, or JSON lines that are texts or objects with a `prompt` or `content`.

    Empty lines and JSON messages of others than the user are passed over.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not is_jsonl:
        return [line for _, line in lines]
    found = [(number, _prompt(number, line)) for number, line in lines]
    return [prompt for _, prompt in found if prompt]


def _prompt(number: int, line: str) -> str:
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(
            f"line {number} of the prompts is no JSON ({error}); give each line a text or object"
        ) from error
    if isinstance(value, dict):
        if value.get("role", "user") != "user":
            return ""
        value = next((value[key] for key in TEXTS if key in value), None)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f'line {number} of the prompts holds no text; give {{"prompt": "…"}} or "…"')
    return value


def said_in(store: Store, session: Session) -> list[str]:
    """A person's messages in a session, as texts; those without words are left out."""
    asked = "PAGES page, message WHERE type = transcript AND role = user AND modality = text ORDER BY position"
    rows = store.query(asked, session=session.name).to_dicts()
    messages = [list(parts) for _, parts in groupby(rows, key=lambda row: row["message"])]
    texts = ("\n\n".join(_text(session, row["page"]) for row in parts) for parts in messages)
    return [text for text in texts if text.strip()]


def _text(session: Session, page: str) -> str:
    return session.content(page).decode("utf-8", "replace")


def instructions_of(session: Session) -> str | None:
    """The texts that instruct in a session; None where none does."""
    pages = [page for page in session.pages(type="transcript") if page.role in ("system", "developer")]
    return "\n\n".join(session.content(page.page).decode("utf-8", "replace") for page in pages) or None
