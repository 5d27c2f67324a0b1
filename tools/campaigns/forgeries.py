"""Histories forged by somebody who can write to a store's files, and compute hashes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from vmstore.cells.cell import ERASED, Cell
from vmstore.core.erasure import Erase, ErasureReason
from vmstore.core.mutation import Mark, Open, Unknown, decode, encode
from vmstore.core.page import Origin
from vmstore.log.commit import NO_REQUEST, Commit, genesis, seal
from vmstore.namespace.signing_keys import SigningKey
from vmstore.seals.seal import Seal


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
    stranger: SigningKey


class Tampered(NamedTuple):
    """A story after a tampering: its commits, and whether their hashes are to be made to fit again."""

    pieces: list[Piece]
    linked: bool = True


def relinked(pieces: Sequence[Piece]) -> list[Piece]:
    """The commits with positions and hashes that fit; of a session that has no beginning any more, none."""
    actual_pieces: list[Piece] = []
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
        actual_pieces.append(Piece(session, linked))
        ends[session] = linked
        hashes[session, linked.last] = linked.hash
    return actual_pieces


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
    first, other = chance.sample(own, 2)
    pieces = list(story.pieces)
    pieces[first], pieces[other] = pieces[other], pieces[first]
    return Tampered(pieces)


def splice(story: Story, chance: random.Random) -> Tampered:
    """A commit of any session stands in another one, or twice in its own."""
    at = chance.randrange(1, len(story.pieces))
    other = msgspec.structs.replace(chance.choice(story.pieces[1:]).commit)
    return Tampered([*story.pieces[:at], Piece(story.pieces[at - 1].session, other), *story.pieces[at:]])


def forge_content(story: Story, chance: random.Random) -> Tampered | None:
    """A content says something else, sealed again, and its commitment with it."""
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
    fields = {"origin": int(Origin.FORK), "parent": start.uid, "parent_position": point.commit.last}
    body = encode([msgspec.structs.replace(opening, **fields), *decode(commit.body)[1:]])
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


def erased_falsely(story: Story, chance: random.Random) -> Tampered | None:
    """A sealed cell is destroyed, and an erasure is appended that names another cell, or none that is there."""
    nth = chance.randrange(story.seal.ordinal)
    session, commit = story.pieces[nth]
    if not commit.cells:
        return None
    at = chance.randrange(len(commit.cells))
    cells = (*commit.cells[:at], ERASED, *commit.cells[at + 1 :])
    destroyed = put(story.pieces, nth, msgspec.structs.replace(commit, cells=cells))
    others = [place for place in range(len(commit.cells)) if place != at]
    wrong = [(commit.first, place) for place in others] + [(commit.first, 1 << 20), (commit.first + (1 << 40), at)]
    body = encode([Erase(int(ErasureReason.ASKED), (chance.choice(wrong),))])
    last = next(piece.commit for piece in reversed(story.pieces) if piece.session == session)
    other_seal = seal(last.hash, last.last + 1, 1, last.at, 0, body, (), NO_REQUEST)
    return Tampered([*destroyed, Piece(session, other_seal)])


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
    "erased with a forged record": erased_falsely,
}
