"""Keys that sign seals: Ed25519, the secret in a file that its owner alone may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from vmstore.core.clock import IdSource, SystemIds
from vmstore.core.system.atomic_file import beside, naming, new_file
from vmstore.core.system.safe_files import read_within
from vmstore.errors import InputError, StoreError

MODE = 0o600
PUBLIC = ".pub"
PUBLIC_BYTES = 32
KEY_BYTES_MAX = 1 << 20


class SigningKey:
    """A secret key; `public` is the half that others check signatures with, 32 bytes."""

    def __init__(self, secret: Any) -> None:
        self._secret = secret
        self.public: bytes = secret.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """The signature of a message, 64 bytes."""
        signature: bytes = self._secret.sign(message)
        return signature


def new_key(path: str | os.PathLike[str], *, ids: IdSource | None = None) -> SigningKey:
    """Draws a key and writes it where nothing is yet: the secret to `path`, the public half to `path`.pub.

    The secret is a PKCS #8 file in PEM, as `openssl genpkey -algorithm ed25519` writes it, for its
    owner alone (0600); the public half is 64 hex digits.
    """
    serialization, ed25519 = _cryptography()
    file = Path(path)
    key = SigningKey(ed25519.Ed25519PrivateKey.from_private_bytes(b"".join((ids or SystemIds()).salts(2))))
    pem: bytes = key._secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with beside(file) as part, naming(file):
        write_secret(part, pem)
        with new_file(file.with_name(file.name + PUBLIC)) as public:
            public.write(key.public.hex().encode() + b"\n")
    return key


def read_key(path: str | os.PathLike[str]) -> SigningKey:
    """The key in a file; raises InputError where there is none, where others may read it, or for another kind."""
    serialization, ed25519 = _cryptography()
    file = Path(path)
    content = read_secret(file, f"`vmstore seal --new-key --key {file}` makes one")
    try:
        secret = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{file} holds no secret key ({error}); `vmstore seal --new-key` writes one", code="not-a-key"
        ) from error
    if not isinstance(secret, ed25519.Ed25519PrivateKey):
        raise InputError(
            f"{file} holds a key of another kind than Ed25519; `vmstore seal --new-key` writes one", code="not-a-key"
        )
    return SigningKey(secret)


def write_secret(path: Path, content: bytes) -> None:
    """Writes a secret to a new file that its owner alone may read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    with os.fdopen(handle, "wb") as secret:
        secret.write(content)
        secret.flush()
        os.fsync(handle)


def read_secret(file: Path, remedy: str) -> bytes:
    """Reads a secret's file; raises InputError where it cannot be read, or others may read it."""
    try:
        others = stat.S_IMODE(file.stat().st_mode) & 0o077
        content = read_within(file, KEY_BYTES_MAX)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); {remedy}", code="unreadable-key") from error
    if others:
        raise InputError(
            f"others than you may read or change {file}, which holds a secret key; run `chmod 600 {file}`",
            code="key-in-the-open",
        )
    return content


def public_key(given: str | os.PathLike[str]) -> bytes:
    """A public key given as 64 hex digits, or as a file of them."""
    text = str(given)
    try:
        if Path(text).is_file():
            text = read_within(text, KEY_BYTES_MAX).decode("ascii")
        found = bytes.fromhex(text)
    except (OSError, ValueError):
        found = b""
    if len(found) != PUBLIC_BYTES:
        raise InputError(
            f"{str(given)[:80]} is no public key: neither 64 hex digits nor a file of them, as `vmstore seal --new-key`"
            " writes beside the secret",
            code="not-a-key",
        )
    return found


def _cryptography() -> tuple[Any, Any]:
    """Loads the module that makes keys, when one is made or read."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise StoreError("signing needs the package cryptography; run `pip install 'vmstore[trust]'`") from error
    return serialization, ed25519
