"""What a kernel said of a session, obviously: read from the facts of the model, one by one."""

from __future__ import annotations

import json
from collections import namedtuple
from typing import Any

from specs.model import HEAD, Model
from vmstore.core import mutation as m
from vmstore.core.decision import Cause, Load

# A page that was asked for or came back, what had put it out; `answer` is the mutation that says so, a pack's None.
Fault = namedtuple("Fault", "position turn page out_since asked answer")


class Decided(Model):
    """The model, and who holds a page, which settings are in force, what was asked for and what left."""

    def settings(self, session: str, position: int = HEAD) -> dict[str, Any] | None:
        """The settings in force; None where no kernel is at work."""
        found: dict[str, Any] | None = None
        for fact in self.seen(session, position):
            if isinstance(fact.mutation, m.Settings):
                found = (found or {}) | object_in(self.cell(session, fact.position, fact.mutation.told))
        return found

    def pinned(self, session: str, position: int = HEAD) -> set[int]:
        """The pages that somebody holds."""
        held: set[tuple[int, int]] = set()
        for fact in self.seen(session, position):
            match fact.mutation:
                case m.Pin(page=page, holder=holder):
                    held.add((page, holder))
                case m.Unpin(page=page, holder=holder):
                    held.discard((page, holder))
        return {page for page, _ in held}

    def moves(self, session: str, position: int = HEAD) -> tuple[list[Fault], list[tuple[int, int]]]:
        """The faults, and (position, turn) of each time a page left the prompt.

        A kernel says both itself; before one is at work packs show what came back and what left.
        """
        out: dict[int, int] = {}  # since when pages that were in the prompt are not, as packs and decisions tell
        gone: dict[int, int] = {}  # and as packs alone do
        here: set[int] = set()
        references: dict[int, m.Reference] = {}
        faults: list[Fault] = []
        left: list[tuple[int, int]] = []
        live = False
        for fact, turn, _ in self.moments(session, position):
            match fact.mutation:
                case m.Settings():
                    live = True
                case m.Reference():
                    references[fact.position] = fact.mutation
                case m.FaultIn(page=page, reference=asked) | m.FaultDenied(page=page, reference=asked):
                    told = (out.get(page), references.get(asked), fact.mutation)
                    faults.append(Fault(fact.position, turn, page, *told))
                case m.Evict(page=page, level=None, cause=cause):
                    left += [(fact.position, turn)] * (cause != Cause.THOUGHT)  # which no call was to be sent
                    out.setdefault(page, fact.position)
                case m.Pack():
                    now = {shown.page for shown in self.context(session, fact.position)}
                    if not live:
                        back = sorted((now - here) & gone.keys())
                        faults += [Fault(fact.position, turn, page, gone[page], None, None) for page in back]
                        left += [(fact.position, turn)] * len(here - now)
                    for page in here - now:
                        out.setdefault(page, fact.position)
                        gone[page] = fact.position
                    here = now
            match fact.mutation:
                case m.FaultIn(page=page) | m.Prefetch(page=page) | m.Evict(page=page, level=int()):
                    out.pop(page, None)
                case m.Pack(entered=entered):
                    for new in entered:
                        out.pop(new[0], None)
        return faults, left

    def told(self, session: str, position: int = HEAD) -> dict[int, tuple[int, str | None]]:
        """The searches of each turn, and the fullest class its prompt came to."""
        found: dict[int, tuple[int, str | None]] = {}
        loads: dict[int, list[int]] = {}
        for fact, turn, _ in self.moments(session, position):
            count, load = found.get(turn, (0, None))
            if isinstance(fact.mutation, m.Search):
                found[turn] = count + 1, load
            elif isinstance(fact.mutation, m.Pressure):
                loads.setdefault(turn, []).append(fact.mutation.level)
                found[turn] = count, Load(max(loads[turn])).word
        return found

    def invalidated(self, session: str, position: int = HEAD) -> dict[int, int]:
        """Tokens of the request before from the first place on where each call's is another, by call.

        A page whose message has another skeleton is another too. Where a pack says what it voids, that is it.
        """
        versions = self.versions(session, position)
        tokens = {c.position: c.told.tokens for listed in versions.values() for c in listed}
        found: dict[int, int] = {}
        before: list[tuple[int, int]] = []
        for number, call in self.calls(session, position).items():
            now = [(shown.page, shown.content) for shown in self.context(session, call.position)]
            reworded = {message for message, _ in call.pack.envelopes}
            alike = 0
            while alike < min(len(before), len(now)) and before[alike] == now[alike]:
                if versions[now[alike][0]][0].told.message in reworded:
                    break
                alike += 1
            lost = sum(tokens[content] for _, content in before[alike:])
            found[number] = lost if call.pack.voided is None else call.pack.voided
            before = now
        return found


def object_in(cell: bytes) -> dict[str, Any]:
    """The JSON object in a cell, empty where somebody sealed something else."""
    try:
        told = json.loads(cell)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
