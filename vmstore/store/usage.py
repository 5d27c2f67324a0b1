"""Where the bytes of a namespace are."""

from __future__ import annotations

from collections import Counter

from vmstore.exports.weight import Contents, files
from vmstore.store.namespace import Namespace
from vmstore.store.reports import Sealed, Usage, Weight
from vmstore.views.projection import Progress


def usage(ns: Namespace, progress: Progress | None) -> Usage:
    """Weighs every file and every content of a namespace."""
    ns.follow()
    contents = Contents(ns.log, ns.views)
    contents.weigh(progress)
    weights = Counter() if ns.folder is None else files(ns.folder)
    return Usage(
        bytes=weights.total(),
        files=[Weight(*place, size) for place, size in weights.most_common()],
        sessions=[Sealed(name, contents.cells_by_session[name], n) for name, n in contents.sessions.most_common()],
        kinds=[Sealed(kind, contents.cells_by_kind[kind], n) for kind, n in contents.kinds.most_common()],
    )
