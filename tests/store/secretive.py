"""A life that says secrets wherever it can, what every view says of it, and what a folder gives away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.store.store import Store

SECRETS = (
    "zanzibar",
    "zebra-session",
    "zoe-user",
    "zagent",
    "ztitle",
    "zrequest-1",
    "zmodel",
    "ztag",
    "zquery",
    "zfork",
)
LONG = "zanzibar by the sea " * 6000


def live(store: Store) -> None:
    """A life that puts each of the secrets where it can: contents, names, users, tags, request ids."""
    store.session("zebra-session", create=True, user="zoe-user", agent="zagent", title="ztitle")
    request: dict[str, Any] = {"model": "zmodel", "messages": [{"role": "user", "content": "Where is zanzibar?"}]}
    answer = {"choices": [{"message": {"role": "assistant", "content": LONG}, "finish_reason": "stop"}]}
    store.record("zebra-session", request, answer, request_id="zrequest-1")
    session = store.session("zebra-session")
    session.annotate("p4", tags=["ztag"])
    session.fork("zfork")
    store.record("other", {"model": "zmodel", "messages": [{"role": "user", "content": "zquery"}]})
    managed = store.live_session("managed", l0_tokens_max=8000, user="zoe-user")
    managed.user("Which zanzibar?")
    managed.run(lambda request: {"choices": [{"message": {"role": "assistant", "content": "The zanzibar."}}]})


def asked(store: Store) -> list[Any]:
    """What every view says."""
    items: list[Any] = [store.sessions(), store.pages(), store.search("zanzibar", limit=None)]
    items += [list(store.query(text)) for text in ("SESSIONS", "CALLS IN SESSION managed", "PAGES IN SESSION zfork")]
    items += [
        list(store.tail()),
        store.session("zebra-session").wire.request(call=1),
        store.session("zfork").lineage.history("p4"),
    ]
    return items


def everything(folder: Path) -> bytes:
    """The names and bytes of every file under a folder."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return b"\n".join(str(file).encode() + b"\n" + file.read_bytes() for file in files)


def found_in(folder: Path) -> set[str]:
    """The secrets that a folder gives away."""
    content = everything(folder)
    return {word for word in SECRETS if word.encode() in content}


def made(path: Path, key: Path | None = None) -> Store:
    """A store with that life, by a clock and ids that repeat."""
    store = vmstore.open(path, key=key, clock=ManualClock(1_000_000), ids=SeededIds(7))
    live(store)
    return store
