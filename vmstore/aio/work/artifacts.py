"""The async twins of the files and the atoms of a session."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.store.work import artifacts, atoms
from vmstore.store.work.artifacts import ArtifactInfo
from vmstore.store.work.atoms import AtomInfo
from vmstore.work.artifact import ArtifactCheck


@described_by(artifacts.Artifacts)
class Artifacts:
    """See `vmstore.Artifacts`."""

    def __init__(self, sync: artifacts.Artifacts, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def all(
        self, at: When | None = None, *, task: str | int | None = None, **moment: Unpack[Moment]
    ) -> list[ArtifactInfo]:
        """See `vmstore.Artifacts.all`."""
        return await self._worker.do(partial(self._sync.all, at, task=task, **moment))

    async def get(self, artifact: str | int, at: When | None = None, **moment: Unpack[Moment]) -> ArtifactInfo:
        """See `vmstore.Artifacts.get`."""
        return await self._worker.do(partial(self._sync.get, artifact, at, **moment))

    async def check(self, root: str | Path | None = None) -> list[ArtifactCheck]:
        """See `vmstore.Artifacts.check`."""
        return await self._worker.do(self._sync.check, root)

    async def add(
        self,
        path: str | Path,
        *,
        root: str | Path | None = None,
        task: str | int | None = None,
        mime: str | None = None,
        at_us: int | None = None,
    ) -> ArtifactInfo:
        """See `vmstore.Artifacts.add`."""
        return await self._worker.do(partial(self._sync.add, path, root=root, task=task, mime=mime, at_us=at_us))

    async def approve(
        self, artifact: str | int, *, who: str, granted: bool = True, at_us: int | None = None
    ) -> ArtifactInfo:
        """See `vmstore.Artifacts.approve`."""
        return await self._worker.do(partial(self._sync.approve, artifact, who=who, granted=granted, at_us=at_us))


@described_by(atoms.Atoms)
class Atoms:
    """See `vmstore.Atoms`."""

    def __init__(self, sync: atoms.Atoms, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def all(
        self,
        at: When | None = None,
        *,
        kind: str | None = None,
        task: str | int | None = None,
        ever: bool = False,
        **moment: Unpack[Moment],
    ) -> list[AtomInfo]:
        """See `vmstore.Atoms.all`."""
        return await self._worker.do(partial(self._sync.all, at, kind=kind, task=task, ever=ever, **moment))

    async def add(
        self,
        kind: str,
        text: str,
        *,
        task: str | int | None = None,
        sources: Iterable[str | int] = (),
        replaces: str | int | None = None,
        at_us: int | None = None,
    ) -> str:
        """See `vmstore.Atoms.add`."""
        stated = partial(self._sync.add, kind, text, task=task, sources=sources, replaces=replaces, at_us=at_us)
        return await self._worker.do(stated)
