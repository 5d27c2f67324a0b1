"""What stands on the terminal: tables, colours, progress, and texts that would harm it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import ROOT, Process, answer
from vmstore.core.text.visible import visible
from vmstore.shell.terminal.format import bar, change, count, cut, dollars, listing, number, seconds, size, wide
from vmstore.shell.terminal.layout import StyledText, TableColumn, TextTable, lines_of, text_of
from vmstore.shell.terminal.render import Screen, json_text
from vmstore.shell.terminal.transcript import transcript

# Runs the command where rich is not installed.
WITHOUT_RICH = (
    "import sys; sys.modules['rich'] = None; from vmstore.shell.main import main; sys.exit(main(sys.argv[1:]))"
)


def on_terminal(*command: str, **environment: str) -> str:
    """What a process writes to a terminal of 100 columns."""
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    env |= {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "TERM": "xterm-256color", **environment}
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    pieces = []
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # how Linux says that the other end has closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    process.wait(60)
    return b"".join(pieces).decode().replace("\r\n", "\n")


def test_a_terminal_gets_colour(recorded: Path) -> None:
    """On a terminal the answer is coloured and each table line fits its width."""
    pytest.importorskip("rich")
    shown = on_terminal(sys.executable, "-m", "vmstore", "diff", str(recorded), "--calls", "1", "4")
    assert "\x1b[32m+\x1b[0m" in shown
    plain = on_terminal(sys.executable, "-m", "vmstore", "context", str(recorded), NO_COLOR="1")
    assert "\x1b" not in plain and max(wide(line) for line in plain.splitlines()) <= 100


def test_without_rich_the_answer_is_plain(recorded: Path) -> None:
    """Where rich is not installed every answer is the same text without colour."""
    command = [sys.executable, "-c", WITHOUT_RICH, "diff", str(recorded), "--calls", "1", "4"]
    bare = on_terminal(*command)
    assert "\x1b" not in bare and "+  p" in bare
    assert bare == on_terminal(sys.executable, "-m", "vmstore", *command[3:], NO_COLOR="1")


def test_a_pipe_gets_no_colour_and_nothing_cut(process: Process, store_path: Path) -> None:
    """In a pipe there is no escape sequence, and no line is cut to a terminal's width."""
    with vmstore.open(store_path) as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": "long " * 16}]}, None)
    out = process("context", store_path, COLUMNS="60", FORCE_COLOR="").stdout.decode()
    assert "\x1b" not in out and ("long " * 16).strip() in out


def test_escape_sequences_in_content_are_harmless(process: Process, store_path: Path) -> None:
    """A model's or tool's control characters come out as escapes, never as commands to the terminal."""
    evil = "\x1b]0;owned\x07 \x9b31m \u202eabc"
    with vmstore.open(store_path) as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": evil}]}, answer(evil))
    page = next(iter(vmstore.open(store_path).session("s").pages())).page
    for words in (["context"], ["context", "--messages"], ["context", "--render"], ["page", page]):
        shown = on_terminal(sys.executable, "-m", "vmstore", words[0], str(store_path), *words[1:], NO_COLOR="1")
        assert "owned" in shown and not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown), words
    assert process("page", store_path, page).stdout == evil.encode()


def test_binary_is_not_written_to_a_terminal(store_path: Path) -> None:
    """A page that is no text is refused on a terminal, with its size, type and the way to a file."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAAN"}
    message = {"role": "user", "content": [{"type": "image", "source": source}]}
    request = {"model": "m", "max_tokens": 9, "messages": [message]}
    with vmstore.open(store_path) as store:
        store.record("s", request, None)
        (page,) = [page.page for page in store.session("s").pages() if page.modality == "image"]
    shown = on_terminal(sys.executable, "-m", "vmstore", "page", str(store_path), page)
    assert f"{page} is 12 B of image/png, no text; send it to a file" in shown


def test_a_table_fits_its_width() -> None:
    """The last column is cut to the width, wide characters count double, numbers stand to the right."""
    table = TextTable([TableColumn("n", right=True), TableColumn("text")], [("1", "short"), ("10", "漢字" * 20)])
    lines = ["".join(span.text for span in line) for line in lines_of(table, 30)]
    assert lines[0] == " n  text" and lines[1] == " 1  short"
    assert wide(lines[2]) <= 30 and lines[2].endswith("…")
    assert text_of(("a", StyledText("b", "bold"), ("c", ("d",)))) == "abcd"
    assert [span.text for span in lines_of(TextTable([TableColumn("")], [("x",)]), None)[0]] == ["x"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (size(999), "999 B"),
        (size(1000), "1.0 kB"),
        (size(741_376), "741 kB"),
        (size(999_600), "1.0 MB"),
        (size(5 * 10**15), "5000 TB"),
        (count(1, "entry"), "1 entry"),
        (count(2, "entry"), "2 entries"),
        (count(1234, "page"), "1,234 pages"),
        (change(-1200), "-1,200"),
        (change(0), "±0"),
        (bar(0, 10), ""),
        (bar(1, 10_000), "▏"),
        (bar(10, 10), "████████"),
        (cut("abcdef", 4), "abc…"),
        (cut("漢字漢字", 5), "漢字…"),
        (number(None) + dollars(None) + seconds(None), ""),
        (seconds(999) + " " + seconds(2810), "999 ms 2.8 s"),
        (dollars(0.007812) + " " + dollars(12), "$0.0078 $12.00"),
        (listing(list("abcdefg")), "a, b, c, d, e and 2 more"),
        (visible("a\x1b[0m\ud800\u202e\tb\n"), "a\\x1b[0m\\ud800\\u202e\tb\\n"),
    ],
)
def test_how_values_read(text: str, wanted: str) -> None:
    """Numbers, sizes, times and texts read as people write them."""
    assert text == wanted


def test_json_stays_json() -> None:
    """JSON has its list entries on lines of their own, bytes as digits, and escapes what cannot be encoded."""
    value = {"a": [{"x": "é"}, {"x": b"\xff"}], "b": {"c": [1, 2]}, "d": []}
    text = json_text(value)
    assert json.loads(text) == {"a": [{"x": "é"}, {"x": "ff"}], "b": {"c": [1, 2]}, "d": []}
    assert text.count("\n") == 5 and "é" in text
    assert json.loads(json_text(value, "ascii")) == json.loads(text) and json_text(value, "ascii").isascii()
    assert json.loads(json_text({"a": "\ud83d"})) == {"a": "\ud83d"}


MESSAGES = [
    ({"role": "user", "content": "one\ntwo"}, ["one", "two"]),
    ({"role": "user", "content": [{"type": "text", "text": "part"}]}, ["part"]),
    ({"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {"a": 1}}]}, ['→ f({"a": 1})']),
    ({"role": "user", "content": [{"type": "tool_result", "content": "done"}]}, ["done"]),
    ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, ["hm"]),
    ({"type": "function_call", "name": "g", "arguments": "{}", "call_id": "c"}, ["→ g({})"]),
    ({"type": "function_call_output", "output": "out", "call_id": "c"}, ["out"]),
    ({"role": "model", "parts": [{"functionCall": {"name": "h", "args": {}}}, {"text": "x"}]}, ["→ h({})", "x"]),
    ({"role": "user", "parts": [{"functionResponse": {"name": "h", "response": {"output": "r"}}}]}, ["r"]),
    ({"role": "assistant", "content": None, "refusal": None}, []),
    ("no object", ["no object"]),
]


@pytest.mark.parametrize(("message", "texts"), MESSAGES)
def test_a_transcript_reads_every_provider(message: object, texts: list[str]) -> None:
    """Whichever provider's shape a message has, its texts and tool requests are shown."""
    lines = [text_of(line) for line in transcript([message])]
    assert lines[0].startswith("1 ") and lines[-1] == ""
    assert lines[1:-1] == [f"   {line}" for line in texts]


def test_a_transcript_cuts_what_is_no_text() -> None:
    """An image in a message is cut to a line that says how long it is; a long text never is."""
    image = {"role": "user", "content": [{"type": "image", "source": {"data": "A" * 9000}}]}
    lines = [text_of(line) for line in transcript([image, {"role": "user", "content": "B" * 9000}])]
    assert len(lines[1]) < 700 and lines[1].endswith("characters; --json has them all)")
    assert lines[4] == "   " + "B" * 9000


class Terminal:
    """A stderr that is a terminal, and remembers what it was sent."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_progress_shows_only_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work done within a second shows no progress; longer work does, and its line is wiped at the end."""
    monkeypatch.setitem(sys.modules, "rich.console", None)
    times = [0.0]
    monkeypatch.setattr("vmstore.shell.terminal.render.time.monotonic", lambda: times[0])
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for moment, wanted in ((0.9, ""), (2.0, "working 50 %")):
        times[0] = 0.0
        with Screen().progress("working") as tell:
            assert tell is not None
            times[0] = moment
            tell(1, 2)
            assert wanted in terminal.text and bool(terminal.text) == bool(wanted)
    assert terminal.text.endswith("\r")


def test_progress_is_silent_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Where stderr is no terminal, or only the answer is wanted, there is no progress to tell."""
    with Screen().progress("working") as tell:
        assert tell is None
    assert capsys.readouterr() == ("", "")
