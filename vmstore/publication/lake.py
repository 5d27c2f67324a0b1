"""Tables over the published column segments for other engines: Delta Lake and Apache Iceberg, metadata alone.

The Parquet files stay where they lie. deltalake and pyiceberg come with the extra `lake`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from vmstore.cold.manifest import Manifest, StoredObject
from vmstore.cold.tier import LAKE, ColdTier
from vmstore.columns.schema import TABLES
from vmstore.errors import InputError

DELTA, ICEBERG = "delta", "iceberg"


class LakeTable(NamedTuple):
    """A table by its name, with the address that an engine opens: a folder of Delta, a metadata file of Iceberg."""

    name: str
    address: str


def written(form: str, tier: ColdTier, address: str, manifest: Manifest) -> list[LakeTable]:
    """Writes the tables of one form over the segments of a manifest; InputError where what writes them is missing."""
    write: Callable[..., LakeTable] = {DELTA: _delta, ICEBERG: _iceberg}[form]
    if not manifest.segments:
        raise InputError(
            f"{tier.address} has no column segments to make tables of; publish all sessions with the extra `columns`: "
            "pip install 'vmstore[columns]'",
            code="no-segments",
        )
    try:
        return [
            write(tier, address, name, [segment.files[name] for segment in manifest.segments], manifest.at)
            for name in TABLES
        ]
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("deltalake", "pyiceberg", "pyarrow", "sqlalchemy"):
            raise
        raise InputError(
            f"tables of {form} need deltalake and pyiceberg: pip install 'vmstore[lake]'", code="not-installed"
        ) from None


def _place(address: str) -> tuple[str, dict[str, str]]:
    """The root of a tier as other libraries take it, and what its address says of the server."""
    parts = urlsplit(address)
    if parts.scheme == "cold":
        return unquote(parts.path), {}
    return f"s3://{parts.netloc}{parts.path}".rstrip("/"), dict(parse_qsl(parts.query))


# ---- Delta Lake


def _delta(tier: ColdTier, address: str, name: str, files: Sequence[StoredObject], at_us: int) -> LakeTable:
    """A table in the folder of its files; a version more where these changed."""
    from deltalake import DeltaTable, Field, Schema
    from deltalake.exceptions import TableNotFoundError
    from deltalake.transaction import AddAction, create_table_with_add_actions

    root, server = _place(address)
    options = {"AWS_ENDPOINT_URL": server.get("endpoint"), "AWS_REGION": server.get("region")}
    options |= {"AWS_ALLOW_HTTP": "true" if server.get("endpoint", "").startswith("http://") else None}
    given = {key: value for key, value in options.items() if value is not None}
    folder = f"{root}/{tier.namespace}/segments/{name}"
    schema = Schema([Field(column, "long", nullable=True) for column in TABLES[name]])
    names = [stored.name.rpartition("/")[2] for stored in files]
    adds = [
        AddAction(one, stored.size, {}, at_us // 1000, True, "{}") for one, stored in zip(names, files, strict=True)
    ]
    try:
        table = DeltaTable(folder, storage_options=given)
    except TableNotFoundError:
        create_table_with_add_actions(
            folder, schema, adds, mode="error", partition_by=[], name=name, storage_options=given
        )
    else:
        if sorted(uri.rpartition("/")[2] for uri in table.file_uris()) != sorted(names):
            table.create_write_transaction(adds, mode="overwrite", schema=schema, partition_by=[])
    return LakeTable(name, folder)


# ---- Apache Iceberg


def _iceberg(tier: ColdTier, address: str, name: str, files: Sequence[StoredObject], at_us: int) -> LakeTable:
    """A table's metadata beside the segments, written again where the files changed; the former is removed."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    place = f"{tier.namespace}/{LAKE}/{name}"
    known = f"{place}/files.json"
    names = [stored.name for stored in files]
    root, server = _place(address)
    stated = json.loads(tier.objects.get(known) or b"{}")
    if stated.get("files") == names:
        return LakeTable(name, stated["metadata"])
    former = [info.name for info in tier.objects.list(place)]
    fields = [NestedField(at, column, LongType(), required=False) for at, column in enumerate(TABLES[name], 1)]
    with tempfile.TemporaryDirectory() as folder:
        catalog = SqlCatalog("vmstore", uri=f"sqlite:///{folder}/catalog.db", **_properties(server))
        catalog.create_namespace("vmstore")
        base = root if "://" in root else f"file://{root}"
        table: Any = catalog.create_table(("vmstore", name), Schema(*fields), location=f"{base}/{place}")
        table.add_files([f"{base}/{one}" for one in names])
        metadata: str = table.metadata_location
        catalog.close()
    for one in former:
        tier.objects.delete(one)
    tier.objects.put(known, json.dumps({"files": names, "metadata": metadata}).encode())
    return LakeTable(name, metadata)


def _properties(server: dict[str, str]) -> dict[str, str]:
    """The settings by which pyiceberg reaches a server of S3; it finds keys in the environment itself."""
    given = {
        "s3.endpoint": server.get("endpoint"),
        "s3.region": server.get("region"),
    }
    return {key: value for key, value in given.items() if value is not None}
