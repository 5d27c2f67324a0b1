"""Files of a project as artifacts: read whole within its folder, known by their SHA-256."""

from __future__ import annotations

import errno
import hashlib
import mimetypes
from pathlib import Path
from typing import NamedTuple

import msgspec

from vmstore.core.system.safe_files import read_within
from vmstore.errors import InputError

BYTES_MAX = 16 << 20
PATH_CHARS_MAX = 500
TAG = "artifact"
"""The tag of a page that holds a file of a project."""


class ProjectFile(NamedTuple):
    """A file of a project: its path below the folder, its content type, what it holds and the digest of that."""

    path: str
    mime: str
    content: bytes
    sha256: str


class ArtifactCheck(msgspec.Struct, frozen=True):
    """An artifact beside its file as it is now: same, changed, gone, or masked where nothing tells.

    `why` says what stands there instead where it cannot be read.
    """

    page: str
    path: str
    state: str
    sha256: str | None
    sha256_now: str | None = None
    why: str | None = None


def digest_of(content: bytes) -> str:
    """The SHA-256 of bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def project_file(path: str | Path, root: str | Path | None = None, mime: str | None = None) -> ProjectFile:
    """Reads a file below a project's folder, by default the working one; the path may be relative to it.

    InputError where it lies or leads outside, is there not, is no regular file, or holds more than 16 MiB.
    """
    folder, file = _located(path, root)
    below = file.relative_to(folder).as_posix()
    if not below.isprintable() or len(below) > PATH_CHARS_MAX:
        raise InputError(
            f"{below!r:.80} cannot be the path of an artifact: 1 to {PATH_CHARS_MAX} printable characters can",
            code="not-a-name",
        )
    content = _read(file, below)
    guessed = mime or mimetypes.guess_type(below)[0] or ("text/plain" if _is_text(content) else None)
    return ProjectFile(below, guessed or "application/octet-stream", content, digest_of(content))


def checked(page: str, path: str, sha256: str | None, root: str | Path | None = None) -> ArtifactCheck:
    """An artifact beside its file as it is now."""
    if sha256 is None:
        return ArtifactCheck(page, path, "masked", None)
    try:
        now = project_file(path, root).sha256
    except InputError as error:
        state = "changed" if error.code == "too-large" else "gone"
        return ArtifactCheck(page, path, state, sha256, why=str(error))
    return ArtifactCheck(page, path, "same" if now == sha256 else "changed", sha256, now)


def _located(path: str | Path, root: str | Path | None) -> tuple[Path, Path]:
    """The project's folder, and where a path leads to below it."""
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        raise InputError(f"{path!r:.60} is no path of a file", code="not-a-name")
    folder = Path.cwd() if root is None else Path(root)
    try:
        folder, file = folder.resolve(strict=True), (folder / path).resolve()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path!s:.200} cannot be followed: {error}", code="unreadable-file") from None
    if not file.is_relative_to(folder) or file == folder:
        raise InputError(
            f"{path!s:.200} leads outside the project {folder}; name a file below it, or give its folder as `root`",
            code="outside-the-project",
        )
    return folder, file


def _read(file: Path, path: str) -> bytes:
    try:
        return read_within(file, BYTES_MAX, link=False)
    except FileNotFoundError:
        raise InputError(f"there is no file {path!r:.200}; look at its path", code="unreadable-file") from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InputError(
                f"{path!r:.200} holds more than {BYTES_MAX:,} bytes, the most of an artifact; take in a part of it",
                code="too-large",
            ) from None
        why = error.strerror or str(error)
        raise InputError(f"{path!r:.200} cannot be read: {why}", code="unreadable-file") from None


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in content
