"""Builds the debugger's page: `python3 tools/page.py` (needs Node 20 or newer).

Runs `npm ci` and `npm run build` in `web/`, which writes the bundle to `vmstore/debug/page/`, and puts
the digest of the sources beside it. The bundle is committed, so only who changes `web/` needs Node;
`--check` says, without Node, whether the bundle was made from the sources as they are.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
PAGE = ROOT / "vmstore" / "debug" / "page"
DIGEST = "SOURCES.sha256"


def sources(web: Path = WEB) -> Iterator[Path]:
    """Every file the bundle is made from, in order."""
    for path in sorted(web.rglob("*")):
        if path.is_file() and "node_modules" not in path.parts:
            yield path


def digest(web: Path = WEB) -> str:
    """The SHA-256 of the names and contents of all sources."""
    actual_digest = hashlib.sha256()
    for path in sources(web):
        content = path.read_bytes()
        actual_digest.update(f"{path.relative_to(web).as_posix()}\0{len(content)}\0".encode())
        actual_digest.update(content)
    return actual_digest.hexdigest()


def is_fresh(web: Path = WEB, page: Path = PAGE) -> bool:
    """Whether the bundle was made from the sources as they are."""
    kept = page / DIGEST
    return kept.is_file() and kept.read_text().strip() == digest(web)


def build() -> int:
    """Builds the bundle and keeps the digest of what it was made from."""
    for command in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        try:
            done = subprocess.run(command, cwd=WEB, check=False).returncode
        except FileNotFoundError:
            print("page: npm is not installed; install Node 20 or newer, then run this again", file=sys.stderr)
            return 1
        if done:
            print(f"page: `{' '.join(command)}` failed; the bundle is as it was", file=sys.stderr)
            return done
    (PAGE / DIGEST).write_text(f"{digest()}\n")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Builds, or checks."""
    if arguments == ["--check"]:
        if is_fresh():
            return 0
        print("page: vmstore/debug/page was not made from web/ as it is; run `python3 tools/page.py`", file=sys.stderr)
        return 1
    if arguments:
        print("page: takes nothing, or --check; run `python3 tools/page.py`", file=sys.stderr)
        return 2
    return build()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
