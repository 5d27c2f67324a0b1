"""The file of tokens: who may ask a server what, and until when. It holds digests, and no token.

A token has 256 bits of chance, so that one digest of it is enough: nobody guesses it, and none is slowed down.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from vmstore.core.clock import Clock, IdSource
from vmstore.core.system.atomic_file import flush, naming
from vmstore.core.system.safe_files import read_within
from vmstore.core.text.suggest import suggest
from vmstore.errors import ConflictError, InputError, UnknownError

if sys.platform != "win32":
    import fcntl

Role = Literal["metrics", "read", "unmasked"]
ROLES: tuple[Role, ...] = ("metrics", "read", "unmasked")  # each may what those before it may
PREFIX = "vms_"
FORMAT = 1
FILE_BYTES_MAX = 16 << 20
NAME_CHARS_MAX = 100
DAY_US = 24 * 3600 * 10**6
DAYS_MAX = 36_500
MODE = 0o600


class AccessToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rights of a token; `sha256` is of the token, in hex.

    `namespaces` are those that it may ask, None for all; times are in microseconds since 1970, `until` None for ever.
    """

    name: str
    role: Role
    sha256: str
    made: int
    namespaces: tuple[str, ...] | None = None
    until: int | None = None

    def may(self, role: Role) -> bool:
        """Whether it may what a role may."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def reaches(self, namespace: str) -> bool:
        """Whether it may ask a namespace."""
        return self.namespaces is None or namespace in self.namespaces


class TokenList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of the file."""

    format: int
    tokens: tuple[AccessToken, ...]


class TokenFile:
    """The file, which is read again whenever it changed: who is taken out of it is let in no more."""

    def __init__(self, path: Path, clock: Clock, ids: IdSource) -> None:
        self.path = path
        self._clock = clock
        self._ids = ids
        self._stamp: tuple[int, ...] | None = None
        self._tokens: tuple[AccessToken, ...] = ()

    def all(self) -> tuple[AccessToken, ...]:
        """Every token, by the order they were made in; InputError where the file cannot be read or trusted."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise InputError(
                f"the file of tokens cannot be read ({error.strerror}); `vmstore token add NAME --tokens {self.path}` "
                "makes one",
                code="unreadable-tokens",
            ) from error
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
        if stamp != self._stamp:
            self._tokens = self._read(status)
            self._stamp = stamp
        return self._tokens

    def bearer(self, given: str) -> AccessToken | None:
        """The entry of a token; None where it is none, or no longer one.

        Each digest is compared, and in constant time: how long it takes says nothing of how near a guess was.
        """
        digest = _digest(given)
        found = [token for token in self.all() if hmac.compare_digest(token.sha256, digest)]
        return found[0] if found and self.holds(found[0]) else None

    def holds(self, token: AccessToken) -> bool:
        """Whether a token is still in the file and has not run out."""
        return token in self.all() and (token.until is None or self._clock.now() < token.until)

    def add(self, name: str, role: Role, namespaces: tuple[str, ...] | None = None, days: int | None = None) -> str:
        """Makes a token and the file where there is none; the token, which stands nowhere else.

        Raises ConflictError where the name is taken.
        """
        if not name.strip() or len(name) > NAME_CHARS_MAX or not name.isprintable():
            raise InputError(
                f"{name[:NAME_CHARS_MAX]!r} cannot name a token; use 1 to {NAME_CHARS_MAX} characters that can be "
                "printed",
                code="not-a-token-name",
            )
        with self._held():
            tokens = self.all() if self.path.exists() else ()
            if any(token.name == name for token in tokens):
                raise ConflictError(
                    f"there is a token {name!r} already; revoke it, or take another name", code="name-taken"
                )
            secret = PREFIX + b"".join(self._ids.salts(2)).hex()
            now = self._clock.now()
            until = None if days is None else now + days * DAY_US
            self._write((*tokens, AccessToken(name, role, _digest(secret), now, namespaces, until)))
            return secret

    def revoke(self, name: str) -> None:
        """Takes a token out of the file; UnknownError names those there are."""
        with self._held():
            tokens = self.all()
            left = tuple(token for token in tokens if token.name != name)
            if len(left) == len(tokens):
                near = suggest(name, [token.name for token in tokens])
                hint = f"did you mean {near!r}?" if near else f"`vmstore token list --tokens {self.path}` names them"
                raise UnknownError(f"there is no token {name!r:.120}; {hint}", code="no-token")
            self._write(left)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The folder locked against others who change the file."""
        with naming(self.path):
            folder = os.open(self.path.absolute().parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _read(self, status: os.stat_result) -> tuple[AccessToken, ...]:
        if stat.S_IMODE(status.st_mode) & 0o022:
            raise InputError(
                f"others than you may change {self.path}, and so let themselves in; run `chmod go-w {self.path}`",
                code="tokens-in-the-open",
            )
        try:
            found = msgspec.json.decode(read_within(self.path, FILE_BYTES_MAX), type=TokenList)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(
                f"{self.path} is no file of tokens ({error}); `vmstore token add` makes one", code="unreadable-tokens"
            ) from error
        if found.format != FORMAT:
            raise InputError(
                f"{self.path} is of format {found.format}, and this version reads {FORMAT}; use a newer vmstore",
                code="unreadable-tokens",
            )
        return found.tokens

    def _write(self, tokens: tuple[AccessToken, ...]) -> None:
        """Puts a new file in the place of the old one."""
        content = msgspec.json.format(msgspec.json.encode(TokenList(FORMAT, tokens)), indent=2) + b"\n"
        part = self.path.with_name(f".{self.path.name}.new")
        with naming(self.path):
            part.unlink(missing_ok=True)
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
            flush(self.path.absolute().parent)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
