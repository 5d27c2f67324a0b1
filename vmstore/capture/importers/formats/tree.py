"""Grows the lines of a conversation whose records name their parents.

Each record joins a branch as the file is read from top to bottom, so what a longer file adds never
moves what was already placed. The rules:
 - a record whose parent is unknown continues the branch of the record before it;
 - of several records that name one parent the first continues its branch, the others fork off
   right after the parent;
 - a record that may not fork (a tool result, a further line of one answer) joins its parent's
   branch, and is not counted among those that name the parent;
 - bookkeeping is no node of its own: who names it names its parent.
"""

from __future__ import annotations

from vmstore.capture.steps import Step, Track
from vmstore.core.page import Origin


class TrackBranch:
    """One track under construction."""

    def __init__(self, part: str, parent: TrackBranch | None = None, inherits: int = 0) -> None:
        self.part = part
        self.parent = parent
        self.inherits = inherits  # of the parent's steps, its own inherited ones included
        self.steps: list[Step] = []
        self.tip: RecordNode | None = None  # the last record that can be named as a parent
        self.origin = Origin.NEW if parent is None else Origin.FORK
        self.is_spawned: bool = parent is not None and parent.is_spawned  # or forked off what is
        self.spawned_by: str | None = None
        self.call: str | None = None  # the message id of its last call

    @property
    def length(self) -> int:
        """How many steps lead to its end, inherited ones included."""
        return self.inherits + len(self.steps)

    def leads_through(self, other: TrackBranch, index: int) -> bool:
        """Whether step `index` of `other` is among the steps that lead to this branch's end."""
        branch: TrackBranch | None = self
        while branch is not None and branch is not other:
            if index >= branch.inherits:
                return False
            branch = branch.parent
        return branch is not None


class RecordNode:
    """A placed record: the branch it is on, and that branch's length right after it."""

    __slots__ = ("branch", "end", "named")

    def __init__(self, branch: TrackBranch, end: int) -> None:
        self.branch = branch
        self.end = end
        self.named = False  # whether a record has continued it by name


class RecordTree:
    """The branches of one file, the main one first, and where each named record stands."""

    def __init__(self) -> None:
        self.main = TrackBranch("")
        self.branches = [self.main]
        self.nodes: dict[str, RecordNode] = {}
        self._parts = {""}

    def branch_of(self, parent: object, line: TrackBranch, part: str, forks: bool = True) -> TrackBranch:
        """The branch a record belongs to, forked off now where the rules ask for it."""
        node = self.nodes.get(parent) if isinstance(parent, str) else None
        if node is None:
            return line
        if not forks:
            return node.branch
        if node.named:
            return self.grow(part, node.branch, node.end)
        node.named = True
        return node.branch

    def grow(self, part: str, parent: TrackBranch, inherits: int) -> TrackBranch:
        """A new branch off `parent`, under a name no other branch of the file has."""
        unique, n = part, 1
        while unique in self._parts:
            n += 1
            unique = f"{part}-{n}"
        self._parts.add(unique)
        branch = TrackBranch(unique, parent, inherits)
        self.branches.append(branch)
        return branch

    def spawn(self, part: str, parent: TrackBranch, call: str | None) -> TrackBranch:
        """A new session that a tool call on `parent` started, if it is known which."""
        branch = self.grow(part, parent, 0)
        branch.origin, branch.is_spawned, branch.spawned_by = Origin.SPAWN, True, call
        return branch

    def place(self, name: object, branch: TrackBranch, step: Step) -> None:
        """Adds a record to its branch; a repeated name stands for its latest record from now on."""
        branch.steps.append(step)
        branch.tip = RecordNode(branch, branch.length)
        if isinstance(name, str):
            self.nodes[name] = branch.tip

    def pass_through(self, name: object, parent: object, branch: TrackBranch, step: Step) -> None:
        """Adds bookkeeping to a branch; records that name it continue its own parent."""
        branch.steps.append(step)
        node = self.nodes.get(parent) if isinstance(parent, str) else None
        if isinstance(name, str) and (node := node or branch.tip) is not None:
            self.nodes[name] = node

    def tracks(self, key: str | None, name: str) -> list[Track]:
        """The branches as tracks, parents before their children."""
        return [
            Track(
                key=key if not b.part or key is None else f"{key}#{b.part}",
                name=name if not b.part else f"{name}-{b.part}",
                part=b.part,
                steps=b.steps,
                origin=b.origin,
                parent=None if b.parent is None else b.parent.part,
                inherits=b.inherits,
                spawned_by=b.spawned_by,
            )
            for b in self.branches
        ]
