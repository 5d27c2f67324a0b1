"""Panels of the chat: the bar of the budget, the topics, and what was said."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.widgets import Markdown, Static, TextArea

from vmstore.chat.chat import ChatEntry
from vmstore.chat.parts import AROUND, BACK, CONVERSATION, FILES, INSTRUCTIONS, KNOWN, SUMMARIES, PromptParts
from vmstore.core.text.visible import visible
from vmstore.store.recall.tags import TagInfo

# Of the theme as far as it has enough that differ, so that light and dark ones are read alike.
COLOURS = {
    INSTRUCTIONS: "#2aa198",
    SUMMARIES: "$warning",
    KNOWN: "$success",
    FILES: "#9b59b6",
    BACK: "$error",
    CONVERSATION: "$primary",
    AROUND: "$foreground-muted",
}
TAGS_MAX = 200


class BudgetBar(Static):
    """The prompt of the last call by its parts, over the budget."""

    prompt: PromptParts | None = None

    def show(self, prompt: PromptParts | None) -> None:
        """Shows a prompt's parts."""
        self.prompt = prompt
        self.refresh(layout=True)

    def render(self) -> Content:
        """A line with the bar, one with what its colours are."""
        if self.prompt is None:
            return Content("no call yet: what is sent, and of what it is made, stands here then")
        width = max(10, self.size.width)
        made, total = self.prompt, max(self.prompt.budget, self.prompt.tokens, 1)
        bar, used = Content(""), 0
        for part, tokens in made.parts.items():
            cells = max(1, round(tokens / total * width))
            cells = min(cells, width - used)
            bar, used = bar.append(Content.from_markup(f"[{COLOURS[part]}]{'█' * cells}[/]")), used + cells
        bar = bar.append(Content.from_markup(f"[$foreground 20%]{'░' * (width - used)}[/]"))
        legend = [Content.from_markup(f"[b]{made.tokens:,}[/b] of {made.budget:,}")]
        legend += [
            Content.from_markup(f"[{COLOURS[part]}]■[/] {part} {tokens:,}") for part, tokens in made.parts.items()
        ]
        lines = [legend[0]]
        for entry in legend[1:]:  # none is parted by the end of a line
            if lines[-1].cell_length + entry.cell_length + 2 <= width:
                lines[-1] = lines[-1].append("  ").append(entry)
            else:
                lines.append(entry)
        return Content("\n").join([bar, *lines])


class TopicsPanel(Static):
    """The topics of the conversation, each with its turns and tokens; those of the last turn stand out."""

    tags: tuple[TagInfo, ...] = ()
    turn = 0

    def show(self, tags: list[TagInfo], turn: int) -> None:
        """Shows topics, as of a turn."""
        self.tags, self.turn = tuple(tags), turn
        self.refresh(layout=True)

    def render(self) -> Content:
        """A line a topic, as wide as there is room."""
        if not self.tags:
            return Content.styled("none yet: each turn is tagged as its answer ends", "$foreground-muted")
        width = max(12, self.size.width - 13)
        lines = [Content.styled(f"{'':<{width}}turns tokens", "$foreground-muted")]
        for tag in self.tags[:TAGS_MAX]:
            name = visible(tag.tag)
            name = name if len(name) < width else name[: width - 2] + "…"
            style = "b $primary" if tag.last_turn == self.turn else "$foreground"
            row = Content.styled(f"{name:<{width}}", style)
            lines.append(row.append(Content.styled(f"{tag.turns:>5}{tag.tokens:>7,}", "$foreground-muted")))
        return Content("\n").join(lines)


class MessagePanel(Vertical):
    """Something that was said: who and when, and the words; an answer's as Markdown."""

    def __init__(self, role: str, text: str, entry: ChatEntry | None = None) -> None:
        super().__init__(classes=f"message {role}")
        self.role, self.entry, self._text = role, entry, text

    def compose(self) -> ComposeResult:
        """The head, and the words."""
        yield Static(self._head(), classes="head")
        if self.role == "assistant":
            yield Markdown(visible_lines(self._text), classes="words", open_links=False)
        else:
            yield Static(Text(visible_lines(self._text)), classes="words")

    @property
    def markdown(self) -> Markdown:
        """The words of an answer."""
        return self.query_one(Markdown)

    def settle(self, entry: ChatEntry) -> None:
        """Says of which turn and page this is, now that it is logged."""
        self.entry = entry
        self.query_one(".head", Static).update(self._head())

    def _head(self) -> Text:
        who = "you" if self.role == "user" else "model"
        if self.entry is None:
            return Text(who)
        tags = ", ".join(map(visible, self.entry.tags))
        return Text(f"{who} · turn {self.entry.turn} · {self.entry.page}" + (f" · {tags}" if tags else ""))


class PromptInput(TextArea):
    """The lines one types in: Enter sends them, Ctrl+J begins another."""

    class Sent(Message):
        """Some lines were sent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    async def _on_key(self, event: Key) -> None:
        if event.key not in ("enter", "ctrl+j", "shift+enter"):
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        if event.key == "enter":
            self.post_message(self.Sent(self.text))
        else:
            self.insert("\n")


def visible_lines(text: str) -> str:
    """A text whose control characters can be seen, in its lines."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.split("\n"))
