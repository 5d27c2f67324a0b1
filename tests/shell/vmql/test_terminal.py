"""The shell at a real terminal: a program types into it and reads its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shell.conftest import ROOT
from vmstore.shell.vmql.interruptible import InterruptibleThread

PATIENCE_S = 60.0
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Typist:
    """Types into a terminal and reads what it shows, escape sequences left out."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.raw = b""  # what the terminal was sent

    def type(self, text: str) -> None:
        """Presses keys."""
        os.write(self._master, text.encode())

    def answer(self, wanted: str) -> str:
        """What the terminal shows up to something that is awaited and the next prompt."""
        shown = self.until(wanted)
        rest = shown.rpartition(wanted)[2]
        return shown if "vmql>" in rest else shown + self.until("vmql>")

    def until(self, wanted: str) -> str:
        """What the terminal shows up to something that is awaited."""
        start, shown = len(self.raw), ""
        end = time.monotonic() + PATIENCE_S
        while wanted not in shown:
            assert time.monotonic() < end, f"waited for {wanted!r} and saw {shown!r}"
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    self.raw += os.read(self._master, 65536)
                except OSError:  # the other end has closed
                    raise AssertionError(f"ended before {wanted!r}: {shown!r}") from None
                shown = ESCAPES.sub("", self.raw[start:].decode("utf-8", "replace"))  # none is cut in two
        return shown

    def left(self) -> int:
        """The exit code, once the shell has ended."""
        return self.process.wait(PATIENCE_S)


@contextmanager
def terminal(*words: object, **more: str) -> Iterator[Typist]:
    """A shell in a terminal of 24 lines of 100 columns."""
    pytest.importorskip("prompt_toolkit")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24"}
    for name in ("FORCE_COLOR", "NO_COLOR"):
        env.pop(name, None)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "vmstore.shell.vmql", *map(str, words)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**env, "PROMPT_TOOLKIT_NO_CPR": "1", **more},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        yield Typist(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_a_sitting_at_a_terminal(planning: Path) -> None:
    """Long answers are paged, a limit says how to go on, and Ctrl-D leaves with 0."""
    with terminal(planning) as typist:
        typist.until("vmql>")
        typist.type("PAGES page, tokens;\r")
        assert "page" in typist.until("── more: Space")
        typist.type(" ")
        typist.until("── more: Space")
        typist.type("q")
        typist.until("vmql>")
        typist.type("\\limit 3\r")
        typist.answer("limit: 3")
        typist.type("PAGES page, tokens;\r")
        assert "── more:" not in typist.answer("shows more of them")
        typist.type("\\pager off\r")
        typist.answer("pager: off")
        typist.type("\\limit 0\r")
        typist.answer("limit: 0")
        typist.type("PAGES page;\r")
        assert "── more:" not in typist.answer("p4138")
        typist.type("\x04")
        assert typist.left() == 0


def test_ctrl_c_cancels_what_runs(planning: Path) -> None:
    """Ctrl-C ends a statement that runs, says so, and the next one is answered."""
    with terminal(planning) as typist:
        typist.until("vmql>")
        typist.type("WATCH MUTATIONS position, kind WHERE kind = open;\r")
        typist.until("  open\n")
        time.sleep(0.5)
        typist.type("\x03")
        typist.answer("cancelled")
        typist.type("SESSIONS turns;\r")
        typist.answer("220")
        typist.type("\\quit\r")
        assert typist.left() == 0


def test_a_question_is_asked_again_and_again(planning: Path) -> None:
    """`\\watch` asks the last statement until Ctrl-C, and the shell goes on."""
    with terminal(planning) as typist:
        typist.until("vmql>")
        typist.type("SESSIONS turns;\r")
        typist.answer("220")
        typist.type("\\watch 0.1\r")
        for _ in range(3):
            typist.until("220")
        typist.type("\x03")
        typist.answer("cancelled")
        typist.type("\\quit\r")
        assert typist.left() == 0


def test_no_color_means_none(planning: Path) -> None:
    """With NO_COLOR neither the line nor the answer has a colour."""
    with terminal(planning, NO_COLOR="1") as typist:
        typist.until("vmql>")
        typist.type("CONTEXT AT CALL 3;\r")
        typist.answer("pages · planner")
        typist.type("\x04")
        assert typist.left() == 0
    assert not re.search(rb"\x1b\[[0-9;]*(3|4|9)[0-7]", typist.raw)
    with terminal(planning) as typist:
        typist.until("vmql>")
        typist.type("CONTEXT AT CALL 3;\r")
        typist.until("pages · planner")
    assert re.search(rb"\x1b\[[0-9;]*(3|4|9)[0-7]", typist.raw), "else nothing is seen here"


def test_tab_completes(planning: Path) -> None:
    """Tab writes the one way to go on."""
    with terminal(planning) as typist:
        typist.until("vmql>")
        typist.type("SESSIONS tit\t")
        typist.until("le")  # the rest of "title": where the machine is slow it is drawn by itself
        typist.type(";\r")
        typist.until("Tidemark v2")


def test_ctrl_c_reaches_a_query_under_way() -> None:
    """The thread that waits for the worker gets KeyboardInterrupt once the work has heard that it is cancelled."""
    worker, cancelled, ended = InterruptibleThread(), threading.Event(), threading.Event()

    def work() -> None:
        assert cancelled.wait(PATIENCE_S)
        ended.set()

    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        worker.run(work, cancelled.set)
    assert ended.is_set() and worker.run(lambda: 5, cancelled.set) == 5
    with pytest.raises(ZeroDivisionError):
        worker.run(lambda: 1 // 0, cancelled.set)
    worker.close()
