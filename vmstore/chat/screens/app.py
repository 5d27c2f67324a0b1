"""The chat on a screen: what was said, the topics and the budget beside it, and a line to type in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.worker import Worker, WorkerState

from vmstore.chat.chat import ChatEntry, ChatSession
from vmstore.chat.parts import ChatCall, PromptParts
from vmstore.chat.screens.help import Help
from vmstore.chat.screens.inspector import Inspector
from vmstore.chat.screens.panels import BudgetBar, MessagePanel, PromptInput, TopicsPanel, visible_lines
from vmstore.core.text.suggest import suggest
from vmstore.core.text.visible import visible
from vmstore.errors import VmstoreError
from vmstore.providers.streaming_model import AnswerStopped
from vmstore.store.recall.tags import TagInfo

SHOWN = 40  # of what was said before, and as many again for each further look back
NARROW = 90  # columns under which the topics are shown only when asked for


class TalkScreen(Screen[None]):
    """A conversation; everything said is in the store before it is shown as said."""

    BINDINGS: ClassVar = [
        Binding("tab,ctrl+i", "inspect", "Inspect", key_display="^i", priority=True),
        Binding("ctrl+b", "move(-1)", "Browse", key_display="^b/^f", priority=True),
        Binding("ctrl+f", "move(1)", priority=True, show=False),
        Binding("ctrl+t", "brief", "Brief", key_display="^t", priority=True),
        Binding("ctrl+k", "compact", "Compact", key_display="^k", priority=True),
        Binding("ctrl+s", "export", "Export", key_display="^s", priority=True),
        Binding("ctrl+r", "retry", priority=True, show=False),
        Binding("ctrl+c", "stop", "Stop", key_display="^c", priority=True),
        Binding("ctrl+o", "topics", priority=True, show=False),
        Binding("f1", "help", "Help", key_display="F1", priority=True),
        Binding("ctrl+q", "leave", "Quit", key_display="^q", priority=True),
    ]

    def __init__(self, chat: ChatSession) -> None:
        super().__init__()
        self.chat = chat
        self.brief = False
        self._answering: Worker[None] | None = None
        self._cursor: MessagePanel | None = None
        self._is_leaving = False

    def compose(self) -> ComposeResult:
        """The screen."""
        yield Static(id="about")
        with Horizontal(id="middle"):
            yield VerticalScroll(id="talk", can_focus=False)
            with Vertical(id="side"):
                yield Static("topics", id="side-title")
                with VerticalScroll(can_focus=False):
                    yield TopicsPanel(id="topics")
        yield BudgetBar(id="budget")
        yield Static(id="state")
        yield PromptInput(
            id="prompt", compact=True, show_line_numbers=False, placeholder="Say something; /help, F1 for keys"
        )
        yield Footer(compact=True, show_command_palette=False)

    async def on_mount(self) -> None:
        """Shows where the conversation stands."""
        self.query_one(PromptInput).focus()
        self._fit(self.size.width)
        earlier = self.chat.entries(limit=SHOWN)
        await self.query_one("#talk").mount_all([MessagePanel(entry.role, entry.text, entry) for entry in earlier])
        self._talk.scroll_end(animate=False)
        self._look()
        if not earlier:
            self._tell("a new session: everything said in it is in the store as it is said")
        elif self.chat.awaits_answer():
            self._tell("the last message has no answer yet; Ctrl+R asks for it")

    def on_resize(self, event: Any) -> None:
        """Hides the topics where there is no room beside the talk."""
        self._fit(event.size.width)

    # ---- talking

    async def on_prompt_input_sent(self, event: PromptInput.Sent) -> None:
        """Sends what was typed, or does what a command says."""
        text = event.text.strip()
        if not text:
            return
        if text.startswith("/"):
            self.query_one(PromptInput).clear()
            self._command(*text[1:].split(maxsplit=1))
        elif self._is_answering:
            self._tell("an answer is under way; Ctrl+C stops it")
        else:
            await self._say(text)

    async def _say(self, text: str) -> None:
        """Logs a message, then asks for its answer."""
        try:
            page = self.chat.say(text, brief=self.brief)
        except VmstoreError as error:
            self._tell(str(error), bad=True)
            return
        self.query_one(PromptInput).clear()
        entry = next((entry for entry in self.chat.entries(limit=1) if entry.page == page), None)
        await self._talk.mount(MessagePanel("user", text, entry))
        await self._ask()

    async def _ask(self) -> None:
        panel = MessagePanel("assistant", "")
        await self._talk.mount(panel)
        self._talk.anchor()
        self._move_to(None)
        self._tell(f"{visible(self.chat.model_name)} is answering; Ctrl+C stops it")
        self._answering = self._answer(panel, self.chat.answer())

    @work(thread=True, exit_on_error=False, group="answers")
    def _answer(self, panel: MessagePanel, words: Iterator[str]) -> None:
        """Takes an answer in a thread, and shows it as it comes."""
        try:
            for text in words:
                self._on_screen(self._show_words, panel, text)
            note, bad = "", False
        except AnswerStopped:
            note, bad = "stopped; what came is kept. Ctrl+R asks again", False
        except VmstoreError as error:
            note, bad = f"{error}. Your message is kept; Ctrl+R asks again", True
        entries, seen = self.chat.entries(limit=2), self._seen()
        self._on_screen(self._answered, panel, entries, seen, note, bad)

    def _on_screen(self, show: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Shows something from the thread of an answer."""
        self.app.call_from_thread(show, *arguments)  # type: ignore[arg-type, unused-ignore]

    async def _show_words(self, panel: MessagePanel, text: str) -> None:
        await panel.markdown.append(visible_lines(text))

    async def _answered(self, panel: MessagePanel, entries: list[ChatEntry], seen: Seen, note: str, bad: bool) -> None:
        """Shows what is known of an answer once it is logged."""
        if entries and entries[-1].role == "assistant":
            panel.settle(entries[-1])
        else:
            await panel.remove()
        for entry in entries:  # a question is tagged with its answer
            for panel in self.query(MessagePanel):
                if panel.entry is not None and panel.entry.page == entry.page:
                    panel.settle(entry)
        self._answering = None
        self._show(seen)
        self._tell(note or self._cost(seen[2]), bad=bad)
        if self._is_leaving:
            self.app.exit()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Lets an error of our own end the screen with its traceback."""
        if event.state is WorkerState.ERROR and isinstance(event.worker.error, Exception):
            self.app._handle_exception(event.worker.error)

    # ---- keys

    def action_stop(self) -> None:
        """Stops the answer under way."""
        if self._is_answering:
            self.chat.stop()
            self._tell("stopping…")
        elif self.query_one(PromptInput).text:
            self.query_one(PromptInput).clear()
        else:
            self._tell("Ctrl+Q quits; everything said is in the store")

    def action_leave(self) -> None:
        """Quits, once the answer under way is stopped and logged."""
        if self._is_answering and not self._is_leaving:
            self._is_leaving = True
            self.chat.stop()
        else:
            self.app.exit()

    async def action_retry(self) -> None:
        """Asks for the answer that is missing."""
        if self._is_answering:
            self._tell("an answer is under way; Ctrl+C stops it")
        elif not self.chat.awaits_answer():
            self._tell("the last message is answered; say something")
        else:
            shown = list(self.query(MessagePanel))
            if shown and shown[-1].role == "assistant":
                await shown[-1].remove()
            await self._ask()

    def action_brief(self) -> None:
        """Asks for short answers from here on, or no more."""
        self.brief = not self.brief
        self._tell("brief: each message asks for two lines" if self.brief else "answers may be long again")
        self._show_about()

    def action_compact(self) -> None:
        """Sums up what was said before the last turns."""
        if self._is_answering:
            self._tell("an answer is under way; Ctrl+C stops it")
            return
        summaries = self._done(self.chat.compact)
        if summaries is not None:
            count = len(summaries)
            made = f"{count} summar{'y' if count == 1 else 'ies'} stand for it from the next call on"
            self._tell(made if summaries else "nothing to sum up: the last turns stay as they were said")

    def action_export(self, file: str = "") -> None:
        """Writes the session to a file."""
        path = self._done(lambda: self.chat.export(file))
        if path is not None:
            self._tell(f"exported to {path}")

    async def action_move(self, step: int) -> None:
        """Moves the cursor over what was said; before the first, further back."""
        shown = list(self.query(MessagePanel))
        if not shown:
            return
        at = shown.index(self._cursor) + step if self._cursor in shown else (len(shown) - 1 if step < 0 else len(shown))
        if at < 0 and (first := shown[0].entry) is not None:
            earlier = self.chat.entries(limit=SHOWN, before=first.position)
            added = [MessagePanel(entry.role, entry.text, entry) for entry in earlier]
            await self._talk.mount_all(added, before=0)
            shown, at = [*added, *shown], at + len(added)
        self._move_to(shown[max(at, 0)] if at < len(shown) else None)

    def action_inspect(self) -> None:
        """Opens the inspector on the message under the cursor, the last one where there is none."""
        shown = [panel for panel in self.query(MessagePanel) if panel.entry is not None]
        panel = self._cursor if self._cursor in shown else (shown[-1] if shown else None)
        if panel is None or panel.entry is None:
            self._tell("nothing was said yet")
        else:
            self.app.push_screen(Inspector(self.chat, panel.entry))

    def action_topics(self) -> None:
        """Shows the topics, or hides them."""
        side = self.query_one("#side")
        side.display = not side.display

    def action_help(self) -> None:
        """Shows keys and commands."""
        self.app.push_screen(Help())

    def _command(self, word: str = "help", rest: str = "") -> None:
        """Does what a line that begins with a slash says."""
        if word == "export":
            self.action_export(rest)
        elif word in COMMANDS:
            self.call_later(COMMANDS[word], self)
        else:
            near = suggest(word, [*COMMANDS, "export"])
            self._tell(
                f"there is no /{visible(word)}" + (f"; the nearest is /{near}" if near else "; /help lists them")
            )

    # ---- what is shown

    @property
    def _talk(self) -> VerticalScroll:
        return self.query_one("#talk", VerticalScroll)

    @property
    def _is_answering(self) -> bool:
        return self._answering is not None

    def _seen(self) -> Seen:
        return self.chat.tags(), self.chat.parts(), self.chat.last_call()

    def _look(self) -> None:
        self._show(self._seen())

    def _show(self, seen: Seen) -> None:
        tags, parts, last = seen
        self.query_one(TopicsPanel).show(tags, self.chat.session.info().turns)
        self.query_one(BudgetBar).show(parts)
        self._show_about()
        self.query_one("#state", Static).update(self._cost(last))

    def _show_about(self) -> None:
        info = self.chat.session.info()
        about = Content.from_markup("[b]$name[/b] · $model · $turns", name=visible(self.chat.session.name),
                                    model=visible(self.chat.model_name),
                                    turns=f"{info.turns} turn{'s' * (info.turns != 1)}")  # fmt: skip
        self.query_one("#about", Static).update(about.append(" · brief" if self.brief else ""))

    def _cost(self, last: ChatCall | None) -> str:
        if last is None or last.status != "ok":
            return ""
        counts = [f"{last.tokens_reported:,} tokens in" if last.tokens_reported is not None else ""]
        counts.append(f"{last.tokens_out:,} out" if last.tokens_out is not None else "")
        counts.append(f"{last.latency_ms / 1000:.1f} s" if last.latency_ms is not None else "")
        return f"call {last.call}: " + ", ".join(filter(None, counts))

    def _tell(self, what: str, *, bad: bool = False) -> None:
        state = self.query_one("#state", Static)
        state.set_class(bad, "bad")
        state.update(Content(visible(what)))

    def _done(self, do: Callable[[], Any]) -> Any:
        """The answer of an act; None where it was refused, and why is shown."""
        try:
            done = do()
        except (VmstoreError, OSError) as error:
            self._tell(str(error), bad=True)
            return None
        self._look()
        return done

    def _move_to(self, panel: MessagePanel | None) -> None:
        if self._cursor is not None:
            self._cursor.remove_class("cursor")
        self._cursor = panel
        if panel is not None:
            panel.add_class("cursor")
            self._talk.release_anchor()
            panel.scroll_visible(animate=False)
        else:
            self._talk.scroll_end(animate=False)

    def _fit(self, width: int) -> None:
        self.query_one("#side").display = width >= NARROW


Seen = tuple[list[TagInfo], PromptParts | None, ChatCall | None]

COMMANDS: dict[str, Callable[[TalkScreen], Any]] = {
    "help": TalkScreen.action_help,
    "brief": TalkScreen.action_brief,
    "compact": TalkScreen.action_compact,
    "inspect": TalkScreen.action_inspect,
    "topics": TalkScreen.action_topics,
    "retry": TalkScreen.action_retry,
    "quit": TalkScreen.action_leave,
}


class ChatApp(App[None]):
    """The program around a conversation's screen."""

    CSS_PATH = "chat.tcss"
    TITLE = "vmstore chat"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, chat: ChatSession, *, light: bool = False) -> None:
        super().__init__()
        self.talk = TalkScreen(chat)
        self._light = light

    def on_mount(self) -> None:
        """Shows the conversation."""
        self.theme = "textual-light" if self._light else "textual-dark"
        self.push_screen(self.talk)

    async def action_quit(self) -> None:
        """Leaves as the conversation does, from whichever screen."""
        self.talk.action_leave()
