"""The namespace's own session: opened when first needed, hidden, apart from all others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.inner import inner_batch
from tests.refusals import refused
from vmstore.core.grants import GrantScope, Verb
from vmstore.core.mutation import Revoke, Share, Turn
from vmstore.engine.batch import Batch
from vmstore.engine.head import NewSession
from vmstore.errors import ConflictError, InputError, VmstoreError
from vmstore.namespace import system_session


def shared(name: str, verbs: int = Verb.READ) -> Callable[[Batch], None]:
    """What writes a share with a user."""

    def write(batch: Batch) -> None:
        batch.add(Share(GrantScope.USER, batch.cell(name.encode()), verbs))

    return write


def charter_entries(store: vmstore.Store) -> list[tuple[str, str | None]]:
    """The kinds in the charter and whom they name."""
    return [
        (entry.mutation.kind, entry.text(entry.mutation.principal) if isinstance(entry.mutation, Share) else None)
        for entry in system_session.entries(store._ns)
    ]


def test_it_is_opened_when_first_needed(store_path: Path) -> None:
    """There is none before something is logged, asking makes none, and all that is logged is folded in order."""
    with vmstore.open(store_path) as store:
        store.record("s", chat("hello"), None)
        assert charter_entries(store) == [] and len(store.sessions(hidden=True)) == 1
        assert system_session.append(store._ns, shared("ann")) == 2
        system_session.append(store._ns, shared("bob"))
        system_session.append(store._ns, lambda batch: batch.add(Revoke(2, Verb.READ)))
        system_session.append(store._ns, shared("ann"))
        assert charter_entries(store) == [("share", "ann"), ("share", "bob"), ("revoke", None), ("share", "ann")]
        last = list(system_session.entries(store._ns))[-1]
        assert [entry.position for entry in system_session.entries(store._ns, last.ordinal - 1)] == [5]
        assert store.verify().ok
    with vmstore.open(store_path, "r") as store:
        assert len(charter_entries(store)) == 4


def test_it_is_hidden_and_can_be_named(store_path: Path) -> None:
    """No list of sessions holds it unless hidden ones are asked for, and who names it can read it."""
    with vmstore.open(store_path) as store:
        system_session.append(store._ns, shared("ann"))
        store.record("s", chat("hello"), None)
        assert [session.session for session in store.sessions()] == ["s"]
        assert [session.session for session in store.sessions(hidden=True)] == ["s", "vmstore"]
        assert list(store.query("SESSIONS session")) == [("s",)]
        assert store.session("vmstore").info().mutations == 2
        kinds = list(store.query("MUTATIONS kind IN SESSION vmstore"))
        assert kinds == [("open",), ("share",)]
        with pytest.raises(vmstore.UnknownError) as caught:
            store.session("vmstor")
        assert "vmstore" not in str(caught.value)


def test_nothing_else_is_done_with_it(store_path: Path) -> None:
    """Whatever would write to it, take its past over or take it elsewhere is refused, and nothing is written."""
    with vmstore.open(store_path) as store:
        system_session.append(store._ns, shared("ann"))
        before = store.admin.log.ordinal
        session = store.session("vmstore")
        attempts: list[Callable[[], object]] = [
            lambda: store.record("vmstore", chat("hello"), answer("hi")),
            lambda: session.fork("x"),
            lambda: store.live_session("vmstore", l0_tokens_max=1000),
            lambda: store.export(store_path.parent / "out", ["vmstore"]),
            lambda: system_session.append(store._ns, lambda batch: batch.add(Turn(1))),
        ]
        for attempt in attempts:
            with pytest.raises(VmstoreError):
                attempt()
        assert store.admin.log.ordinal == before and store.verify().ok


def test_its_kinds_stand_nowhere_else(store_path: Path) -> None:
    """A share in a session of a user's is refused by the rule's name."""
    with vmstore.open(store_path) as store:
        session = store.session("s", create=True)
        with refused("charter_stands_apart"), inner_batch(session) as batch:
            batch.add(Share(GrantScope.GLOBAL, None, Verb.READ))
        with refused("commands_write_it"), session.batch() as batch:
            batch.add(Share(GrantScope.GLOBAL, None, Verb.READ))


def test_its_name_is_kept(store_path: Path) -> None:
    """No session is given its name, whichever way it comes; an import of that name gets another."""
    source = store_path.parent / "vmstore.jsonl"
    source.write_text('{"role":"user","content":"hello"}\n')
    with vmstore.open(store_path) as store:
        for attempt in (
            lambda: store.record("vmstore", chat("hello"), None),
            lambda: store.session("vmstore", create=True),
            lambda: store.live_session("vmstore", l0_tokens_max=1000),
        ):
            with refused("name_is_free"):
                attempt()
        assert [session.session for session in store.import_file(source).sessions] == ["vmstore-2"]


def test_a_session_that_had_its_name_keeps_it(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a session was called so before, it goes on as it was, and the charter takes the next name."""
    with monkeypatch.context() as before:
        before.setattr("vmstore.engine.system_session.CHARTER_NAME", "")  # as a version without charters did
        with vmstore.open(store_path) as store:
            store.record("vmstore", chat("hello"), None)
    with vmstore.open(store_path) as store:
        system_session.append(store._ns, shared("ann"))
        store.record("vmstore", chat("hello"), answer("hi"))
        assert [(session.session, session.calls) for session in store.sessions()] == [("vmstore", 2)]
        assert store.session("vmstore-2").info().mutations == 2
        assert charter_entries(store) == [("share", "ann")] and store.verify().ok


def test_two_handles_open_one(store_path: Path) -> None:
    """Of two that need it at the same time one opens it, and the other goes on in it."""
    with vmstore.open(store_path) as file, vmstore.open(store_path) as other:
        late = file._ns.engine.begin(NewSession("vmstore", hidden=2), 0)
        system_session.append(other._ns, shared("ann"))
        with pytest.raises(ConflictError):
            late.commit(0)
        system_session.append(file._ns, shared("bob"))
        assert charter_entries(file) == charter_entries(other) == [("share", "ann"), ("share", "bob")]
        assert len(file.sessions(hidden=True)) == 1


def test_no_bundle_brings_one(store_path: Path) -> None:
    """The grants of another namespace are not taken in, however they were written down."""
    from vmstore.transfer.bundle import lines_of
    from vmstore.views.selection import select, whole

    bundle = store_path.parent / "grants.jsonl"
    with vmstore.open(store_path) as store:
        system_session.append(store._ns, shared("ann"))
        key = system_session.key_of(store._ns)
        assert key is not None
        bundle.write_bytes(
            b"".join(lines_of(store._ns.projection, select(store.admin.views, [whole(store.admin.views, key)])))
        )
    with vmstore.open(store_path.parent / "other.vms") as other:
        for exact in (True, False):
            with refused("foreign-grants", InputError):
                other.import_file(bundle, exact=exact)
        assert other.sessions(hidden=True) == []
