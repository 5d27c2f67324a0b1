"""Seals of a namespace: made, kept beside the store, found again.

    agent.vms.seals/default-000001613-20261122T113000.000000Z.seal

A seal guards against what happens to the store only where the two are kept apart: copy the folder
to another machine, or hand the files to somebody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from vmstore.core.clock import Clock, SystemClock
from vmstore.core.system.atomic_file import naming, new_file
from vmstore.core.system.safe_files import read_within
from vmstore.engine.verify.history_tree import HistoryTree
from vmstore.engine.verify.verify import ChainCheck, batches_of
from vmstore.errors import CorruptError, InputError, RefusedError
from vmstore.log.port import Log, Progress
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import SealInfo
from vmstore.namespace.signing_keys import SigningKey, public_key, read_key
from vmstore.seals.seal import Seal, read, sealed, watched

SEALS = ".seals"
SEAL = ".seal"


class Sealable(Protocol):
    """The part of a store that sealing needs: its namespace."""

    _ns: Namespace


def seal(
    store: Sealable,
    key: SigningKey | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> SealInfo:
    """Signs where every session of a namespace stands, while others may write, and writes that to a file.

    `out` is by default a new file in the folder of seals beside the store. Every hash of the log is
    checked first, and so is the last seal in that folder: raises CorruptError where the chain is
    broken, RefusedError where the log no longer holds what was sealed, or nothing yet.
    """
    signer = key if isinstance(key, SigningKey) else read_key(key)
    cache = store._ns.cache
    folder = None if cache is None else folder_of(cache)
    if folder is None and out is None:
        raise InputError("a store in memory has no folder of seals beside it; name a file", code="in-memory")
    if out is None and store._ns.let.access is not None:
        raise RefusedError("the seals of a region lie with who keeps it; name a file of your own", code="region-seals")
    earlier = next(seals_in(folder, _name(store), last=True), None) if folder is not None else None
    made = sealed(
        _followed(store._ns.let.lent_log, earlier, progress), (clock or SystemClock()).now(), signer.public, signer.sign
    )
    if out is None:
        assert folder is not None, "it was looked for"
        with naming(folder):
            folder.mkdir(exist_ok=True)
        out = folder / f"{_name(store)}-{made.ordinal:09}-{_time(made.at)}{SEAL}"
    with new_file(Path(out)) as file:
        file.write(made.encoded())
    return SealInfo(
        str(out), made.namespace.hex(), made.ordinal, made.at, len(made.heads), made.root.hex(), made.key.hex()
    )


def read_seal(path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None) -> Seal:
    """The seal in a file; raises CorruptError where its signature, by `key` (a public one) if given, does not hold."""
    try:
        content = read_within(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); name a file that `vmstore seal` wrote") from error
    try:
        return read(content, None if key is None else public_key(key))
    except CorruptError as error:
        raise CorruptError(f"{path}: {error}") from error


def folder_of(namespace: Path) -> Path:
    """The folder for seals of a namespace: beside its store, so that they are no part of it."""
    store = namespace.absolute().parent
    return store.with_name(store.name + SEALS)


def seals_in(folder: Path, namespace: str, *, last: bool = False) -> Iterator[Seal]:
    """The seals of a namespace in a folder, the oldest first, or the `last` first."""
    head = f"{namespace}-"
    found = (file for file in folder.glob(f"*{SEAL}") if file.name.startswith(head))
    named = [(file.name[len(head) :], file) for file in found if file.name[len(head) :].count("-") == 1]
    return (read_seal(file) for _, file in sorted(named, reverse=last))


def _followed(log: Log, earlier: Seal | None, progress: Progress | None) -> HistoryTree:
    """The history trees of a log; refused where its chain, or an earlier seal, does not hold."""
    histories = HistoryTree(watched([earlier] if earlier is not None else []))
    check, total = ChainCheck(log, histories), log.ordinal
    for batch in batches_of(log):
        for commit in batch:
            check.commit(commit)
        if progress is not None:
            progress(min(batch[-1].ordinal, total), total)
    if check.problems:
        found = check.problems[0]
        raise CorruptError(
            f"{found.where}: {found.what}; what is broken is not sealed, run `vmstore verify`", code="not-sound"
        )
    if histories.first is None:
        raise RefusedError("the namespace holds no session yet, so there is nothing to seal", code="nothing-to-seal")
    for broken in earlier.problems(histories) if earlier is not None else ():
        raise RefusedError(
            f"the seal before holds no longer, {broken.where}: {broken.what}; put back what is missing, or, where you "
            "know why it is, move the seals away and seal again",
            code="seal-broken",
        )
    return histories


def _name(store: Sealable) -> str:
    return "memory" if store._ns.cache is None else store._ns.name


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
