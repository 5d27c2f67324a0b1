"""The store key: what wraps the keys of a namespace, 32 bytes at hand or a key service that is asked."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from vmstore.core.clock import IdSource
from vmstore.errors import StoreError

KEY_BYTES = 32
NONCE_BYTES = 12
_CONTEXT = b"vmstore key"


@runtime_checkable
class StoreKey(Protocol):
    """Wraps keys and unwraps them; whatever it raises says that it could not."""

    def wrap(self, key: bytes) -> bytes:
        """A key that only this store key gives back."""
        ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """The key that was wrapped."""
        ...


class KeyAtHand:
    """A store key that is in memory."""

    def __init__(self, secret: bytes, ids: IdSource) -> None:
        self._cipher = aes(secret)
        self._ids = ids

    def wrap(self, key: bytes) -> bytes:
        """A nonce, and the key encrypted."""
        nonce = self._ids.salt()[:NONCE_BYTES]
        encrypted: bytes = self._cipher.encrypt(nonce, key, _CONTEXT)
        return nonce + encrypted

    def unwrap(self, wrapped: bytes) -> bytes:
        """The key; raises where another one wrapped it."""
        key: bytes = self._cipher.decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], _CONTEXT)
        return key


def aes(key: bytes) -> Any:
    """AES-GCM under a key, loaded where something is encrypted."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise StoreError("encryption needs the package cryptography; run `pip install 'vmstore[trust]'`") from error
    return AESGCM(key)
