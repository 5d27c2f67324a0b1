"""The frames between the proxy and its writer: a call is told piece by piece as it passes.

A frame is a length, a kind and the number of a call, then its content: bytes of a body as they are,
or a struct as MessagePack.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import BinaryIO

import msgspec

from vmstore.errors import StoreError

HEAD = struct.Struct("<IBQ")  # bytes of the content, kind, call


class FrameKind(IntEnum):
    """Kinds of frames: from the proxy, then from the writer."""

    OPEN = 0  # which store
    BEGIN = 1
    REQUEST = 2  # bytes of the request's body
    HEAD = 3
    ANSWER = 4  # bytes of the answer's body
    END = 5
    MISS = 6
    CLOSE = 7
    WINDOW = 12  # a request to be managed
    ROUND = 13  # the next request of a call whose answer asked the memory

    READY = 8
    REFUSED = 9  # the store cannot be opened, and why
    SETTLED = 10
    TROUBLE = 11  # what went wrong, as text
    MANAGED = 14  # what is sent for a request
    WINDOW_END = 15  # from the proxy: nothing more is asked of a managed request


class OpenStore(msgspec.Struct, frozen=True, array_like=True):
    """The store to write to: path, namespace, file of its key, seconds to wait for others, base of session names.

    `encrypted_key` is the file of the key where the store is encrypted or new, and none is named.
    """

    path: str
    namespace: str
    key: str | None
    wait_s: float
    base: str
    redaction: str | None
    encrypted_key: str | None = None


class CallBegin(msgspec.Struct, frozen=True, array_like=True):
    """A call begins: its session where that is known, when (µs), how its body is packed, the keys it carries.

    `window` is the number of the request that this call was made of, where the port manages its window; it was
    sent as it came where `why` says so.
    """

    session: str | None
    at: int
    encoding: str
    secrets: list[str]
    window: int | None = None
    why: str = ""


class AnswerHead(msgspec.Struct, frozen=True, array_like=True):
    """The head of an answer: status, content type and content encoding."""

    status: int
    type: str
    encoding: str


class CallEnd(msgspec.Struct, frozen=True, array_like=True):
    """A call ended: how long it took (µs), and what broke it, by name and text."""

    latency: int
    error: str | None = None
    text: str = ""
    aborted: bool = False  # by the client, whose own act it was


class WindowAsk(msgspec.Struct, frozen=True, array_like=True):
    """A request of a port that manages its window: its session where that is known, tokens, rounds, keys it carries."""

    session: str | None
    tokens: int
    rounds: int
    secrets: list[str]
    body: bytes


class Managed(msgspec.Struct, frozen=True, array_like=True):
    """The body that is sent for a request: None where it goes on as it is, and why; the memory's tools in it."""

    body: bytes | None
    why: str = ""
    tools: tuple[str, ...] = ()
    failed: bool = False


class CallMiss(msgspec.Struct, frozen=True, array_like=True):
    """A call that cannot be recorded, and why."""

    session: str | None
    reason: str


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """A call is in the store: whole, or as a gap with the reason."""

    gap: str | None = None


def frame(kind: FrameKind, call: int, content: bytes = b"") -> bytes:
    """One frame."""
    return HEAD.pack(len(content), kind, call) + content


def packed(kind: FrameKind, call: int, content: msgspec.Struct) -> bytes:
    """One frame of a struct."""
    return frame(kind, call, msgspec.msgpack.encode(content))


def read_frame(stream: BinaryIO) -> tuple[FrameKind, int, bytes] | None:
    """The next frame of a stream, None at its end; one that is cut off, or a broken connection, counts as its end."""
    try:
        head = stream.read(HEAD.size)
        if len(head) < HEAD.size:
            return None
        size, kind, call = HEAD.unpack(head)
        content = stream.read(size)
    except OSError:  # a socket whose other side ended with bytes unread is reset
        return None
    return None if len(content) < size else (FrameKind(kind), call, content)


class FrameReader:
    """Takes bytes as they come and gives the frames that are whole."""

    def __init__(self) -> None:
        self._held = bytearray()

    def take(self, data: bytes) -> list[tuple[FrameKind, int, bytes]]:
        """The frames that `data` completes."""
        self._held += data
        frames = []
        at = 0
        while len(self._held) - at >= HEAD.size:
            size, kind, call = HEAD.unpack_from(self._held, at)
            end = at + HEAD.size + size
            if end > len(self._held):
                break
            frames.append((FrameKind(kind), call, bytes(self._held[at + HEAD.size : end])))
            at = end
        del self._held[:at]
        return frames


def refusal(content: bytes) -> StoreError:
    """The error of a writer that could not open its store."""
    return StoreError(content.decode("utf-8", "replace"))
