"""Commands run by a process that has imported the shell already: each in a fork of it, as a process of its own.

Starting Python and importing vmstore costs some ten times what most commands do. What is run, its
arguments, folder, output and exit code are those of `python -P -m MODULE`; only the start is saved.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.lanes import ELSEWHERE

SERVER = """
import json, os, runpy, sys
import vmstore.shell.main, vmstore.shell.commands, vmstore.shell.vmql.main
asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
for line in asked:
    job = json.loads(line)
    child = os.fork()
    if not child:
        break
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), sum(os.times()[:4]), file=answers, flush=True)
else:
    os._exit(0)
for handle, name, flags in ((0, os.devnull, os.O_RDONLY), (1, job["out"], os.O_WRONLY), (2, job["err"], os.O_WRONLY)):
    os.dup2(os.open(name, flags), handle)
os.chdir(job["folder"])
sys.argv[1:] = job["words"]
runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
"""


class Shell:
    """A process that runs commands, begun at the first of them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._server: subprocess.Popen[str] | None = None
        self._spent = 0.0

    def run(self, module: str, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """What a module prints and ends with when it is run with some words in a folder."""
        server = self._running()
        assert server.stdin and server.stdout
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            job = {"module": module, "words": words, "folder": str(folder), "out": out.name, "err": err.name}
            print(json.dumps(job), file=server.stdin, flush=True)
            code, spent = server.stdout.readline().split()
            ELSEWHERE.append(float(spent) - self._spent)
            self._spent = float(spent)
            printed = [Path(file.name).read_text(encoding="utf-8") for file in (out, err)]
        return subprocess.CompletedProcess([module, *words], int(code), *printed)

    def _running(self) -> subprocess.Popen[str]:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-c", SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environment,
                text=True,
            )
            atexit.register(self.close)
        return self._server

    def close(self) -> None:
        """Ends the process."""
        if self._server is not None:
            self._server.communicate()
            self._server = None
