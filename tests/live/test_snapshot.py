"""Snapshots change how long a first act takes, and nothing else."""

from __future__ import annotations

import ast
import inspect
import shutil
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.erasure.erase import erase
from vmstore.live import runtime
from vmstore.live.runtime import Runtime
from vmstore.live.snapshots import codec, snapshot
from vmstore.live.snapshots.snapshot import FoldedSession, Snapshot, pictured, unfold
from vmstore.namespace.folder import SNAPSHOTS
from vmstore.namespace.storekey import new_store_key
from vmstore.store.encrypt import encrypt
from vmstore.testing.simulate_live import START, STEPS, Step, digest, played
from vmstore.views.dispatch import hash_at
from vmstore.vm.policies.registry import SHIPPED, full_name

NAME = "Zanzibar"


def folded(each_runtime: Runtime) -> FoldedSession:
    """What a session is folded into now."""
    each_runtime.current()
    return FoldedSession(each_runtime.state, each_runtime.spoken, each_runtime.metrics, each_runtime.index)


def files(path: Path) -> list[Path]:
    """The snapshots of a store's first namespace."""
    return sorted((path / "default" / SNAPSHOTS).glob("*"))


def lived(path: Path, policy: str = "default", **fields: Any) -> None:
    """A session of some turns that decides, calls tools, forgets and remembers, in one process."""
    with vmstore.open(path, **fields) as store:
        session: Any = store.live_session("s", l0_tokens_max=4_000, policy=policy, system="You are brief.")
        for turn in range(5):
            session.user(f"Let's use {NAME}{turn} for the night train {turn}. " + "It is late and long. " * 60)
            session.pack()
            call = {"id": f"c{turn}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            session.assistant({"role": "assistant", "content": None, "tool_calls": [call]})
            session.tool(f"c{turn}", f"The night train {turn} has sixty coaches. " * 30)
            session.assistant(f"Noted, {turn}.")
        session.page_fault(session.pages(role="tool")[0].page)


def acts(path: Path, **fields: Any) -> list[bytes]:
    """Further acts in a new process, and the bodies of the commits they make."""
    with vmstore.open(path, clock=ManualClock(START), ids=SeededIds(9), **fields) as store:
        before = store.admin.log.ordinal
        session: Any = store.session("s")
        session.user("What did we decide for the night train 2?", at_us=1)
        session.pack(at_us=2)
        session.assistant("Zanzibar2.", at_us=3)
        assert session.stats() == store.session("s").stats()
        return [commit.body for commit in store.admin.log.tail(before, 1000)]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every process leave a snapshot, however little was done."""
    monkeypatch.setattr(runtime, "EVERY", 1)


@pytest.mark.parametrize("policy", [full_name(policy) for policy in SHIPPED])
def test_a_session_goes_on_from_its_snapshot_as_from_its_log(policy: str, tmp_path: Path, eager: None) -> None:
    """Under every policy a new process writes the same with a snapshot and without, and counts the same."""
    lived(tmp_path / "a", policy)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert files(tmp_path / "a")
    shutil.rmtree(tmp_path / "b" / "default" / SNAPSHOTS)
    assert acts(tmp_path / "a") == acts(tmp_path / "b")


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_a_snapshot_is_what_the_log_folds_into(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    """Whatever happened, with restarts and forks, what was kept is to the byte what a fold of the whole log gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "EVERY", 1)
        life = played(steps, tmp_path_factory.mktemp("a") / "s")
        kept = folded(life.runtime)
        again = Runtime(life.runtime._engine, life.runtime._lane)
        again.current()
        assert kept.metrics.measures(kept.state) == again.metrics.measures(again.state)
        same = {"words": again.index, "metrics": again.metrics}  # these count acts that wrote nothing too
        assert pictured(kept._replace(**same)) == pictured(folded(again))
        content = pictured(kept)
        fresh = Runtime(life.runtime._engine, life.runtime._lane)
        into = FoldedSession(fresh.state, fresh.spoken, fresh.metrics, fresh.index)
        unfold(content, into)
        assert pictured(into) == content
        with_snapshots = digest(life.store.admin.log)
        life.close()
    life = played(steps, tmp_path_factory.mktemp("b") / "s")
    assert digest(life.store.admin.log) == with_snapshots
    life.close()


@pytest.mark.parametrize("part", ["state", "spoken", "metrics"])
def test_a_snapshot_of_something_else_is_named(part: str, tmp_path: Path, eager: None) -> None:
    """`verify` holds each snapshot against a fold of the log: one that is sound in itself and wrong is named."""
    lived(tmp_path / "a")
    with vmstore.open(tmp_path / "a") as store:
        assert store.verify().ok and files(tmp_path / "a")
        session: Any = store.session("s")
        kept = folded(session.runtime())
        if part == "state":
            kept.state.faults += 1
        elif part == "spoken":
            kept.spoken.claims.clear()
        else:
            kept.metrics.model_faults += 1
        runtime, (file,) = session.runtime(), files(tmp_path / "a")
        at = runtime.state.position, hash_at(store.admin.log, session._lane(), runtime.state.position)
        Snapshot(file.parent, session._key).write(*at, store._ns.projection.last_erasure, kept)
        (problem,) = store.verify().problems
        assert (problem.kind, problem.where) == ("view", "session s") and str(file) in problem.what
        file.unlink()
        assert store.verify().ok


def overwritten(file: Path) -> None:
    """Other bytes in the middle."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def cut(file: Path) -> None:
    """Half of it."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def linked(file: Path) -> None:
    """A link to it, which a store's file never is."""
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


@pytest.mark.parametrize("harm", [overwritten, cut, linked])
def test_a_snapshot_that_is_damaged_is_not_used(harm: Callable[[Path], None], tmp_path: Path, eager: None) -> None:
    """What was damaged is left, and the session goes on from its log."""
    lived(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    harm(files(tmp_path / "b")[0])
    assert acts(tmp_path / "b") == acts(tmp_path / "a")


def test_a_snapshot_of_another_log_is_not_used(tmp_path: Path, eager: None) -> None:
    """One that lies beside a log in which another commit stands at its position is left."""
    lived(tmp_path / "a")
    lived(tmp_path / "b", "lru")
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    shutil.copy(files(tmp_path / "b")[0], files(tmp_path / "a")[0])
    assert acts(tmp_path / "a") == acts(tmp_path / "c")


def test_a_snapshot_of_other_code_is_not_used(tmp_path: Path, eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier code folded is folded again."""
    lived(tmp_path / "a")
    each_snapshot = snapshot.Snapshot(tmp_path / "a" / "default" / SNAPSHOTS, int(files(tmp_path / "a")[0].stem))
    assert each_snapshot.read(0) is not None
    monkeypatch.setattr(snapshot, "_version", lambda: "other code")
    assert each_snapshot.read(0) is None


def test_an_erasure_leaves_no_snapshot(tmp_path: Path, eager: None) -> None:
    """After an erasure no file of the store holds a word of what was erased, and the session goes on."""
    lived(tmp_path / "a")
    assert any(NAME.encode() in file.read_bytes() for file in files(tmp_path / "a"))
    with vmstore.open(tmp_path / "a") as store:
        erase(store, session="s")
    assert not any(NAME.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_an_encrypted_store_keeps_none(tmp_path: Path, eager: None) -> None:
    """Where contents may lie under a key alone, nothing made from them lies beside it."""
    key = new_store_key(tmp_path / "key")
    lived(tmp_path / "a", key=key)
    lived(tmp_path / "b")
    assert files(tmp_path / "b") and not files(tmp_path / "a")
    encrypt(tmp_path / "b", key)
    assert not any(NAME.encode() in file.read_bytes() for file in (tmp_path / "b").rglob("*") if file.is_file())


def test_what_is_of_no_known_class_is_not_kept() -> None:
    """An object of another class cannot be written, and none can be made of bytes that name one."""
    with pytest.raises(TypeError):
        codec.image({"a": Path()})
    for case in (
        ["object", "os.path", {}],
        ["word", "vmstore.vm.kernel.state.State", 1],
        ["named", "os", []],
        ["other"],
    ):
        with pytest.raises((ValueError, KeyError)):
            codec.restored(case)


def held_by(kind: type) -> Iterator[tuple[str, type]]:
    """The attributes that a class gives itself, each with the classes of ours that its annotation or value names."""
    module = inspect.getmodule(kind)
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kind)))):
        target = node.target if isinstance(node, ast.AnnAssign) else None
        named: ast.AST | None = node.annotation if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            (target, *_), named = node.targets, node.value.func
        field = isinstance(target, ast.Name) and target.id in getattr(kind, "_fields", ())
        if named is None or not (field or isinstance(target, ast.Attribute)):
            continue
        attribute = target.attr if isinstance(target, ast.Attribute) else ""
        for name in (node.id for node in ast.walk(named) if isinstance(node, ast.Name)):
            value = getattr(module, name, None)
            if isinstance(value, type) and value.__module__.startswith("vmstore."):
                yield attribute, value


def test_all_that_a_session_holds_can_be_kept() -> None:
    """No class that state, words or numbers hold is missing from those that snapshots write: it would end them all."""
    kept = {*codec.STRUCTS, *codec.TUPLES, *codec.WORDS, *codec.OBJECTS}
    pairs = [
        (kind, attribute, value)
        for kind in (*codec.OBJECTS, *codec.TUPLES)
        for attribute, value in held_by(kind)
        if attribute not in codec.LEFT_OUT.get(kind, ())
    ]
    missing = {
        f"{kind.__name__}.{attribute} holds {value.__name__}"
        for kind, attribute, value in pairs
        if value not in kept and not getattr(value, "_is_protocol", False)
    }
    assert pairs and not missing
