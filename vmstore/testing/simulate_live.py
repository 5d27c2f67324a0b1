"""Plays random live sessions through the public object, with restarts, forks, crashes and a second handle.

Clock and ids are made here, so the same life gives the same bytes. What the player itself handed in is
kept: the exact bytes of every page whose content it chose.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from hypothesis import strategies as st

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Link
from vmstore.core.page import LinkKind
from vmstore.errors import InputError, RefusedError, StoreError, UnknownError
from vmstore.live.runtime import Runtime
from vmstore.log.port import Log
from vmstore.store.live.live_session import Live
from vmstore.store.live.prompt import Prompt
from vmstore.store.store import Store

START = 1_795_301_701_000_000  # 2026-11-21T22:55:01Z
BUDGET = 3_000
SETTINGS: dict[str, Any] = {"l0_tokens_max": BUDGET, "reserve_faults_tokens": 300, "policy": "lru", "rules": "short"}
SYSTEM = "You plan journeys. Be brief."
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
Step = tuple[str, int, int]

SUBJECTS = ("database", "cache", "queue", "timetable", "ticket office", "platform")
THINGS = ("Postgres", "Redis", "Kafka", "paper", "brass", "granite")
ACTS = (
    "user", "user", "model", "model", "call", "call", "call", "pack", "pack", "fault", "fault", "ask", "pin", "unpin",
    "evict", "compress", "claim", "attach", "segment", "mark", "restore", "configure", "recall", "cite", "search",
    "annotate", "fork", "other", "restart", "rebuild", "fail", "record", "narrow", "think", "stand_in",
    "retract", "retract", "link", "unlink", "delete", "flush", "close",
    "update", "rewind", "instruct", "keep",
)  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 500), st.integers(0, 7)), min_size=1, max_size=25)


def words(n: int, k: int) -> str:
    """A text made of two numbers: some decide something, some ask, most are long and tell nothing."""
    subject, thing = SUBJECTS[n % len(SUBJECTS)], THINGS[k % len(THINGS)]
    match k:
        case 0:
            return f"Let's use {thing} for the {subject}."
        case 1:
            return f"As we decided earlier, what did we choose for the {subject}?"
        case 2:
            return f"Note {n}: see [ref: p{n}] </VM:CONTEXT> \x1b[31m\u202e {subject}"
        case 7:
            return f"Line {n} of the {subject} is about {thing}. Nobody knows why it is there. " * 300
    return f"The {subject} of station {n} has {k} clocks of {thing}. Each is {n % 7} minutes late. " * (1 + n % 12)


def picture(n: int) -> bytes:
    """A grey PNG of some pixels, larger than its stated size."""
    width, height = 100 + n, 40 + 2 * n
    rows = b"".join(b"\0" + bytes((n * x * y) % 251 for x in range(width)) for y in range(height))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def clocked(path: Path | None, seed: int) -> Store:
    """A store whose clock and ids are made up; in memory where there is no path."""
    clock, ids = ManualClock(START + seed), SeededIds(seed)
    return vmstore.memory_store(clock=clock, ids=ids) if path is None else vmstore.open(path, clock=clock, ids=ids)


class LiveRun:
    """A life of one live session and its forks; `session` is the one that acts now."""

    def __init__(self, path: Path | None = None, *, calm: bool = False, seed: int = 1, **settings: Any) -> None:
        self.path, self.calm = path, calm
        self.restarts = 0
        self.store = clocked(path, seed)
        try:
            first = self.store.live_session("s", system=SYSTEM, tools=TOOLS, **{**SETTINGS, **settings})
        except (InputError, RefusedError):  # what is pinned has outgrown that budget since
            first = cast(Live, self.store.session("s"))
        self.live: list[Live] = [first]
        self.exact: dict[tuple[str, str], bytes] = {}
        self.packs: list[tuple[str, int, dict[str, tuple[int, int]]]] = []
        self.refused = self.failed = 0
        self.calls = 0
        self.marks: list[str] = []
        self.changed: dict[str, None] = {}  # pages that were given another content by hand

    @property
    def session(self) -> Live:
        """The session that acts."""
        return self.live[-1]

    @property
    def runtime(self) -> Runtime:
        """Its kernel, at the log's end."""
        self.session.look(lambda runtime: None)
        return self.session.runtime()

    def close(self) -> None:
        """Closes the store."""
        self.store.close()

    def keep(self, pages: list[str], content: bytes) -> None:
        """Remembers what was handed in."""
        for page in pages[:1]:
            self.exact[self.session.name, page] = content

    def page(self, n: int) -> str:
        """Some page of the session."""
        numbers = list(self.runtime.state.pages)
        return f"p{numbers[n % len(numbers)]}"

    def play(self, step: Step) -> None:
        """Does one thing; what is refused must leave the log as it was."""
        before = self.store.admin.log.ordinal
        try:
            self._play(*step)
        except (InputError, RefusedError, UnknownError):
            self.refused += 1
            assert self.store.admin.log.ordinal == before, f"{step} was refused and wrote something"

    def _play(self, act: str, n: int, k: int) -> None:
        session, text = self.session, words(n, k)
        match act:
            case "user":
                self.keep(session.user(text), text.encode())
            case "model":
                usage = {"tokens_in": 500 + 7 * n} if k % 2 else {}
                self.keep(session.assistant(text, **usage), text.encode())
            case "call":
                self.calls += 1
                asked = {"name": "read", "arguments": f'{{"path": "{n}.txt"}}'}
                call = {"id": f"c{self.calls}", "type": "function", "function": asked}
                session.assistant({"role": "assistant", "content": None, "tool_calls": [call]})
                self.keep(session.tool(f"c{self.calls}", text), text.encode())
            case "pack":
                self.packed(session.pack())
            case "fault":
                reasons = ("user_requested_recall", "resolve_reference", "tool_prereq", "speculative")
                session.page_fault(self.page(n), k % 4, reason=reasons[k // 2], by_model=True)
            case "ask":
                session.page_fault(self.page(n) if k else "nobody", k % 4)
            case _:
                self._keep_house(act, n, k)

    def _keep_house(self, act: str, n: int, k: int) -> None:
        session, text = self.session, words(n, k)
        match act:
            case "pin":
                session.pin(self.page(n), plan=bool(k % 2))
            case "unpin":
                session.unpin(self.page(n))
            case "evict":
                session.evict(self.page(n))
            case "compress":
                session.compress(self.page(n), 1 + k % 3)
            case "claim":
                sources = [self.page(n)] if k % 2 else []
                self.keep([session.claim(text, name=f"claim_{k}", sources=sources)], text.encode())
            case "attach":
                broken = bytes([n % 256]) * 50 * n + b"x"
                data, mime = (text.encode(), "text/plain") if k % 2 else (picture(n) if k % 4 else broken, "image/png")
                seen = f"The {SUBJECTS[n % len(SUBJECTS)]}." if k == 2 else None
                self.keep([session.attach(data, mime, name=f"file{n}", words=seen)], data)
            case "segment":
                session.segment(f"part {n}", summary=None if k % 2 else text)
            case "mark":
                session.mark(f"m{n}", [self.page(n)] if k % 2 else None)
                self.marks.append(f"m{n}")
            case "restore":
                session.restore(self.marks[n % len(self.marks)] if self.marks else "none")
            case "configure":
                chores: tuple[dict[str, Any], ...] = (
                    {"l0_tokens_max": BUDGET // 2}, {"l0_tokens_max": 2 * BUDGET}, {"pinned_turns": k},
                    {"paging": "runtime"}, {"paging": "hybrid"}, {"compress": False},
                    {"fault_threshold": "speculative"}, {"l0_tokens_max": 400},
                    {"tags": "keyword", "compaction": True, "compact_soft": 0.2, "compact_hard": 0.3}, {"tags": "off"},
                )  # fmt: skip
                session.configure(**chores[n % len(chores)])
            case _:
                self._note(act, n, k)

    def _note(self, act: str, n: int, k: int) -> None:
        session, text = self.session, words(n, k)
        match act:
            case "recall":
                session.recall(self.page(n), corrected=bool(k % 2))
            case "cite":
                session.cite(self.page(n))
            case "search":
                session.search(SUBJECTS[n % len(SUBJECTS)])
            case "annotate":
                session.annotate(self.page(n), importance=k / 7, tags=[f"t{k}"])
            case "record":
                session.record({}, {"choices": [{"message": {"role": "assistant", "content": text}}]})
            case "narrow":
                self.packed(session.pack(window_tokens_max=(None, 300, 700, 1_200)[n % 4]))
            case "think":
                session.assistant({"role": "assistant", "content": f"Answer {n}.", "reasoning_content": text})
            case "stand_in":
                source, target = self.page(n), self.page(n + 1 + k)
                with session.batch() as batch:
                    batch.add(Link(int(source[1:]), int(target[1:]), LinkKind.REPRESENTS))
            case "retract":
                page = f"{session.name}/{self.page(n)}"
                vmstore.retract(self.store, page=page, reason="played", rebuild=bool(k % 2), dry_run=k == 7)
            case "link" | "unlink" | "delete" | "flush" | "close":
                self._change(act, n, k)
            case "update" | "rewind" | "instruct" | "keep":
                self._say_anew(act, n, k)
            case "fork":
                name = f"s{len(self.live)}"
                self.live.append(session.fork(name))
                known = {page: data for (owner, page), data in self.exact.items() if owner == session.name}
                self.exact |= {(name, page): data for page, data in known.items()}
            case "other" if len(self.live) > 1:
                self.live.append(self.live.pop(n % len(self.live)))
            case "restart" | "rebuild" | "fail" if not self.calm:
                self._disturb(act)

    def _change(self, act: str, n: int, k: int) -> None:
        """Manual changes of pages or of the session."""
        session = self.session
        match act:
            case "link":
                session.link(self.page(n), self.page(n + 1 + k), ("derives", "represents", "supersedes")[k % 3])
            case "unlink":
                every = [
                    link for number in range(n, n + 8) for link in session.lineage.ancestors(self.page(number), depth=1)
                ]
                if every:
                    session.unlink(every[0].source, every[0].target, every[0].kind)
            case "delete":
                session.delete(self.page(n))
            case "flush":
                session.flush(None if k % 2 else self.page(n))
            case "close":
                session.close(("completed", "abandoned")[k % 2], f"reason {n}" if k % 3 else None)

    def _say_anew(self, act: str, n: int, k: int) -> None:
        """Acts that give a page another content."""
        session, text = self.session, words(n, k)
        match act:
            case "update":
                own = [page.page for page in session.pages() if page.message is None]
                for page in own[n % len(own) :][:1] if own else ():
                    session.update(page, text)
                    self.changed[page] = None
                    self.keep([page], text.encode())
            case "rewind":
                session.rewind(self.marks[n % len(self.marks)] if self.marks else "none")
                for page in self.changed:
                    self.exact.pop((session.name, page), None)
            case "instruct":
                instructions = None if k % 2 else f"{SYSTEM} Line {n}."
                front: dict[str, Any] = {"system": instructions, "tools": TOOLS if n % 2 else []}
                self.store.live_session(session.name, **front)
            case "keep":
                session.keep(f"value {k % 3}", None if k == 7 else {"n": n})

    def _disturb(self, act: str) -> None:
        """Acts that must not change any decision."""
        match act:
            case "restart" if self.path is not None:
                self.store.close()
                self.restarts += 1
                self.store = clocked(self.path, 10_000 * self.restarts)
                again = (self.store.session(live.name) for live in self.live)
                self.live = [live for live in again if isinstance(live, Live)]
            case "rebuild":
                self.store.admin.rebuild()
            case "fail":
                self._fail()
            case _:
                self.store._ns.live.clear()  # the process died, and its memory with it

    def _fail(self) -> None:
        """The disk is full for a moment: the act is lost whole, and the next one finds the session as it was."""
        log: Any = self.store.admin.log
        before = digest(log)
        whole = log.together

        def full(batches: Any) -> Any:
            raise StoreError("the disk is full")

        log.together = full
        try:
            with suppress(StoreError):
                self.session.user("lost")
        finally:
            log.together = whole
        self.failed += 1
        assert digest(log) == before, "an act that failed left something in the log"

    def packed(self, packed: Prompt) -> None:
        """Keeps what a pack said of the prompt."""
        runtime = self.runtime
        lowered = {runtime.spoken.number(change.name): change.level for change in packed.lowered}
        left = {runtime.spoken.number(change.name) for change in packed.left}
        here = {
            f"p{page}": (lowered.get(page, resident.level), resident.rank)
            for page, resident in runtime.state.here.items()
            if page not in left
        }
        assert [f"p{runtime.spoken.number(name)}" for name in packed.pages] == sorted(here, key=lambda p: here[p][1])
        self.packs.append((self.session.name, packed.call, here))


def digest(log: Log) -> str:
    """A digest of every commit of a log."""
    hashed = hashlib.sha256()
    for commit in log.tail(0, 1 << 30):
        hashed.update(commit.hash)
    return hashed.hexdigest()


def played(steps: list[Step], path: Path | None = None, **options: Any) -> LiveRun:
    """A whole life."""
    life = LiveRun(path, **options)
    for step in steps:
        life.play(step)
    return life
