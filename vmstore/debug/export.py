"""One file that opens without a store and without a network: the debugger's page and a session's data in it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from vmstore.core.system.atomic_file import new_file
from vmstore.debug.assets import FOLDER, INDEX, Assets, read
from vmstore.debug.export_data import UNSEEN, Report, SharedSession, shared
from vmstore.debug.json_bytes import encoded
from vmstore.errors import InputError
from vmstore.store.session import Session
from vmstore.store.store import Store

PACKED_LEVEL = 9
_ASSET = re.compile(
    r'<script\b[^>]*\bsrc="\.?/(?P<script>[\w.-]+)"[^>]*></script>'
    r'|<link\b[^>]*\brel="stylesheet"[^>]*\bhref="\.?/(?P<style>[\w.-]+)"[^>]*>'
)
_PLACE = re.compile(r"(?:call|page|pane|show|timeline|events|by|lines|vs)=[\w,.~-]{1,80}")  # no word of a text
_STYLE = (
    "#vmstore-masked{position:fixed;right:.5rem;bottom:.5rem;z-index:99;max-width:34rem;max-height:60vh;overflow:auto;"
    "font:12px/1.5 system-ui,sans-serif;background:Canvas;color:CanvasText;border:1px solid GrayText;"
    "border-radius:4px;padding:.2rem .6rem}#vmstore-masked table{border-spacing:.8em 0}"
    "#vmstore-masked td{vertical-align:top}"
)


class File(msgspec.Struct, frozen=True):
    """An exported file: its bytes, what is in it, and what was masked."""

    session: str
    content: bytes
    calls: int
    pages: int
    texts: int
    report: Report


def write(out: Path, store: Store, session: Session, *, redact: bool = True) -> File:
    """Writes a session as one HTML file, which appears when it is whole; StoreError where a path is taken."""
    with new_file(out) as file:
        made = exported(store, session, redact=redact)
        file.write(made.content)
    return made


def exported(store: Store, session: Session, *, redact: bool = True, place: str = "") -> File:
    """A session as one HTML file, by default with what is secret in it masked, that opens at a place of the page."""
    found = shared(store, session, redact=redact)
    found.place = "&".join(part for part in place.split("&") if _PLACE.fullmatch(part))
    content = page(read(FOLDER), found, found.film["session"]).encode("utf-8", "backslashreplace")
    info = session.info()
    return File(session.name, content, info.calls, info.pages, len(found.texts), found.redacted)


def page(assets: Assets, found: SharedSession, name: str) -> str:
    """The page with its own files and the data within, and a policy that lets it run and load nothing else."""
    scripts: list[str] = []
    styles: list[str] = [_STYLE]

    def inlined(match: re.Match[str]) -> str:
        if match["script"]:
            scripts.append(_within(assets, match["script"], "script"))
            return f'<script type="module">{scripts[-1]}</script>'
        styles.append(_within(assets, match["style"], "style"))
        return f"<style>{styles[-1]}</style>"

    shell = assets.files["/"].content.decode()
    whole = _ASSET.sub(inlined, shell)
    if not scripts or "</head>" not in whole or "</body>" not in whole:
        raise InputError(f"the debugger's page ({FOLDER / INDEX}) has no script of its own; reinstall vmstore")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(_policy(scripts, styles))}">'
        f"<style>{_STYLE}</style>"
    )
    data = base64.b64encode(gzip.compress(encoded(found), PACKED_LEVEL, mtime=0)).decode()
    body = (
        f'<script type="application/octet-stream" id="vmstore-data">{data}</script>{"".join(_masked(found.redacted))}'
    )
    whole = re.sub(r"<title>.*?</title>", lambda _: f"<title>{html.escape(name)} · vmstore</title>", whole, flags=re.S)
    # The policy stands before what it is about; texts are put in by slices, since they may hold any sign.
    at = whole.index("<head>") + len("<head>")
    end = whole.rindex("</body>")
    return f"{whole[:at]}{head}{whole[at:end]}{body}{whole[end:]}"


def _within(assets: Assets, name: str, tag: str) -> str:
    """A file of the page as it may stand within a tag: nothing in it ends the tag, or opens a comment."""
    found = assets.files.get(f"/{name}")
    if found is None:
        raise InputError(f"the debugger's page names {name}, and it is not in {FOLDER}; reinstall vmstore")
    text = found.content.decode()
    if tag == "style":
        if "</style" in text.lower():
            raise InputError(f"{name} of the debugger's page holds the end of a style; reinstall vmstore")
        return text
    # Within a script these can only be parts of texts and patterns, where a backslash changes nothing.
    return re.sub(r"<(?=/script|script)", r"\\x3c", text, flags=re.IGNORECASE).replace("<!--", "\\x3c!--")


def _policy(scripts: list[str], styles: list[str]) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            "script-src " + " ".join(map(_hash, scripts)),
            "style-src " + " ".join(map(_hash, styles)),
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _masked(report: Report) -> Iterator[str]:
    """What was masked, as somebody sees it who opens the file."""
    if not report.redacted:
        yield '<details id="vmstore-masked"><summary>not redacted</summary>Everything is in this file as it was.'
        yield "</details>"
        return
    unseen = f", {report.unseen} left out" if report.unseen else ""
    yield f'<details id="vmstore-masked"><summary>redacted: {report.times} masked{unseen}</summary><table>'
    for secret in report.masked:
        where = ", ".join(f"{place} ×{times}" if times > 1 else place for place, times in secret.where.items())
        yield f"<tr><td>[{secret.kind.name} {secret.number}]<td>{secret.times}×<td>{html.escape(where)}</tr>"
    yield f"</table>{'' if not report.unseen else html.escape(UNSEEN)}</details>"
