"""Bodies as they were sent, unpacked and without the keys that the call itself carried."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from vmstore.errors import InputError

UNPACKED_BYTES_MAX = 256 << 20
READABLE = ("gzip", "x-gzip", "deflate", "zstd", "identity")  # encodings that can be unpacked to be recorded
KEY = b"[API key]"  # stands for a key in what is recorded


def unpacked(data: bytes, encoding: str) -> bytes:
    """A body without its content encoding; InputError where it has one that cannot be read, or is broken."""
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        if name != "identity" and data:
            data = _unpacked(data, name)
    return data


def _unpacked(data: bytes, name: str) -> bytes:
    try:
        if name in ("gzip", "x-gzip"):
            return _inflated(data, 31)
        if name == "deflate":
            return _inflated(data, 15 if data[0] & 0x0F == 8 else -15)
        if name == "zstd":
            import zstandard

            with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                return _bounded(reader.read(UNPACKED_BYTES_MAX + 1))
    except (zlib.error, ValueError, OSError) as error:
        raise InputError(f"the body cannot be unpacked as {name}: {error}", code="not-unpacked") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("zstd", "zstandard"):
            raise InputError(f"the body cannot be unpacked as {name}: {error}", code="not-unpacked") from error
        raise
    raise InputError(f"the body is packed as {name}; {', '.join(READABLE)} can be recorded", code="not-unpacked")


def _inflated(data: bytes, bits: int) -> bytes:
    """A deflated body inflated, all members of it; one that was cut off gives its beginning."""
    inflated = b""
    while data and len(inflated) <= UNPACKED_BYTES_MAX:
        member = zlib.decompressobj(bits)
        inflated += member.decompress(data, UNPACKED_BYTES_MAX + 1 - len(inflated))
        data = member.unused_data
    return _bounded(inflated)


def _bounded(data: bytes) -> bytes:
    if len(data) > UNPACKED_BYTES_MAX:
        raise InputError(f"the body unpacks to over {UNPACKED_BYTES_MAX >> 20} MiB", code="too-large")
    return data


def without(data: bytes, secrets: Sequence[str]) -> bytes:
    """A body in which something stands for each of the keys that the call was made with."""
    for secret in secrets:
        data = data.replace(secret.encode("utf-8", "surrogatepass"), KEY)
    return data
