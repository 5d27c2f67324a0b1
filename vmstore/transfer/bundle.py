"""A bundle: sessions as JSON lines from which the same commits, salts and hashes can be made again.

    first line   what it is, its version, the sessions in it
    then         one line a commit, session after session, parents before their forks
    last line    how much there was, and SHA-256 over every byte before it

Bytes stand in base64, contents of cells as text where they are UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Annotated, Any, BinaryIO

import msgspec

from vmstore.cells.cell import COMMITMENT_BYTES, ERASED, SALT_BYTES, Cell
from vmstore.core.mutation import AnyMutation, decode
from vmstore.core.mutation import readable as plain
from vmstore.errors import InputError, RefusedError
from vmstore.log.commit import NO_REQUEST, Commit
from vmstore.views.erased_cells import erased_at
from vmstore.views.projection import Projection
from vmstore.views.selection import Portion, commits_of

VERSION = 1
LINE_BYTES_MAX = 1 << 30
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
BEGINS = b'{"kind":"bundle","version":'

Position = Annotated[int, msgspec.Meta(ge=1, le=2**62)]
Time = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Hash = Annotated[bytes, msgspec.Meta(min_length=COMMITMENT_BYTES, max_length=COMMITMENT_BYTES)]
Salt = Annotated[bytes, msgspec.Meta(min_length=SALT_BYTES, max_length=SALT_BYTES)]


class BundledSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session in a bundle, up to a position; `asked` for by name, or there because another forked from it."""

    name: str
    uid: bytes
    upto: Position
    asked: bool


class FirstLine(msgspec.Struct, frozen=True, tag_field="kind", tag="bundle", forbid_unknown_fields=True):
    """The first line."""

    version: int
    sessions: list[BundledSession]


class SealedLine(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A cell in a line: its content as text, in base64 where it is no UTF-8, or none where it was destroyed."""

    commitment: Hash
    salt: Salt | None = None
    text: str | None = None
    base64: bytes | None = None


class CommitLine(msgspec.Struct, frozen=True, tag_field="kind", tag="commit", forbid_unknown_fields=True):
    """A commit: `mutations` is its body to be read, `body` the bytes that are hashed."""

    session: str
    first: Position
    count: Position
    at: Time
    lag: Time
    request: int
    mutations: msgspec.Raw
    body: bytes
    cells: list[SealedLine]
    hash: Hash


class LastLine(msgspec.Struct, frozen=True, tag_field="kind", tag="end", forbid_unknown_fields=True):
    """The last line; `digest` is SHA-256 over every byte before it."""

    commits: int
    mutations: int
    cells: int
    digest: Hash


_encode = msgspec.json.Encoder().encode
_decode_line = msgspec.json.Decoder(CommitLine | LastLine).decode
_decode_first = msgspec.json.Decoder(FirstLine).decode


class Writer:
    """Turns commits into the lines of a bundle; memory holds one commit at a time."""

    def __init__(self, sessions: list[BundledSession]) -> None:
        self._digest = sha256()
        self._sessions = sessions
        self.commits = self.mutations = self.cells = 0

    def beginning(self) -> bytes:
        """The first line."""
        return self._line(FirstLine(VERSION, self._sessions))

    def commit(self, session: str, commit: Commit) -> bytes:
        """The line of a commit that was read with its cells."""
        self.commits += 1
        self.mutations += commit.count
        self.cells += len(commit.cells)
        return self._line(
            CommitLine(
                session=session,
                first=commit.first,
                count=commit.count,
                at=commit.at,
                lag=commit.lag,
                request=commit.request,
                mutations=readable(decode(commit.body)),
                body=commit.body,
                cells=[_sealed(cell, commit.commitment(index)) for index, cell in enumerate(commit.cells)],
                hash=commit.hash,
            )
        )

    def ending(self) -> bytes:
        """The last line."""
        return _encode(LastLine(self.commits, self.mutations, self.cells, self._digest.digest())) + b"\n"

    def _line(self, value: Any) -> bytes:
        line = _encode(value) + b"\n"
        self._digest.update(line)
        return line


def lines_of(projection: Projection, portions: Sequence[Portion]) -> Iterator[bytes]:
    """The bundle of some portions, line by line."""
    writer = Writer([BundledSession(part.name, part.uid, part.upto, part.asked) for part in portions])
    yield writer.beginning()
    for portion in portions:
        for commit in commits_of(projection, portion):
            _check_recorded(projection, portion, commit)
            yield writer.commit(portion.name, commit)
    yield writer.ending()


def _check_recorded(projection: Projection, portion: Portion, commit: Commit) -> None:
    """Raises RefusedError where a cell was erased by a record that is not in the bundle: nobody could take it in."""
    for index, cell in enumerate(commit.cells):
        if cell.erased and (position := erased_at(projection.log, projection.db, commit.cell + index)) > portion.upto:
            raise RefusedError(
                f"session {portion.name!r} lost contents by an erasure recorded at position {position}, after what is "
                f"exported of it; name {portion.name!r} too, without a moment and from its store, or leave --exact out",
                code="erased-after-the-cut",
            )


class Reader:
    """Reads a bundle line by line; what is damaged, cut short or too long is an InputError."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._digest = sha256()
        self.done = 0  # bytes read
        begins = file.read(len(BEGINS))  # what is no bundle may have lines without end
        if begins != BEGINS:
            raise InputError(
                f"{name} is no vmstore bundle; `vmstore export STORE --out FILE` writes one", code="not-a-bundle"
            )
        line = self._line(begins)
        version = line[len(BEGINS) :].partition(b",")[0]
        if version != str(VERSION).encode():
            raise InputError(
                f"{name} is a bundle of version {version[:20].decode('ascii', 'replace')}, this vmstore reads version "
                f"{VERSION}; install the vmstore that wrote it, or export it there again",
                code="newer-format",
            )
        try:
            self.sessions = _decode_first(line).sessions
        except UNREADABLE as error:
            raise self._damaged(f"its first line cannot be read: {error}") from error

    def commits(self) -> Iterator[tuple[str, Commit]]:
        """Each commit with the name of its session; the last line is checked before this ends."""
        mutations = cells = number = 0
        while True:
            sofar = self._digest.digest()
            line = self._line()
            try:
                decoded = _decode_line(line)
                if isinstance(decoded, LastLine):
                    self._end(LastLine(number, mutations, cells, sofar), line)
                    return
                commit = _commit(decoded)
            except UNREADABLE as error:
                raise self._damaged(f"line {number + 2} cannot be read: {error}") from error
            number += 1
            mutations += commit.count
            cells += len(commit.cells)
            yield decoded.session, commit

    def _line(self, begins: bytes = b"") -> bytes:
        line = begins + self._file.readline(LINE_BYTES_MAX)
        if not line.endswith(b"\n"):
            if len(line) >= LINE_BYTES_MAX:
                raise InputError(f"{self._name} has a line of over {LINE_BYTES_MAX:,} bytes; it is no bundle")
            if self.done or line.startswith(BEGINS):
                raise self._damaged("it is cut short")
        self._digest.update(line)
        self.done += len(line)
        return line

    def _end(self, counted: LastLine, line: bytes) -> None:
        """Checks the last line by its bytes: base64 has more than one spelling of a digest."""
        if line != _encode(counted) + b"\n":
            raise self._damaged("its bytes do not match its digest")
        if self._file.read(1):
            raise self._damaged("it continues after its last line")

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"{self._name} is damaged: {why}; nothing was taken from it, export it again", code="bundle-damaged"
        )


def readable(mutations: list[AnyMutation]) -> msgspec.Raw:
    """Mutations as JSON to be read: kind and fields, digests in base64."""
    return msgspec.Raw(_encode(list(map(plain, mutations))))


def _sealed(cell: Cell, commitment: bytes) -> SealedLine:
    if cell == ERASED:
        return SealedLine(commitment)
    try:
        return SealedLine(commitment, cell.salt, text=cell.content.decode())
    except UnicodeDecodeError:
        return SealedLine(commitment, cell.salt, base64=cell.content)


def _commit(line: CommitLine) -> Commit:
    """The commit a line states; its hash is what it says and still to be checked."""
    if bytes(readable(decode(line.body))) != bytes(line.mutations):
        raise ValueError("its mutations are not what its body says")
    if not NO_REQUEST <= line.request < len(line.cells):
        raise ValueError("its request id is none of its cells")
    return Commit(
        first=line.first,
        count=line.count,
        at=line.at,
        lag=line.lag,
        body=line.body,
        commitments=b"".join(cell.commitment for cell in line.cells),
        hash=line.hash,
        request=line.request,
        cells=tuple(_cell(cell) for cell in line.cells),
    )


def _cell(line: SealedLine) -> Cell:
    if line.salt is None and line.text is None and line.base64 is None:
        return ERASED
    if line.salt is None or (line.text is None) == (line.base64 is None):
        raise ValueError("a cell has a salt without a content, or two contents")
    return Cell(line.salt, line.text.encode() if line.text is not None else line.base64 or b"")
