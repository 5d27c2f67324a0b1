"""Disk usage of a namespace."""

from __future__ import annotations

from collections import Counter

from vmstore.namespace.backends.port import sizes_of
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import DiskShare, Info, StoredContents, Usage
from vmstore.transfer.disk_usage import ContentUsage, files
from vmstore.views.projection import Progress


def info(ns: Namespace) -> Info:
    """Counts of a namespace's contents and the sizes of its parts."""
    with ns.asking():
        sessions, commits, mutations, pages = ns.views.execute(
            "SELECT coalesce(sum(hidden = 0), 0), coalesce(sum(commits), 0), coalesce(sum(mutations), 0),"
            " coalesce(sum(pages), 0) FROM sessions"
        ).get
        return Info(sessions, commits, mutations, pages, *sizes_of(ns.place), ns.projection.positions())


def usage(ns: Namespace, progress: Progress | None) -> Usage:
    """Weighs every file and every content of a namespace."""
    ns.follow()
    contents = ContentUsage(ns.log, ns.views)
    contents.weigh(progress)
    weights = Counter() if ns.cache is None else files(ns.cache)
    return Usage(
        bytes=weights.total(),
        files=[DiskShare(*place, size) for place, size in weights.most_common()],
        sessions=[
            StoredContents(name, contents.cells_by_session[name], n) for name, n in contents.sessions.most_common()
        ],
        kinds=[StoredContents(kind, contents.cells_by_kind[kind], n) for kind, n in contents.kinds.most_common()],
    )
