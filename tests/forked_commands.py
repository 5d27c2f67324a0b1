"""Runs `vmstore` and `vmql` as processes that need not import them first.

A command costs a tenth of a second, and starting Python with everything it imports four times as
much. So one process imports once and forks a child for each command: the child has its own folder,
its own stdout and stderr and its own exit code, as a process started by a shell has.

  python -P tests/forked_commands.py     answers requests on stdin, one JSON object a line
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

PROGRAMS = {"vmstore": "vmstore", "vmql": "vmstore.shell.vmql"}  # each with the module that is the same
# What needs pytest, is run as a command, needs a framework, needs an extra that `dev` has not.
NOT_IMPORTED = (
    *("testing", "__main__", "integrations", "s3"),
    *("postgres", "postgres_capabilities", "postgres_checkpoints"),
)


class Finished(NamedTuple):
    """What a command left: its exit code, stdout and stderr."""

    code: int
    stdout: str
    stderr: str


class ForkedCommands:
    """A process that forks a child for each command, kept until it is closed."""

    def __init__(self, env: dict[str, str]) -> None:
        command = [sys.executable, "-P", str(Path(__file__).resolve())]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True, encoding="utf-8"
        )

    def run(self, words: list[str], folder: Path) -> Finished:
        """Runs one of the programs in a folder, with nothing on its stdin."""
        assert self._server.stdin and self._server.stdout, "both are pipes"
        self._server.stdin.write(json.dumps({"words": words, "folder": str(folder)}) + "\n")
        self._server.stdin.flush()
        return Finished(*json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        """Ends the process."""
        assert self._server.stdin and self._server.stdout, "both are pipes"
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(timeout=60)


def serve() -> None:
    """Answers one request a line until stdin ends."""
    import vmstore

    for module in pkgutil.walk_packages(vmstore.__path__, "vmstore."):
        if not set(NOT_IMPORTED) & set(module.name.split(".")):
            importlib.import_module(module.name)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_run(request["words"], request["folder"])), flush=True)


def _run(words: list[str], folder: str) -> list[int | str]:
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        child = os.fork()
        if not child:
            _become(words, folder, stdout.fileno(), stderr.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (stdout, stderr):
            file.seek(0)
            texts.append(file.read().decode())
    return [code, *texts]


def _become(words: list[str], folder: str, stdout: int, stderr: int) -> None:
    """Runs the program in this child and ends it; never returns."""
    code = 1
    try:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        sys.argv = list(words)
        runpy.run_module(PROGRAMS[words[0]], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
