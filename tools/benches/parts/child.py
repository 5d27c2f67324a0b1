"""What benches have done in a process of its own, so that time and memory are that process's alone.

`python -m benches.parts.child ACT STORE [ARGUMENT…]` prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benches.parts import doors
from benches.parts.story import Utterance
from vmstore.store.session import Session

TOOLS = Path(__file__).resolve().parents[2]


def run(act: str, *arguments: object) -> dict[str, float]:
    """Runs an act in a process of its own; what it told."""
    done = subprocess.run(_command(act, arguments), capture_output=True, text=True, check=False, env=_environment())
    if done.returncode:
        raise RuntimeError(f"{act} failed: {done.stderr.strip().splitlines()[-1:]}")
    counts: dict[str, float] = json.loads(done.stdout)
    return counts


def seconds(act: str, *arguments: object) -> float:
    """Runs an act in a process of its own; the CPU it took there."""
    return run(act, *arguments)["seconds"]


def start(act: str, *arguments: object) -> subprocess.Popen[str]:
    """Starts an act that is talked with line by line."""
    pipe = subprocess.PIPE
    return subprocess.Popen(_command(act, arguments), stdin=pipe, stdout=pipe, text=True, env=_environment())


def _command(act: str, arguments: tuple[object, ...]) -> list[str]:
    return [sys.executable, "-m", "benches.parts.child", act, *map(str, arguments)]


def _environment() -> dict[str, str]:
    """The checkout's own vmstore and benches come first."""
    before = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOOLS.parent), str(TOOLS), before])}


def peak_mb() -> float:
    """The most memory this process ever had resident, in MB of 10^6 bytes."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


# ---- the acts


def fold(path: str) -> None:
    """Folds all views of a store whose views were deleted."""
    started = time.process_time()
    with doors.opened(Path(path)) as store:
        store.admin.follow()
        seconds = time.process_time() - started
    _tell(seconds=seconds, peak=peak_mb())


def reopen(path: str, name: str) -> None:
    """Opens a store, reads the context at its end, and commits one mutation."""
    started = time.process_time()
    with doors.opened(Path(path)) as store:
        session = store.session(name)
        session.context()
        _say(session)
        seconds = time.process_time() - started
        _tell(seconds=seconds, peak=peak_mb())


def act(path: str, name: str) -> None:
    """Opens a store and says something in a live session, which has to be brought to where it stood."""
    started = time.process_time()
    with doors.opened(Path(path)) as store:
        store.session(name).user("Go on with the next step.")
        seconds = time.process_time() - started
    _tell(seconds=seconds, peak=peak_mb())


def enter(path: str, name: str) -> None:
    """Opens a store and reads the context at the end of a session."""
    started = time.process_time()
    with doors.opened(Path(path)) as store:
        store.session(name).context()
        seconds = time.process_time() - started
    _tell(seconds=seconds, peak=peak_mb())


def as_of(address: str, name: str, position: str) -> None:
    """Opens a cold tier for reading and asks what a session's model saw at a position; imports are off the clock."""
    import vmstore
    from vmstore.namespace.backends.cold import ColdBackend

    assert ColdBackend is not None, "it is loaded when an address names it"
    started = time.process_time()
    with vmstore.open(address, "r") as store:
        pages = store.session(name).pages(position=int(position))
        seconds = time.process_time() - started
    assert pages, "the session is there"
    _tell(seconds=seconds, peak=peak_mb())


def reader(path: str, name: str) -> None:
    """Reads the context at the end whenever told of a position, until it holds it; tells the seconds."""
    with doors.opened(Path(path)) as store:
        session = store.session(name)
        session.context()
        _tell(ready=1)
        for line in sys.stdin:
            started = time.perf_counter()
            while session.context().basis.position < int(line):
                pass
            _tell(seconds=time.perf_counter() - started)


def idle(path: str) -> None:
    """Opens a store and asks for one mutation."""
    with doors.opened(Path(path)) as store:
        next(store.query("MUTATIONS"))
    _tell(seconds=0.0, peak=peak_mb())


def stream(path: str) -> None:
    """Takes every mutation of a store, one at a time."""
    started = time.process_time()
    with doors.opened(Path(path)) as store:
        for _ in store.query("MUTATIONS"):
            pass
    _tell(seconds=time.process_time() - started, peak=peak_mb())


def _say(session: Session) -> None:
    with doors.batch(session, 1) as under_way:
        doors.play(under_way, [Utterance(under_way.position, 2, b"[]", 0)])


def _tell(**number: float) -> None:
    print(json.dumps(number), flush=True)


ACTS: dict[str, Callable[..., Any]] = {
    **{"fold": fold, "reopen": reopen, "act": act, "enter": enter, "reader": reader},
    **{"idle": idle, "stream": stream, "as_of": as_of},
}

if __name__ == "__main__":
    ACTS[sys.argv[1]](*sys.argv[2:])
