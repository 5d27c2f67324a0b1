"""Growth: two seals of one store are joined by a proof, two histories by none."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.engine.test_seal import followed
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import CorruptError
from vmstore.log.port import Log
from vmstore.namespace.signing_keys import SigningKey, new_key
from vmstore.seals.consistency_proof import KIND, check_growth, growth
from vmstore.seals.seal import Seal, sealed


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    """A key that repeats."""
    return new_key(tmp_path_factory.mktemp("key") / "key", ids=SeededIds(5))


def seal_of(log: Log, key: SigningKey) -> Seal:
    """The seal of a log."""
    return sealed(followed(log), 7, key.public, key.sign)


def store_of(seed: int, *texts: str) -> vmstore.Store:
    """A store in memory that begins like every other of its seed."""
    store = vmstore.memory_store(clock=ManualClock(5_000_000), ids=SeededIds(seed))
    for text in texts:
        for session in ("a", "b"):
            store.record(session, chat(text), answer("so"), at_us=1)
    return store


def test_every_later_seal_grew_from_every_earlier_one(key: SigningKey) -> None:
    """Between any two seals of a store that only grew there is a proof, and none the other way."""
    store = store_of(1)
    seals = []
    for number in range(6):
        store.record(f"s{number % 3}", chat(f"{number}"), answer("so"))
        if number == 3:
            store.session("s0").fork("f")
        seals.append(seal_of(store.admin.log, key))
    for nth, earlier in enumerate(seals):
        for later in seals[nth:]:
            check_growth(earlier, later, growth(store.admin.log, earlier, later))
        for older in seals[:nth]:
            with refused("not-grown", CorruptError):
                growth(store.admin.log, earlier, older)


def test_two_histories_are_joined_by_nothing(key: SigningKey) -> None:
    """Of two histories with one beginning neither grew from the other, whatever log or proof is handed in."""
    first, other = store_of(1, "begin", "left"), store_of(1, "begin", "right", "and on")
    seals = seal_of(first.admin.log, key), seal_of(other.admin.log, key)
    assert seals[0].namespace == seals[1].namespace, "they begin alike"
    for store in (first, other):
        for earlier, later in (seals, seals[::-1]):
            with pytest.raises(CorruptError):
                growth(store.admin.log, earlier, later)
    right = store_of(1, "begin", "left", "and on")
    proof = growth(right.admin.log, seals[0], seal_of(right.admin.log, key))
    with refused("other-seals", CorruptError):
        check_growth(*seals, proof)
    forged = proof.replace(seal_of(right.admin.log, key).root.hex().encode(), seals[1].root.hex().encode())
    with refused("other-seals", CorruptError):
        check_growth(*seals, forged)


def test_a_changed_proof_of_growth_is_refused(key: SigningKey, tmp_path: Path) -> None:
    """With any one byte changed, a session left out or said twice, a proof of growth is refused."""
    store = store_of(2, "one", "two", "three")
    earlier = seal_of(store.admin.log, key)
    for text in ("four", "five"):
        store.record("a", chat(text), answer("so"))
        store.record("c", chat(text), answer("so"))
    later = seal_of(store.admin.log, key)
    proof = growth(store.admin.log, earlier, later)
    for at in range(len(proof)):
        with pytest.raises(CorruptError):
            check_growth(earlier, later, proof[:at] + bytes([proof[at] ^ (1 << at % 8)]) + proof[at + 1 :])
    kind, before, after, ways = json.loads(proof)
    for wrong in (ways[1:], [*ways, ways[0]], [ways[0], ways[0]], []):
        with refused("other-seals", CorruptError):
            told_again = json.dumps([kind, before, after, wrong], separators=(",", ":")).encode() + b"\n"
            check_growth(earlier, later, told_again)


def test_a_growth_names_sessions_of_one_namespace(key: SigningKey) -> None:
    """A proof between seals of two namespaces is refused, though it names both and each of its hashes holds."""
    first, other = seal_of(store_of(1, "begin").admin.log, key), seal_of(store_of(2, "begin").admin.log, key)
    ways = [[head.uid.hex(), []] for head in first.heads]
    proof = json.dumps([KIND, first.root.hex(), other.root.hex(), ways], separators=(",", ":")).encode() + b"\n"
    with refused("other-seals", CorruptError):
        check_growth(first, other, proof)


def test_a_session_as_long_is_the_same_to_the_last_field(key: SigningKey) -> None:
    """Where a session made no commit more, its position and its hash are those it had, or it is another one."""
    store = store_of(1, "begin")
    seal = seal_of(store.admin.log, key)
    proof = growth(store.admin.log, seal, seal)
    for wrong in ({"position": 99}, {"hash": bytes(32)}):
        heads = (seal.heads[0]._replace(**wrong), *seal.heads[1:])
        with refused("other-seals", CorruptError):
            check_growth(seal, msgspec.structs.replace(seal, heads=heads), proof)
    with refused("other-seals", CorruptError):
        check_growth(seal, msgspec.structs.replace(seal, heads=seal.heads[1:]), proof)


@pytest.mark.parametrize("proof", [b"", b"[]", b"{}", b"7", b"[" * 100_000, b'["vmstore growth 1",1,2,3]\n', b"\xff"])
def test_what_is_no_growth_is_a_named_problem(proof: bytes, key: SigningKey) -> None:
    """Bytes that are no proof of growth at all are refused like a wrong one."""
    seal = seal_of(store_of(1, "begin").admin.log, key)
    with refused("other-seals", CorruptError):
        check_growth(seal, seal, proof)


def test_a_growth_is_written_in_one_way(key: SigningKey) -> None:
    """The same proof with a blank or a line more, or its end missing, is refused by its bytes."""
    store = store_of(1, "begin")
    seal = seal_of(store.admin.log, key)
    proof = growth(store.admin.log, seal, seal)
    for again in (b" " + proof, proof + b"\n", proof[:-1], proof.replace(b",", b", ", 1)):
        assert json.loads(again) == json.loads(proof)
        with refused("other-seals", CorruptError):
            check_growth(seal, seal, again)
