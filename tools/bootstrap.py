"""Makes the checkout's one `.venv`, installs vmstore into it and keeps it up to date.

Standard library only, and written so that a Python too old for vmstore can read it and say so.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Callable, NoReturn, Sequence  # noqa: UP035  Python 3.8 has no others

ROOT = Path(__file__).resolve().parent.parent
PYTHON_MIN = (3, 11)
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
SATISFIED_BY = {
    "all": ("all", "dev"),
    "dev": ("dev",),
    "sdk": ("sdk",),
    "integrations": ("integrations",),
    "docs": ("docs", "integrations"),
    "postgres-tests": ("postgres-tests",),
}  # dev holds all that `all` holds
TAIL_LINES = 15


class RefusedError(Exception):
    """Something on this machine stops the tool; the message names it and the remedy."""


def entry(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Runs a tool's main and exits with its code; what stops it is told in plain words."""
    try:
        refuse_platform(sys.platform)
        use_new_python()
        sys.exit(main(sys.argv[1:]))
    except RefusedError as refusal:
        sys.exit(f"{Path(sys.argv[0]).name}: {refusal}")
    except KeyboardInterrupt:
        sys.exit(130)


def ready(extra: str, root: Path = ROOT, venv: str = ".venv") -> Path:
    """The `bin` folder of an environment that holds vmstore with this extra, made or updated if need be."""
    folder = root / venv
    if not is_fresh(folder, extra, root):
        if not has_pip(folder):
            make(folder)
        install(folder, extra, root)
    return folder / "bin"


def say(text: str) -> None:
    """One line on what is being done; on stderr, since stdout belongs to the tool's own output."""
    print(text, file=sys.stderr, flush=True)


def refuse_platform(platform: str) -> None:
    """Refuses Windows."""
    if platform.startswith(("win", "cygwin")):
        raise RefusedError(
            "vmstore does not run on Windows: what it acknowledges must survive power loss, and for that it"
            " relies on POSIX file locks and on syncing folders; run it on Linux, macOS or inside WSL"
        )


def use_new_python() -> None:
    """Starts this command again under a newer Python when the running one is too old."""
    if sys.version_info >= PYTHON_MIN:
        return
    for name in PYTHONS:
        actual = shutil.which(name)
        if actual and runs(actual, f"import sys; sys.exit(sys.version_info < {PYTHON_MIN})"):
            say(f"Python {sys.version.split()[0]} is too old for vmstore: going on with {actual}")
            os.execv(actual, [actual, *sys.argv])
    least = ".".join(map(str, PYTHON_MIN))
    raise RefusedError(
        f"Python {sys.version.split()[0]} is too old and none of {', '.join(PYTHONS)} was found;"
        f" install Python {least} or newer, or name it: python{least} {sys.argv[0]}"
    )


def is_fresh(venv: Path, extra: str, root: Path) -> bool:
    """Tells whether the environment was installed from this very pyproject.toml with enough extras."""
    wanted = digest(root)
    stamps = (stamp(venv, other) for other in SATISFIED_BY[extra])
    stamped = any(path.is_file() and path.read_text() == wanted for path in stamps)
    return stamped and os.access(venv / "bin" / "python", os.X_OK)


def stamp(venv: Path, extra: str) -> Path:
    """The file that remembers what an extra was last installed from."""
    return venv / f"vmstore-{extra}.stamp"


def digest(root: Path) -> str:
    """A hash of pyproject.toml and of where it stands: a moved checkout needs its scripts rebuilt."""
    other_digest = hashlib.sha256(os.fsencode(root) + b"\0")
    other_digest.update((root / "pyproject.toml").read_bytes())
    return other_digest.hexdigest()


def has_pip(venv: Path) -> bool:
    """Tells whether the environment is whole: a new enough Python with pip, still at this place."""
    python = venv / "bin" / "python"
    here = f"os.path.realpath(sys.prefix) == {os.path.realpath(venv)!r}"
    return runs(str(python), f"import os, pip, sys; sys.exit(sys.version_info < {PYTHON_MIN} or not {here})")


def runs(python: str, code: str) -> bool:
    """Tells whether a Python can be started and ends this code without complaint."""
    try:
        return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make(venv: Path) -> None:
    """Makes the environment, in the place of a broken or half-made one."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            major, minor = sys.version_info[:2]
            raise RefusedError(
                f"this Python ({sys.executable}) has no {module} module; install it"
                f" (Debian, Ubuntu: apt install python{major}.{minor}-venv) or use a Python from python.org"
            )
    say(f"{'Rebuilding the broken' if venv.exists() else 'Making'} {venv}")
    run([sys.executable, "-m", "venv", "--clear", str(venv)], venv.parent, f"cannot make {venv}")


def install(venv: Path, extra: str, root: Path) -> None:
    """Installs the checkout, editable, with one extra; stamps the environment once that is done."""
    say(f"Installing vmstore[{extra}] into {venv} (the first time takes a minute)")
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    run([*pip, "--editable", f".[{extra}]"], root, f"cannot install vmstore[{extra}]")
    stamp(venv, extra).write_text(digest(root))


def run(command: Sequence[str], folder: Path, trouble: str) -> None:
    """Runs a command silently; when it fails, its last lines are the reason given."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    if done.returncode:
        last = "\n".join("    " + line for line in done.stdout.rstrip().splitlines()[-TAIL_LINES:])
        raise RefusedError(
            f"{trouble}; the last lines were\n{last}\n"
            f"  mend that and run this again; to see it whole: {shlex.join(command)}"
        )
