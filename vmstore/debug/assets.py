"""The page's files: a fixed table read once, with the policy of what a browser may run of them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from vmstore.errors import InputError

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
"""What is served; a file that ends otherwise is not."""


class Asset(NamedTuple):
    """One file: its bytes and their type."""

    content: bytes
    type: str


class Assets(NamedTuple):
    """All files by the path they are asked for, and the policy they are sent with."""

    files: Mapping[str, Asset]
    policy: str


def read(folder: Path) -> Assets:
    """Reads the page from a folder; raises InputError where it is not there."""
    found = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink() and path.suffix in TYPES:
            found["/" + path.relative_to(folder).as_posix()] = Asset(path.read_bytes(), TYPES[path.suffix])
    index = found.pop(f"/{INDEX}", None)
    if index is None:
        raise InputError(
            f"the debugger's page is not in this installation (no {folder / INDEX}); install vmstore from a wheel, "
            "or build it in a checkout: cd web && npm ci && npm run build"
        )
    return Assets({"/": index, **found}, policy(index.content.decode("utf-8", "replace")))


def policy(page: str) -> str:
    """What a browser may load and run of a page: its own files, and inline only what stands in it now."""
    scripts, styles = inline(page)
    return "; ".join(
        (
            "default-src 'none'",
            " ".join(["script-src 'self'", *map(_hash, scripts)]),
            " ".join(["style-src 'self'", *map(_hash, styles)]),
            "img-src 'self' data:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def inline(page: str) -> tuple[list[str], list[str]]:
    """The scripts and the styles that stand within a page."""
    reader = _Inline()
    reader.feed(page)
    reader.close()
    return reader.found["script"], reader.found["style"]


class _Inline(HTMLParser):
    """Collects what stands between the tags of scripts and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: dict[str, list[str]] = {"script": [], "style": []}
        self._within: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.found and not dict(attrs).get("src"):
            self._within = tag
            self.found[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._within:
            self._within = None

    def handle_data(self, data: str) -> None:
        if self._within is not None:
            self.found[self._within][-1] += data


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
