"""Builds the documentation as a site: `python3 tools/docs.py [FOLDER] [--open]`.

Makes `.venv-docs` with Zensical and builds `site/`, or the folder named, of the README, the pages of `specs/` and
the pages beside the README. Any server of files serves it, `python3 -m http.server -d site` among them, and it loads
nothing from elsewhere; opened from the disk it has no search. A link or a heading that is not there ends the build.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, RefusedError, entry, ready

# What somebody looks for, in the order they come to it; each page of specs/ stands in one group.
GROUPS: dict[str, tuple[str, ...]] = {
    "Record": ("capture", "proxy", "watch", "sources", "redaction", "prices"),
    "Ask": ("commands", "vmql", "questions", "sql", "shell", "moments", "search", "debug", "page", "testing"),
    "Run memory": (
        "kernel",
        "assembly",
        "protocol",
        "policies",
        "compression",
        "residency",
        "replay",
        "retraction",
        "chat",
    ),
    "Know": ("facts", "tags", "embeddings", "work", "plans", "tasks", "observations"),
    "Doors": ("api", "aio", "mcp", "langgraph", "agents", "pydantic_ai", "chuk", "serve", "exports", "notes"),
    "Keep": ("care", "sharing", "fleets", "retention", "erasure", "encryption", "seals", "columns", "release"),
    "Inside": ("log", "postgres", "cold", "mutations", "views", "sizing", "performance", "reliability"),
}
ROOT_PAGES = ("ARCHITECTURE", "GLOSSARY", "CONTRIBUTING", "SECURITY", "CHANGELOG")
FENCE = re.compile(r"^(```\w+) (\S+)$", re.MULTILINE)  # a block that is a file of that name
COLOUR = re.compile(r"\x1b\[[\d;]*m")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def title(page: Path) -> str:
    """The first heading of a page."""
    return next(line[2:].strip() for line in page.read_text("utf-8").splitlines() if line.startswith("# "))


def nav(root: Path) -> list[object]:
    """The pages by group; RefusedError where a page of specs/ stands in none, or in two."""
    listed = [page for pages in GROUPS.values() for page in pages]
    there = {path.stem for path in (root / "specs").glob("*.md")} - {"README"}
    wrong = sorted(there ^ set(listed)) + sorted({page for page in listed if listed.count(page) > 1})
    if wrong:
        raise RefusedError(f"GROUPS of tools/docs.py and specs/ differ in {', '.join(wrong)}; each page has one group")
    groups: list[object] = [{"Start": "index.md"}, {"All pages": "specs/README.md"}]
    groups += [
        {group: [{title(root / f"specs/{page}.md"): f"specs/{page}.md"} for page in pages]}
        for group, pages in GROUPS.items()
    ]
    decisions = [{title(path): f"specs/decisions/{path.name}"} for path in _decisions(root)]
    groups.append({"Decisions": [{"All decisions": "specs/decisions/index.md"}, *decisions]})
    return [*groups, {"Project": [{title(root / f"{page}.md"): f"{page}.md"} for page in ROOT_PAGES]}]


def config(root: Path) -> dict[str, object]:
    """What Zensical is told, which reads JSON as YAML; nothing of it loads a font or a script from elsewhere."""
    dark = {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "toggle": _toggle("weather-night", "light")}
    light = {"media": "(prefers-color-scheme: light)", "scheme": "default", "toggle": _toggle("weather-sunny", "dark")}
    return {
        "site_name": "vmstore",
        "docs_dir": "pages",
        "site_dir": "site",
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "palette": [light, dark],
            "features": ["navigation.tabs", "navigation.indexes", "content.code.copy", "toc.follow"],
        },
        "plugins": ["search"],
        "markdown_extensions": ["tables", "toc", "md_in_html", "pymdownx.highlight", "pymdownx.superfences"],
        "nav": nav(root),
    }


def build(folder: Path, python: Path, root: Path = ROOT) -> None:
    """Builds the site of a checkout into a folder with the Zensical of a Python; RefusedError with its complaints."""
    with tempfile.TemporaryDirectory(prefix="vmstore-docs-") as name:
        made = Path(name)
        gather(root, made / "pages")
        (made / "mkdocs.yml").write_text(json.dumps(config(root)), "utf-8")
        command = [str(python), "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"]
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
        if done.returncode:
            complaints = done.stdout if "Warning" in done.stdout else done.stderr
            raise RefusedError(f"the site cannot be built:\n{COLOUR.sub('', complaints).strip()}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(made / "site", folder)


def gather(root: Path, pages: Path) -> None:
    """Lays the pages out as they stand in the checkout, with what they link to; the README is the first of them."""
    names = ["README.md", *(f"{page}.md" for page in ROOT_PAGES)]
    names += [str(path.relative_to(root)) for path in (root / "specs").rglob("*.md")]
    for name in names:
        page = pages / ("index.md" if name == "README.md" else name)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(linked((root / name).read_text("utf-8"), root / name, root, pages), "utf-8")
    lines = [f"- [{title(path)}]({path.name})" for path in _decisions(root)]
    (pages / "specs/decisions/index.md").write_text("\n".join(["# Decisions", "", *lines, ""]), "utf-8")
    shutil.copytree(root / "specs/pictures", pages / "specs/pictures")


def linked(text: str, page: Path, root: Path, pages: Path) -> str:
    """A page with its links as the site has them, and what they go to that is no page laid beside it."""

    def link(match: re.Match[str]) -> str:
        target = (page.parent / match[1]).resolve()
        if target.is_dir():
            return f"]({match[1].rstrip('/')}/index.md)"
        if target.is_file() and target.suffix != ".md":
            copy = pages / target.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, copy)
        elif not target.exists():
            raise RefusedError(f"{page} links to {match[1]}, which is not there; mend the link")
        return match[0]

    return FENCE.sub(r'\1 title="\2"', LINK.sub(link, text))


def _decisions(root: Path) -> list[Path]:
    return sorted((root / "specs/decisions").glob("[0-9]*.md"))


def _toggle(icon: str, other: str) -> dict[str, str]:
    return {"icon": f"material/{icon}", "name": f"Switch to {other} colours"}


def main(arguments: Sequence[str]) -> int:
    """Builds the site and says where it is."""
    parser = argparse.ArgumentParser(prog="docs.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site", help="where it goes; site/ by default")
    parser.add_argument("--open", action="store_true", help="serve it on this machine until Ctrl-C, and open it")
    wanted = parser.parse_args(arguments)
    if wanted.folder.exists() and not (wanted.folder / "index.html").exists() and any(wanted.folder.iterdir()):
        raise RefusedError(f"{wanted.folder} holds other files; name an empty folder, or one that holds a site")
    build(wanted.folder, ready("docs", venv=".venv-docs") / "python")
    print(wanted.folder.resolve() / "index.html")
    if wanted.open:
        serve(wanted.folder)
    return 0


def serve(folder: Path) -> None:
    """Serves a site on this machine alone and opens it, until Ctrl-C."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder))) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        print(address)
        webbrowser.open(address)
        server.serve_forever()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    entry(main)
