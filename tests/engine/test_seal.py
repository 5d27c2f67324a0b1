"""A seal holds a log to what it was: nothing it covers can be cut, dropped, put back or rewritten."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

import vmstore
from tests.cells.test_merkle import reference
from tests.engine.stories import LOG, answer, chat, copied, decide, edit, tell
from tests.refusals import refused
from vmstore.core.clock import SeededIds
from vmstore.core.mutation import Open, Pack, decode, encode
from vmstore.engine.verify.history_tree import HistoryTree
from vmstore.engine.verify.verify import ChainCheck, Finding
from vmstore.errors import CorruptError
from vmstore.log.commit import Commit
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.signing_keys import SigningKey
from vmstore.seals.seal import Seal, namespace_uid, read, sealed, watched


@pytest.fixture(scope="module")
def store_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with sessions and forks, closed."""
    path = tmp_path_factory.mktemp("told") / "a.vms"
    tell(path)
    decide(path)
    return path


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    """A key that repeats."""
    return vmstore.new_key(tmp_path_factory.mktemp("key") / "key", ids=SeededIds(5))


def followed(log: Log, seals: Sequence[Seal] = ()) -> HistoryTree:
    """A log followed to its end."""
    histories = HistoryTree(watched(seals))
    check = ChainCheck(log, histories)
    check.batch(log.tail(0, 10_000))
    return histories


def seal_of(path: Path, key: SigningKey, at: int = 77) -> Seal:
    """The seal of a store."""
    log = SqliteLog(path / LOG)
    try:
        return sealed(followed(log), at, key.public, key.sign)
    finally:
        log.close()


def problems(path: Path, seal: Seal) -> list[Finding]:
    """What of a seal a store does not hold."""
    log = SqliteLog(path / LOG)
    try:
        return list(seal.problems(followed(log, [seal])))
    finally:
        log.close()


def test_the_root_is_what_the_words_say(store_folder: Path, key: SigningKey) -> None:
    """Root, heads and signed bytes, worked out again from rows of the log, are those of the seal."""
    seal = seal_of(store_folder, key)
    sessions: dict[int, list[tuple[bytes, Commit]]] = {}
    uids: dict[int, bytes] = {}
    log = SqliteLog(store_folder / LOG)
    for commit in log.tail(0, 10_000):
        last = decode(commit.body)[-1]
        first = decode(commit.body)[0]
        if isinstance(first, Open):
            uids[commit.session] = first.uid
        leaf = commit.hash + struct.pack(">Q", commit.last)
        if isinstance(last, Pack):
            leaf += struct.pack(">qIBI", commit.at, last.call, last.fidelity, last.leaves) + last.root
        sessions.setdefault(commit.session, []).append((sha256(b"\0" + leaf).digest(), commit))
    ordinal = log.ordinal
    log.close()
    leaves = []
    for session, uid in sorted(uids.items(), key=lambda item: item[1]):
        made = sessions[session]
        end = made[-1][1]
        history = reference([leaf for leaf, _ in made])
        leaves.append(sha256(b"\0" + uid + struct.pack(">QQ", end.last, len(made)) + end.hash + history).digest())
        assert (uid, end.last, len(made), end.hash, history) in seal.heads
    namespace = sha256(b"vmstore namespace" + uids[1]).digest()[:16]
    signing = b"vmstore seal 1\0" + namespace + struct.pack(">QqQ", ordinal, 77, len(uids)) + reference(leaves)
    assert seal.signing == signing + key.public
    assert len(uids) > 3, "the story has forks"


def test_a_seal_comes_back_from_its_file(store_folder: Path, key: SigningKey) -> None:
    """What is read is what was written, under the key that signed it or none."""
    seal = seal_of(store_folder, key)
    assert read(seal.encoded()) == read(seal.encoded(), key.public) == seal


def test_every_byte_of_a_seal_counts(store_folder: Path, key: SigningKey) -> None:
    """With any one byte flipped a seal is refused."""
    content = seal_of(store_folder, key).encoded()
    for at in range(len(content)):
        with refused("not-a-seal", CorruptError):
            read(content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :], key.public)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"7", b"\xff", b"[" * 100_000, b'{"vmstore":"vmstore seal 1"}'])
def test_what_is_no_seal_is_refused(content: bytes) -> None:
    """A file of something else is refused by name."""
    with refused("not-a-seal", CorruptError):
        read(content)


def test_a_seal_of_another_key_is_refused(store_folder: Path, key: SigningKey, tmp_path: Path) -> None:
    """Two histories need two seals, and without the key neither can be signed under its name."""
    stranger = vmstore.new_key(tmp_path / "other", ids=SeededIds(6))
    seal = seal_of(store_folder, stranger)
    with refused("not-a-seal", CorruptError):
        read(seal.encoded(), key.public)
    forged = msgspec.structs.replace(seal_of(store_folder, key), at=78)
    forged = msgspec.structs.replace(forged, signature=stranger.sign(forged.signing))
    with refused("not-a-seal", CorruptError):
        read(forged.encoded(), key.public)
    heads = seal_of(store_folder, key).heads
    fewer = msgspec.structs.replace(seal_of(store_folder, key), heads=heads[1:])
    with refused("not-a-seal", CorruptError):
        read(fewer.encoded(), key.public)


def test_a_store_that_grew_holds_its_seal(store_folder: Path, key: SigningKey, tmp_path: Path) -> None:
    """New calls, sessions and forks, packing and a reopened store leave every earlier seal true."""
    path = copied(store_folder, tmp_path / "b.vms")
    seals = [seal_of(path, key)]
    for number in range(3):
        with vmstore.open(path) as store:
            store.record("plan", chat("Where to?", "North.", f"And {number}?"), answer("On."))
            store.record(f"new-{number}", chat("Hello"), None)
            store.session("plan").fork(f"fork-{number}", call=1)
            store.admin.compact()
        for seal in seals:
            assert problems(path, seal) == []
        seals.append(seal_of(path, key))


def test_every_cut_end_is_named(store_folder: Path, key: SigningKey, tmp_path: Path) -> None:
    """Without the last n commits, for every n, each session that lost one is named, and no other."""
    seal = seal_of(store_folder, key)
    log = SqliteLog(store_folder / LOG)
    commits = log.tail(0, 10_000)
    log.close()
    for left in range(len(commits)):
        short = MemoryLog()
        short._commits = commits[:left]
        named = {problem.where for problem in seal.problems(followed(short, [seal]))}
        lost = {
            f"session {uid.hex()}"
            for commit in commits[left:]
            if isinstance(opening := decode(commits[commit.session - 1].body)[0], Open)
            for uid in [opening.uid]
        }
        assert named == lost


def forget_session(path: Path) -> None:
    """Takes the last session away that nothing stands on, as if it had never been, in commits and cells alike."""
    edit(path, "DELETE FROM commits WHERE session = (SELECT max(session) FROM commits)")


def test_a_dropped_session_is_named(store_folder: Path, key: SigningKey, tmp_path: Path) -> None:
    """A session that is gone is named with the position it stood at."""
    path = copied(store_folder, tmp_path / "b.vms")
    seal = seal_of(path, key)
    forget_session(path)
    (problem,) = problems(path, seal)
    assert problem.kind == "seal" and "the log holds no such session" in problem.what


def test_another_namespace_is_named(store_folder: Path, key: SigningKey, tmp_path: Path) -> None:
    """A seal of another namespace says that the log begins otherwise, and misses every session."""
    with vmstore.open(tmp_path / "c.vms") as store:
        store.record("plan", chat("Where to?"), None)
    seal = seal_of(store_folder, key)
    findings = problems(tmp_path / "c.vms", seal)
    assert "begins with another session" in findings[0].what and len(findings) == 1 + len(seal.heads)
    assert seal.namespace == namespace_uid(_first_uid(store_folder))


def _first_uid(path: Path) -> bytes:
    log = SqliteLog(path / LOG)
    opening = decode(log.tail(0, 1)[0].body)[0]
    log.close()
    assert isinstance(opening, Open), "a log begins with one"
    return opening.uid


def retold(**fields: object) -> Callable[[Commit], Commit]:
    """Changes the pack of a commit, or where it has none its hash."""

    def change(commit: Commit) -> Commit:
        mutations = decode(commit.body)
        if not isinstance(mutations[-1], Pack):
            return msgspec.structs.replace(commit, hash=bytes(32))
        return msgspec.structs.replace(
            commit, body=encode([*mutations[:-1], msgspec.structs.replace(mutations[-1], **fields)])
        )

    return change


CHANGES: list[Callable[[Commit], Commit]] = [
    lambda commit: msgspec.structs.replace(commit, hash=bytes(32)),
    lambda commit: msgspec.structs.replace(commit, first=commit.first + 1),
    lambda commit: msgspec.structs.replace(commit, first=-(2**62)),
    lambda commit: msgspec.structs.replace(commit, hash=b"", body=b""),
    retold(fidelity=256),
    retold(fidelity=1),
    retold(call=-1),
    retold(leaves=2**40),
    retold(root=b"r" * 32),
    retold(root=b"short"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_past_written_anew_is_named(store_folder: Path, key: SigningKey, change: Callable[[Commit], Commit]) -> None:
    """Whichever commit is another one, its session is named as rewritten."""
    seal = seal_of(store_folder, key)
    log = SqliteLog(store_folder / LOG)
    commits = log.tail(0, 10_000)
    log.close()
    for nth, commit in enumerate(commits):
        forged = MemoryLog()
        forged._commits = [*commits[:nth], change(commit), *commits[nth + 1 :]]
        problems = [problem for problem in seal.problems(followed(forged, [seal])) if problem.where != "log"]
        assert len(problems) == 1 and (
            "rewritten" in problems[0].what or commit.first == 1 or commit.session == commit.ordinal
        )


def test_a_uid_of_another_length_is_no_session(store_folder: Path, key: SigningKey) -> None:
    """A session whose uid was made longer or shorter is missing, and nothing breaks."""
    seal = seal_of(store_folder, key)
    log = SqliteLog(store_folder / LOG)
    commits = log.tail(0, 10_000)
    log.close()
    for uid in (b"", b"x" * 15, bytes(17)):
        opening = decode(commits[0].body)[0]
        forged = MemoryLog()
        body = encode([msgspec.structs.replace(opening, uid=uid)])
        forged._commits = [msgspec.structs.replace(commits[0], body=body), *commits[1:]]
        assert any("no such session" in problem.what for problem in seal.problems(followed(forged, [seal])))


def test_nothing_has_no_seal() -> None:
    """An empty log has nothing that could be sealed."""
    with pytest.raises(AssertionError, match="something to seal"):
        sealed(HistoryTree(), 0, b"", lambda message: message)
