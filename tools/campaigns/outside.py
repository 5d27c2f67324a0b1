"""What others made, handed in by every door: it harms nothing, obeys nobody, and ends with a clear word.

Beside each hostile input lie a store whose writer was killed, with acknowledged commits in its WAL, and
files of a person's. The `vmstore` command is given the input in a process of its own. Afterwards they are
the same byte for byte, nothing was made outside the folders that the command is told, the store it is told
answers as it did, and the process neither crashed nor hung nor took more memory than it may.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import stat
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from campaigns.held import Broken

import vmstore
from vmstore.retention.apply import rules
from vmstore.shell.main import main

CANARY, PRECIOUS, HERE, THERE, AGAIN = "canary.vms", "precious", "here.vms", "there.vms", "again.vms"
LIMIT_S = 120  # a process that takes longer waits for something that never comes
PARTS = 6  # batches that hand in every input
MEMORY_BYTES = 200 << 20  # beside what a process has that does nothing
SECRET = "the combination is 4711-violet-9"
LONG = "long violet words, many of them; " * 3_000
TOLD = 40  # sessions of the canary
OURS = (HERE, AGAIN, "out", "in")  # what an input may change, or bring along


class Hostile(NamedTuple):
    """An input: of which kind, what it is, and what makes it in the folder `in` of a room; the command it is for."""

    kind: str
    name: str
    make: Callable[[Room], Sequence[str]]
    refused: bool | None = None  # whether it has to be; None where it may be harmless


class Room:
    """A folder with a canary, a person's files, a store that is told things, and one that comes from elsewhere."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home, self.temp = place / "home", place / "temp"
        for folder in (self.home, self.temp, place / PRECIOUS):
            folder.mkdir(parents=True)
        in_child(lambda: canary(place / CANARY), killed=True)
        (place / PRECIOUS / "letter.txt").write_text("somebody else's words")
        shutil.copy(place / CANARY / "default" / "log.sqlite", place / PRECIOUS / "log.sqlite")
        in_child(lambda: ours(place / HERE))
        shutil.copytree(place / HERE, place / "first.vms")
        in_child(lambda: theirs(place))
        self.known = answers(place / HERE)
        self.before = self.seen()

    @property
    def input_folder(self) -> Path:
        """The folder of the input; empty for each."""
        return self.place / "in"

    def path(self, name: str) -> Path:
        """Something of the room by its name."""
        return self.place / name

    def copy(self, name: str) -> Path:
        """A copy of something of the room, in the folder of the input."""
        shutil.copytree(self.place / name, self.input_folder / name, symlinks=True)
        return self.input_folder / name

    def clear(self) -> None:
        """Puts the room back as it was before an input."""
        for name in (HERE, AGAIN, f"{HERE}.erasures", f"{AGAIN}.erasures", "out", "in"):
            shutil.rmtree(self.place / name, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                (self.place / name).unlink()
        shutil.copytree(self.place / "first.vms", self.place / HERE)
        self.input_folder.mkdir()

    def seen(self) -> dict[str, str]:
        """Every file that no input may touch, and what is in it."""
        fields = {}
        for folder, folders, files in os.walk(self.place):
            if Path(folder) == self.place:
                folders[:] = [name for name in folders if not name.startswith(OURS)]
                files = [name for name in files if not name.startswith(OURS)]
            for name in (*folders, *files):
                at = Path(folder) / name
                fields[str(at.relative_to(self.place))] = looks(at)
        return fields


def looks(at: Path) -> str:
    """What stands at a path: its kind and what is in it."""
    mode = at.lstat().st_mode
    if stat.S_ISREG(mode):
        return hashlib.sha256(at.read_bytes()).hexdigest()
    return f"link to {os.readlink(at)}" if stat.S_ISLNK(mode) else str(stat.S_IFMT(mode))


# ---- what lies there


def chat(*texts: str) -> dict[str, Any]:
    """A request in which a person and a model take turns."""
    return {
        "model": "m-1",
        "messages": [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(texts)],
    }


def answer(text: str) -> dict[str, Any]:
    """A response that says something."""
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def canary(path: Path) -> None:
    """A store with acknowledged commits in its WAL, whose writer is killed."""
    store = vmstore.open(path)
    for number in range(TOLD):
        store.record(f"s{number}", chat(f"Word {number}."), answer("Yes."))
    os.kill(os.getpid(), signal.SIGKILL)


def ours(path: Path) -> None:
    """A store with a session that masks, one with a long content, one that is archived, and a fork."""
    with vmstore.open(path) as store:
        store.record("plan", chat("Where to?"), answer("North."), redaction="mask")
        store.record("long", chat(SECRET), answer("Noted."))
        store.record("long", chat(SECRET, "Noted.", LONG), answer("Noted too."))
        store.record("rest", chat("I rest."), answer("Do."))
        store.session("long").fork("branch", call=1)
        vmstore.archive(store, "rest", grace_s=0)


def theirs(place: Path) -> None:
    """What comes from elsewhere: the same store that went on, its backup, its bundles, its certificates."""
    there = place / THERE
    shutil.copytree(place / HERE, there)
    with vmstore.open(there) as store:
        store.record("guest", chat("my password is hunter2-Blue"), answer("Hm."))
        store.export(place / "guest.jsonl", "guest", exact=True)
        store.backup(place / "backup")
        vmstore.seal(store, vmstore.new_key(place / "seal.key"), place / "there.seal")
    for name, change in CHANGES.items():
        shutil.copytree(there, place / f"{name}.vms")
        with vmstore.open(place / f"{name}.vms") as store:
            change(store)
            sessions = [info.session for info in store.sessions() if info.session != "rest"]
            store.export(place / f"{name}.jsonl", sessions, exact=True)
            store.backup(place / f"{name}.backup")


def policy_off(store: vmstore.Store) -> None:
    """The session that masks masks no more."""
    store.session("plan", redaction="off")


CHANGES: dict[str, Callable[[vmstore.Store], object]] = {
    "erased-page": lambda store: vmstore.erase(store, page=store.search("combination")[0].page, in_session="long"),
    "erased-session": lambda store: vmstore.erase(store, session="long"),
    "unmasked": policy_off,
    "approved": lambda store: vmstore.approve(store, "all", who="mallory"),
    "shared": lambda store: vmstore.share(store, "sandbox:mallory", "read,write,grant"),
}


# ---- trying


def batch(seed: int, folder: Path, part: int = PARTS) -> Counter[str]:
    """Hands in one input of so many, in an order of its own: as many seeds in a row hand in all of them."""
    from campaigns.hostile import INPUTS

    room = Room(folder / "room")
    chosen = [each_input for nth, each_input in enumerate(INPUTS) if (nth + seed) % part == 0]
    random.Random(seed).shuffle(chosen)
    counts: Counter[str] = Counter()
    for item in chosen:
        for what, count in tried(room, item).items():
            counts[what] = max(counts[what], count) if what.startswith("worst") else counts[what] + count
    return counts


class Ended(NamedTuple):
    """How a command ended: its exit code, what it said, and how much memory it took beside what it began with."""

    code: int
    said: str
    memory: int


def tried(room: Room, hostile: Hostile) -> Counter[str]:
    """Hands in one input and looks at what became of all that is precious."""
    room.clear()
    where = f"{hostile.kind}, {hostile.name}"
    ended = run(room, hostile.make(room), where)
    if "Traceback" in ended.said or not 0 <= ended.code <= 2:
        raise Broken("crashed", f"{where}: exit {ended.code}, {ended.said[-2_000:]}")
    if ended.code and not ended.said.strip():
        raise Broken("silent", f"{where}: exit {ended.code} without a word")
    if ended.memory > MEMORY_BYTES:
        raise Broken("memory", f"{where}: {ended.memory:,} bytes")
    if hostile.refused is not None and hostile.refused is (ended.code == 0):
        raise Broken("obeyed" if hostile.refused else "refused", f"{where}: exit {ended.code}, {ended.said[-500:]}")
    unharmed(room, where)
    for name in (HERE, AGAIN):
        if (room.path(name) / "default").is_dir():
            sound(room, name, where)
    how = "refused" if ended.code else "taken harmlessly"
    return Counter({hostile.kind: 1, "inputs": 1, how: 1, "worst MiB": ended.memory >> 20})


def unharmed(room: Room, where: str) -> None:
    """Raises Broken where a file outside the folders of the command is another one, gone or new."""
    now = room.seen()
    if now != room.before:
        changed = sorted(name for name in now.keys() | room.before.keys() if now.get(name) != room.before.get(name))
        raise Broken("harmed", f"{where}: {', '.join(changed[:9])}")
    if left := [name for name in os.listdir(room.place) if name.startswith(".")]:
        raise Broken("left", f"{where}: {', '.join(left)}")


def sound(room: Room, name: str, where: str) -> None:
    """Raises Broken where a store does not verify, answers otherwise, or obeys what came along."""
    try:
        now = answers(room.path(name))
    except vmstore.VmstoreError as error:
        raise Broken("harmed", f"{where}: {name} cannot be asked: {error}") from error
    if now["stated"] != room.known["stated"]:
        raise Broken("obeyed", f"{where}: {name} states {now['stated']}")
    for session, known in room.known["sessions"].items():
        if name == HERE and now["sessions"].get(session) != known:
            raise Broken("harmed", f"{where}: session {session!r} of {name} answers otherwise")


def answers(path: Path) -> dict[str, Any]:
    """What a store says of all that was acknowledged, and of what is in force in it."""
    with vmstore.open(path, "r") as store:
        verdict = store.verify()
        if not verdict.ok:
            raise vmstore.CorruptError(str(verdict.problems[0]))
        sessions = {info.session: store.session(info.session) for info in store.sessions()}
        responses = {
            name: [session.wire.request(call=n + 1) for n in range(session.info().calls)]
            for name, session in sessions.items()
            if name in ("plan", "long", "rest", "branch")
        }
        policies = {name: sessions[name].info().redaction for name in ("plan", "long") if name in sessions}
        stated = [
            [approval.who for approval in vmstore.approvals(store) if approval.in_force],
            len(vmstore.grants(store)),
            len(rules(store)),
            policies,
        ]
    return json.loads(json.dumps({"sessions": responses, "stated": stated}))


def run(room: Room, command: Sequence[str], where: str) -> Ended:
    """Runs the command in a process that is ended where it waits for ever; what it said and took."""
    place = room.place / "in" / ".said"
    began = _resident()
    child = os.fork()
    if not child:
        code = 3
        try:
            code = _inside(room, command, place)
        finally:
            os._exit(code)
    until = time.monotonic() + LIMIT_S
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.wait4(child, 0)
            raise Broken("hung", f"{where}: {command[0]} was not done after {LIMIT_S} s")
        time.sleep(0.003)
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, place.read_text(errors="replace"), max(used.ru_maxrss * 1024 - began, 0))


def _inside(room: Room, command: Sequence[str], path: Path) -> int:
    """The child: its words in a file, its temporary files and its home in the room."""
    with path.open("w") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(room.home)
        os.environ |= {"HOME": str(room.home), "TMPDIR": str(room.temp)}
        import tempfile

        tempfile.tempdir = None
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        try:
            return main(command)
        except SystemExit as error:
            return int(error.code) if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
            return 3
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()


def _resident() -> int:
    """What this process has in memory, which a child begins with."""
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * resource.getpagesize()


def in_child(work: Callable[[], object], *, killed: bool = False) -> None:
    """Does something in a process of its own, so that no store was ever open in this one."""
    child = os.fork()
    if not child:
        code = 3
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != (-signal.SIGKILL if killed else 0):
        raise Broken("crashed", f"the room could not be made: {code}")


NEEDED = frozenset(
    ("backup", "bundle", "merge", "archive", "store", "certificate", "file", "refused", "taken harmlessly")
)
