"""Tables for other engines over the published segments: read back by the libraries, and by DuckDB where it can."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

import vmstore
from tests.cold.conftest import TierSite
from tests.engine.stories import answer, chat
from vmstore.columns.schema import TABLES
from vmstore.maintenance.publish import publish, sweep_tier

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytest.importorskip("duckdb")

KINDS = "SELECT kind, count(*), sum(tokens) FROM mutations GROUP BY kind ORDER BY kind"


def counted(store: vmstore.Store) -> dict[str, int]:
    """The rows of each table of a store's segments."""
    import duckdb

    files = store.admin.column_segments().segments
    counts = {}
    for name in TABLES:
        listed = [f"{segment.path}/{name}.parquet" for segment in files]
        asked = "SELECT count(*) FROM read_parquet(?, union_by_name = true)"
        counts[name] = duckdb.connect().execute(asked, [listed]).fetchall()[0][0]
    return counts


def options(site: TierSite) -> dict[str, str]:
    """How deltalake reaches a tier."""
    server = dict(parse_qsl(urlsplit(site.address).query))
    settings = {
        "AWS_ENDPOINT_URL": server.get("endpoint"),
        "AWS_REGION": server.get("region"),
        "AWS_ALLOW_HTTP": "true",
    }
    return {key: value for key, value in settings.items() if value}


def delta_rows(site: TierSite, tables: dict[str, str]) -> dict[str, int]:
    """The rows of each table as deltalake reads them."""
    from deltalake import DeltaTable

    counts = {}
    for name, address in tables.items():
        table = DeltaTable(address, storage_options=options(site)).to_pyarrow_table()
        assert table.column_names == list(TABLES[name])
        counts[name] = table.num_rows
    return counts


def iceberg_rows(site: TierSite, tables: dict[str, str]) -> dict[str, int]:
    """The rows of each table as pyiceberg reads them."""
    from pyiceberg.table import StaticTable

    server = dict(parse_qsl(urlsplit(site.address).query))
    settings = {"s3.endpoint": server.get("endpoint"), "s3.region": server.get("region")}
    settings |= {"s3.access-key-id": os.environ.get("AWS_ACCESS_KEY_ID"), "s3.secret-access-key": "tests"}
    properties: Any = {key: value for key, value in settings.items() if value}
    counts = {}
    for name, address in tables.items():
        table = StaticTable.from_metadata(address, properties).scan().to_arrow()
        assert table.column_names == list(TABLES[name])
        counts[name] = table.num_rows
    return counts


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_tables_hold_what_the_segments_do(path: Path, site: TierSite, form: str) -> None:
    """A table has the rows of all segments; after the store grew, and its tier was swept, those of now, unasked."""
    read = delta_rows if form == "delta" else iceberg_rows
    with vmstore.open(path) as store:
        done = publish(store, site.address, tables=[form])
        before = counted(store)
        assert read(site, done.tables[form]) == before
        assert publish(store, site.address).tables == done.tables
        store.record("other", chat("One more thing"), answer("Yes."))
        later = publish(store, site.address)
        assert counted(store)["mutations"] > before["mutations"]
        sweep_tier(site.address, "default", 1 << 61, grace_s=0)
        assert read(site, later.tables[form]) == counted(store)
    with vmstore.open(site.address, "r") as cold:
        assert cold.verify().ok


def test_duckdb_reads_the_tables(path: Path, site: TierSite) -> None:
    """DuckDB counts the same kinds in a table of Delta as in the files, where its extension is at hand."""
    wheel = pytest.importorskip("duckdb_extension_delta")
    import duckdb

    if site.address.startswith("s3"):
        pytest.skip("the extension reaches S3 by httpfs and a secret of its own")
    with vmstore.open(path) as store:
        address = publish(store, site.address, tables=["delta"]).tables["delta"]["mutations"]
        files = [f"{segment.path}/mutations.parquet" for segment in store.admin.column_segments().segments]
    (extension,) = Path(str(wheel.__file__)).parent.rglob("*.duckdb_extension")
    db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    db.execute(f"LOAD '{extension}'")
    expected = db.execute(KINDS.replace("mutations", "read_parquet(?, union_by_name = true)"), [files]).fetchall()
    assert expected and db.execute(KINDS.replace("mutations", f"delta_scan('{address}')")).fetchall() == expected
