"""The proxy's hand on its writer, against a writer that the test plays."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib

import pytest

from vmstore.core.clock import SystemClock
from vmstore.proxy.bodies import unpacked
from vmstore.proxy.figures import ProxyFigures
from vmstore.proxy.frames import FrameKind, FrameReader, OpenStore, WindowAsk
from vmstore.proxy.writer import CallWriter


def test_who_hangs_up_while_the_memory_is_asked_is_forgotten_there() -> None:
    """The writer is told that nothing more is asked of the request, so that it keeps its body no longer."""
    assert asyncio.run(hung_up()) == [(FrameKind.WINDOW, 1), (FrameKind.WINDOW_END, 1)]


async def hung_up() -> list[tuple[FrameKind, int]]:
    """What the writer is told of a request whose client hangs up."""
    ours, theirs = socket.socketpair()
    writer = CallWriter(OpenStore("", "", None, 0, "", None), ProxyFigures(), SystemClock())
    await asyncio.get_running_loop().create_connection(lambda: writer, sock=ours)
    waiting = asyncio.ensure_future(writer.managed(WindowAsk(None, 1_000, 0, [], b"{}")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0.01)
    with theirs:
        return [(kind, number) for kind, number, _ in FrameReader().take(theirs.recv(1 << 16))]


@pytest.mark.parametrize("packed", [gzip.compress, zlib.compress])
def test_a_body_of_several_members_is_read_to_its_end(packed) -> None:
    """What was packed in two goes is both, and what was cut off its beginning."""
    encoding = "gzip" if packed is gzip.compress else "deflate"
    assert unpacked(packed(b"one ") + packed(b"two"), encoding) == b"one two"
    assert unpacked(packed(b"one " * 1_000)[:-9], encoding).startswith(b"one one")
