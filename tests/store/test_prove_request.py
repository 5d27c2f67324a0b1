"""A seal proves what a live session's call was sent, to a holder of the proof, the key and the request."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.cells.verify_proof import check
from vmstore.core.clock import SeededIds
from vmstore.errors import InputError
from vmstore.namespace.results import Page
from vmstore.store.live.live_session import Live

pytest.importorskip("cryptography")


def talked(store: vmstore.Store) -> tuple[Live, list[dict[str, Any]]]:
    """A live session of a few calls, and what each of them was sent."""
    session = store.live_session("s", l0_tokens_max=4_000, model="m-1")
    requests = []
    for n in range(4):
        session.user(f"Question {n}? " + "tracks " * 200)
        requests.append(session.pack().request)
        session.assistant(f"Answer {n}.")
    return session, requests


def test_what_a_call_was_sent_is_proven(tmp_path: Path) -> None:
    """Each request is the content of its proof, byte for byte; of a fork that inherited the call as well."""
    with vmstore.open(tmp_path / "store") as store:
        session, requests = talked(store)
        fork = session.fork("other", call=3)
        key = vmstore.new_key(tmp_path / "seal.key", ids=SeededIds(1))
        vmstore.seal(store, key)
        for number, request in enumerate(requests, 1):
            proof = store.trust.prove(fork if number < 3 else session, call=number)
            assert proof.content is not None and json.loads(proof.content) == request
            value = check(proof.proof, key.public, proof.content)
            assert (
                value == proof.says + ", with this content"
                and f"was sent in the recorded context of call {number} " in value
            )
            other = proof.content.replace(b"Question", b"Queztion")
            with pytest.raises(ValueError, match="the content is another one"):
                check(proof.proof, key.public, other)


def test_every_byte_of_a_proof_of_a_request_counts(tmp_path: Path) -> None:
    """A proof with any one byte changed, or of another request, proves nothing."""
    with vmstore.open(tmp_path / "store") as store:
        session, _ = talked(store)
        key = vmstore.new_key(tmp_path / "seal.key", ids=SeededIds(1))
        vmstore.seal(store, key)
        proof = store.trust.prove(session, call=2)
        for at in range(0, len(proof.proof), 7):
            wrong = bytearray(proof.proof)
            wrong[at] = ord("7") if wrong[at] != ord("7") else ord("8")
            with pytest.raises((ValueError, TypeError, struct.error)):
                check(bytes(wrong), key.public)
        document = json.loads(proof.proof)
        document[1][1] = json.loads(store.trust.prove(session, call=3).proof)[1][1]
        with pytest.raises(ValueError, match="commit states another digest"):
            check(json.dumps(document, separators=(",", ":")).encode() + b"\n", key.public)


def test_what_was_erased_is_proven_by_its_digest(tmp_path: Path) -> None:
    """Where words of a request were erased the proof holds on, without them; a recorded call states no digest."""
    with vmstore.open(tmp_path / "store") as store:
        session, _ = talked(store)
        store.record("r", {"model": "m", "messages": [{"role": "user", "content": "Hi."}]})
        key = vmstore.new_key(tmp_path / "seal.key", ids=SeededIds(1))
        vmstore.seal(store, key)
        pages: list[Page] = session.pages(role="user")
        vmstore.erase(store, page=pages[0].page, in_session="s")
        proof = store.trust.prove(session, call=1)
        assert proof.content is None and check(proof.proof, key.public) == proof.says
        with refused("no-digest", InputError):
            store.trust.prove("r", call=1)
