"""Unpacks compressed files, to a size that memory can hold."""

from __future__ import annotations

from pathlib import Path

from vmstore.errors import InputError

MAGIC = b"\x28\xb5\x2f\xfd"  # how a zstd frame begins
UNPACKED_BYTES_MAX = 512 << 20
PIECE = 1 << 20


def is_packed(data: bytes) -> bool:
    """Whether bytes are those of a compressed file."""
    return data.startswith(MAGIC)


def unpack(path: Path, data: bytes, size_max: int | None = None) -> bytes:
    """What a compressed file holds; one that is cut short gives what was whole of it.

    Refuses more than UNPACKED_BYTES_MAX, as soon as they are met. Where `size_max` is given it
    reads about as many bytes and leaves the rest.
    """
    import zstandard

    unpacked = bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
            while piece := stream.read(PIECE):
                unpacked += piece
                if size_max is not None and len(unpacked) >= size_max:
                    break
                if len(unpacked) > UNPACKED_BYTES_MAX:
                    raise InputError(
                        f"{path} holds more than {UNPACKED_BYTES_MAX} bytes once it is unpacked; "
                        "unpack it with zstd and split it into files"
                    )
    except (zstandard.ZstdError, MemoryError) as error:
        raise InputError(f"{path} is no zstd file that can be read: {error}; unpack it with zstd -d") from error
    return bytes(unpacked)
