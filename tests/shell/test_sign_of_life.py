"""A sign of life while an answer takes long."""

from __future__ import annotations

import io
import sys
import time

import pytest

from vmstore.shell.terminal import sign_of_life
from vmstore.shell.terminal.sign_of_life import WaitingSign


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_sign_appears_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that takes long shows a line with the seconds, which is taken away; quick work and a pipe show nothing."""
    for stream, patience, shown in ((Terminal(), 0.0, True), (Terminal(), 60.0, False), (io.StringIO(), 0.0, False)):
        monkeypatch.setattr(sign_of_life, "PATIENCE_S", patience)
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(sys, "stdout", stream)
        sign = WaitingSign("reading").start()
        deadline = time.monotonic() + 5
        while shown and not stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        sign.stop()
        sign.stop()
        assert ("reading (0 s" in stream.getvalue()) == shown
        assert stream.getvalue().endswith("\r" if shown else "")
