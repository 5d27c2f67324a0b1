"""Growth: the proof that a later seal holds all that an earlier one did, for a checker with the two seals and no store.

One session after the other: the tree over its commits then grew into the tree over its commits
now, by a consistency proof of RFC 9162.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from vmstore.cells.merkle import Tree, grew
from vmstore.cells.verify_proof import raw
from vmstore.engine.verify.history_tree import leaf_read, opened_by
from vmstore.engine.verify.verify import commits_of
from vmstore.errors import CorruptError
from vmstore.log.port import Log
from vmstore.seals.seal import Seal

KIND = "vmstore growth 1"


def growth(log: Log, earlier: Seal, later: Seal) -> bytes:
    """The proof that what an earlier seal covers grew into what a later one does, as the log of both tells it.

    Raises CorruptError naming the session where that is not so.
    """
    made: dict[bytes, list[bytes]] = {}
    uids: dict[int, bytes] = {}
    for commit in commits_of(log):
        if commit.session == commit.ordinal:
            uids[commit.session] = opened_by(commit)
        made.setdefault(uids.get(commit.session, b""), []).append(leaf_read(commit))
    ends = {head.uid: head.commits for head in later.heads}
    proofs = []
    for head in earlier.heads:
        leaves = made.get(head.uid, [])[: ends.get(head.uid, 0)]
        if len(leaves) < head.commits:
            raise CorruptError(
                f"session {head.uid.hex()} has not grown: the log or the later seal lacks some of it", code="not-grown"
            )
        proofs.append([head.uid.hex(), [node.hex() for node in Tree(leaves).growth(head.commits)]])
    proof = json.dumps([KIND, earlier.root.hex(), later.root.hex(), proofs], separators=(",", ":")).encode() + b"\n"
    check_growth(earlier, later, proof)
    return proof


def check_growth(earlier: Seal, later: Seal, proof: bytes) -> None:
    """Raises CorruptError where a proof does not show that a later seal holds all that an earlier one did."""
    try:
        kind, before, after, proofs = json.loads(proof)
        ways = {raw(uid, 16): [raw(node) for node in way] for uid, way in proofs}
        if (kind, before, after) != (KIND, earlier.root.hex(), later.root.hex()):
            raise ValueError("it is about other seals")
        if json.dumps([kind, before, after, proofs], separators=(",", ":")).encode() + b"\n" != proof:
            raise ValueError("its bytes are not as they were written")
        if earlier.namespace != later.namespace:
            raise ValueError("the seals are of two namespaces")
        if len(proofs) != len(earlier.heads) or set(ways) != {head.uid for head in earlier.heads}:
            raise ValueError("it is not about the sessions of the earlier seal")
        _compare(earlier, later, ways)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptError(f"nothing shows that one seal grew into the other: {error}", code="other-seals") from error


def _compare(earlier: Seal, later: Seal, ways: Mapping[bytes, Sequence[bytes]]) -> None:
    ends = {head.uid: head for head in later.heads}
    for head in earlier.heads:
        end = ends.get(head.uid)
        if end is None:
            raise ValueError(f"the later seal has no session {head.uid.hex()}")
        if end.commits == head.commits and end != head:
            raise ValueError(f"session {head.uid.hex()} is another one")
        if not grew(head.commits, head.history, end.commits, end.history, ways[head.uid]):
            raise ValueError(f"session {head.uid.hex()} was cut or rewritten")
