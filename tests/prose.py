"""Runs what the pages of the project show: Python, commands with their output, JSON, files.

A page's blocks are run in order in one folder and one namespace. What a block is stands in the
first word after its fence:

    python   run; what it prints must stand in the `text` block right after it; with a name as second
             word it is written to that file instead, for the blocks that follow
    text     what the block before it prints; `…` stands for anything
    console  lines `$ vmstore …` and `$ vmql …` are run, the lines below each are its output; `…` as above
    json     one JSON value; with a name as second word it is also written to that file
    jsonl    the same, a value a line
    vmql     statements, one a line, each of which must parse
    sh       commands for people to type, not run; the files and extras they name must exist
    (none)   a drawing

A line that is only `…` stands for any number of lines. What a command says on stderr is compared
where the command fails.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import os
import re
import shlex
import tomllib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import vmstore
from tests.forked_commands import PROGRAMS, ForkedCommands
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax.errors import QueryError

CHECKOUT = Path(__file__).resolve().parent.parent
LINES_REPEATED = 40
FENCE = re.compile(r"^```(?P<words>[^`]*)$")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
MOMENTS = ("call", "turn", "before")  # parameters of SQL that name a moment, which is a number
HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *$", re.MULTILINE)


class WrongError(AssertionError):
    """A page says something that is not so; names the page and the line."""


class Block(NamedTuple):
    """One fenced block of a page."""

    page: Path
    line: int
    words: tuple[str, ...]
    text: str

    @property
    def language(self) -> str:
        """What kind of block it is."""
        return self.words[0] if self.words else ""

    def wrong(self, what: str) -> WrongError:
        """The error that names this block."""
        return WrongError(f"{self.page}:{self.line}: {what}")


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    actual_blocks: list[Block] = []
    words: tuple[str, ...] | None = None
    start, lines = 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        fence = FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif words is None:
            words, start, lines = tuple(fence["words"].split()), number, []
        else:
            actual_blocks.append(Block(page, start, words, "\n".join(lines)))
            words = None
    if words is not None:
        raise WrongError(f"{page}:{start}: the block is never closed")
    return actual_blocks


def run_page(page: Path, folder: Path) -> int:
    """Runs every block of a page in a folder; how many were run. Raises WrongError at the first fault."""
    run = Run(folder)
    for block in blocks(page):
        run.take(block)
    run.quiet()
    return run.count


@functools.cache
def forked_commands() -> ForkedCommands:
    """The process that runs the commands of all pages; it ends with this one."""
    around = {"PYTHONPATH": str(CHECKOUT), "PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8"}
    commands = ForkedCommands(around)
    atexit.register(commands.close)
    return commands


class Run:
    """The blocks of one page as they are run: one folder, one namespace, one output to compare."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self._names: dict[str, Any] = {"__name__": "page"}
        self._printed = ""
        self._by: Block | None = None

    def take(self, block: Block) -> None:
        """Runs one block."""
        if block.language == "text":
            self._compare(block)
            return
        self.quiet()
        takers = {"python": self._python, "console": self._console, "json": self._json, "jsonl": self._json}
        takers |= {"vmql": self._vmql, "sql": self._sql, "sh": self._sh, "": self._drawing}
        if block.language not in takers:
            raise block.wrong(f"nobody runs blocks of kind {block.language!r}; see tests/prose.py")
        takers[block.language](block)
        self.count += bool(block.language)

    def quiet(self) -> None:
        """Refuses output that the page does not show."""
        if self._printed and self._by is not None:
            raise self._by.wrong(f"prints what the page does not show:\n{shortened(self._printed)}")

    def _python(self, block: Block) -> None:
        code = compile("\n" * block.line + block.text, str(block.page), "exec")
        if len(block.words) > 1:
            (self.folder / block.words[1]).write_text(block.text + "\n", encoding="utf-8")
            return
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            try:
                exec(code, self._names)
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                line = next((f.lineno for f in reversed(frames) if f.filename == str(block.page)), block.line)
                raise WrongError(f"{block.page}:{line}: raises {type(error).__name__}: {error}") from error
        self._printed, self._by = printed.getvalue(), block

    def _compare(self, block: Block) -> None:
        if not self._printed:
            raise block.wrong("shows an output, and nothing before it prints one")
        if not alike(block.text, self._printed):
            raise block.wrong(f"shows\n{block.text}\nand the block before it prints\n{shortened(self._printed)}")
        self._printed, self.count = "", self.count + 1

    def _console(self, block: Block) -> None:
        for number, line, shown in commands(block):
            words = shlex.split(line)
            if words[0] not in PROGRAMS:
                run_here = ", ".join(PROGRAMS)
                raise block.wrong(f"line {number}: only {run_here} are run here; use a sh block for {line!r}")
            printed = self.printed(words)
            if not alike(shown, printed):
                raise block.wrong(f"line {number}: `{line}` shows\n{shown}\nand prints\n{shortened(printed)}")

    def printed(self, words: list[str]) -> str:
        """What one of the programs prints in a pipe; also its stderr where it fails."""
        linked = self.folder / "vmstore"  # as if the reader stood in the checkout
        if not linked.exists():
            linked.symlink_to(CHECKOUT / "vmstore", target_is_directory=True)
        done = forked_commands().run(words, self.folder)
        return done.stdout + (done.stderr if done.code else "")

    def _json(self, block: Block) -> None:
        texts = [block.text] if block.language == "json" else block.text.split("\n")
        for text in texts:
            try:
                json.loads(text)
            except ValueError as error:
                raise block.wrong(f"is not JSON: {error}") from None
        if len(block.words) > 1:
            ending = "\n" if block.language == "jsonl" else ""
            (self.folder / block.words[1]).write_text(block.text + ending, encoding="utf-8")

    def _sql(self, block: Block) -> None:
        """A statement that the SQL door answers, whatever stands for its parameters."""
        names = re.findall(r":(\w+)", block.text)
        with vmstore.memory_store() as store:
            if "_at(" in block.text:  # a moment is of a session, and has to be there
                messages: list[dict[str, str]] = []
                for turn in range(80 if re.search(r"_at\('turn'", block.text) else 1):
                    messages += [{"role": "user", "content": f"{turn}"}]
                    store.record("s", {"model": "m", "messages": messages}, {"role": "assistant", "content": "ok"})
                    messages += [{"role": "assistant", "content": "ok"}]
            session = "s" if "_at(" in block.text else None
            store.sql(block.text, session=session, params={name: 1 if name in MOMENTS else None for name in names})

    def _vmql(self, block: Block) -> None:
        for number, text in enumerate(block.text.split("\n"), block.line + 1):
            try:
                parse(text)
            except QueryError as error:
                raise block.wrong(f"line {number}: {text} is refused: {error}") from None

    def _sh(self, block: Block) -> None:
        extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for word in shlex.split(block.text, comments=True):
            if word.startswith("tools/") and not (CHECKOUT / word).is_file():
                raise block.wrong(f"names {word}, which is not there")
            if (named := re.fullmatch(r"\.\[(\w+)\]", word)) and named[1] not in extras:
                raise block.wrong(f"names the extra {named[1]!r}; pyproject.toml has {', '.join(extras)}")

    def _drawing(self, block: Block) -> None:
        if re.search(r"^\$ |^>>> ", block.text, re.MULTILINE):
            raise block.wrong("looks like a session; say what it is, so that it is run")


def shortened(printed: str) -> str:
    """An output as an error repeats it."""
    lines = printed.split("\n")
    return "\n".join(lines if len(lines) <= LINES_REPEATED else [*lines[:LINES_REPEATED], "…"])


def commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """The commands of a console block: their line, themselves, the output shown."""
    line, shown = "", []
    at = 0
    for number, text in enumerate(block.text.split("\n"), block.line + 1):
        if text.startswith("$ "):
            if line:
                yield at, line, "\n".join(shown)
            line, shown, at = text[2:], [], number
        elif not line:
            raise block.wrong("begins with an output; begin with `$ vmstore …` or `$ vmql …`")
        else:
            shown.append(text)
    if line:
        yield at, line, "\n".join(shown)


def alike(shown: str, printed: str) -> bool:
    """Whether an output is what a page shows of it; no output shown fits everything."""
    lines = [line.rstrip() for line in shown.strip("\n").split("\n")]
    if lines == [""]:
        return True
    pattern = ""
    for line in lines:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*?".join(map(re.escape, line.split("…"))) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead nowhere: missing files, missing headings."""
    broken = []
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for match in LINK.finditer(text):
        target = match["target"]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


def anchors(page: Path) -> set[str]:
    """The anchors a page's headings give, as GitHub makes them."""
    titles = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def section(text: str, title: str) -> str:
    """The text under a heading, up to the next heading of its rank or a higher one; nothing where it is not."""
    start = re.search(rf"^(#+) +{re.escape(title)} *$", text, re.MULTILINE)
    if start is None:
        return ""
    end = re.search(rf"^#{{1,{len(start[1])}}} ", text[start.end() :], re.MULTILINE)
    return text[start.end() : start.end() + end.start() if end else None]


def tables(text: str) -> list[list[list[str]]]:
    """The markdown tables of a text: their rows of cells, title and rule lines left out."""
    texts: list[list[list[str]]] = []
    before = ""
    for line in text.split("\n"):
        if line.startswith("|"):
            if not before.startswith("|"):
                texts.append([])
            texts[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        before = line
    return [table[2:] for table in texts]


def quoted(text: str) -> list[str]:
    """The words a text has in backticks, in order."""
    return re.findall(r"`([^`]+)`", text)
