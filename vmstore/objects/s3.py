"""An object store behind the protocol of S3, by obstore.

    s3://bucket/prefix?endpoint=http://127.0.0.1:5000&region=eu-central-1

Keys, tokens and whatever else the address does not say come from the environment (`AWS_ACCESS_KEY_ID` and the like),
never from the address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from vmstore.core.system.waits import WAIT_S
from vmstore.errors import InputError, StoreError
from vmstore.objects.port import ObjectInfo, check_name, exists

QUERY = ("endpoint", "region", "style")
LIST_TRIES = 4  # the client asks again for what it gets no answer to, and not where one broke off
STYLES = ("path", "virtual")
ONE_PUT_BYTES = 64 << 20  # longer ones go up in parts, which still only create
FAULTS = (BaseError, OSError)  # what is not there comes as Python's own error
MISSING = (NotFoundError, FileNotFoundError)
DENIED = (PermissionDeniedError, UnauthenticatedError, PermissionError)
THERE = (AlreadyExistsError, FileExistsError)
FULL = re.compile(r"\b507\b|QuotaExceeded|StorageFull")
T = TypeVar("T")


_process = [0]  # the one that obstore's threads run in, which no fork takes along


def _enter() -> None:
    """Raises StoreError in a process that was forked from one in which obstore ran: it would wait for ever."""
    _process[0] = _process[0] or os.getpid()
    if _process[0] != os.getpid():
        raise StoreError(
            f"S3 was used by process {_process[0]}, from which this one was forked, and cannot be used here: start "
            "processes by spawn or forkserver, or fork before the first use",
            code="forked",
        )


class S3Objects:
    """Objects below a prefix of a bucket."""

    def __init__(self, address: str, wait_s: float | None = WAIT_S) -> None:
        parts = urlsplit(address)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        _check(address, asked)
        prefix = parts.path.strip("/")
        self._bucket = parts.netloc
        self._prefix = check_name(prefix) if prefix else ""
        self.address = f"s3://{self._bucket}" + (f"/{prefix}" if prefix else "")
        endpoint = asked.get("endpoint")
        limit = timedelta(seconds=WAIT_S if wait_s is None else max(wait_s, 1.0))
        self._store = S3Store(
            self._bucket,
            prefix=self._prefix or None,
            config={
                **({"endpoint": endpoint} if endpoint else {}),
                **({"region": asked["region"]} if "region" in asked else {}),
                "virtual_hosted_style_request": asked.get("style") == "virtual",
            },
            client_options={"allow_http": bool(endpoint and endpoint.startswith("http://")), "timeout": limit},
            retry_config={"retry_timeout": limit, "max_retries": 10},
        )

    def put(self, name: str, content: bytes) -> None:
        """Writes an object where there is none of the name."""
        _enter()
        check_name(name)
        try:
            obstore.put(self._store, name, content, mode="create", use_multipart=len(content) > ONE_PUT_BYTES)
        except THERE:  # maybe by ourselves, of which the answer was lost
            if self.get(name) != content:
                raise exists(self.address, name) from None
        except FAULTS as error:
            raise self._failed(name, error) from error

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        """The bytes of an object, or some of them."""
        check_name(name)

        def read() -> bytes:
            if start == 0 and length is None:
                return bytes(obstore.get(self._store, name).bytes())
            size = obstore.head(self._store, name)["size"]
            end = size if length is None else min(size, start + length)
            return bytes(obstore.get_range(self._store, name, start=start, end=end)) if start < end else b""

        return self._asked(name, read)

    def head(self, name: str) -> ObjectInfo | None:
        """An object's size and age."""
        check_name(name)

        def read() -> ObjectInfo:
            meta = obstore.head(self._store, name)
            return ObjectInfo(name, meta["size"], int(meta["last_modified"].timestamp() * 1_000_000))

        return self._asked(name, read)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """The objects below a prefix, by name; a list that broke off is gone on with."""
        _enter()
        last, tries = "", 0
        while True:
            try:
                for some in obstore.list(self._store, check_name(prefix) if prefix else None, offset=last or None):
                    for meta in some:
                        last, tries = meta["path"], 0
                        yield ObjectInfo(last, meta["size"], int(meta["last_modified"].timestamp() * 1_000_000))
                return
            except FAULTS as error:
                tries += 1
                if tries == LIST_TRIES or isinstance(error, DENIED + MISSING):
                    raise self._failed(prefix, error) from error

    def delete(self, name: str) -> bool:
        """Removes an object."""
        if self.head(name) is None:
            return False
        try:
            obstore.delete(self._store, name)
        except MISSING:
            return False
        except FAULTS as error:
            raise self._failed(name, error) from error
        return True

    def _asked(self, name: str, read: Callable[[], T]) -> T | None:
        """Gives what `read` does; None where there is no such object."""
        _enter()
        try:
            return read()
        except MISSING as error:
            if "NoSuchBucket" in str(error):
                raise self._failed(name, error) from error
            return None
        except FAULTS as error:
            raise self._failed(name, error) from error

    def _failed(self, name: str, error: Exception) -> StoreError:
        what = f"{self.address}/{name}" if name else self.address
        if FULL.search(str(error)):
            return StoreError(f"{what} was not written: the bucket is full; make room, then try again", code="full")
        if isinstance(error, DENIED):
            return StoreError(
                f"{what}: the keys of the environment do not let you do this; set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY of an account that may",
                code="no-right",
            )
        reason = " ".join(str(error).partition("Debug source")[0].split())[:200]
        return StoreError(
            f"{what} cannot be reached or gave an error ({reason}); look whether the bucket is there and answers, "
            "then try again",
            code="unreachable",
        )


def _check(address: str, asked: dict[str, str]) -> None:
    """Raises InputError where an address is none of S3."""
    parts = urlsplit(address)
    wrong = next((key for key in asked if key not in QUERY), None)
    if not parts.hostname or parts.username or parts.password or wrong or asked.get("style", "path") not in STYLES:
        reason = (
            "it holds a key, which belongs into the environment" if parts.username or parts.password
            else f"{wrong!r} is none of {', '.join(QUERY)}" if wrong
            else "it names no bucket" if not parts.hostname
            else f"style is one of {', '.join(STYLES)}"
        )  # fmt: skip
        shown = f"s3://{parts.hostname or ''}{parts.path}"
        raise InputError(f"{shown[:200]} is no address of objects: {reason}", code="no-object-address")
