"""The documentation as a site: it holds every page, each link leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))  # this lane runs without the configuration of the others

from bootstrap import RefusedError  # noqa: E402
from docs import build, nav  # noqa: E402

pytest.importorskip("zensical")
PYTHON = Path(sys.executable)
LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(https?:)?//[^\"' >]+")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The pages of the checkout, to be changed, with what they link to."""
    copy = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", ".*")
    for folder in ("specs", "grammar", "vmstore", "tools"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for page in (*ROOT.glob("*.md"), ROOT / "LICENSE"):
        shutil.copy(page, copy)
    return copy


def test_the_site_holds_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Each page of the checkout is a page of the site, no block of code is left open, and no page needs a network."""
    build(tmp_path / "site", PYTHON)
    for page in (*ROOT.glob("specs/**/*.md"), *ROOT.glob("*.md")):
        name = "index" if page.stem == "README" else page.stem
        made = tmp_path / "site" / page.parent.relative_to(ROOT) / f"{name}.html"
        html = made.read_text("utf-8")
        assert "```" not in re.sub(r"<pre.*?</pre>|<code.*?</code>", "", html, flags=re.DOTALL), made
        assert LOADED.search(html) is None, made


@pytest.mark.parametrize("link", ["[x](nowhere.md)", "[x](tags.md#no-such-heading)", "[x](../vmstore/nowhere.py)"])
def test_a_link_that_leads_nowhere_ends_the_build(checkout: Path, tmp_path: Path, link: str) -> None:
    """A page, a heading or a file that is not there is named, and no site is left."""
    page = checkout / "specs" / "facts.md"
    page.write_text(page.read_text("utf-8") + f"\n{link}\n", "utf-8")
    with pytest.raises(RefusedError) as refusal:
        build(tmp_path / "site", PYTHON, checkout)
    assert link[4:-1] in str(refusal.value)
    assert not (tmp_path / "site").exists()


def test_a_page_without_a_group_is_named(checkout: Path) -> None:
    """A new page of specs/ has to be given its place in the site."""
    (checkout / "specs" / "novel.md").write_text("# A novel page\n", "utf-8")
    with pytest.raises(RefusedError) as refusal:
        nav(checkout)
    assert "novel" in str(refusal.value)
