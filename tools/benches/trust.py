"""Trust: what hashes and seals cost beside an append, and what a proof takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import vmstore
from benches.parts import doors
from benches.parts.rounds import LOWER, Act, Bench, Goal, Row, row
from benches.parts.story import deeds_of
from vmstore.cells.cell import commit
from vmstore.cells.verify_proof import check
from vmstore.core.clock import SystemIds
from vmstore.core.mutation import encode
from vmstore.log.commit import NO_REQUEST, link
from vmstore.namespace.storekey import new_store_key
from vmstore.store.store import Store

SHARE = Goal("CPU of seal and chain, 20 mutations a commit, as a share of the public append", 0.15, LOWER)
CHAIN = Goal("the chain alone: commitments and links", "", LOWER)
PROOF = Goal("proof of a page in a context of 1,000, bytes", 4096, LOWER)
CHECKED = Goal("the same, checked by Python's own library, ms of CPU", 20, LOWER)
ENCRYPTED = Goal("CPU that encryption adds to that append, as a share of it", 0.30, LOWER)
SINGLE = Goal("the same, for commits of one mutation", "", LOWER)
OPENED = Goal("an encrypted store opened and asked, its views folded again: s of CPU a 100,000 mutations", "", LOWER)
GOALS = (SHARE, CHAIN, PROOF, CHECKED, ENCRYPTED, SINGLE, OPENED)

EACH = 20  # mutations a commit
COMMITS = (200, 8)
ROUNDS = (9, 2)
PAGES = 1000
MUTATIONS = (100_000, 2_000)
OTHERS = 40  # sessions beside the one a proof is of


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of trust."""
    yield from _shares(bench)
    yield from _proof(bench)
    yield _encrypted(bench, ENCRYPTED, EACH)
    yield _encrypted(bench, SINGLE, 1)
    yield _opened(bench)


def _shares(bench: Bench) -> Iterator[Row]:
    """Appends, and beside them the hashes they need and a seal of as many commits."""
    commits, rounds = bench.size(*COMMITS), bench.size(*ROUNDS)
    deeds = deeds_of(5, commits * EACH, EACH)
    sheets = [doors.prepared(each_deed) for each_deed in deeds]
    bodies = [(encode(mutations), contents) for mutations, contents in sheets]  # type: ignore[arg-type]
    names, ids = count(), SystemIds()
    key = vmstore.new_key(bench.memory / "key")
    with doors.opened(bench.memory / "trust.vms") as store, doors.opened(bench.memory / "sealed.vms") as still:

        def append() -> None:
            session = store.session(f"s{next(names)}", create=True)
            for each_deed in deeds:
                doors.write(session, each_deed)

        def chain() -> None:
            end = bytes(32)
            for position, (body, contents) in enumerate(bodies):
                sealed = b"".join(
                    [commit(salt, content) for salt, content in zip(ids.salts(len(contents)), contents, strict=True)]
                )
                end = link(end, position + 1, EACH, 0, 0, NO_REQUEST, body, sealed)

        def seal() -> None:
            vmstore.seal(still, key, bench.memory / f"seal-{next(names)}")

        session = still.session("s", create=True)
        for deed in deeds:
            doors.write(session, deed)
        times = bench.race({"vmstore": Act(append), "chain": chain, "seal": seal}, rounds + 1)
    times = {name: taken[1:] for name, taken in times.items()}
    both = zip(times["chain"], times["seal"], times["vmstore"], strict=True)
    yield row(SHARE, [(hashes + sealing) / appending for hashes, sealing, appending in both])
    yield row(CHAIN, [first / other for first, other in zip(times["chain"], times["vmstore"], strict=True)])


def _encrypted(bench: Bench, goal: Goal, each: int) -> Row:
    """The same appends to a plain and to an encrypted store, in turns."""
    commits, rounds = bench.size(*COMMITS), bench.size(*ROUNDS)
    deeds, names = deeds_of(5, commits * each, each), count()
    key = new_store_key(bench.memory / f"store-key-{each}")
    with (
        doors.opened(bench.memory / f"plain-{each}.vms") as plain,
        doors.opened(bench.memory / f"encrypted-{each}.vms", key) as encrypted,
    ):

        def append(store: Store) -> None:
            session = store.session(f"s{next(names)}", create=True)
            for deed in deeds:
                doors.write(session, deed)

        acts = {"vmstore": partial(append, plain), "encrypted": partial(append, encrypted)}
        times = bench.race(acts, rounds + 1)
    pairs = zip(times["encrypted"][1:], times["vmstore"][1:], strict=True)
    return row(goal, [secret / open - 1 for secret, open in pairs])


def _opened(bench: Bench) -> Row:
    """An encrypted store of one long session, opened and asked for its sessions."""
    mutations = bench.size(*MUTATIONS)
    key, path = new_store_key(bench.memory / "store-key"), bench.memory / "long.vms"
    with doors.opened(path, key) as store:
        session = store.session("s", create=True)
        for deed in deeds_of(5, mutations, 100):
            doors.write(session, deed)

    def ask() -> None:
        with doors.opened(path, key) as store:
            store.sessions()

    return row(OPENED, [bench.time("vmstore", ask) * 100_000 / mutations for _ in range(bench.size(5, 2))])


def _proof(bench: Bench) -> Iterator[Row]:
    """One page of a first request with many messages, in a store with other sessions."""
    key = vmstore.new_key(bench.memory / "other-key")
    with doors.opened(bench.memory / "proof.vms") as store:
        for number in range(OTHERS):
            store.record(f"s{number}", {"model": "m", "messages": [{"role": "user", "content": str(number)}]})
        messages = [{"role": "user", "content": f"message {number}"} for number in range(PAGES)]
        store.record("long", {"model": "m", "messages": messages})
        vmstore.seal(store, key)
        session = store.session("long")
        page = session.context(call=1).page_ids[PAGES // 2]
        proof = store.trust.prove(session, page, call=1)
    sizes = [float(len(proof.proof))] * 2
    times = [
        bench.time("vmstore", lambda: check(proof.proof, key.public, proof.content)) for _ in range(bench.size(51, 5))
    ]
    yield row(PROOF, sizes)
    yield row(CHECKED, [1e3 * time for time in times])
