"""The chat's help: its keys and commands."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

HELP = (
    ("Enter", "send"),
    ("Ctrl+J", "a new line"),
    ("Ctrl+C", "stop the answer; what came is kept"),
    ("Ctrl+R  /retry", "ask again for the last answer"),
    ("Ctrl+B  Ctrl+F", "to the message before, after"),
    ("Ctrl+I  /inspect", "what was sent with a message, and why"),
    ("Ctrl+O  /topics", "show or hide the topics"),
    ("Ctrl+T  /brief", "ask for answers of two lines, or no more"),
    ("Ctrl+K  /compact", "sum up what was said before the last turns"),
    ("Ctrl+S  /export FILE", "write all to .md, .jsonl or .chat.jsonl"),
    ("Ctrl+Q  /quit", "leave; the session goes on where it was"),
)


class Help(ModalScreen[None]):
    """Keys and commands."""

    BINDINGS: ClassVar = [Binding("escape,q,enter,f1", "dismiss(None)", "Back")]

    def compose(self) -> ComposeResult:
        """The list."""
        wide = max(len(keys) for keys, _ in HELP)
        lines = [Content.styled(f"{keys:<{wide}}", "b $primary").append(f"  {what}") for keys, what in HELP]
        with VerticalScroll(id="help"):
            yield Static(Content("\n").join(lines))
            yield Static(Content.styled("\nEscape closes this", "$foreground-muted"))
