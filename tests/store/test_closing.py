"""A handle on a region that was open when its grant went, taken back or erased, learns nothing any more."""

from __future__ import annotations

from pathlib import Path

import vmstore
from tests.refusals import refused
from tests.store.test_grants import REGION, kept
from vmstore.erasure.erase import erase, plan_erasure
from vmstore.errors import UnknownError
from vmstore.namespace.folder import ERASING
from vmstore.shares.regions import grants, revoke, share


def test_no_count_is_told_after_a_revocation(store_path: Path) -> None:
    """Neither a verdict, with the views or without, nor a look for strays answers once the grant is taken back."""
    with kept(store_path, "team-a") as keeper, vmstore.open(store_path, namespace="team-a") as home:
        region = home.sharing.region(REGION)
        assert region.verify().ok and region.admin.collect_garbage(dry_run=True).files == []
        revoke(keeper, "team-a")
        for ask in (
            region.verify,
            lambda: region.verify(views=False),
            lambda: region.admin.collect_garbage(dry_run=True),
        ):
            with refused("region_is_shared", UnknownError):
                ask()
        region.close()


def test_an_erased_grant_is_none(store_path: Path) -> None:
    """What erasing a user takes of their grants, or erasing the charter of all, open handles lose at their next act."""
    with kept(store_path, "user:ann") as keeper, vmstore.open(store_path, namespace="team-a") as home:
        share(keeper, "user:bob")
        keeper.session("hers", create=True, user="ann")
        hers, his = home.sharing.region(REGION, user="ann"), home.sharing.region(REGION, user="bob")
        assert hers.sessions() and his.sessions()
        erase(keeper, user="ann")
        with refused("region_is_shared", UnknownError):
            hers.sessions()
        assert his.sessions()
        erase(keeper, session="vmstore")
        with refused("region_is_shared", UnknownError):
            his.sessions()
        hers.close()
        his.close()


def test_a_user_who_was_only_granted_something_is_erased(store_path: Path) -> None:
    """A user of no session here, whom a grant names, goes from it; asked for again nobody is there."""
    with kept(store_path, "user:ann", "user:bob") as keeper:
        assert plan_erasure(keeper, user="ann").cells == 1
        erase(keeper, user="ann")
        assert [grant.to for grant in grants(keeper)] == ["user:", "user:bob"] and keeper.verify().ok
        for user in ("ann", "zoe"):
            with refused("no-user", UnknownError):
                erase(keeper, user=user)


def test_a_refused_erasure_leaves_no_mark(store_path: Path) -> None:
    """Where the gate refuses an erasure nothing is recorded, and nothing is left to be finished."""
    with kept(store_path, "team-a", "user:ann") as keeper, vmstore.open(store_path, namespace="team-a") as home:
        keeper.session("hers", create=True, user="ann")
        before = keeper.admin.log.ordinal
        region = home.sharing.region(REGION)
        with refused("grant_is_granted"):
            erase(region, user="ann")
        assert keeper.admin.log.ordinal == before and not (store_path / REGION / ERASING).exists()
        region.close()
