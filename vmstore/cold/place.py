"""The address of a cold tier, with what of it is to be read and where copies are kept.

    s3://bucket/prefix?endpoint=http://127.0.0.1:5000&manifest=17&cache=/var/cache/vmstore
    cold:///mnt/shared/cold?manifest=17

`manifest` and `cache` are ours; the rest is the object store's. `cold:` is a folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from vmstore.cold.cache import ObjectCache, cache_of
from vmstore.cold.tier import ColdTier
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import InputError
from vmstore.objects.address import objects_at
from vmstore.objects.port import Objects

SCHEMES = ("s3", "cold")
OURS = ("manifest", "cache")


class ColdAddress(NamedTuple):
    """An address taken apart: `objects` is that of the object store, as it is remembered."""

    objects: str
    manifest: int | None
    cache: str | None

    def store(self, wait_s: float | None = WAIT_S) -> Objects:
        """The object store."""
        if self.objects.startswith("cold:"):
            return objects_at(unquote(urlsplit(self.objects).path), wait_s)
        return objects_at(self.objects, wait_s)

    def copies(self, objects: Objects, namespace: str) -> ObjectCache:
        """The copies of a namespace's objects on this machine."""
        return ObjectCache(cache_of(f"{objects.address}/{namespace}", self.cache), objects)

    def tier(self, namespace: str, wait_s: float | None = WAIT_S) -> ColdTier:
        """A namespace in it."""
        return ColdTier(self.store(wait_s), namespace)


def cold_address(address: str | os.PathLike[str]) -> ColdAddress:
    """Takes an address apart; a path is that of a folder. InputError where it is none."""
    text = os.fspath(address)
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES or "://" not in text:
        if "://" in text:
            raise InputError(
                f"{parts.scheme}://… is no cold tier; name a bucket as s3://bucket/prefix, or a folder",
                code="no-object-address",
            )
        return ColdAddress(f"cold://{quote(str(Path(text).absolute()))}", None, None)
    query = parse_qsl(parts.query, keep_blank_values=True)
    ours = {key: value for key, value in query if key in OURS}
    rest = [(key, value) for key, value in query if key not in OURS]
    number = ours.get("manifest")
    if number is not None and not (number.isascii() and number.isdecimal()):
        raise InputError(f"manifest={number[:40]!r} is no number of a manifest", code="no-object-address")
    if parts.scheme == "cold" and (parts.netloc or not parts.path.strip("/") or rest):
        raise InputError(
            "name the folder of a cold tier by its whole path, as cold:///mnt/cold", code="no-object-address"
        )
    query_left = f"?{urlencode(rest, safe=':/')}" if rest else ""
    objects = f"{parts.scheme}://{parts.netloc}{parts.path}{query_left}"
    return ColdAddress(objects, None if number is None else int(number), ours.get("cache"))
