"""Sockets that listen: at a port that is given, or at the usual one or the next that is free."""

from __future__ import annotations

import errno
import socket

from vmstore.errors import InputError

TRIED = 20  # ports after the one that is taken


def listening(host: str, port: int | None, usual: int = 0) -> socket.socket:
    """A socket that listens at a port, or, where none is given, at the usual one or the next that is free.

    Raises InputError where the given port is taken, naming one that is free.
    """
    if port is not None:
        try:
            return _bound(host, port)
        except OSError as error:
            raise _refused(error, host, port) from error
    for candidate in range(usual, usual + TRIED + 1):
        try:
            return _bound(host, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise _refused(error, host, candidate) from error
    return _bound(host, 0)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except BaseException:
        found.close()
        raise
    return found


def _refused(error: OSError, host: str, port: int) -> InputError:
    """The refusal of a port that cannot be had."""
    if error.errno == errno.EADDRINUSE:
        with _bound(host, 0) as spare:
            free = spare.getsockname()[1]
        return InputError(f"port {port} is in use; port {free} is free: --port {free}, or --port 0 for any")
    if error.errno == errno.EACCES:
        return InputError(f"port {port} is not for everyone to open ({error.strerror}); take one from 1024 up")
    return InputError(f"nothing can listen at {host} port {port} ({error}); name another with --host and --port")
