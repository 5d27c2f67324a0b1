"""The folder of notes: its files read without following what somebody planted, and written one by one, each whole."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from vmstore.core.system.atomic_file import naming
from vmstore.core.system.safe_files import no_links, read_within
from vmstore.errors import InputError, StoreError

MARK = "vmstore-notes.json"
FORMAT = 1
SUFFIX = ".md"
PART = ".vmstore-part"
FILE_BYTES_MAX = 8 << 20
FILES_MAX = 200_000
SLUG_CHARS_MAX = 60
_SLUG = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,{SLUG_CHARS_MAX - 1}}}")


class FolderMark(msgspec.Struct, frozen=True):
    """The namespace that a folder is of, by its uid."""

    format: int
    uid: str


class NoteFile(NamedTuple):
    """A file of the folder: its path in it, with slashes, and its text."""

    path: str
    text: str


def slug(name: str) -> str:
    """A name as a part of a path: itself where every file system takes it as it is, else with a digest behind it."""
    if _SLUG.fullmatch(name) and not name.endswith("."):
        return name
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[: SLUG_CHARS_MAX - 9]
    return f"{plain or 'x'}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def mark_of(folder: Path) -> FolderMark | None:
    """The mark of a folder of notes; None where it has none."""
    try:
        mark = msgspec.json.decode(read_within(folder / MARK, FILE_BYTES_MAX, link=False), type=FolderMark)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{folder / MARK} cannot be read ({error}); remove it", code="not-notes") from error
    if mark.format != FORMAT:
        raise InputError(f"{folder} is of format {mark.format}; this version reads {FORMAT}", code="newer-format")
    return mark


def begun(folder: Path, uid: str) -> None:
    """Makes a folder of notes, or sees that it is one of this namespace; StoreError where it is anything else."""
    if folder.exists():
        mark = mark_of(folder) if folder.is_dir() else None
        if mark is None and (not folder.is_dir() or any(entry.name != ".git" for entry in folder.iterdir())):
            raise StoreError(
                f"{folder} is there already and is no folder of notes; name another path", code="path-taken"
            )
        if mark is not None and mark.uid != uid:
            raise StoreError(f"{folder} holds notes of another store; name another path", code="path-taken")
    with naming(folder):
        folder.mkdir(exist_ok=True)
    written(folder, MARK, msgspec.json.encode(FolderMark(FORMAT, uid)).decode() + "\n")


def files(folder: Path) -> Iterator[NoteFile]:
    """The notes of a folder by path; InputError for a link, a file that is too large, and one that is no text."""
    paths = []
    for place, names, entries in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in (*names, *entries):
            if (Path(place) / name).is_symlink():
                raise InputError(f"{Path(place) / name} is a link; put the file itself there", code="leads-out")
        paths += [Path(place) / name for name in entries if name.endswith(SUFFIX) and not name.startswith(".")]
    if len(paths) > FILES_MAX:
        raise InputError(f"{folder} holds {len(paths):,} notes, over {FILES_MAX:,}; take in parts", code="too-large")
    for path in sorted(paths):
        try:
            text = read_within(path, FILE_BYTES_MAX, link=False).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is no text in UTF-8 ({error}); save it as that", code="binary-file") from error
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror})", code="unreadable-file") from error
        yield NoteFile(path.relative_to(folder).as_posix(), text.replace("\r\n", "\n"))


def leads_to(path: str, target: str) -> str:
    """The path in the folder that a link of a file leads to; InputError where that is outside."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target.partition("#")[0]))
    if target.startswith("/") or "://" in target or place.startswith("../") or place in ("..", "."):
        raise InputError(f"{path}: {target[:80]!r} leads out of the folder; link notes in it", code="leads-out")
    return place


def is_own(path: str) -> bool:
    """Whether a path that somebody wrote may be one of a note: within the folder, hidden in no part, and short."""
    parts = path.split("/")
    return (
        path.endswith(SUFFIX)
        and len(path) <= 240
        and path.isprintable()
        and not any(not part or part.startswith(".") or part != part.strip() or "\\" in part for part in parts)
    )


def written(folder: Path, path: str, text: str) -> bool:
    """Writes a file whole where it says something else; whether it did. OSError where a link stands on the way."""
    place = folder / path
    with naming(place):
        no_links(folder, place)
        try:
            if read_within(place, FILE_BYTES_MAX * 4, link=False) == text.encode("utf-8", "surrogatepass"):
                return False
        except FileNotFoundError:
            pass
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{hashlib.sha256(path.encode()).hexdigest()[:12]}{PART}")
        part.write_bytes(text.encode("utf-8", "surrogatepass"))
        part.replace(place)
    return True


def removed(folder: Path, path: str) -> None:
    """Removes a file, and the folders that it leaves empty."""
    place = folder / path
    with naming(place):
        no_links(folder, place)
        place.unlink(missing_ok=True)
        for above in place.relative_to(folder).parents:
            if above == Path() or any((folder / above).iterdir()):
                break
            (folder / above).rmdir()


def commit_of(folder: Path) -> str | None:
    """The commit that is checked out where a folder lies in git; None where it does not. Nothing is run for it."""
    for place in (folder.absolute(), *folder.absolute().parents):
        git = place / ".git"
        if not git.is_dir():
            continue
        try:
            head = read_within(git / "HEAD", 4096).decode("ascii").strip()
            name = head.removeprefix("ref: ")
            if name != head:
                if not re.fullmatch(r"refs/[\w./-]+", name) or ".." in name:
                    return None
                loose = git / name
                packed = git / "packed-refs"
                head = read_within(loose, 4096).decode("ascii").strip() if loose.is_file() else _packed(packed, name)
        except (OSError, UnicodeDecodeError):
            return None
        return head if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head) else None
    return None


def _packed(path: Path, name: str) -> str:
    lines = read_within(path, FILE_BYTES_MAX).decode("utf-8", "replace").splitlines()
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {name}")), "")
