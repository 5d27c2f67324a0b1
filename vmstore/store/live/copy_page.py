"""Pages of regions and of a user's other sessions: copied in by value, with where they come from.

A copy is a page like any other: it stays when the region changes, is taken back or is gone, so the
past of a session never hangs on what another namespace holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from vmstore.core.address import Address, page_name, parse
from vmstore.core.aliases import old_keywords
from vmstore.core.clock import within
from vmstore.core.mutation import Create
from vmstore.core.page import Mime, Modality, PageType, Role
from vmstore.core.text.json_text import plain
from vmstore.core.text.token_estimate import estimate
from vmstore.engine.batch import Batch
from vmstore.errors import InputError, ReadOnlyError, UnknownError, VmstoreError
from vmstore.live.runtime import Act
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import Page
from vmstore.shares.regions import open_region
from vmstore.store.live.acts import PageActions
from vmstore.store.live.other_sessions import TERMS_MIN, OtherSessions
from vmstore.store.session import Session
from vmstore.views.projectors.pages import object_of
from vmstore.vm import signals

FROM = "from:"


class Copy(NamedTuple):
    """A page of a region, to be copied: as it stands there, its bytes, and the address of just that version."""

    page: Page
    content: bytes
    origin: str
    local: bool = False  # whether it is of another session of the same namespace

    @property
    def source(self) -> str:
        """The source: the region, or the session of the same namespace."""
        address = parse(self.origin)
        return str(address.session if self.local else address.namespace)

    @property
    def name(self) -> str:
        """The name of the copy: one for each version."""
        return f"{self.source}:{self.page.hint or f'{self.page.session}:{self.page.page}'}.v{self.page.version}"


@old_keywords(at="at_us")
def bring(session: Session, address: str, *, at_us: int | None = None) -> str:
    """Copies a page of a region into a session, and names the copy; the one there is, where it was brought before.

    `address` is `vm://region/session/page`, with a moment where it is not the newest version that is
    wanted. What may be read is what the sandbox, the session and its user were granted.
    """
    parsed = parse(address)
    ns = session._ns
    if parsed.namespace is None or (parsed.namespace, parsed.session) == (ns.name, session.name):
        raise InputError(
            f"{address} names no page of another session; write vm://region/session/page", code="not-an-address"
        )
    copy = copied(ns, session, parsed)
    with ns.lock:
        there = brought(session, copy)
        if there is not None:
            return page_name(there)
        if isinstance(session, PageActions):
            return page_name(session._act(lambda act: _created(act, copy), at_us))
        batch = ns.engine.batch(session._key)
        page = batch.add(_create(batch, copy))
        batch.commit(ns.clock.now() if within("at", at_us) is None or at_us is None else at_us)
        return page_name(page)


def copied(ns: Namespace, session: Session, address: Address) -> Copy:
    """The content to copy; UnknownError where there is no such region, or none for these."""
    user = session.info().user
    assert address.namespace is not None and address.session is not None, "a namespace stands before a session"
    if address.namespace == ns.name:
        return _copy(ns, address, ns.name)._replace(local=True)
    region = open_region(ns, address.namespace, user=user, session=session.name)
    try:
        return _copy(region, address, address.namespace)
    finally:
        region.close()


def _copy(region: Namespace, address_of: Address, name: str) -> Copy:
    """The page of a namespace that somebody may read."""
    assert address_of.session is not None, "a namespace stands before a session"
    key = region.key(address_of.session)
    if key is None:
        raise UnknownError(f"there is no session {address_of.session!r} in region {name!r}")
    source, address = Session(region, _recording, key, address_of.session), str(address_of)
    page, content = source.page(address), source.content(address, level=0)
    versions = [
        version
        for version in source.lineage.versions(address)
        if version.level == 0 and version.version == page.version
    ]
    where = Address(namespace=name, session=source.name, page=page.page, position=versions[-1].position)
    return Copy(page, content, str(where))


def here(session: Session, page: str | int) -> str | int:
    """The local name of a page; a region's page is copied first, if it may be."""
    try:
        parsed = parse(page) if isinstance(page, str) else None
        if parsed is None or parsed.namespace is None or not _readable(session, parsed):
            return page
        return bring(session, str(page))
    except VmstoreError:  # what is not there and what is not theirs are the same: nobody knows the page
        return page


def _readable(session: Session, address: Address) -> bool:
    """Whether a session may ask for what is elsewhere: a region says itself, and of its own store it is the user's."""
    if address.namespace != session._ns.name:
        return True
    if not isinstance(session, PageActions) or address.session in (None, session.name):
        return False
    settings = session.look(lambda runtime: runtime.state.settings)
    if settings is None or settings.remembers != "user":
        return False
    user, key = session.info().user, session._ns.key(str(address.session))
    if user is None or key is None:
        return False
    return session._ns.session_info(key).user == user


def remembered(session: PageActions, message: Any, least: int = TERMS_MIN) -> list[Copy]:
    """Pages of the user's other sessions to copy for a message, where the session remembers these."""
    settings = session.look(lambda runtime: runtime.state.settings)
    if settings is None or settings.remembers != "user":  # no view is brought to the end of the log for it
        return []
    user, asked = session.info().user, signals.asked(_words(message))
    if user is None or not asked:
        return []
    ns = session._ns
    elsewhere: OtherSessions = ns.elsewhere.setdefault(user, OtherSessions(ns, user))
    left = session.look(lambda runtime: runtime.state.recall)
    copies = []
    for address in elsewhere.fitting(session._key, asked, least):
        with suppress(VmstoreError):  # what was erased, or leaves no room
            copy = copied(ns, session, parse(address))
            left -= copy.page.tokens
            copies += [copy] if left >= 0 else []
    return copies


def _words(content: Any) -> str:
    """The text of a message."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def take(act: Act, copies: Sequence[Copy]) -> None:
    """Copies what the session has not yet."""
    for copy in copies:
        there = act.spoken.origins.get(copy.origin)
        if there is None or act.spoken.undone(there):
            _created(act, copy)


def origin(session: Session, page: str | int) -> str | None:
    """The address of the version of a region's page that a page is a copy of; None where it is no copy."""
    with session._ns.asking():
        lane, number = session._lane(), session.lineage.position_of(page)
        sql = "SELECT labels FROM pages WHERE session = ? AND page = ?"
        labels: Any = lane.db.execute(sql, (lane.owner(number), number)).get
        return None if labels is None else plain(object_of(labels).get("origin"))


def brought(session: Session, copy: Copy) -> int | None:
    """The copy that a session has already."""
    with session._ns.asking():
        try:
            number = session.lineage.position_of(str(Address(page=copy.name)))  # a name may hold what would be a code
        except UnknownError:
            return None
        return number if origin(session, number) == copy.origin else None


def _recording() -> NoReturn:
    raise ReadOnlyError("a page is copied from a region, and nothing is written there")


def _created(act: Act, copy: Copy) -> int:
    return act.tell(_create(act, copy))


def _create(to: Batch | Act, copy: Copy) -> Create:
    page = copy.page
    labels = {
        "hint": copy.name,
        "tags": [*page.tags, f"{FROM}{copy.source}"],
        "actor": page.actor,
        "origin": copy.origin,
    }
    modality = Modality[page.modality.upper()]
    mime = next((known for known in Mime if known.type == page.mime), Mime.OTHER)
    return Create(
        type=PageType[page.type.upper()],
        modality=modality,
        role=Role[page.role.upper()],
        message=0,
        part=0,
        content=to.cell(copy.content),
        size=len(copy.content),
        tokens=estimate(copy.content, modality),
        mime=mime,
        labels=to.cell(json.dumps(labels if mime is not Mime.OTHER else {**labels, "mime": page.mime}).encode()),
        importance=round(page.importance * 1_000_000),
    )
