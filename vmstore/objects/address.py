"""The address of an object store: a folder, or a URL that begins with s3://."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vmstore.core.system.waits import WAIT_S
from vmstore.errors import InputError
from vmstore.objects.folder import FolderObjects
from vmstore.objects.port import Objects

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def objects_at(address: str | os.PathLike[str], wait_s: float | None = WAIT_S) -> Objects:
    """The object store at an address; InputError where none is kept there."""
    scheme = _SCHEME.match(address) if isinstance(address, str) else None
    if scheme is None:
        return FolderObjects(Path(address))
    if scheme[1] == "s3":
        try:
            from vmstore.objects.s3 import S3Objects
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "obstore":
                raise
            raise InputError("objects in S3 need obstore: pip install 'vmstore[s3]'", code="not-installed") from None
        return S3Objects(str(address), wait_s)
    raise InputError(
        f"no objects are kept at {scheme[0]}…; name a folder, or a bucket as s3://bucket/prefix",
        code="no-object-address",
    )
