"""The inspector: a message's page or any page of its prompt, what it is, where it is from, and why it is there."""

from __future__ import annotations

import json
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from vmstore.chat.chat import ChatEntry, ChatPage, ChatSession
from vmstore.chat.screens.panels import visible_lines
from vmstore.core.text.visible import visible
from vmstore.errors import VmstoreError

BESIDE_TEXT = 58  # columns of the table and its frame beside the text
LEVELS = ("full", "reduced", "abstract", "reference")


class Inspector(ModalScreen[None]):
    """A call's prompt page by page, and all that is known of the page under the cursor."""

    BINDINGS: ClassVar = [
        Binding("escape,q,ctrl+i,tab", "dismiss(None)", "Back", key_display="Esc"),
        Binding("r", "request", "Request as sent"),
        Binding("ctrl+c", "dismiss(None)", show=False),
    ]

    def __init__(self, chat: ChatSession, entry: ChatEntry) -> None:
        super().__init__()
        self._chat, self._entry = chat, entry
        self._shows_request = False

    def compose(self) -> ComposeResult:
        """A table of pages over what is known of one."""
        with Vertical(id="inspector"):
            yield Static(self._title(), id="inspected")
            yield DataTable(cursor_type="row", zebra_stripes=True)
            with VerticalScroll(id="facts", can_focus=True):
                yield Static(id="page-facts")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Fills the table: the message's own page first, then the prompt of its call."""
        table = self.query_one(DataTable)
        table.add_columns("page", "part", "level", "tokens", "since", "text")
        own, made = self._entry, self._chat.parts(self._entry.call)
        what = "this message" if own.role == "user" else "this answer"
        table.add_row(own.page, what, "", _count(own.tokens), Text(""), self._short(own.text), key=own.page)
        for page in () if made is None else made.pages:
            if page.page != own.page:
                table.add_row(
                    page.page, page.part, LEVELS[page.level], _count(page.tokens), _count(page.since_call),
                    self._short(page.line), key=page.page,
                )  # fmt: skip
        table.focus()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Shows what is known of the page under the cursor."""
        if event.row_key.value is not None:
            self._shows_request = False
            self._show(event.row_key.value)

    def action_request(self) -> None:
        """Shows the request of the call, or the page again."""
        about = self.query_one("#page-facts", Static)
        self._shows_request = not self._shows_request
        if not self._shows_request:
            table = self.query_one(DataTable)
            self._show(str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value))
        elif self._entry.call:
            body = self._chat.request(self._entry.call)
            about.update(Text(visible_lines(json.dumps(body, indent=2, ensure_ascii=False))))
        else:
            about.update("the model was not asked yet")

    def _show(self, page: str) -> None:
        try:
            about = page_text(self._chat.page(page, self._entry.call))
        except VmstoreError as error:
            about = Text(str(error))
        self.query_one("#page-facts", Static).update(about)
        self.query_one("#facts", VerticalScroll).scroll_home(animate=False)

    def _short(self, text: str) -> Text:
        """The beginning of a text, as far as the table has room for it."""
        room = max(20, self.app.size.width - BESIDE_TEXT)
        return Text(visible(" ".join(text[: 2 * room].split()))[:room], no_wrap=True)

    def _title(self) -> str:
        asked = f"what call {self._entry.call} was sent, since which call" if self._entry.call else "not asked yet"
        return f"turn {self._entry.turn} · {asked}"


def page_text(facts: ChatPage) -> Text:
    """All that is known of a page, for people."""
    page, text = facts.page, Text()
    kind = f"{page.type} by {page.actor}, version {page.version}"
    text.append(page.page, "bold").append(f"  {kind}; made in turn {page.created_turn}")
    text.append(", pinned" if page.pinned else "").append(f", {page.status}" if page.status else "").append("\n")
    tags = [tag for tag in page.tags if not tag.startswith("topic:")]
    if tags:
        text.append("topics  ", "bold").append(visible(", ".join(tags)) + "\n")
    text.append("\nwhy\n", "bold")
    text.append("".join(f"· {visible(reason)}\n" for reason in facts.why))
    text.append("\nfrom\n", "bold")
    for link in facts.sources:
        text.append(f"· {link.kind} {link.target}  {visible(link.text)}\n")
    if not facts.sources:
        text.append(f"· said by {page.actor}; made from no other page\n")
    return text.append("\ntext\n", "bold").append(visible_lines(facts.text))


def _count(number: int) -> Text:
    return Text(f"{number:,}", justify="right")
