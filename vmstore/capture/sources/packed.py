"""Unpacks compressed files, to a size that memory can hold."""

from __future__ import annotations

from pathlib import Path

from vmstore.errors import InputError

MAGIC = b"\x28\xb5\x2f\xfd"  # how a zstd frame begins
UNPACKED_BYTES_MAX = 512 << 20
BOMB_BYTES, BOMB_RATIO = 64 << 20, 64  # more than both is not unpacked: a few bytes can ask for all the memory
BOMB_NODES, BOMB_NODES_RATIO = 1 << 20, 2  # the same of what JSON makes objects of
PIECE = 1 << 20


def is_packed(data: bytes) -> bool:
    """Whether bytes are those of a compressed file."""
    return data.startswith(MAGIC)


def unpack(path: Path, data: bytes, size_max: int | None = None) -> bytes:
    """What a compressed file holds; one that is cut short gives what was whole of it.

    Refuses more than UNPACKED_BYTES_MAX, and more than a file of its length is likely to hold, as
    soon as they are met. Where `size_max` is given it reads about as many bytes and leaves the rest.
    """
    import zstandard

    unpacked = bytearray()
    likely, nodes = max(BOMB_BYTES, BOMB_RATIO * len(data)), max(BOMB_NODES, BOMB_NODES_RATIO * len(data))
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
            while piece := stream.read(PIECE):
                unpacked += piece
                if size_max is not None and len(unpacked) >= size_max:
                    break
                nodes -= sum(piece.count(sign) for sign in (b"[", b"{", b","))
                if len(unpacked) > UNPACKED_BYTES_MAX:
                    raise InputError(
                        f"{path} holds more than {UNPACKED_BYTES_MAX} bytes once it is unpacked; "
                        "unpack it with zstd and split it into files"
                    )
                if len(unpacked) > likely or nodes < 0:
                    raise InputError(
                        f"{path} holds much more than its {len(data)} bytes are likely to; where you know who made it, "
                        "unpack it with zstd -d and import that"
                    )
    except (zstandard.ZstdError, MemoryError) as error:
        raise InputError(f"{path} is no zstd file that can be read: {error}; unpack it with zstd -d") from error
    return bytes(unpacked)
