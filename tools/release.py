"""Makes what an index is handed: `python3 tools/release.py FOLDER [--key KEY]`.

Builds the sdist and the wheel of what is committed twice, each in a folder of its own, and refuses where one byte
differs. Writes them to FOLDER with their SHA-256 in `SHA256SUMS`, and signs that with an SSH key of Ed25519 as
`SHA256SUMS.sig`: `ssh-keygen` and `sha256sum`, which people have, check both. specs/release.md says how.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Sequence  # noqa: UP035  Python 3.8 has no others

from bootstrap import ROOT, RefusedError, entry, ready, say

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
SIGNED_AS = "vmstore-release"  # what a signature is for: one of the same key for something else is refused
USAGE = "python3 tools/release.py FOLDER [--key KEY]"


def main(arguments: Sequence[str]) -> int:
    """Builds, sums up and signs; the names of the files on stdout."""
    words = list(arguments)
    key: Path | None = None
    if "--key" in words[:-1]:
        at = words.index("--key")
        key = Path(words[at + 1])
        del words[at : at + 2]
    if len(words) != 1 or words[0].startswith("-"):
        raise RefusedError(f"name the folder that is to hold the release: {USAGE}")
    python = ready("integrations", venv=".venv-integrations") / "python"
    for path in release(Path(words[0]), python, key):
        print(path)
    return 0


def release(folder: Path, python: Path, key: Path | None = None, root: Path = ROOT) -> Sequence[Path]:
    """The files of a release of what a checkout has committed; RefusedError where it cannot be made."""
    if git(root, "status", "--porcelain"):
        raise RefusedError("the checkout differs from what is committed, so nobody could build the same; commit first")
    if folder.exists() and any(folder.iterdir()):
        raise RefusedError(f"{folder} holds files already; name a folder that is empty or not there yet")
    first, second = (built(root, python) for _ in range(2))
    if differing := sorted(name for name in {*first, *second} if first.get(name) != second.get(name)):
        raise RefusedError(f"built twice, {', '.join(differing)} has other bytes; what differs is to be found first")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in first.items():
        (folder / name).write_bytes(content)
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(first.items())]
    sums = folder / SUMS
    sums.write_text("".join(lines), encoding="ascii")
    made = [folder / name for name in sorted(first)] + [sums]
    if key is None:
        say("not signed: name a key with --key; `ssh-keygen -t ed25519 -f release.key` makes one")
        return made
    return [*made, signed(sums, key)]


def built(root: Path, python: Path) -> dict[str, bytes]:
    """The sdist and the wheel of what is committed, built where nothing else is; by name."""
    with tempfile.TemporaryDirectory() as place:
        checkout = Path(place) / "vmstore"
        with tarfile.open(fileobj=io.BytesIO(subprocess.run(
            ["git", "archive", "HEAD"], cwd=root, capture_output=True, check=True
        ).stdout)) as archive:  # fmt: skip
            archive.extractall(checkout, filter="data")
        variables = {**os.environ, "SOURCE_DATE_EPOCH": git(root, "log", "-1", "--format=%ct")}
        variables.pop("PYTHONPATH", None)
        done = subprocess.run(
            [str(python), "-m", "build", "--outdir", str(Path(place) / "dist")], cwd=checkout, env=variables,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RefusedError(f"the build fails: {(done.stderr or done.stdout).strip()[-400:]}")
        return {path.name: path.read_bytes() for path in (Path(place) / "dist").iterdir()}


def signed(sums: Path, key: Path) -> Path:
    """The signature of the sums by a key; RefusedError where ssh-keygen cannot make one."""
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", SIGNED_AS, str(sums)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RefusedError(f"ssh-keygen cannot be run ({error}); it comes with OpenSSH 8.1 and later") from error
    if done.returncode:
        raise RefusedError(f"{key} signs nothing: {done.stderr.strip()}")
    return sums.with_name(SIGNATURE)


def git(root: Path, *words: str) -> str:
    """What git says of a checkout."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedError(f"{root} is no checkout of git: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    entry(main)
