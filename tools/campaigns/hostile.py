"""The hostile inputs of the campaign `outside`: copies of stores in every form, changed by who means harm."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw
from campaigns.hostile_files import FILES
from campaigns.outside import AGAIN, CANARY, HERE, PRECIOUS, THERE, Hostile, Room

Edit = Callable[[Room, dict[str, Any]], object]
Plant = Callable[[Room, Path], object]
Make = Callable[[Room], Sequence[str]]
Lines = Callable[[list[Any]], object]

# ---- what can be planted in the place of a file


def link(to: str) -> Plant:
    """A link to something of the room."""
    return lambda room, at: at.symlink_to(room.path(to))


PLANTS: dict[str, Plant] = {
    "a link to a letter": link(f"{PRECIOUS}/letter.txt"),
    "a link to a live log": link(f"{CANARY}/default/log.sqlite"),
    "a link to a live WAL": link(f"{CANARY}/default/log.sqlite-wal"),
    "a link to a store": link(f"{CANARY}/default"),
    "a link to nothing": lambda room, at: at.symlink_to(room.path("nothing")),
    "a link to zeros": lambda room, at: at.symlink_to("/dev/zero"),
    "a pipe": lambda room, at: os.mkfifo(at),
    "a folder": lambda room, at: at.mkdir(),
    "nothing": lambda room, at: None,
    "an empty file": lambda room, at: at.touch(),
    "a sparse giant": lambda room, at: (at.touch(), os.truncate(at, 1 << 40)),
    "another database": lambda room, at: apsw.Connection(str(at)).execute("CREATE TABLE commits(x)").fetchall(),
    "brackets": lambda room, at: at.write_bytes(b"[" * (1 << 20)),
    "no text": lambda room, at: at.write_bytes(bytes(range(256)) * 64),
    "NaN": lambda room, at: at.write_bytes(b'{"version":NaN,"parts":[Infinity],"files":[1e999]}'),
    "a long number": lambda room, at: at.write_bytes(b'{"version":' + b"9" * (1 << 20) + b"}"),
}


def planted(at: Path, plant: Plant, room: Room) -> None:
    """Puts something in the place of a file or a folder."""
    if at.is_dir() and not at.is_symlink():
        shutil.rmtree(at)
    at.unlink(missing_ok=True)
    at.parent.mkdir(parents=True, exist_ok=True)
    plant(room, at)


# ---- backups

NAMES: list[Any] = [
    "CANARY", "../canary.vms/default", "..", ".", "", ".hidden", "a/b", "default/", "/", "\0", "x\0y", "\ud800",
    "n" * 300, "default\n", "~", "default/../../../canary.vms/default", 7, None, ["default"], "C:\\x", "DEFAULT",
    "d\u0435fault",
]  # fmt: skip
PATHS: list[Any] = [
    "../evil", "CANARY/log.sqlite", "default/../../evil", "default//log.sqlite", "./default/log.sqlite", "log.sqlite",
    "default/log.sqlite-wal", "default/log.lock", "default/erasing", "default/views-0.sqlite", "default/blobs/../../x",
    "default/blobs/ab/../../../../evil", "default/archive/../x", "", "backup.json", "DEFAULT/log.sqlite", "default/\0",
    "default/blobs/ab/\ud800", "default\\log.sqlite", "default/blobs/ab/" + "c" * 5_000, "/etc/passwd", 7, None,
]  # fmt: skip


def backup(edit: Edit | None = None, plant: tuple[str, Plant] | None = None, of: str = "backup") -> Make:
    """A backup whose list says something else, or where something else stands in the place of a file."""

    def make(room: Room) -> Sequence[str]:
        copy = room.copy(of)
        listing = json.loads((copy / "backup.json").read_text())
        if edit is not None:
            edit(room, listing)
            (copy / "backup.json").write_text(json.dumps(listing, indent=1))
        if plant is not None:
            name = next(f["path"] for f in listing["files"] if "blobs" in f["path"]) if plant[0] == "blob" else plant[0]
            planted(copy / name, plant[1], room)
        return ["restore", str(copy), str(room.path(AGAIN))]

    return make


def named(name: Any, add: bool) -> Edit:
    """A namespace of another name, in the place of the one there is or beside it."""

    def edit(room: Room, listing: dict[str, Any]) -> None:
        text = str(room.path(CANARY) / "default") if name == "CANARY" else name
        part = {**listing["parts"][0], "namespace": text}
        listing["parts"] = [*listing["parts"], part] if add else [part]

    return edit


def pathed(path: Any, add: bool) -> Edit:
    """A file of another path, in the place of the log or beside it."""

    def edit(room: Room, listing: dict[str, Any]) -> None:
        text = path.replace("CANARY", str(room.path(CANARY) / "default")) if isinstance(path, str) else path
        file = next(file for file in listing["files"] if file["path"].endswith("log.sqlite"))
        if add:
            listing["files"].append({**file, "path": text})
        else:
            file["path"] = text

    return edit


def stated(field: str, value: Any) -> Edit:
    """A file of which something else is stated."""
    return lambda room, listing: listing["files"][-1].update({field: value})


def flipped(nth: int) -> Edit:
    """A log of which bytes are others, its digest as it now is."""

    def edit(room: Room, listing: dict[str, Any]) -> None:
        log = room.input_folder / "backup" / "default" / "log.sqlite"
        content = bytearray(log.read_bytes())
        for at in range(1000 + 211 * nth, len(content), 9973 + 101 * nth):
            content[at] ^= 1 + nth
        log.write_bytes(content)
        for file in listing["files"]:
            if file["path"] == "default/log.sqlite":
                file["sha256"] = hashlib.sha256(content).hexdigest()

    return edit


def backups() -> list[Hostile]:
    """Backups by who rewrote their list, or their files."""
    texts = [
        Hostile("backup", f"{'also ' * add}{name!r:.40} as a namespace", backup(named(name, add)), True)
        for name in NAMES
        for add in (False, True)
    ]
    texts += [
        Hostile("backup", f"{'also ' * add}{path!r:.40} as a file", backup(pathed(path, add)), True)
        for path in PATHS
        for add in (False, True)
    ]
    for place in ("default/log.sqlite", "blob", "backup.json", "default"):
        for word, plant in PLANTS.items():
            if place in ("blob", "backup.json") or "giant" not in word:
                texts.append(Hostile("backup", f"{word} as {place}", backup(plant=(place, plant)), True))
    sizes: list[Any] = [-1, 0, 1 << 63, 1 << 80, 1.5, "1"]
    values = [*(("bytes", size) for size in sizes), ("sha256", ""), ("sha256", "0" * 64)]
    texts += [Hostile("backup", f"{f} {v!r} stated", backup(stated(f, v)), True) for f, v in values]
    texts += [Hostile("backup", f"flipped {nth}", backup(flipped(nth)), None) for nth in range(8)]
    texts += [Hostile("backup", "grants", backup(of="shared.backup"), True)]
    texts += [Hostile("backup", "approvals", backup(of="approved.backup"), True)]
    twice: Edit = lambda room, listing: listing["files"].append(listing["files"][0])  # noqa: E731
    return [*texts, Hostile("backup", "a file twice", backup(twice), True)]


# ---- bundles


def bundle(edit: Lines, of: str = "guest", exact: bool = True) -> Make:
    """A bundle whose lines are others, and whose digest is that of the lines it has."""

    def make(room: Room) -> Sequence[str]:
        lines = [json.loads(line) for line in room.path(f"{of}.jsonl").read_text().splitlines()]
        edit(lines)
        digest, out = hashlib.sha256(), room.input_folder / "x.jsonl"
        with out.open("wb") as file:
            for line in lines:
                if isinstance(line, dict) and line.get("digest", "kept") != "kept":
                    line["digest"] = base64.b64encode(digest.digest()).decode()
                text = line if isinstance(line, bytes) else spelt(line)
                digest.update(text)
                file.write(text)
        return ["import", str(room.path(HERE)), str(out), *(["--exact"] if exact else [])]

    return make


def spelt(line: Any) -> bytes:
    """A line as JSON, lone surrogates as they come."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def header(**fields: Any) -> Lines:
    """Another first line."""
    return lambda lines: lines[0]["sessions"][0].update(fields)


def commit(nth: int = 1, **fields: Any) -> Lines:
    """Another commit."""
    return lambda lines: lines[nth].update(fields)


def cell(**fields: Any) -> Lines:
    """Another cell."""
    return lambda lines: lines[1]["cells"][0].update(fields)


def _swap(lines: list[Any]) -> None:
    lines[1], lines[2] = lines[2], lines[1]


CALLED: list[Any] = [
    "../../x", "/etc/x", "a\0b", "x\ny", "\x1b[2J", "\ud800", "n" * (1 << 20), "", "vmstore", "VMSTORE", "\u202eevil",
    7, None, ["x"],
]  # fmt: skip
EDITS: dict[str, Lines] = {
    **{f"a session called {name!r:.30}": header(name=name) for name in CALLED},
    **{f"upto {n}": header(upto=n) for n in (0, -1, 1, 1 << 62, 1 << 70, 1.5, "9")},
    **{f"uid {u!r:.20}": header(uid=u) for u in ("", "AAAA", "A" * 24, 5, None)},
    **{f"first {n}": commit(first=n) for n in (0, -1, 2, 1 << 62, 1 << 64)},
    **{f"count {n}": commit(count=n) for n in (0, -1, 1 << 40, 1 << 64)},
    **{f"request {n}": commit(request=n) for n in (-2, 99, 1 << 40)},
    **{f"at {n}": commit(at=n) for n in (1 << 62, -(1 << 62), 1 << 70, 0.5)},
    **{f"body {b!r:.20}": commit(body=b) for b in ("", "AAAA", "w" * 4000, "////", 7)},
    "another hash": commit(hash=base64.b64encode(bytes(32)).decode()),
    "another text": cell(text="something else"),
    "another salt": cell(salt=base64.b64encode(bytes(16)).decode()),
    "another commitment": cell(commitment=base64.b64encode(bytes(32)).decode()),
    "two contents": cell(text="x", base64="eA=="),
    "no content": lambda lines: lines[1]["cells"].__setitem__(0, {"commitment": lines[1]["cells"][0]["commitment"]}),
    "many cells": lambda lines: lines[1]["cells"].extend([{"commitment": "A" * 43 + "="}] * 15_000),
    "a bomb of brackets": commit(mutations=json.loads("[" * 900 + "]" * 900)),
    "deep brackets": lambda lines: lines.insert(1, b'{"kind":"commit","session":' + b"[" * 1_000_000 + b"\n"),
    "NaN": lambda lines: lines.insert(1, b'{"kind":"commit","first":NaN}\n'),
    "a session twice": lambda lines: lines[0]["sessions"].append(lines[0]["sessions"][0]),
    "a session more": lambda lines: lines[0]["sessions"].append({**lines[0]["sessions"][0], "name": "y"}),
    "no session": lambda lines: lines[0].update(sessions=[]),
    "another version": lambda lines: lines[0].update(version=2),
    "a field more": lambda lines: lines[1].update(evil=1),
    "a commit less": lambda lines: lines.pop(1),
    "a commit twice": lambda lines: lines.insert(1, lines[1]),
    "swapped": _swap,
    "cut": lambda lines: lines.pop(),
    "goes on": lambda lines: lines.append(lines[1]),
    "not its digest": lambda lines: lines[-1].update(digest="kept"),
    "UTF-16": lambda lines: lines.insert(1, "{}\n".encode("utf-16")),
    "no text": lambda lines: lines.insert(1, b'{"kind":"commit","session":"\xff\xfe"}\n'),
}


def carried(of: str, refused: bool | None, exact: bool = True) -> Hostile:
    """A bundle that brings something which would have an effect."""
    return Hostile("bundle", f"{of}{'' if exact else ', rewritten'}", bundle(lambda lines: None, of, exact), refused)


def bundles() -> list[Hostile]:
    """Bundles whose lines were rewritten, and such as bring erasures, policies and approvals along."""
    texts = [Hostile("bundle", name, bundle(edit), None if name == "VMSTORE" else True) for name, edit in EDITS.items()]
    texts += [Hostile("bundle", f"{name}, rewritten", bundle(edit, exact=False), True) for name, edit in EDITS.items()]
    texts += [carried("erased-page", True), carried("erased-session", True), carried("unmasked", True)]
    texts += [carried("approved", None), carried("shared", None), carried("guest", False)]
    texts += [carried(of, None, exact=False) for of in ("approved", "unmasked", "guest")]
    for word, plant in PLANTS.items():
        for flags in ([], ["--exact"], ["--format", "bundle"]):
            name, make = f"{word} with {' '.join(flags)}", partial(_in_its_place, plant, flags)
            texts.append(Hostile("bundle", name, make, True if flags else None))
    return texts


def _in_its_place(plant: Plant, flags: list[str], room: Room) -> Sequence[str]:
    planted(room.input_folder / "x.jsonl", plant, room)
    return ["import", str(room.path(HERE)), str(room.input_folder / "x.jsonl"), *flags]


# ---- merges, archives, stores


def merge(of: str, plant: tuple[str, Plant] | None = None) -> Make:
    """A store that is merged, with something planted in it."""

    def make(room: Room) -> Sequence[str]:
        copy = room.copy(of)
        if plant is not None:
            planted(place_in(copy, plant[0]), plant[1], room)
        return ["merge", str(room.path(HERE)), str(copy)]

    return make


def place_in(store: Path, name: str) -> Path:
    """A place in a store: a file by its name, or one of those whose names are drawn."""
    folder = store / "default"
    if name in ("a blob", "an archive", "the views"):
        pattern = {"a blob": "blobs/*/*", "an archive": "archive/*.archive", "the views": "views-*.sqlite"}[name]
        return next(iter(sorted(folder.glob(pattern))))
    return folder / name if name else folder


def lying_views(room: Room, copy: Path) -> None:
    """Views that show the namespace's own session as one of a user's."""
    db = apsw.Connection(str(place_in(copy, "the views")))
    db.execute("UPDATE sessions SET hidden = 0").fetchall()
    db.close()


def _merge_lying(room: Room) -> Sequence[str]:
    copy = room.copy("shared.vms")
    lying_views(room, copy)
    return ["merge", str(room.path(HERE)), str(copy)]


def merges() -> list[Hostile]:
    """Stores that are merged: grown by what has effects, or with something planted in them."""
    grown = {
        "erased-page": True,
        "erased-session": True,
        "unmasked": True,
        "approved": False,
        "shared": False,
    }
    texts = [Hostile("merge", of, merge(f"{of}.vms"), refused) for of, refused in grown.items()]
    texts.append(Hostile("merge", "sound", merge(THERE), False))
    texts.append(Hostile("merge", "views that lie", _merge_lying, None))
    for place in ("log.sqlite", "a blob", "an archive", "the views", "blobs", ""):
        for word, plant in PLANTS.items():
            texts.append(Hostile("merge", f"{word} as {place or 'the namespace'}", merge(THERE, (place, plant)), None))
    return texts


def archive(plant: Plant | None, command: str, cut: int = 0) -> Make:
    """An archive's file that is something else, or damaged; asked alone, merged, or in its store."""

    def make(room: Room) -> Sequence[str]:
        file = room.input_folder / "x.archive"
        shutil.copy(place_in(room.path(THERE), "an archive"), file)
        if plant is not None:
            planted(file, plant, room)
        elif cut:
            content = bytearray(file.read_bytes())
            content[cut % len(content)] ^= 255
            file.write_bytes(content if cut % 2 else content[: cut % len(content)])
        into = ["merge", str(room.path(HERE)), str(file)]
        return into if command == "merge" else [command, str(file)]

    return make


def archives() -> list[Hostile]:
    """Archives that come alone."""
    doors = ("verify", "merge", "sessions")
    texts = [
        Hostile("archive", f"{word}, {do}", archive(plant, do), None) for word, plant in PLANTS.items() for do in doors
    ]
    cuts = range(97, 9_000, 1_111)
    return texts + [
        Hostile("archive", f"damaged {cut}, {do}", archive(None, do, cut), None) for cut in cuts for do in doors[:2]
    ]


PLACES = (
    "log.sqlite", "log.sqlite-wal", "log.sqlite-shm", "log.lock", "archive", "archive.lock", "blobs", "a blob",
    "an archive", "the views", "known.sqlite", "keys.sqlite", "text", "columns", "erasing", "log.sqlite.format-0",
    "log.sqlite.new", "archive/.x.new", "archive/.x.former", ".scratch.abcdefgh.part/log.sqlite", "blobs/00/x", "",
)  # fmt: skip
COMMANDS: dict[str, list[str]] = {
    "erase": ["erase", "STORE", "--session", "long", "--yes"],
    "finish": ["erase", "STORE", "--finish"],
    "backup": ["backup", "STORE", "OUT"],
    "sweep": ["sweep", "STORE", "--grace", "0"],
    "doctor": ["doctor", "STORE"],
    "archive": ["archive", "STORE", "long", "--grace", "0"],
}


def store(place: str, plant: Plant, command: str) -> Make:
    """A store that others may write to, with something planted in it, and somebody's command on it."""

    def make(room: Room) -> Sequence[str]:
        copy = room.copy(THERE)
        planted(place_in(copy, place), plant, room)
        fields = {"STORE": str(copy), "OUT": str(room.place / "out")}
        return [fields.get(word, word) for word in COMMANDS[command]]

    return make


def stores() -> list[Hostile]:
    """Stores in which links, pipes and the like stand where files are expected."""
    words = ("a link to a letter", "a link to a live log", "a link to a store", "a pipe")
    return [
        Hostile("store", f"{word} as {place or 'the namespace'}, {do}", store(place, PLANTS[word], do), None)
        for nth, place in enumerate(PLACES)
        for word in words
        for step, do in enumerate(COMMANDS)
        if do == "erase" or (nth + step) % 3 == 0
    ]


INPUTS: list[Hostile] = [*backups(), *bundles(), *merges(), *archives(), *stores(), *FILES]
