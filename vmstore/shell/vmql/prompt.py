"""The line a reader types in: on prompt_toolkit where it is installed, else whatever `input` offers."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any

from vmstore.shell.terminal.format import cut
from vmstore.shell.vmql.completer import Completer
from vmstore.shell.vmql.repl import Repl
from vmstore.shell.vmql.script import is_whole, open_quote, pieces, stretches
from vmstore.vmql.syntax.printer import show as shown_moment

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.output import Output


STYLES = {
    "comment": "italic ansibrightblack",
    "text": "ansigreen",
    "quoted": "ansired",  # VMQL has no double quotes
    "param": "ansimagenta",
    "number": "ansicyan",
    "keyword": "bold ansiblue",
    "command": "bold ansiyellow",
    "sign": "ansibrightblack",
    "end": "ansibrightblack",
}


def fragments(text: str, keywords: Container[str]) -> list[tuple[str, str]]:
    """The stretches of a text, each with the kind it is shown as; `keywords` in capitals."""
    found: list[tuple[str, str]] = []
    at = 0
    for piece in pieces(text):
        if piece.command:
            found += _styled(text[at : piece.start], keywords)
            found.append(("command", piece.text))
            at = piece.start + len(piece.text)
    return found + _styled(text[at:], keywords)


def _styled(text: str, keywords: Container[str]) -> list[tuple[str, str]]:
    return [(_kind(stretch.kind, stretch.text, keywords), stretch.text) for stretch in stretches(text)]


def _kind(kind: str, text: str, keywords: Container[str]) -> str:
    return "keyword" if kind == "word" and text.upper() in keywords else kind


LABEL_COLUMNS = 20  # of a session's name
Lines = Callable[[], str]


def lines(desk: Repl) -> Lines:
    """A function that reads what is typed next, whole; it raises EOFError at the end, KeyboardInterrupt at Ctrl-C."""
    try:
        import prompt_toolkit  # noqa: F401
    except ImportError:
        desk.outputs.note("without prompt_toolkit there is no completion; `pip install 'vmstore[shell]'` brings it")
        return lambda: plain(desk)
    session = editor(desk)
    return lambda: str(session.prompt())


def plain(desk: Repl) -> str:
    """What is typed until it is whole, line by line."""
    text = input(label(desk))
    while not is_whole(text):
        text += "\n" + input(more(text, len(label(desk))))
    return text


def label(desk: Repl) -> str:
    """What stands before the cursor: the session asked and the moment, where they are set."""
    settings = desk.settings
    moment = "" if settings.moment is None else f" {shown_moment(settings.moment).lower()}"
    return f"{cut(settings.session or 'vmql', LABEL_COLUMNS)}{moment}> "


def more(text: str, width: int) -> str:
    """What stands before the lines after the first: the quote that is open, else dots."""
    sign = open_quote(text) or "."
    return f"{sign * 3}> ".rjust(width)


def editor(desk: Repl, source: Input | None = None, sink: Output | None = None) -> PromptSession[str]:
    """The prompt_toolkit session of a desk; input and output are the terminal's unless they are handed in."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.styles import Style

    from vmstore.shell.vmql.history import history

    completer = Completer(desk)

    def continued(width: int, number: int, wrapped: int) -> str:
        return " " * width if wrapped else more(session.default_buffer.document.text_before_cursor, width)

    session: PromptSession[str] = PromptSession(
        lambda: [("class:label", label(desk))],
        multiline=True,
        lexer=_lexer(completer.keywords),
        completer=_completer(completer),
        complete_while_typing=False,
        complete_in_thread=True,
        auto_suggest=AutoSuggestFromHistory(),
        history=history(desk.outputs.note, keeps=desk.settings.history),
        enable_history_search=True,
        enable_open_in_editor=True,
        key_bindings=_keys(),
        prompt_continuation=continued,
        style=Style.from_dict({**{f"vmql.{kind}": style for kind, style in STYLES.items()}, "label": "bold"}),
        color_depth=ColorDepth.DEPTH_1_BIT if "NO_COLOR" in os.environ else None,
        input=source,
        output=sink,
    )
    return session


def _keys() -> KeyBindings:
    """Enter sends what is whole and else begins a new line; Alt-Enter always begins one."""
    from prompt_toolkit.filters import completion_is_selected, has_completions
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    @keys.add("enter", filter=has_completions & completion_is_selected)
    def _(event: Any) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter")
    def _(event: Any) -> None:
        event.current_buffer.newline()

    return keys


def _lexer(keywords: frozenset[str]) -> Any:
    from prompt_toolkit.lexers import Lexer

    class Colours(Lexer):
        def lex_document(self, document: Any) -> Callable[[int], Any]:
            rows: list[list[tuple[str, str]]] = [[]]
            for kind, text in fragments(document.text, keywords):
                first, *rest = text.split("\n")
                rows[-1].append((f"class:vmql.{kind}", first))
                rows += [[(f"class:vmql.{kind}", line)] for line in rest]
            return lambda number: rows[number] if number < len(rows) else []

    return Colours()


def _completer(completer: Completer) -> Any:
    from prompt_toolkit.completion import Completer as Base
    from prompt_toolkit.completion import Completion

    class Candidates(Base):
        def get_completions(self, document: Any, event: Any) -> Iterable[Completion]:
            for found in completer.candidates(document.text_before_cursor):
                text = f"{found.text} " if found.text.isupper() else found.text  # a word of the language ends there
                yield Completion(text, -found.replaces, display=found.text, display_meta=found.about)

    return Candidates()
