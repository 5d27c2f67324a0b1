"""Unpacks compressed files, to a size that memory can hold."""

from __future__ import annotations

from pathlib import Path

from vmstore.errors import InputError

MAGIC = b"\x28\xb5\x2f\xfd"  # how a zstd frame begins
UNPACKED_BYTES_MAX = 512 << 20
SMALL_BYTES = 16 << 20  # what any file may hold
TIMES_MAX = 24  # as long as it is packed; sessions of agents are 5 to 15 times that
VALUES_MIN = 300_000  # what any file may hold; each takes some hundred bytes of memory
PIECE = 1 << 20


def is_packed(data: bytes) -> bool:
    """Whether bytes are those of a compressed file."""
    return data.startswith(MAGIC)


def unpack(path: Path, data: bytes, size_max: int | None = None) -> bytes:
    """What a compressed file holds; one that is cut short gives what was whole of it.

    Refuses more than UNPACKED_BYTES_MAX, and so much more than was packed that it was made to fill memory, as
    soon as it is met. Where `size_max` is given it reads about as many bytes and leaves the rest.
    """
    import zstandard

    most, values = min(UNPACKED_BYTES_MAX, SMALL_BYTES + TIMES_MAX * len(data)), 0
    unpacked = bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
            while piece := stream.read(PIECE):
                unpacked += piece
                if size_max is not None and len(unpacked) >= size_max:
                    break
                values += sum(map(piece.count, (b"[", b"{", b",", b"\n")))
                if len(unpacked) > most or values > VALUES_MIN + len(data):
                    raise InputError(
                        f"{path} holds more than {most:,} bytes or {VALUES_MIN + len(data):,} values once it is "
                        "unpacked; unpack it with zstd and split it into files"
                    )
    except (zstandard.ZstdError, MemoryError) as error:
        raise InputError(f"{path} is no zstd file that can be read: {error}; unpack it with zstd -d") from error
    return bytes(unpacked)
