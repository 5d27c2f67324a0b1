"""The catalogue of a cold tier: the names of its sessions, apart from the manifest, because names can be erased.

Of an encrypted namespace it is encrypted under a key of its own, which the store key wraps.
"""

from __future__ import annotations

import msgspec

from vmstore.cells.storekey import NONCE_BYTES, StoreKey, aes
from vmstore.core.clock import IdSource
from vmstore.errors import CorruptError, StoreError

KEY_BYTES = 32
_CONTEXT = b"vmstore catalogue"


class Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of each session by its uid in hex; `salt` keeps the digest of it from telling a guess."""

    salt: bytes
    names: dict[str, str]


class _Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    wrapped: bytes
    nonce: bytes
    content: bytes


def sealed(names: dict[str, str], ids: IdSource, store_key: StoreKey | None) -> bytes:
    """The bytes of a catalogue."""
    content = msgspec.json.encode(Catalogue(ids.salt(), dict(sorted(names.items()))))
    if store_key is None:
        return content
    key, nonce = ids.salt() + ids.salt(), ids.salt()[:NONCE_BYTES]
    assert len(key) == KEY_BYTES, "two salts are a key"
    return msgspec.json.encode(_Sealed(store_key.wrap(key), nonce, aes(key).encrypt(nonce, content, _CONTEXT)))


def opened(content: bytes, where: str, store_key: StoreKey | None) -> dict[str, str]:
    """The names that bytes of a catalogue hold, by uid."""
    try:
        if store_key is not None:
            lies = msgspec.json.decode(content, type=_Sealed)
            try:
                content = aes(store_key.unwrap(lies.wrapped)).decrypt(lies.nonce, lies.content, _CONTEXT)
            except Exception as error:
                raise StoreError(
                    f"the store key does not open {where}; name the key of the store it was published from",
                    code="other-store-key",
                ) from error
        return msgspec.json.decode(content, type=Catalogue).names
    except (msgspec.MsgspecError, ValueError) as error:
        raise CorruptError(
            f"{where} is no catalogue of sessions ({error}); publish again", code="not-a-manifest"
        ) from error
