"""A seal: where every session of a namespace stood, under one signed root.

Kept apart from its store it is what a store cannot say of itself: that nothing is missing at its
end, that no session is, that this is not an old copy. Later commits leave it true;
any change, removal or cut of what it covers makes it false.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec

from vmstore.cells.verify_proof import raw, signed, statement
from vmstore.core.mutation import Open, decode
from vmstore.engine.verify.history_tree import HistoryTree, SessionHead, tree_of
from vmstore.engine.verify.verify import Finding
from vmstore.errors import CorruptError
from vmstore.log.port import Log

KIND = "vmstore seal 1"
PROBLEM = "seal"
WRONG = (msgspec.MsgspecError, ValueError, TypeError, KeyError, OverflowError, RecursionError, struct.error)


class Seal(msgspec.Struct, frozen=True):
    """A seal: the signed heads and their root, and the signing key; `at` is in microseconds since 1970.

    `ordinal` is the log's last commit then. Made by `sealed` or `read`, so its root and its
    signature hold.
    """

    namespace: bytes
    ordinal: int
    at: int
    root: bytes
    key: bytes
    signature: bytes
    heads: tuple[SessionHead, ...]

    @property
    def signing(self) -> bytes:
        """The bytes that are signed."""
        return statement(self.root, self.key, self.namespace.hex(), self.ordinal, self.at, len(self.heads))

    def encoded(self) -> bytes:
        """The seal as a file: JSON, a session a line."""
        fields = {
            "namespace": self.namespace.hex(),
            "ordinal": self.ordinal,
            "at": self.at,
            "sessions": len(self.heads),
            "root": self.root.hex(),
            "key": self.key.hex(),
            "signature": self.signature.hex(),
        }
        lines = [f'"{name}": {msgspec.json.encode(value).decode()}' for name, value in fields.items()]
        heads = [
            msgspec.json.encode((head.uid.hex(), head.position, head.commits, head.hash.hex(), head.history.hex()))
            for head in self.heads
        ]
        text = f'{{"vmstore": "{KIND}",\n ' + ",\n ".join(lines) + ',\n "heads": ['
        return text.encode() + b",\n  ".join(heads) + b"]}\n"

    def problems(self, histories: HistoryTree) -> Iterator[Finding]:
        """Contradictions between this seal and a log that was followed to its end."""
        if histories.first is not None and namespace_uid(histories.first) != self.namespace:
            yield Finding(PROBLEM, "log", "the log begins with another session than the one that was sealed")
        ends = {head.uid: head for head in histories.heads()}
        for head in self.heads:
            where = f"session {head.uid.hex()}"
            end = ends.get(head.uid)
            if end is None:
                problem = f"it stood at position {head.position} when it was sealed, and the log holds no such session"
                yield Finding(PROBLEM, where, f"{problem}: it was dropped, or the store is an older copy")
            elif end.commits < head.commits:
                problem = f"it ends at position {end.position}, and was sealed at {head.position}"
                yield Finding(PROBLEM, where, f"{problem}: its end was cut, or the store is an older copy")
            elif histories.kept.get((head.uid, head.commits)) != head:
                problem = f"its past up to position {head.position} is not what was sealed"
                yield Finding(PROBLEM, where, f"{problem}: it was rewritten")


def watched(seals: Iterable[Seal]) -> dict[bytes, set[int]]:
    """The heads that seals refer to, by session."""
    found: dict[bytes, set[int]] = {}
    for head in (head for seal in seals for head in seal.heads):
        found.setdefault(head.uid, set()).add(head.commits)
    return found


def namespace_uid(first: bytes) -> bytes:
    """The permanent id of a namespace: 16 bytes, from the uid of the session that opened its log."""
    return sha256(b"vmstore namespace" + first).digest()[:16]


def uid_of(log: Log) -> str:
    """The permanent id of a log's namespace, in hex; the log is not empty."""
    first: Any = decode(log.tail(0, 1)[0].body)[0]
    assert isinstance(first, Open), "a log begins with a session"
    return namespace_uid(first.uid).hex()


def sealed(histories: HistoryTree, at: int, key: bytes, sign: Callable[[bytes], bytes]) -> Seal:
    """The seal of a log that was followed to its end, signed with the secret of `key`."""
    assert histories.first is not None, "there is something to seal"
    heads = tuple(histories.heads())
    root = tree_of(heads).root
    seal = Seal(namespace_uid(histories.first), histories.ordinal, at, root, key, b"", heads)
    return msgspec.structs.replace(seal, signature=sign(seal.signing))


def read(content: bytes, key: bytes | None = None) -> Seal:
    """The seal in the bytes of a file; raises CorruptError where a byte differs from what was signed.

    Where `key` is given it must be that key's. Else its signature is held against the key it names
    itself, which shows damage and nothing more.
    """
    try:
        seal = _decoded(msgspec.json.decode(content))
        if seal.encoded() != content:
            raise ValueError("its bytes are not as they were written")
        if key is not None and seal.key != key:
            raise ValueError(f"it was signed with another key, {seal.key.hex()}")
        if tree_of(seal.heads).root != seal.root:
            raise ValueError("its heads do not give its root")
        if not signed(seal.key, seal.signing, seal.signature):
            raise ValueError("its signature does not hold")
    except WRONG as error:
        raise CorruptError(f"this is no sound seal ({error}); use another copy of it", code="not-a-seal") from error
    return seal


def _decoded(value: Any) -> Seal:
    heads = tuple(
        SessionHead(raw(uid, 16), position, commits, raw(end), raw(history))
        for uid, position, commits, end, history in value["heads"]
    )
    return Seal(
        raw(value["namespace"], 16),
        value["ordinal"],
        value["at"],
        raw(value["root"]),
        raw(value["key"]),
        raw(value["signature"], 64),
        heads,
    )
