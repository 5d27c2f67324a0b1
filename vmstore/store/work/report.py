"""Writes a brief of a task: Markdown for people, what it is made of as a bundle, and a sidecar that names both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from vmstore.core.address import Address, page_position, parse
from vmstore.core.asof import Head
from vmstore.core.page import LinkKind
from vmstore.core.system.atomic_file import check_free, naming, new_file
from vmstore.core.times import iso
from vmstore.errors import InputError
from vmstore.redact.mask import Mask
from vmstore.redact.span import HANDED_OUT
from vmstore.search.passages import texts_of
from vmstore.store.host import SessionHost
from vmstore.store.recall.fact_reads import asked_at
from vmstore.store.work.artifacts import Artifacts, opens
from vmstore.store.work.atoms import Atoms
from vmstore.store.work.plans import AgentPlan, Plans
from vmstore.transfer.redacted_export import lifted
from vmstore.views.branch import NEVER
from vmstore.work.artifact import digest_of
from vmstore.work.brief_text import BriefAtom, BriefContent, BriefFile, BriefSource, markdown, slug
from vmstore.work.digest import TaskDigest

FOLDER = ("storage", "briefs")
_EVERYWHERE = "the brief"
_DERIVES = f"LINKS source, target WHERE kind = {LinkKind.DERIVES.word}"


class Brief(msgspec.Struct, frozen=True):
    """A brief that was written: its Markdown, the sidecar that names it and its pages, and the bundle of these.

    `masked` counts what was masked by kind; `approved` says by whose word nothing was.
    """

    markdown: Path
    sidecar: Path
    bundle: Path
    pages: list[str]
    masked: dict[str, int]
    approved: list[str]


class Sidecar(msgspec.Struct, frozen=True):
    """The sidecar of a brief: its files with their digests, and the pages that it is made of."""

    kind: str
    session: str
    position: int
    task: str
    made_at: str
    markdown: str
    markdown_sha256: str
    bundle: str
    bundle_sha256: str
    pages: list[str]


def report(session: SessionHost, digest: TaskDigest, folder: str | Path, topic: str) -> Brief:
    """Writes a brief of a task below a folder, as `storage/briefs/<date>-<topic>.md`, `.json` and `.bundle.json`.

    What is secret, or says who somebody is, is masked as in any export. StoreError where one of the files is there.
    """
    word = slug(topic) if isinstance(topic, str) else ""
    if not word:
        raise InputError(f"{topic!r:.40} is no topic; give words of letters or digits", code="not-a-text")
    content = _content(session, digest)
    with session._ns.asking():
        approved = lifted(session._ns, [session._key], "markdown")
    mask = Mask(HANDED_OUT if not approved else ())
    first = Mask(mask.kinds)
    plain = msgspec.to_builtins(content)
    first.value(plain, _EVERYWHERE)
    mask.trust(first)
    shown = msgspec.convert(mask.value(plain, _EVERYWHERE), BriefContent)
    place = Path(folder, *FOLDER)
    stem = f"{content.made_at[:10]}-{word}"
    files = [place / f"{stem}{ending}" for ending in (".md", ".bundle.json", ".json")]
    texts = [markdown(shown).encode("utf-8", "replace"), _json(shown)]
    parts: tuple[BriefAtom | BriefFile | BriefSource, ...] = (*shown.atoms, *shown.files, *shown.sources)
    sidecar = Sidecar(
        "research_report",
        shown.session,
        shown.position,
        shown.task,
        shown.made_at,
        files[0].name,
        digest_of(texts[0]),
        files[1].name,
        digest_of(texts[1]),
        list(dict.fromkeys(part.page for part in parts)),
    )
    with naming(place):
        place.mkdir(parents=True, exist_ok=True)
    for file in files:
        check_free(file)
    for file, text in zip(files, (*texts, _json(sidecar)), strict=True):  # the sidecar last: it says that all is there
        with new_file(file) as out:
            out.write(text)
    return Brief(files[0], files[2], files[1], sidecar.pages, mask.counts, approved)


def _json(value: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _content(session: SessionHost, digest: TaskDigest) -> BriefContent:
    """The content of a brief, as the session stands now."""
    plan = Plans(session).get(digest.task)
    made_of: dict[str, list[str]] = {}
    for source, target in asked_at(session, _DERIVES, Head()):
        made_of.setdefault(source, []).append(target)
    decided = {f"p{_number(each)}" for each in plan.decisions}
    found = [atom for atom in Atoms(session).all() if atom.task == plan.page or atom.page in decided]
    address = _addresses(session)
    atoms = [
        BriefAtom(
            address(atom.page), atom.kind, atom.text or "", [address(page) for page in made_of.get(atom.page, ())]
        )
        for atom in found
    ]
    pages = [page for atom in found for page in made_of.get(atom.page, ())]
    files = [_file(session, file, address) for file in Artifacts(session).all(task=plan.page)]
    steps = [msgspec.to_builtins(step) for step in plan.steps]
    return BriefContent(
        "research_bundle",
        session.name,
        session.info().position,
        iso(session._ns.clock.now()),
        address(plan.page),
        plan.title,
        plan.status,
        digest.paragraph,
        _texts(plan),
        steps,
        atoms,
        files,
        _sources(session, dict.fromkeys(pages), address),
    )


def _texts(plan: AgentPlan) -> list[str]:
    return list(plan.goals)


def _number(address: str) -> int:
    found = parse(address)
    return (page_position(found.page or "") or 0) if isinstance(found, Address) else 0


def _addresses(session: SessionHost) -> Any:
    """Names pages by addresses that hold outside their session."""
    namespace, name = session._ns.name, session.name
    return lambda page: str(Address(namespace=namespace, session=name, page=page))


def _file(session: SessionHost, file: Any, address: Any) -> BriefFile:
    read: Any = session
    text = None
    if opens(session, file):
        try:
            text = read.content(file.page).decode("utf-8")
        except UnicodeDecodeError:
            text = None
    return BriefFile(address(file.page), file.path, file.mime, file.sha256, file.bytes, text)


def _sources(session: SessionHost, pages: Iterable[str], address: Any) -> list[BriefSource]:
    """The pages that atoms were made from, with their types and texts; what was erased says so."""
    numbers = [number for page in pages if (number := page_position(page))]
    types = dict(asked_at(session, "PAGES page, type", Head()))
    ns = session._ns
    with ns.asking():
        lane = session._lane()
        texts = dict(texts_of(ns.log, lane, {lane.session: NEVER}, numbers))
    return [BriefSource(address(f"p{page}"), types.get(f"p{page}", ""), texts.get(page, "")) for page in numbers]
