"""A process is killed in the middle of an erasure: what it recorded is finished by the next opening of the store."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.child import start
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from vmstore.erasure import erase as erasing
from vmstore.erasure import scrub
from vmstore.erasure.certificates import beside, certificates
from vmstore.erasure.erase import erase
from vmstore.errors import ErasedError
from vmstore.log import destruction

SECRET = "the combination is 4711-violet-9"
LONG = "long violet words, many of them; " * 3_000

STEPS: dict[str, tuple[Any, str, bool]] = {
    "marked": (erasing, "mark", False),
    "recorded": (erasing, "_destroy", True),
    "rewriting": (destruction, "_rewritten", True),
    "rewritten": (destruction, "_remove", True),
    "removed": (destruction, "_scrub", True),
    "scrubbed": (destruction, "_scrub", False),
    "folding": (scrub, "compacted", True),
    "folded": (erasing, "scrub_text", True),
    "forgotten": (erasing, "forget_erased", False),
    "certified": (erasing, "keep", False),
}
"""After which step it dies: what is called then, and whether before it or after."""


def dying(at: Any, name: str, before: bool) -> None:
    """Has the process die where something is called."""
    real: Callable[..., Any] = getattr(at, name)

    def die(*arguments: Any, **fields: Any) -> Any:
        if not before:
            real(*arguments, **fields)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(at, name, die)


@pytest.mark.parametrize("step", STEPS)
def test_what_was_begun_is_finished(tmp_path: Path, step: str) -> None:
    """Whatever step it dies at: verify names what is there, the next open finishes it, a certificate says so."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        store.record("s", chat(SECRET, "Noted.", LONG), answer("Gone."))
        store.session("s").annotate("p6", tags=["violet-tag"])
        store.search("combination")

    def child() -> None:
        dying(*STEPS[step])
        erase(vmstore.open(path), session="s")

    pid = start(child)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    with vmstore.open(path, "r") as reader:
        problems = [problem for problem in reader.verify().problems if problem.kind == "erasure"]
        assert bool(problems) == (step in ("recorded", "rewriting"))
        assert all("vmstore erase STORE --finish" in problem.what for problem in problems)
    with vmstore.open(path) as store:
        planted = [SECRET.encode(), LONG[:200].encode(), b"violet-tag"]
        assert store.verify().ok
        if step == "marked":  # nothing was recorded, so nothing is erased
            assert store.session("s").content("p6") == SECRET.encode()
            assert not (path / "default" / "erasing").exists()
            return
        with pytest.raises(ErasedError):
            store.session(store.sessions()[0].session).content("p6")
        assert found_in(tmp_path, planted) == {}
        assert not (path / "default" / "erasing").exists()
        named = {
            cell.commitment
            for certificate in certificates(beside(path))
            for e in certificate.erasures
            for cell in e.cells
        }
        assert len(named) == store.admin.log.last_cell
