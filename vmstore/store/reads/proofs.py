"""Proofs: this page, as it was, stood in the context of this call, or it was sent this request; and it was sealed."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from vmstore.cells.merkle import Tree
from vmstore.cells.verify_proof import PAGE, REQUEST, check
from vmstore.core.address import page_name
from vmstore.core.mutation import Pack, decode
from vmstore.engine.verify.history_tree import SessionHead, leaf_read, tree_of
from vmstore.errors import CorruptError, ErasedError, InputError, UnknownError
from vmstore.live.request import written
from vmstore.log.commit import genesis
from vmstore.namespace.namespace import Namespace
from vmstore.seals.seal import Seal
from vmstore.seals.seals import folder_of, seals_in
from vmstore.store.reads.sent_request import sent
from vmstore.views.branch import Branch
from vmstore.views.erased_cells import seen
from vmstore.views.log_reader import LogReader
from vmstore.views.projectors.calls import CallRow
from vmstore.views.reads.context import leaves_of, shown_at


class Proof(NamedTuple):
    """A proof as a file, and what it says in a sentence; `content` are the page's salt and bytes, where it has any.

    The content is kept out of the proof, and its salt with it: without them nobody can test a guess.
    """

    proof: bytes
    says: str
    content: bytes | None


def proof_of(ns: Namespace, lane: Branch, page: int, call: CallRow, seal: Seal | None) -> Proof:
    """The proof that a page was in the context of a call, by a seal, or by the oldest one kept that covers the call."""
    shown = shown_at(lane, call)
    place = next((nth for nth, row in enumerate(shown) if row.page == page), None)
    if place is None:
        raise UnknownError(f"{page_name(page)} was not in the context of call {call.call}; WHY NOT says why")
    row, pages = shown[place], Tree(leaves_of(lane, shown))
    if pages.root != call.root:
        raise CorruptError(f"the context of call {call.call} does not give its root; run `vmstore verify`")
    of_page = [
        _uid(lane, lane.owner(page)).hex(),
        page,
        row.version,
        row.level,
        (row.commitment or bytes(32)).hex(),
        *_way(pages, place),
    ]
    cell = None if row.cell is None else seen(ns.log, ns.views, [row.cell]).get(row.cell)
    content = None if cell is None or cell.erased else cell.salt + cell.content
    return _proven(PAGE, of_page, _Covered(ns, lane, call, seal), content)


def proof_of_request(ns: Namespace, lane: Branch, call: CallRow, seal: Seal | None) -> Proof:
    """The proof of what a call was sent, by the digest in its pack; `content` is the request, where it can be had."""
    covered = _Covered(ns, lane, call, seal)
    pack = decode(covered.commit.body)[-1]
    if not isinstance(pack, Pack) or pack.sent is None:
        raise InputError(
            f"call {call.call} states no digest of its request, for it was recorded; prove its pages", code="no-digest"
        )
    try:
        content = written(sent(ns, lane, call)).encode("utf-8", "surrogatepass")
    except ErasedError:  # what was erased is proven as what was sealed, by its digest alone
        content = None
    commit = covered.commit
    linked = [commit.first, commit.count, commit.at, commit.lag, commit.request]
    hexed = [commit.body.hex(), commit.commitments.hex()]
    of_request = [call.root.hex(), pack.sent.hex(), covered.previous.hex(), *linked, *hexed]
    return _proven(REQUEST, of_request, covered, content)


def _proven(kind: str, what: list[Any], covered: _Covered, content: bytes | None) -> Proof:
    statement = [kind, what, *covered.path]
    proof = json.dumps(statement, separators=(",", ":")).encode() + b"\n"
    check(proof, covered.seal.key, content)
    return Proof(proof, check(proof, covered.seal.key), content)


class _Covered:
    """A call as a seal covers it: its commit, and the ways up from there."""

    def __init__(self, ns: Namespace, lane: Branch, call: CallRow, seal: Seal | None) -> None:
        uid = _uid(lane, call.session)
        self.seal, head = _covering(ns, uid, call, seal)
        commits = list(LogReader(ns.log, ns.views).commits(call.session, limit=head.commits))
        nth = next((nth for nth, commit in enumerate(commits) if commit.last == call.position), None)
        history = Tree(map(leaf_read, commits))
        if nth is None or history.root != head.history:
            raise CorruptError(
                "the session is not what was sealed; run `vmstore verify` with the seal", code="not-as-sealed"
            )
        self.commit = commits[nth]
        self.previous = commits[nth - 1].hash if nth else genesis(uid)
        seal, sessions = self.seal, tree_of(self.seal.heads)
        commit = self.commit
        self.path = [
            [commit.last, commit.at, call.call, call.fidelity, call.leaves, commit.hash.hex(), *_way(history, nth)],
            [uid.hex(), head.position, head.commits, head.hash.hex(), *_way(sessions, seal.heads.index(head))],
            [seal.namespace.hex(), seal.ordinal, seal.at, len(seal.heads), seal.key.hex(), seal.signature.hex()],
        ]


def _covering(ns: Namespace, uid: bytes, call: CallRow, seal: Seal | None) -> tuple[Seal, SessionHead]:
    """A seal that covers a call, and what it says of the call's session."""
    kept = [seal] if seal is not None else seals_in(folder_of(ns.cache), ns.name) if ns.cache is not None else []
    for proof in kept:
        for head in proof.heads:
            if head.uid == uid and head.position >= call.position:
                return proof, head
    which = "the seal does not cover" if seal is not None else "no seal beside the store covers"
    raise UnknownError(
        f"{which} call {call.call}; run `vmstore seal`, which covers all that is there", code="not-sealed"
    )


def _uid(lane: Branch, session: int) -> bytes:
    found = lane.db.execute("SELECT uid FROM sessions WHERE session = ?", (session,)).get
    assert isinstance(found, bytes), "a session of the views has its uid"
    return found


def _way(tree: Tree, place: int) -> tuple[int, list[str]]:
    return place, [beside.hex() for beside in tree.way(place)]
