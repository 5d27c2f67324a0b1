"""Tampering: somebody who can write to a store's files changes what was sealed, and makes every hash fit again.

A tampering that leaves the sealed past as it was is drawn again. Most are laid into a log in memory,
some into a store on disk that the `vmstore` command then verifies. Each must be noticed by `verify`
with the seal; what verify notices without it is counted too. Seals and proofs are tampered with as well.
"""

from __future__ import annotations

import contextlib
import io
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import apsw
import msgspec
from campaigns.forgeries import FORGERIES, Piece, Story, again, flipped, relinked, unlinked_bytes
from campaigns.held import Broken
from campaigns.script import SOURCE, STORE, Player, script, write_source

import vmstore
from vmstore.cells.verify_proof import check
from vmstore.core.clock import SeededIds
from vmstore.engine.verify.history_tree import HistoryTree
from vmstore.engine.verify.verify import Finding, verify
from vmstore.errors import CorruptError
from vmstore.log import memory, port, sqlite
from vmstore.log.commit import Commit
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.seals.seal import Seal, read, watched
from vmstore.shell.main import main
from vmstore.views.projection import Projection

TAMPERINGS = 500  # of one store
STEPS = 10  # of the script that makes it; a seal is made after half of them
ON_DISK = 50  # one in so many is laid into a store on disk
TRIES = 20


def batch(seed: int, folder: Path, tamperings: int = TAMPERINGS) -> Counter[str]:
    """Tampers with one store in many ways, one at a time."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter(stores=1)
    story = made(seed, folder)
    for pieces in (story.pieces, relinked(story.pieces), relinked(again(story, chance))):
        for log in (in_memory(pieces), on_disk(pieces, folder)):
            rows = [*chain(*noticed(log, story))]
            log.close()
            if rows:
                raise Broken("false alarm", f"what was not tampered with is not clean: {rows[0]}")
            counts["sound"] += 1
    for nth in range(tamperings):
        kind = chance.choice([*FORGERIES, *PAPERS])
        if kind in PAPERS:
            PAPERS[kind](story, chance)
            counts[kind] += 1
        else:
            counts += forged(kind, story, chance, folder if nth % ON_DISK == 0 else None)
        counts["tamperings"] += 1
    return counts


def made(seed: int, folder: Path) -> Story:
    """A store of a script of this seed, sealed when it was half as long."""
    root = folder / "sound"
    root.mkdir(parents=True)
    write_source(folder, random.Random(seed))
    key = vmstore.new_key(folder / "key", ids=SeededIds(seed))
    player = Player(root, folder / SOURCE, seed)
    steps = script(seed, STEPS)[:-1]  # the last one reopens it
    for step in steps[: STEPS // 2]:
        player.play(step)
    path = vmstore.seal(player.store, key, folder / "seal").path
    sealed = Path(path).read_bytes()
    proofs = list(proven(player.store, read(sealed)))
    for step in steps[STEPS // 2 :]:
        player.play(step)
    pieces = [Piece(commit.session, commit) for commit in whole(player.store.admin.log)]
    player.close()
    seal = read(sealed, key.public)
    covers = Counter(piece.session for piece in pieces[: seal.ordinal])
    stranger = vmstore.new_key(folder / "strange", ids=SeededIds(-1 - seed))
    return Story(pieces, sealed, seal, covers, key.public, proofs, stranger)


def proven(store: vmstore.Store, seal: Seal) -> list[tuple[bytes, bytes | None]]:
    """A proof of the first and of the last page of every call of every session."""
    rows = []
    for info in store.sessions():
        session = store.session(info.session)
        for call in range(1, info.calls + 1):
            pages = session.context(call=call).page_ids
            for page in {pages[0], pages[-1]} if pages else ():
                proof = store.trust.prove(session, page, call=call, seal=seal)
                rows.append((proof.proof, proof.content))
    return rows


def whole(log: Log) -> list[Commit]:
    """Every commit with its cells."""
    items = []
    for commit in log.tail(0, 1 << 30):
        cells = log.cells(range(commit.cell, commit.cell + commit.cell_count))
        items.append(msgspec.structs.replace(commit, cells=tuple(cells[number] for number in sorted(cells))))
    return items


# ---- laying and looking


def in_memory(pieces: Sequence[Piece]) -> Log:
    """A log that holds these commits."""
    return laid(pieces, MemoryLog())


def on_disk(pieces: Sequence[Piece], folder: Path) -> Log:
    """A log on disk that holds these commits."""
    file = folder / "left" / STORE / "default" / "log.sqlite"
    shutil.rmtree(folder / "left", ignore_errors=True)
    file.parent.mkdir(parents=True)
    SqliteLog.create(file)
    return laid(pieces, SqliteLog(file))


def laid(pieces: Sequence[Piece], log: Log) -> Log:
    """A log to which commits were appended as they are, as a writer of its file can."""
    keys: dict[int, tuple[int, int]] = {}
    with _unchecked():
        for piece in pieces:
            key, position = keys.get(piece.session, (0, 0))
            (stored,) = log.append([piece.commit], key, position)
            keys[piece.session] = stored.session, stored.last
    return log


@contextmanager
def _unchecked() -> Iterator[None]:
    """Has logs take what follows nothing, which they refuse of their own."""
    right = port.check_expected
    for module in (memory, sqlite):
        module.check_expected = lambda *arguments: None  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in (memory, sqlite):
            module.check_expected = right  # type: ignore[attr-defined]


NO_VIEWS = Projection(MemoryLog(), apsw.Connection(""))


def noticed(log: Log, story: Story) -> tuple[list[Finding], list[Finding]]:
    """What verify finds in a log by itself, and what it finds by the seal."""
    histories = HistoryTree(watched([story.seal]))
    _, findings = verify(log, NO_VIEWS, views=False, rules=False, histories=histories)
    return findings, list(story.seal.problems(histories))


def commanded(story: Story, folder: Path) -> bool:
    """Whether the command says of the store on disk that something is wrong."""
    (folder / "held").write_bytes(story.sealed)
    words = ["verify", str(folder / "left" / STORE), "--log", "--seal", str(folder / "held"), "--json"]
    with contextlib.redirect_stdout(io.StringIO()):
        return main([*words, "--public-key", story.public.hex()]) == 1


def forged(kind: str, story: Story, chance: random.Random, folder: Path | None) -> Counter[str]:
    """One forgery of the log; raises Broken where nobody notices."""
    kind, pieces = drawn(kind, story, chance)
    log = in_memory(pieces) if folder is None else on_disk(pieces, folder)
    alone, by_seal = noticed(log, story)
    log.close()
    if not (alone or by_seal):
        raise Broken("unnoticed", f"{kind}: nobody notices")
    counts = Counter([kind, "found without the seal" if alone else "by the seal"])
    if folder is not None:
        if not commanded(story, folder):
            raise Broken("unnoticed", f"{kind}: the command does not notice")
        counts["on disk"] += 1
    return counts


def drawn(kind: str, story: Story, chance: random.Random) -> tuple[str, list[Piece]]:
    """The commits after a forgery that changes what was sealed, and its kind: another where this one would not."""
    for _ in range(TRIES):
        tampered = FORGERIES[kind](story, chance)
        if tampered is not None:
            pieces = relinked(tampered.pieces) if tampered.linked else tampered.pieces
            if covered(pieces, story) != covered(story.pieces, story):
                return kind, pieces
    return "bytes flipped", unlinked_bytes(story, chance).pieces


def covered(pieces: Sequence[Piece], story: Story) -> dict[int, list[Commit]]:
    """What was sealed, as far as it is still there: the first commits of each session, with their cells."""
    fields: dict[int, list[Commit]] = {session: [] for session in story.covers}
    for session, commit in pieces:
        if len(fields.get(session, ())) < story.covers.get(session, 0):
            fields[session].append(msgspec.structs.replace(commit, session=0, ordinal=0, cell=0))
    return fields


# ---- seals and proofs


def flip_seal(story: Story, chance: random.Random) -> None:
    """A byte of the seal is flipped."""
    with contextlib.suppress(CorruptError):
        read(flipped(story.sealed, chance), story.public)
        raise Broken("unnoticed", "a seal with a flipped byte passes")


def seal_again(story: Story, chance: random.Random) -> None:
    """A forged history is sealed with another key, under the name of the right one or its own."""
    seal = read(story.sealed)
    head = chance.randrange(len(seal.heads))
    forged = seal.heads[head]._replace(hash=chance.randbytes(32))
    heads = tuple(forged if nth == head else each_head for nth, each_head in enumerate(seal.heads))
    key = chance.choice([story.stranger.public, story.public])
    seal = msgspec.structs.replace(seal, heads=heads, key=key)
    with contextlib.suppress(CorruptError):
        read(msgspec.structs.replace(seal, signature=story.stranger.sign(seal.signing)).encoded(), story.public)
        raise Broken("unnoticed", "a seal of another key passes")


def flip_proof(story: Story, chance: random.Random) -> None:
    """A byte of a proof, or of the content that goes with it, is flipped."""
    proof, content = chance.choice(story.proofs)
    if content is not None and chance.random() < 0.2:
        refused(proof, story, flipped(content, chance))
    else:
        refused(flipped(proof, chance), story, content)


def mix_proofs(story: Story, chance: random.Random) -> None:
    """A part of a proof, or a number or a hash of it, is that of another proof."""
    right = {proof for proof, _ in story.proofs}
    for _ in range(TRIES):
        first, other = (msgspec.json.decode(chance.choice(story.proofs)[0]) for _ in range(2))
        part = chance.randrange(1, 5)
        if chance.random() < 0.5:
            first[part] = other[part]
        else:
            at = chance.randrange(len(first[part]))
            first[part][at] = other[part][at]
        mixed = msgspec.json.encode(first) + b"\n"
        if mixed not in right:
            return refused(mixed, story, None)
    return flip_proof(story, chance)


def refused(proof: bytes, story: Story, content: bytes | None) -> None:
    """Raises Broken where a proof that is none passes."""
    with contextlib.suppress(Exception):
        check(proof, story.public, content)
        raise Broken("unnoticed", "a proof that is none passes")


PAPERS: dict[str, Callable[[Story, random.Random], None]] = {
    "seal flipped": flip_seal,
    "sealed by another": seal_again,
    "proof flipped": flip_proof,
    "proofs mixed": mix_proofs,
}
NEEDED = {*FORGERIES, *PAPERS, "sound", "on disk", "by the seal", "found without the seal"}
