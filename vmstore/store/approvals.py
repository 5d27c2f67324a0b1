"""Redaction lifted for an artifact: what may leave of which session without masks, by whose word, until when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from vmstore.core.aliases import old_keywords
from vmstore.core.clock import within
from vmstore.core.mutation import Approve
from vmstore.core.redaction import Artifact
from vmstore.engine.batch import Batch
from vmstore.errors import InputError, UnknownError
from vmstore.namespace import system_session
from vmstore.namespace.namespace import Namespace
from vmstore.store.host import StoreHost
from vmstore.transfer.redacted_export import artifact_of
from vmstore.views.projectors.redactions import approvals_of, approved

WHO_CHARS_MAX = 200


class ApprovalInfo(msgspec.Struct, frozen=True):
    """An approval for a kind of export of a session; `in_force` says whether it lifts redaction now."""

    session: str
    artifact: str
    granted: bool
    who: str | None
    at: int
    until: int | None
    in_force: bool


@old_keywords(until="until_us")
def approve(
    store: StoreHost,
    artifacts: str | Iterable[str],
    sessions: str | Iterable[str] | None = None,
    *,
    who: str,
    until_us: int | None = None,
    granted: bool = True,
) -> list[ApprovalInfo]:
    """Lifts redaction for kinds of export (jsonl, html, all and the others) of sessions, all there are by default.

    `who` says so, and it ends at `until_us`, in microseconds since 1970; not `granted` puts redaction back.
    What forks off later, and what comes to be, needs a word of its own. What is in force then.
    """
    kinds = [artifact_of(word) for word in ([artifacts] if isinstance(artifacts, str) else artifacts)]
    if not kinds:
        raise InputError("name what may leave without masks: jsonl, parquet, sqlite, markdown, chat, html or all")
    if not isinstance(who, str) or not 0 < len(who) <= WHO_CHARS_MAX or not who.isprintable():
        raise InputError(
            f"{who!r:.40} says nobody: who lifts redaction is a text of 1 to {WHO_CHARS_MAX} characters",
            code="not-a-text",
        )
    within("until", until_us)
    ns = store._ns
    if granted and until_us is not None and until_us <= ns.clock.now():
        raise InputError(
            f"until {until_us} is over already, so nothing would leave without masks; name a later time",
            code="over-already",
        )
    with ns.lock:
        listed = [sessions] if isinstance(sessions, str) else sessions
        names = [info.session for info in store.sessions()] if listed is None else list(listed)
        uids = [_uid(ns, name) for name in names]
        if uids:
            system_session.append(
                ns, lambda batch: _write(batch, uids, kinds, who, until_us if granted else None, granted)
            )
        ns.follow()
        return [approval for approval in approvals(store) if approval.session in names]


def approvals(store: StoreHost) -> list[ApprovalInfo]:
    """Everything that was lifted and put back, session after session."""
    ns = store._ns
    with ns.asking():
        now = ns.clock.now()
        found = []
        for key, name in ns.views.execute("SELECT session, name FROM sessions WHERE hidden = 0 ORDER BY name"):
            known = approvals_of(ns.views, key)
            force = {kind: approved(ns.views, key, kind, now) for kind in Artifact}
            found += [
                ApprovalInfo(
                    name,
                    Artifact(approval.artifact).word,
                    bool(approval.granted),
                    approval.who,
                    approval.at,
                    approval.until,
                    approval in force.values(),
                )
                for approval in known
            ]
        return found


def _write(batch: Batch, uids: list[bytes], kinds: list[Artifact], who: str, until: int | None, granted: bool) -> None:
    cell = batch.cell(who.encode())
    for uid in uids:
        for kind in kinds:
            batch.add(Approve(int(granted), kind, until, cell, session=uid))


def _uid(ns: Namespace, name: str) -> bytes:
    key = ns.key(name)
    if key is None:
        names = [row[0] for row in ns.views.execute("SELECT name FROM sessions WHERE hidden = 0 ORDER BY name")]
        raise UnknownError(f"there is no session {name!r}; {ns.nearest(name, names)}")
    uid: Any = ns.views.execute("SELECT uid FROM sessions WHERE session = ?", (key,)).get
    return bytes(uid)
