"""What a namespace leaves to others: rights of its files, the handle of a region, a damaged neighbour."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import apsw
import pytest

import vmstore
from tests.engine.stories import chat
from tests.refusals import refused
from vmstore.errors import ReadOnlyError, UnknownError
from vmstore.maintenance.archive import archive
from vmstore.namespace.signing_keys import new_key
from vmstore.seals.seals import seal
from vmstore.shares.regions import revoke, share
from vmstore.testing.chains import CommitSpec, chain


def test_who_may_read_writes_nothing_past_the_gate(store_path: Path) -> None:
    """The log and views of a region's handle refuse writes, as rebuild and seal do, and all once it is taken back."""
    with vmstore.open(store_path, namespace="team") as keeper, vmstore.open(store_path) as own:
        keeper.record("plan", chat("Where to?"))
        share(keeper, "default", "read")
        region = own.sharing.region("team")
        log, views = region.admin.log, region.admin.views
        assert log.ordinal == keeper.admin.log.ordinal and log.tail(0, 9) == keeper.admin.log.tail(0, 9)
        assert log.cells([1]) == keeper.admin.log.cells([1])
        for act in (
            lambda: log.append(chain([CommitSpec()]), 0, 0),
            lambda: log.destroy({1: 1}),
            lambda: log.compact(),
            lambda: log.alone(),
        ):
            with pytest.raises(ReadOnlyError):
                act()
        with pytest.raises(apsw.ReadOnlyError):
            views.execute("DELETE FROM pages")
        with refused("write_is_granted"):
            region.admin.rebuild()
        with refused("region-seals"):
            seal(region, new_key(store_path.parent / "seal.key"))
        assert views.execute("SELECT count(*) FROM pages").get == len(keeper.session("plan").pages())
        revoke(keeper, "default")
        for look in (lambda: log.tail(0, 9), lambda: log.ordinal, lambda: log.cells([1])):
            with pytest.raises(UnknownError):
                look()
        with pytest.raises(UnknownError):
            views.execute("SELECT count(*) FROM pages").fetchall()
        assert keeper.verify().ok
        region.close()


@pytest.mark.parametrize(("mask", "folder", "file"), [(0o077, 0o700, 0o600), (0o027, 0o750, 0o640)])
def test_the_umask_is_kept(store_path: Path, mask: int, folder: int, file: int) -> None:
    """Every folder and file of a store has no right that the umask takes."""
    before = os.umask(mask)
    try:
        with vmstore.open(store_path) as store:
            store.record("plan", chat("x" * 100_000))
            archive(store, sessions=["plan"], grace_s=0)
        vmstore.open(store_path, namespace="second").close()
    finally:
        os.umask(before)
    rights = {path: stat.S_IMODE(path.stat().st_mode) for path in [store_path, *store_path.rglob("*")]}
    assert {mode for path, mode in rights.items() if path.is_dir()} == {folder}
    assert {mode for path, mode in rights.items() if path.is_file()} == {file}


def test_a_damaged_neighbour_is_no_obstacle(store_path: Path) -> None:
    """Beside a namespace whose log is no log any more a new one is made, and the damaged one is not named."""
    vmstore.open(store_path).close()
    (store_path / "default/log.sqlite").write_bytes(b"no log")
    with vmstore.open(store_path, namespace="second") as store:
        store.record("plan", chat("Where to?"))
        assert store.verify().ok
