"""Publishing a store to a cold tier, and what is left of it there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from vmstore.cold.place import cold_address
from vmstore.cold.tier import ColdTier
from vmstore.errors import InputError
from vmstore.log.port import Progress
from vmstore.namespace.cold_tiers import StatedTier, state_tier, stated_tiers
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import PublishReport, SweepReport
from vmstore.publication.publish import Publication, Upload, holding

GRACE_S = 3600.0


class Publishable(Protocol):
    """A store that is open, as far as publishing needs it."""

    _ns: Namespace


def publish(
    store: Publishable,
    address: str | os.PathLike[str],
    sessions: str | Iterable[str] = (),
    *,
    older_than_s: float | None = None,
    tables: Sequence[str] = (),
    dry_run: bool = False,
    progress: Progress | None = None,
) -> PublishReport:
    """Puts sessions into the cold tier at an address, each as an archive, and a manifest that names all there is.

    Of the sessions named, of those in which nothing happened for `older_than_s` seconds, or of all; those that they
    were forked from come along. What is there already is not written again. The column segments go along where no
    session is named and the extra `columns` is installed. `tables` are the forms in which other engines are given
    them, of `delta` and `iceberg`: metadata alone, kept up by every later call. After a kill the same call goes on.
    """
    ns = store._ns
    names = [sessions] if isinstance(sessions, str) else list(sessions)
    if names and older_than_s is not None:
        raise InputError("name the sessions to publish, or say how old they are, and not both", code="which-sessions")
    where = cold_address(address)
    tier = where.tier(ns.name, ns.wait_s)
    if not dry_run:
        ns.engine  # noqa: B018 (refuses where the handle is for reading)
    if unknown := set(tables) - {"delta", "iceberg"}:
        raise InputError(f"{unknown.pop()!r} is no form of tables; there are delta and iceberg", code="no-form")
    columns = None if names or dry_run else _columns(ns, progress)
    work = Publication(ns, tier, columns, progress, () if dry_run else tables)
    with holding(ns):
        with ns.asking():
            standing = work.chosen(names, older_than_s)
        if standing and not dry_run:
            _remember(ns, where.objects)  # before anything is there that an erasure would have to find
        if not standing:
            return _nothing(tier.address, dry_run)
        report = work.publish(standing, dry_run=dry_run)
    return report if dry_run else msgspec.structs.replace(report, tables=_tables(tier, where.objects))


def _tables(tier: ColdTier, address: str) -> dict[str, dict[str, str]]:
    """Brings the tables of other engines to the newest manifest; their addresses by form and name."""
    manifest = tier.manifest().manifest
    if not manifest.tables:
        return {}
    from vmstore.publication.lake import written

    return {form: dict(written(form, tier, address, manifest)) for form in manifest.tables}


def _remember(ns: Namespace, address: str) -> None:
    if address not in {tier.address for tier in stated_tiers(ns)}:
        state_tier(ns, StatedTier(address, False))


def _nothing(address: str, dry_run: bool) -> PublishReport:
    return PublishReport(not dry_run, address, 0, [], [], 0, 0)


def _columns(ns: Namespace, progress: Progress | None) -> Upload | None:
    """The function that uploads the column segments; None where the extra is not installed."""
    try:
        from vmstore.publication.column_upload import column_upload
    except ImportError:
        return None
    return column_upload(ns, progress)


def sweep_tier(
    address: str | os.PathLike[str], namespace: str, now_us: int, *, grace_s: float = GRACE_S, dry_run: bool = False
) -> SweepReport:
    """Deletes objects that no manifest of the last `grace_s` seconds names, and manifests replaced before that."""
    tier = cold_address(address).tier(namespace)
    tier.manifest()  # raises where there is no tier
    found = list(tier.strays(now_us - round(grace_s * 1e6)))
    if not dry_run:
        for stray in found:
            tier.objects.delete(stray.name)
    return SweepReport(not dry_run, [stray.name for stray in found], sum(stray.size for stray in found))
