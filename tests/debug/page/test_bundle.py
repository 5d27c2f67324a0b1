"""The bundle of the debugger's page: fresh, small, whole, and of free licences."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from page import PAGE, ROOT, WEB, digest, is_fresh

BUNDLE_BYTES_MAX = 200_000
PACKED_BYTES_MAX = 70_000
FILES = {"index.html", "page.js", "page.css", "LICENSES.txt", "SOURCES.sha256"}
BUNDLED = ("index.html", "page.js", "page.css")


def test_the_bundle_is_of_the_sources() -> None:
    """The committed bundle was made from web/ as it is: `python3 tools/page.py` rebuilds it."""
    assert is_fresh(), "run `python3 tools/page.py` and commit vmstore/debug/page"


def test_a_changed_source_is_noticed(tmp_path: Path) -> None:
    """One changed byte in web/, a new file or a renamed one, and the bundle counts as stale."""
    source = tmp_path / "src" / "main.ts"
    source.parent.mkdir()
    source.write_text("a")
    seen = {digest(tmp_path)}
    source.write_text("b")
    seen.add(digest(tmp_path))
    source.rename(source.with_name("other.ts"))
    seen.add(digest(tmp_path))
    (tmp_path / "new.ts").write_text("")
    seen.add(digest(tmp_path))
    assert len(seen) == 4
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.js").write_text("")
    assert digest(tmp_path) in seen, "what npm installs is no source"


def test_the_bundle_is_small() -> None:
    """All that a browser loads is under 200 KB, and under 70 KB packed."""
    loaded = [(PAGE / name).read_bytes() for name in BUNDLED]
    assert sum(map(len, loaded)) < BUNDLE_BYTES_MAX
    assert sum(len(gzip.compress(item, 9)) for item in loaded) < PACKED_BYTES_MAX


def test_the_bundle_is_whole() -> None:
    """The folder holds these files and no others, and the page names no file but them and no other host."""
    assert {path.name for path in PAGE.iterdir()} == FILES
    index = (PAGE / "index.html").read_text()
    assert set(re.findall(r'(?:src|href)="\./([^"]+)"', index)) == {"page.js", "page.css"}
    assert "//" not in re.sub(r"<!--.*?-->", "", index)
    assert "</script" not in (PAGE / "page.js").read_text(), "an export writes the script into the document"


def test_contents_are_never_parsed_as_html() -> None:
    """No source of the page makes elements from a text."""
    for path in (WEB / "src").rglob("*.ts*"):
        hits = re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(", path.read_text())
        assert hits is None, f"{path.relative_to(ROOT)} has {hits and hits[0]}; write text nodes"


def test_what_is_bundled_is_free() -> None:
    """Every package in the bundle stands in LICENSES.txt with its MIT licence."""
    text = (PAGE / "LICENSES.txt").read_text()
    assert re.findall(r"^(\S+) \S+ \((\S+)\)$", text, re.MULTILINE) == [
        (name, "MIT") for name in ("preact", "@preact/signals", "@preact/signals-core")
    ]
    assert text.count("Permission is hereby granted, free of charge") == 3


def test_the_wheel_has_the_page(tmp_path: Path) -> None:
    """A wheel carries the bundle, so that nobody who installs vmstore needs Node."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as actual_zipfile:
        names = {Path(name).name for name in actual_zipfile.namelist() if name.startswith("vmstore/debug/page/")}
    assert names == FILES


def test_every_kind_of_event_has_a_sign() -> None:
    """Each kind that the events of a session name has a glyph of its own in the page."""
    signs = re.findall(r'^  (\w+): "(.)",$', (WEB / "src" / "format.ts").read_text(), re.MULTILINE)
    named = re.findall(r'SessionEvent\([^"\n]*"(\w+)"', (ROOT / "vmstore" / "debug" / "events.py").read_text())
    assert len(set(named)) > 8 and set(named) - {kind for kind, _ in signs} == set()
    assert len({sign for _, sign in signs}) == len(signs)
