"""Puts and gets checkpoints with two savers in turns; run by the bench `langgraph` in the integrations' environment.

At the larger size the thread's first checkpoints hold the last 50 messages of the talk, written in memory and copied
to the disk, for whole ones take SqliteSaver gigabytes; the ones that are timed hold the whole talk.
"""

from __future__ import annotations

import gc
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver

from vmstore.integrations.langgraph import VmstoreSaver

TEXT = "The quick brown fox jumps over the lazy dog, and then it does so again. "
WINDOW = 50
TIMED = 60  # checkpoints at the larger size
THREAD = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
OPEN: dict[str, Callable[[Path], Any]] = {
    "sqlite": lambda folder: SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")),
    "vmstore": lambda folder: VmstoreSaver.from_path(folder / "agent.vms"),
}


def main(asked: dict[str, Any]) -> None:
    """Prints the seconds of each act by size, saver and clock, one for each round, and the bytes of a checkpoint."""
    disk, memory = Path(asked["disk"]), Path(asked["memory"])
    small, large = asked["sizes"]
    times = [_times() for _ in asked["sizes"]]
    for number in range(asked["rounds"]):
        for name in OPEN:
            with opened(name, disk / f"{name}-{number}") as saver:
                talk = Talk(saver, asked["burdens"][name])
                for _ in range(small):
                    talk.step()
                talk.tell(times[0][name])
    for name in OPEN:
        with opened(name, memory / name) as saver:
            talk = Talk(saver)
            for _ in range(large):
                talk.step(window=WINDOW, is_got=False)
            talk.step(is_got=False)
        shutil.move(memory / name, disk / f"{name}-large")
    sizes = {name: size_of(disk / f"{name}-large") for name in OPEN}
    for _ in range(asked["rounds"]):
        for name in OPEN:
            with opened(name, disk / f"{name}-large") as saver:
                talk = Talk(saver, asked["burdens"][name], resumed=True)
                for _ in range(TIMED // asked["rounds"]):
                    talk.step()
                talk.tell(times[1][name])
    grown = {name: (size_of(disk / f"{name}-large") - sizes[name]) / TIMED for name in OPEN}
    print(json.dumps({"times": times, "bytes": grown}))


def _times() -> dict[str, dict[str, list[float]]]:
    acts = [f"{act} {clock}" for act in ("put", "get") for clock in ("CPU", "wall")]
    return {name: {act: [] for act in acts} for name in OPEN}


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Any]:
    """A saver over files in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with OPEN[name](folder) as saver:
        yield saver


def size_of(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Talk:
    """A talk that is put after each message, and got again; `burden` seconds are laid on each act."""

    def __init__(self, saver: Any, burden: float = 0.0, *, resumed: bool = False) -> None:
        self._saver = saver
        self._burden = burden
        self._config: Any = THREAD
        self._messages: list[Any] = []
        self._seconds = dict.fromkeys(("put CPU", "put wall", "get CPU", "get wall"), 0.0)
        self._timed = 0
        if resumed:
            checkpoint = saver.get_tuple(THREAD)
            self._config, self._messages = checkpoint.config, checkpoint.checkpoint["channel_values"]["messages"]

    def step(self, *, window: int | None = None, is_got: bool = True) -> None:
        """One more message; of the talk the last `window` are in the checkpoint."""
        number = len(self._messages)
        made = (HumanMessage if number % 2 else AIMessage)(TEXT + str(number), id=f"m{number}")
        self._messages = [*self._messages, made]
        shown = self._messages if window is None else self._messages[-window:]
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6())
        checkpoint["channel_values"] = {"messages": shown, "n": number, "branch:to:agent": None}
        checkpoint["channel_versions"] = dict.fromkeys(checkpoint["channel_values"], number + 1)
        checkpoint["versions_seen"] = {"agent": {"branch:to:agent": number}}
        metadata: Any = {"source": "loop", "step": number, "parents": {}}
        versions = checkpoint["channel_versions"]
        self._config = self._time("put", lambda: self._saver.put(self._config, checkpoint, metadata, versions))
        if is_got:
            saved = self._time("get", lambda: self._saver.get_tuple(THREAD))
            assert saved.checkpoint["channel_values"]["messages"][-1] == made, "another checkpoint was got"
        self._timed += 1

    def tell(self, times: dict[str, list[float]]) -> None:
        """Adds the seconds of one act to those of the rounds before."""
        for act, seconds in self._seconds.items():
            times[act].append(seconds / self._timed)

    def _time(self, act: str, run: Callable[[], Any]) -> Any:
        gc.disable()
        cpu, wall = time.process_time(), time.perf_counter()
        answer = run()
        if self._burden:
            until = time.process_time() + self._burden
            while time.process_time() < until:
                pass
        self._seconds[f"{act} CPU"] += time.process_time() - cpu
        self._seconds[f"{act} wall"] += time.perf_counter() - wall
        gc.enable()
        return answer


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
