"""Tampering: whoever can write to a store's files changes what was sealed, and makes every hash fit again.

A tampering that leaves the sealed past as it was is drawn anew. Most are laid into a log in memory,
some into a store on disk that the `vmstore` command then verifies. Each must be noticed by `verify`
with the seal; what verify notices without it is counted too. Seals and proofs are tampered with as well.
"""

from __future__ import annotations

import contextlib
import io
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec
from campaigns.held import Broken
from campaigns.script import SOURCE, STORE, Player, script, write_source

import vmstore
from vmstore.cells.cell import ERASED, Cell
from vmstore.cells.verify_proof import check
from vmstore.core.clock import SeededIds
from vmstore.core.mutation import Mark, Open, Unknown, decode, encode
from vmstore.core.page import Origin
from vmstore.engine.histories import Histories
from vmstore.engine.seal import Seal, read, watched
from vmstore.engine.verify import Finding, verify
from vmstore.errors import CorruptError
from vmstore.log.commit import Commit, genesis, seal
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.shell.main import main
from vmstore.store.keys import Key
from vmstore.views.projection import Projection

TAMPERINGS = 500  # of one store
STEPS = 10  # of the script that makes it; a seal is made after half of them
ON_DISK = 50  # one in so many is laid into a store on disk
TRIES = 20


class Piece(NamedTuple):
    """A commit with its cells, and which session it belongs to, by the key that had."""

    session: int
    commit: Commit


class Story(NamedTuple):
    """A store to be tampered with: its commits, its seal, the key's public half, proofs, and somebody else's key.

    `covers` says how many commits of each session were sealed.
    """

    pieces: list[Piece]
    sealed: bytes
    seal: Seal
    covers: Counter[int]
    public: bytes
    proofs: list[tuple[bytes, bytes | None]]
    stranger: Key


class Tampered(NamedTuple):
    """A story after a tampering: its commits, and whether their hashes are to be made to fit again."""

    pieces: list[Piece]
    linked: bool = True


def batch(seed: int, folder: Path, tamperings: int = TAMPERINGS) -> Counter[str]:
    """Tampers with one store in many ways, one at a time."""
    chance = random.Random(seed)
    found: Counter[str] = Counter(stores=1)
    story = made(seed, folder)
    for pieces in (story.pieces, relinked(story.pieces), relinked(again(story, chance))):
        for log in (in_memory(pieces), on_disk(pieces, folder)):
            told = [*chain(*noticed(log, story))]
            log.close()
            if told:
                raise Broken("false alarm", f"what was not tampered with is not clean: {told[0]}")
            found["sound"] += 1
    for nth in range(tamperings):
        kind = chance.choice([*FORGERIES, *PAPERS])
        if kind in PAPERS:
            PAPERS[kind](story, chance)
        else:
            found += forged(kind, story, chance, folder if nth % ON_DISK == 0 else None)
        found.update([kind, "tamperings"])
    return found


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
    pieces = [Piece(commit.session, commit) for commit in whole(player.store.log)]
    player.close()
    seal = read(sealed, key.public)
    covers = Counter(piece.session for piece in pieces[: seal.ordinal])
    stranger = vmstore.new_key(folder / "strange", ids=SeededIds(-1 - seed))
    return Story(pieces, sealed, seal, covers, key.public, proofs, stranger)


def proven(store: vmstore.Store, seal: Seal) -> list[tuple[bytes, bytes | None]]:
    """A proof of the first and of the last page of every call of every session."""
    found = []
    for info in store.sessions():
        session = store.session(info.session)
        for call in range(1, info.calls + 1):
            pages = session.context(call=call).page_ids
            for page in {pages[0], pages[-1]} if pages else ():
                proof = session.prove(page, call=call, seal=seal)
                found.append((proof.proof, proof.content))
    return found


def whole(log: Log) -> list[Commit]:
    """Every commit with its cells."""
    found = []
    for commit in log.tail(0, 1 << 30):
        cells = log.cells(range(commit.cell, commit.cell + commit.cell_count))
        found.append(msgspec.structs.replace(commit, cells=tuple(cells[number] for number in sorted(cells))))
    return found


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
    """A log to which commits were appended as they are; it knows nothing of meaning."""
    keys: dict[int, tuple[int, int]] = {}
    for piece in pieces:
        key, position = keys.get(piece.session, (0, 0))
        (stored,) = log.append([piece.commit], key, position)
        keys[piece.session] = stored.session, stored.last
    return log


NO_VIEWS = Projection(MemoryLog(), apsw.Connection(""))


def noticed(log: Log, story: Story) -> tuple[list[Finding], list[Finding]]:
    """What verify finds in a log by itself, and what it finds by the seal."""
    histories = Histories(watched([story.seal]))
    _, found = verify(log, NO_VIEWS, views=False, rules=False, histories=histories)
    return found, list(story.seal.problems(histories))


def commanded(story: Story, folder: Path) -> bool:
    """Whether the command says of the store on disk that something is wrong."""
    (folder / "held").write_bytes(story.sealed)
    words = ["verify", str(folder / "left" / STORE), "--log", "--seal", str(folder / "held"), "--json"]
    with contextlib.redirect_stdout(io.StringIO()):
        return main([*words, "--public-key", story.public.hex()]) == 1


def forged(kind: str, story: Story, chance: random.Random, folder: Path | None) -> Counter[str]:
    """One forgery of the log; raises Broken where nobody notices."""
    pieces = drawn(FORGERIES[kind], story, chance)
    log = in_memory(pieces) if folder is None else on_disk(pieces, folder)
    alone, by_seal = noticed(log, story)
    log.close()
    if not (alone or by_seal):
        raise Broken("unnoticed", f"{kind}: nobody notices")
    if folder is None:
        return Counter(["found without the seal" if alone else "by the seal"])
    if not commanded(story, folder):
        raise Broken("unnoticed", f"{kind}: the command does not notice")
    return Counter(["found without the seal" if alone else "by the seal", "on disk"])


def drawn(forge: Callable[[Story, random.Random], Tampered | None], story: Story, chance: random.Random) -> list[Piece]:
    """The commits after a forgery that changes what was sealed."""
    for _ in range(TRIES):
        tampered = forge(story, chance)
        if tampered is not None:
            pieces = relinked(tampered.pieces) if tampered.linked else tampered.pieces
            if covered(pieces, story) != covered(story.pieces, story):
                return pieces
    return unlinked_bytes(story, chance).pieces


def covered(pieces: Sequence[Piece], story: Story) -> dict[int, list[Commit]]:
    """What was sealed, as far as it is still there: the first commits of each session, with their cells."""
    found: dict[int, list[Commit]] = {session: [] for session in story.covers}
    for session, commit in pieces:
        if len(found.get(session, ())) < story.covers.get(session, 0):
            found[session].append(msgspec.structs.replace(commit, session=0, ordinal=0, cell=0))
    return found


def relinked(pieces: Sequence[Piece]) -> list[Piece]:
    """The commits with positions and hashes that fit; of a session that has no beginning any more, none."""
    found: list[Piece] = []
    ends: dict[int, Commit] = {}
    hashes: dict[tuple[int, int], bytes] = {}
    uids: dict[bytes, int] = {}
    parents: dict[int, int | None] = {}
    for session, commit in pieces:
        start: tuple[int, bytes] | None
        if session in ends:
            start = ends[session].last, ends[session].hash
        else:
            start = begun(session, commit, hashes, uids, parents)
        if start is None:
            continue
        linked = seal(
            start[1], start[0] + 1, commit.count, commit.at, commit.lag, commit.body, commit.cells, commit.request,
            commit.commitments,
        )  # fmt: skip
        found.append(Piece(session, linked))
        ends[session] = linked
        hashes[session, linked.last] = linked.hash
    return found


def begun(
    session: int,
    commit: Commit,
    hashes: dict[tuple[int, int], bytes],
    uids: dict[bytes, int],
    parents: dict[int, int | None],
) -> tuple[int, bytes] | None:
    """Where the first commit of a session links to; None where there is no such place."""
    opening = decode(commit.body)[0]
    if not isinstance(opening, Open):
        return None
    uids[opening.uid] = session
    if opening.origin != Origin.FORK:
        return 0, genesis(opening.uid)
    parent = parents[session] = uids.get(opening.parent or b"")
    while parent is not None:
        if (parent, opening.parent_position) in hashes:
            return opening.parent_position, hashes[parent, opening.parent_position]
        parent = parents.get(parent)
    return None


# ---- forgeries of the log


def cut_end(story: Story, chance: random.Random) -> Tampered:
    """The last commits are gone, some of them sealed."""
    return Tampered(story.pieces[: chance.randrange(story.seal.ordinal)])


def cut_session(story: Story, chance: random.Random) -> Tampered:
    """The last commits of one session are gone, and with them what forked from them."""
    session = chance.choice(story.pieces).session
    own = [nth for nth, piece in enumerate(story.pieces) if piece.session == session]
    gone = set(own[chance.randrange(len(own)) :])
    return Tampered([piece for nth, piece in enumerate(story.pieces) if nth not in gone])


def drop_session(story: Story, chance: random.Random) -> Tampered:
    """A session is gone, and what forked from it."""
    session = chance.choice(story.pieces).session
    return Tampered([piece for piece in story.pieces if piece.session != session])


def old_copy(story: Story, chance: random.Random) -> Tampered:
    """An old copy is put back, and used on: commits follow that are not those that followed."""
    old = story.pieces[: chance.randrange(1, story.seal.ordinal)]
    later = [Piece(piece.session, retold(piece.commit, chance)) for piece in again(story, chance)[len(old) :]]
    return Tampered([*old, *later[: chance.randrange(len(later) + 1)]])


def again(story: Story, chance: random.Random) -> list[Piece]:
    """The story with a few commits more, which is no tampering."""
    more = [Piece(piece.session, marked(piece.commit)) for piece in chance.sample(story.pieces, 3)]
    return [*story.pieces, *more]


def marked(commit: Commit) -> Commit:
    """A commit at the end of a session that says nothing new."""
    return msgspec.structs.replace(
        commit, body=encode([Mark(Mark.NAMED)]), count=1, cells=(), commitments=b"", request=-1
    )


def drop_commit(story: Story, chance: random.Random) -> Tampered:
    """One commit is gone, and what follows it moved up."""
    gone = chance.randrange(len(story.pieces))
    return Tampered([piece for nth, piece in enumerate(story.pieces) if nth != gone])


def reorder(story: Story, chance: random.Random) -> Tampered | None:
    """Two commits of a session changed places."""
    session = chance.choice(story.pieces).session
    own = [nth for nth, piece in enumerate(story.pieces) if piece.session == session][1:]
    if len(own) < 2:
        return None
    one, other = chance.sample(own, 2)
    pieces = list(story.pieces)
    pieces[one], pieces[other] = pieces[other], pieces[one]
    return Tampered(pieces)


def splice(story: Story, chance: random.Random) -> Tampered:
    """A commit of any session stands in another one, or twice in its own."""
    at = chance.randrange(1, len(story.pieces))
    other = msgspec.structs.replace(chance.choice(story.pieces[1:]).commit)
    return Tampered([*story.pieces[:at], Piece(story.pieces[at - 1].session, other), *story.pieces[at:]])


def forge_content(story: Story, chance: random.Random) -> Tampered | None:
    """A content says something else, sealed anew, and its commitment with it."""
    nth = chance.randrange(len(story.pieces))
    commit = story.pieces[nth].commit
    return Tampered(put(story.pieces, nth, retold(commit, chance))) if commit.cells else None


def retold(commit: Commit, chance: random.Random) -> Commit:
    """A commit with another content in one of its cells, or, where it has none, at another time."""
    if not commit.cells:
        return msgspec.structs.replace(commit, at=commit.at + 1)
    nth = chance.randrange(len(commit.cells))
    salt = commit.cells[nth].salt if chance.random() < 0.5 else chance.randbytes(16)
    cells = list(commit.cells)
    cells[nth] = Cell(salt, flipped(cells[nth].content, chance) if cells[nth].content else b"!")
    commitments = b"".join(cell.commitment for cell in cells)
    return msgspec.structs.replace(commit, cells=tuple(cells), commitments=commitments)


def forge_header(story: Story, chance: random.Random) -> Tampered:
    """A time or a request id is another one."""
    nth = chance.randrange(len(story.pieces))
    commit = story.pieces[nth].commit
    name, value = chance.choice([("at", commit.at), ("lag", commit.lag), ("request", commit.request)])
    return Tampered(put(story.pieces, nth, msgspec.structs.replace(commit, **{name: value + chance.choice((-1, 1))})))


def forge_body(story: Story, chance: random.Random) -> Tampered | None:
    """A number in a mutation is another one, or a mutation is gone or there twice."""
    nth = chance.randrange(len(story.pieces))
    commit = story.pieces[nth].commit
    mutations = list(decode(commit.body))
    at, what = chance.randrange(len(mutations)), chance.random()
    mutation = mutations[at]
    if what < 0.15:
        mutations.insert(at, mutation)
    elif what < 0.3 and len(mutations) > 1:
        del mutations[at]
    elif not isinstance(mutation, Unknown):
        numbers = [f for f in mutation.__struct_fields__ if type(getattr(mutation, f)) is int]
        if not numbers:
            return None
        name = chance.choice(numbers)
        mutations[at] = msgspec.structs.replace(mutation, **{name: getattr(mutation, name) + 1})
    body = encode(mutations)
    return Tampered(put(story.pieces, nth, msgspec.structs.replace(commit, body=body, count=len(mutations))))


def forge_fork(story: Story, chance: random.Random) -> Tampered | None:
    """A fork stands on another point of its parent, or of another session, or a session is a fork that was none."""
    nth = chance.choice([n for n, piece in enumerate(story.pieces) if isinstance(decode(piece.commit.body)[0], Open)])
    commit = story.pieces[nth].commit
    opening = decode(commit.body)[0]
    assert isinstance(opening, Open), "it was looked for"
    before = [piece for piece in story.pieces[:nth] if piece.session != story.pieces[nth].session]
    if not before:
        return None
    point = chance.choice(before)
    start = next(decode(piece.commit.body)[0] for piece in before if piece.session == point.session)
    assert isinstance(start, Open), "a session begins with it"
    told = {"origin": int(Origin.FORK), "parent": start.uid, "parent_position": point.commit.last}
    body = encode([msgspec.structs.replace(opening, **told), *decode(commit.body)[1:]])
    return Tampered(put(story.pieces, nth, msgspec.structs.replace(commit, body=body)))


def unlinked_bytes(story: Story, chance: random.Random) -> Tampered:
    """A byte of a commit is flipped, and no hash made to fit."""
    nth = chance.randrange(story.seal.ordinal)
    commit = story.pieces[nth].commit
    name = chance.choice(["body", "hash", *(["commitments"] if commit.cells else [])])
    return Tampered(
        put(story.pieces, nth, msgspec.structs.replace(commit, **{name: flipped(getattr(commit, name), chance)})), False
    )


def unlinked_cell(story: Story, chance: random.Random) -> Tampered | None:
    """A byte of a cell or its salt is flipped, or all of it destroyed, and nothing else."""
    nth = chance.randrange(story.seal.ordinal)
    commit = story.pieces[nth].commit
    if not commit.cells:
        return None
    at = chance.randrange(len(commit.cells))
    cell = commit.cells[at]
    wrong = [ERASED, Cell(flipped(cell.salt, chance), cell.content)]
    wrong += [Cell(cell.salt, flipped(cell.content, chance))] if cell.content else []
    cells = (*commit.cells[:at], chance.choice(wrong), *commit.cells[at + 1 :])
    return Tampered(put(story.pieces, nth, msgspec.structs.replace(commit, cells=cells)), False)


def put(pieces: Sequence[Piece], nth: int, commit: Commit) -> list[Piece]:
    """The commits with another one in a place."""
    return [*pieces[:nth], Piece(pieces[nth].session, commit), *pieces[nth + 1 :]]


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Bytes with one of them changed."""
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ chance.randrange(1, 256)]) + content[at + 1 :]


FORGERIES: dict[str, Callable[[Story, random.Random], Tampered | None]] = {
    "end cut": cut_end,
    "session cut": cut_session,
    "session dropped": drop_session,
    "old copy": old_copy,
    "commit dropped": drop_commit,
    "reordered": reorder,
    "spliced": splice,
    "content forged": forge_content,
    "header forged": forge_header,
    "body forged": forge_body,
    "fork forged": forge_fork,
    "bytes flipped": unlinked_bytes,
    "cell changed": unlinked_cell,
}


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
    heads = tuple(forged if nth == head else one for nth, one in enumerate(seal.heads))
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
    one, other = (msgspec.json.decode(chance.choice(story.proofs)[0]) for _ in range(2))
    part = chance.randrange(1, 5)
    mixed = [*one]
    if chance.random() < 0.5:
        mixed[part] = other[part]
    else:
        at = chance.randrange(len(one[part]))
        mixed[part] = [*one[part][:at], other[part][at], *one[part][at + 1 :]]
    if mixed != one:
        refused(msgspec.json.encode(mixed) + b"\n", story, None)


def refused(proof: bytes, story: Story, content: bytes | None) -> None:
    """Raises Broken where a proof that is none passes."""
    if any(proof == right and content in (None, held) for right, held in story.proofs):
        return
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
