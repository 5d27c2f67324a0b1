"""Frames and files under keys: AES-256-GCM below the commitments, so that hashes, seals and proofs stay.

    form     16 more than the frame's own        salts    id of the key (16), nonce (12)
    sizes    as they are                         content  encrypted: salts and content, then a tag (16)

In FILES frames the commitments stand before what is encrypted, as they are: the log holds them anyway;
in ARCHIVED ones the place. Where every cell is destroyed nothing is encrypted, and no key is needed.
What places the frame is authenticated with it. A long cell's file is `<commitment>.aes`: the id of the
key, a nonce, and the encrypted bytes with their tag. All cells of a frame are of one data subject.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import apsw

from vmstore.cells.cell import COMMITMENT_BYTES, SALT_BYTES
from vmstore.cells.key_rows import DROPPED
from vmstore.cells.storekey import NONCE_BYTES, aes
from vmstore.cells.subject_keys import ID_BYTES, Keyring, Keys
from vmstore.core.clock import IdSource
from vmstore.errors import StoreError
from vmstore.log.archive_frame import PLACE_BYTES, salts_of
from vmstore.log.commit import Commit
from vmstore.log.file import ENCRYPTED_FORMAT, LogFile
from vmstore.log.frame import ARCHIVED, ENCRYPTED, ERASED_SIZE, FILES, RAW, Frame
from vmstore.log.port import Append
from vmstore.log.rows import frame_of

DAMAGED = -1  # a form that nothing is read from
SUFFIX = ".aes"
KEPT_MAX = 65_536

Subject = Callable[[Commit], bytes]
"""Whose cells a session's are, by its first commit, which has its cells."""


Began = Callable[[int], tuple[bytes, int]]
"""The salts and the form of the frame that holds a session's first cell, as they lie."""

Framing = Callable[[Iterable[Frame], bytes], Iterable[Frame]]
"""Lays the cells of frames into others; all are to lie under the key of an id."""


class NoEncryption:
    """Contents as they are, of a log without keys."""

    suffix = ""

    def close(self) -> None:
        """Does nothing."""

    def refresh(self) -> None:
        """Does nothing."""

    def forget(self) -> None:
        """Does nothing."""

    def name(self, append: Append, began: Began) -> bytes:
        """The id of the key that an append is written under: none."""
        return b""

    def closed(self, frame: Frame, name: bytes) -> Frame:
        """A frame as it is to lie."""
        return frame

    def opened(self, frame: Frame) -> Frame:
        """A frame whose contents can be read."""
        return frame

    def framed_again(self, frames: Iterable[Frame], framing: Framing) -> Iterable[Frame]:
        """Frames that hold the same cells as `framing` lays them."""
        return framing(frames, b"")

    def drop_emptied(self, db: apsw.Connection) -> int:
        """Drops every key under which no cell is left; how many. The writers' lock is held."""
        return 0

    def emptied(self, frames: Iterable[Frame]) -> list[bytes]:
        """The ids of keys under which no cell is left: there is none."""
        return []

    def carried(self, name: bytes) -> bytes:
        """A key for what is to be read elsewhere: none."""
        return b""

    def opens(self, name: bytes, wrapped: bytes) -> bool:
        """Whether a key that was carried elsewhere is that of an id: there is none here."""
        return False

    def closed_file(self, commitment: bytes, content: bytes, name: bytes) -> bytes:
        """The bytes of a cell's file."""
        return content

    def opened_file(self, commitment: bytes, content: bytes) -> bytes:
        """A cell's bytes of those in its file."""
        return content


PLAIN = NoEncryption()


class FrameDecryption(NoEncryption):
    """Decrypts what lies under keys that are at hand."""

    suffix = SUFFIX

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._ciphers: dict[bytes, Any] = {}

    def close(self) -> None:
        """Forgets the keys."""
        self._ciphers.clear()
        self._keys.close()

    def refresh(self) -> None:
        """Looks whether another process dropped a key."""
        if self._keys.refresh():
            self._ciphers.clear()

    def opened(self, frame: Frame) -> Frame:
        """A frame as it was before: all cells destroyed where its key is, damaged ones where it does not decrypt."""
        count, form = frame.cells, frame.form - ENCRYPTED
        name, nonce = frame.salts[:ID_BYTES], frame.salts[ID_BYTES:]
        placed = len(nonce) == NONCE_BYTES and form >= RAW
        if placed and frame.sizes == _ERASED * count:
            return _emptied(frame, form)
        key = self._keys.key(name) if placed else None
        if key == DROPPED:
            return _emptied(frame, form)
        split = _split(frame, form)
        clear, encrypted = frame.content[:split], frame.content[split:]
        decrypted = (
            None if key is None else self._decrypted(key, nonce, encrypted, _context(frame, frame.form, name, clear))
        )
        if decrypted is None:
            return frame._replace(form=DAMAGED, salts=bytes(SALT_BYTES * count))
        end = SALT_BYTES * (salts_of(frame) if form == ARCHIVED else count)
        assert len(decrypted) >= end, "what decrypts is what `closed` encrypted: all salts, then the content"
        return frame._replace(form=form, salts=decrypted[:end], content=clear + decrypted[end:])

    def opened_file(self, commitment: bytes, content: bytes) -> bytes:
        """A cell's bytes; none where they do not decrypt, which no commitment of a long cell agrees with."""
        name, nonce = content[:ID_BYTES], content[ID_BYTES : ID_BYTES + NONCE_BYTES]
        key = self._keys.key(name) if len(content) > ID_BYTES + NONCE_BYTES else None
        encrypted = content[ID_BYTES + NONCE_BYTES :]
        return (self._decrypted(key, nonce, encrypted, _FILE + commitment + name) if key else None) or b""

    def _cipher(self, key: bytes) -> Any:
        cipher = self._ciphers.get(key)
        if cipher is None:
            if len(self._ciphers) >= KEPT_MAX:
                self._ciphers.clear()
            cipher = self._ciphers[key] = aes(key)
        return cipher

    def _decrypted(self, key: bytes, nonce: bytes, encrypted: bytes, context: bytes) -> bytes | None:
        try:
            found: bytes = self._cipher(key).decrypt(nonce, encrypted, context)
            return found
        except Exception as error:  # InvalidTag, and ValueError of what is too short
            if type(error).__name__ not in ("InvalidTag", "ValueError"):
                raise
            return None


class FrameEncryption(FrameDecryption):
    """Encrypts what a log keeps of contents and decrypts it, each subject's under its own key."""

    def __init__(self, keyring: Keyring, ids: IdSource, subject: Subject) -> None:
        super().__init__(keyring)
        self.keyring = keyring
        self._ids = ids
        self._subject = subject
        self._names: dict[int, bytes] = {}  # under which sessions began

    def name(self, append: Append, began: Began) -> bytes:
        """The id of the key that an append is written under: the one its session's first cell lies under."""
        self.refresh()
        if not append.session:
            return self.keyring.in_use(self.first_key(append.commits[0]))
        if append.session not in self._names:
            salts, form = began(append.session)
            if len(self._names) >= KEPT_MAX:
                self._names.clear()
            self._names[append.session] = salts[:ID_BYTES] if form >= ENCRYPTED else self.keyring.name(b"")
        return self.keyring.in_use(self._names[append.session])

    def forget(self) -> None:
        """Forgets the keys at hand, of which somebody may have dropped some."""
        self._ciphers.clear()
        self.keyring.forget()

    def first_key(self, first: Commit) -> bytes:
        """The id of the key of a session that begins with this commit."""
        return self.keyring.name(self._subject(first))

    # ---- frames

    def closed(self, frame: Frame, name: bytes) -> Frame:
        """A frame encrypted under a key; one in which every cell is destroyed says whose they were, and no more."""
        assert RAW <= frame.form < ENCRYPTED, "a frame is encrypted once"
        form = frame.form + ENCRYPTED
        split = _split(frame, frame.form)
        clear, secret = frame.content[:split], frame.content[split:]
        if frame.sizes == _ERASED * frame.cells:
            return frame._replace(form=form, salts=name + bytes(NONCE_BYTES), content=clear)
        salts = salts_of(frame) if frame.form == ARCHIVED else frame.cells
        assert len(frame.salts) == SALT_BYTES * salts, "`opened` parts salts from content by their number"
        nonce = self._ids.salt()[:NONCE_BYTES]
        context = _context(frame, form, name, clear)
        encrypted = self._cipher(self._needed(name)).encrypt(nonce, frame.salts + secret, context)
        return frame._replace(form=form, salts=name + nonce, content=clear + encrypted)

    def framed_again(self, frames: Iterable[Frame], framing: Framing) -> Iterator[Frame]:
        """Frames that hold the same cells as `framing` lays them, one subject's at a time.

        What stays as it was keeps its bytes, and what does not decrypt stays as it is.
        """
        self.keyring.refresh()
        for name, run in groupby(frames, key=lambda frame: frame.salts[:ID_BYTES]):
            cells = {frame.first: (frame, self.opened(frame)) for frame in run}
            for frame in framing((loose for _, loose in cells.values()), name):
                old, loose = cells.get(frame.first, (None, None))
                yield old if old is not None and frame == loose else self.closed(frame, name)

    def drop_emptied(self, db: apsw.Connection) -> int:
        """Drops every key under which no cell is left: what copies hold under it cannot be read any more."""
        return sum(map(self.keyring.drop, self.emptied(map(frame_of, db.execute(_ALL)))))

    def emptied(self, frames: Iterable[Frame]) -> list[bytes]:
        """The ids of keys under which no cell of all encrypted frames is left; their ciphers are forgotten."""
        left: dict[bytes, bool] = {}
        for frame in frames:
            there = frame.sizes != _ERASED * frame.cells
            left[frame.salts[:ID_BYTES]] = there or left.get(frame.salts[:ID_BYTES], False)
        self._ciphers.clear()
        return [name for name, there in left.items() if not there]

    # ---- files

    def closed_file(self, commitment: bytes, content: bytes, name: bytes) -> bytes:
        """The bytes of a cell's file, encrypted under a key."""
        nonce = self._ids.salt()[:NONCE_BYTES]
        context = _FILE + commitment + name
        encrypted: bytes = self._cipher(self._needed(name)).encrypt(nonce, content, context)
        return name + nonce + encrypted

    def _needed(self, name: bytes) -> bytes:
        key = self.keyring.key(name)
        if not key:
            raise StoreError("the key to be written under was dropped meanwhile; nothing was written, try again")
        return key

    def carried(self, name: bytes) -> bytes:
        """A key, wrapped by the store key, for what is to be read elsewhere."""
        return self.keyring.wrapped(name)

    def opens(self, name: bytes, wrapped: bytes) -> bool:
        """Whether a key that was carried elsewhere is that of an id; one that was dropped since may be any."""
        return self.keyring.key(name) == DROPPED or self.keyring.opens(name, wrapped)


def key_of(frame: Frame) -> bytes:
    """The id of the key that a frame lies under; none of a plain one."""
    return frame.salts[:ID_BYTES] if frame.form >= ENCRYPTED else b""


def began_in(db: apsw.Connection) -> Began:
    """Looks for the beginning of a session in an SQLite log."""
    return lambda session: db.execute(_FIRST, (session,)).fetchone() or (b"", RAW)


_FIRST = """SELECT CAST(f.salts AS BLOB), f.form FROM commits c
  JOIN frames f ON f.first = (SELECT max(first) FROM frames WHERE first <= c.cell) WHERE c.ordinal = ?"""
_ALL = f"SELECT first, count, form, sizes, CAST(salts AS BLOB), x'' FROM frames WHERE form >= {ENCRYPTED}"
_ERASED = struct.pack(">I", ERASED_SIZE)
_FILE = b"vmstore file"
_PLACE = struct.Struct(">QIB")

assert NONCE_BYTES <= SALT_BYTES, "a nonce is the beginning of a fresh salt"
assert ENCRYPTED + max(RAW, FILES, ARCHIVED) < 1 << 8, "a form fits into the byte that is authenticated"
assert _PLACE.size == 13, "the place is authenticated: another width would decrypt no frame there is"


def _split(frame: Frame, form: int) -> int:
    """How much of a frame's content is not encrypted: what names files, or says where cells lie."""
    return {FILES: COMMITMENT_BYTES * frame.cells, ARCHIVED: PLACE_BYTES}.get(form, 0)


def _emptied(frame: Frame, form: int) -> Frame:
    """A frame in which every cell is destroyed."""
    form, content = (ARCHIVED, frame.content[:PLACE_BYTES]) if form == ARCHIVED else (RAW, b"")
    return frame._replace(
        form=form, sizes=_ERASED * frame.cells, salts=bytes(SALT_BYTES * frame.cells), content=content
    )


def _context(frame: Frame, form: int, name: bytes, clear: bytes) -> bytes:
    """The associated data of a frame: it decrypts at no other place, with no other sizes, for no other name."""
    try:
        place = _PLACE.pack(frame.first, frame.cells, form)
    except struct.error:  # a number that no frame can have
        place = b""
    return b"".join((b"vmstore frame", place, frame.sizes, name, clear))


def checked(file: LogFile, vault: FrameEncryption | None) -> NoEncryption:
    """The decryption that fits a log; raises StoreError where a key is missing, or given for a plain log."""
    if (file.format == ENCRYPTED_FORMAT) == (vault is not None):
        return vault or PLAIN
    file.close()
    raise StoreError(
        f"{file.path} is encrypted; open its store with its key"
        if vault is None
        else f"{file.path} is not encrypted; open its store without a key, or run `vmstore encrypt` on it",
        code="encrypted",
    )
