"""A socket between a client and a PostgreSQL server that loses one answer of the server, and the connection with it."""

from __future__ import annotations

import selectors
import socket
import threading
from pathlib import Path


class LosingSocket:
    """Stands in a folder like the server's socket; after `lose`, the next answer is lost that a word asked for."""

    def __init__(self, folder: Path, server: Path) -> None:
        self._server = str(server / ".s.PGSQL.5432")
        self._word: bytes | None = None
        self.lost = 0
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, word: bytes) -> None:
        """Loses the answer to the next message that holds a word."""
        self._word = word

    def close(self) -> None:
        """Takes no more connections."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._server)
        losing = False
        with selectors.DefaultSelector() as ready, client, server:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    source: socket.socket = key.fileobj  # type: ignore[assignment]
                    data = source.recv(65_536)
                    if not data:
                        return
                    if source is client and self._word is not None and self._word in data:
                        self._word, losing = None, True
                    if source is server and losing:  # it has committed, and nobody hears of it
                        self.lost += 1
                        return
                    key.data.sendall(data)


class HoldingSocket:
    """Stands in a folder like the server's socket; after `hold`, nothing passes either way from a word on."""

    def __init__(self, folder: Path, server: Path) -> None:
        self._server = str(server / ".s.PGSQL.5432")
        self._word: bytes | None = None
        self._answers = False
        self._broken = False
        self._passing = threading.Event()
        self._passing.set()
        self.held = 0
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, word: bytes, *, answers: bool) -> None:
        """Holds all from the next message that holds a word, or from its answer."""
        self._word, self._answers, self._broken = word, answers, False

    def heal(self) -> None:
        """Passes on what was held."""
        self._passing.set()

    def cut(self) -> None:
        """Drops what was held, and the connections that were."""
        self._broken = True
        self._passing.set()

    def close(self) -> None:
        """Takes no more connections."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._server)
        asked = False
        with selectors.DefaultSelector() as ready, client, server:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    source: socket.socket = key.fileobj  # type: ignore[assignment]
                    data = source.recv(65_536)
                    if not data:
                        return
                    if source is client and self._word is not None and self._word in data:
                        self._word, asked = None, True
                        if not self._answers:
                            self._hold()
                    elif source is server and asked and self._answers:
                        asked = False
                        self._hold()
                    self._passing.wait()
                    if self._cut():
                        return
                    key.data.sendall(data)

    def _hold(self) -> None:
        self.held += 1
        self._passing.clear()

    def _cut(self) -> bool:
        """Whether this connection was held when the network broke; the next ones are whole."""
        broken, self._broken = self._broken, False
        return broken
