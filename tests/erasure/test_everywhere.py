"""Every way to ask a store goes on after an erasure, and none shows what was erased."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.refusals import refused
from vmstore.erasure.erase import erase
from vmstore.errors import ErasedError
from vmstore.seals.seals import read_seal, seal
from vmstore.shell.main import main

SECRET = "the combination is 4711-violet-9"
PLANTED = [SECRET.encode(), b"violet"]


@pytest.fixture(params=["page", "session"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A store of which a page was erased, or a whole session of which another one was forked."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."), request_id="r-1")
        store.record("s", chat(SECRET, "Noted.", "Go on. " * 30), answer("Gone."))
        store.record("s", chat(SECRET, "Noted.", "Go … 30"), answer("Gone again."))
        store.session("s").annotate("p6", tags=["violet"], anchors={"violet": "violet"})
        fork = store.session("s").fork("f", call=2)
        fork.record(chat(SECRET, "Noted.", "Else."), answer("So."))
        store.record("other", chat("Stay."), answer("Well."))
        key = vmstore.new_key(tmp_path / "key")
        seal(store, key, tmp_path / "seal")
        if request.param == "page":
            erase(store, page="p6", in_session="s")
        else:
            erase(store, session="s")
    return path


def sessions(path: Path) -> list[str]:
    """Their names."""
    with vmstore.open(path, "r") as store:
        return [info.session for info in store.sessions()]


QUESTIONS = [
    ["info"], ["sessions"], ["turns", "S"], ["calls", "S"], ["context", "S", "--call", "1"],
    ["context", "S", "--call", "1", "--messages"], ["context", "S", "--call", "1", "--render"],
    ["context", "S", "--call", "1", "--json", "--messages"], ["diff", "S", "--calls", "1", "2"], ["pages", "S"],
    ["history", "S", "p6"], ["versions", "S", "p6", "--delta"], ["sources", "S", "p6"], ["derived", "S", "p6"],
    ["faults", "S"], ["affinity", "S", "p6"], ["tail"], ["du"], ["verify"], ["rebuild"], ["compact"], ["sweep"],
    ["export", "--format", "sqlite", "--out", "OUT"], ["export", "--format", "parquet", "--out", "OUT"],
    ["export", "--exact", "--out", "OUT"], ["debug", "S", "--export", "PAGE"], ["verify", "--seal", "SEAL"],
    ["backup", "OUT"],
]  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_every_command_goes_on(
    path: Path, question: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command answers of every session, without a word of what was erased, in its output and its files."""
    out = tmp_path / "out"
    out.mkdir()
    for nth, name in enumerate(sessions(path)):
        words = {
            "S": name,
            "OUT": str(out / str(nth)),
            "PAGE": f"{out / str(nth)}.html",
            "SEAL": str(tmp_path / "seal"),
        }
        if name == "other" and {"p6", "2"} & set(question):
            continue
        code = main([question[0], str(path), *(words.get(word, word) for word in question[1:])])
        output = capsys.readouterr()
        assert code == 0, output.err
        assert "violet" not in output.out + output.err
    assert found_in(out, PLANTED) == {}


STATEMENTS = [
    "PAGES ACROSS SESSIONS", "PAGES page, text, hint, tags ACROSS SESSIONS", "MUTATIONS ACROSS SESSIONS",
    "MUTATIONS position, kind, detail, request_id IN SESSION S", "CALLS IN SESSION S", "TURNS IN SESSION S",
    "CALLS WHERE CONTEXT MATCHES 'violet' IN SESSION S", "CONTEXT AT CALL 1 IN SESSION S",
    "CONTEXT AT CALL 1 RENDER IN SESSION S", "CONTEXT AT CALL 1 MESSAGES IN SESSION S",
    "HISTORY OF p6 IN SESSION S", "SEARCH 'violet' IN SESSION S", "WHY p6 IN CONTEXT AT CALL 1 IN SESSION S",
    "DIFF CONTEXT CALL 1 TO CALL 2 IN SESSION S", "RESIDENCIES OF p6 IN SESSION S", "VERIFY SESSION S", "SESSIONS",
]  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_goes_on(path: Path, statement: str) -> None:
    """Each kind of statement answers, of the fork too, and what it says of the page is where it was erased."""
    with vmstore.open(path) as store:
        for name in sessions(path):
            if name != "other":
                rows = [tuple(row) for row in store.query(statement.replace("SESSION S", f"SESSION '{name}'"))]
                assert "violet" not in str(rows)


def test_bundles_carry_what_is_left(path: Path, tmp_path: Path) -> None:
    """Taken in exactly, a bundle brings erasures with the same hashes; masked or as a new session, it answers alike."""
    with vmstore.open(path) as store:
        store.export(tmp_path / "masked.jsonl")
        store.export(tmp_path / "bundle.jsonl", exact=True)
        assert found_in(tmp_path, PLANTED) == {}
        names = [info.session for info in store.sessions()]
        hashes = {commit.hash for commit in store.admin.log.tail(0, 9_999)}
    for nth, (bundle, exact) in enumerate([("bundle", True), ("bundle", False), ("masked", True), ("masked", False)]):
        with vmstore.open(tmp_path / f"{nth}.vms") as new:
            new.import_file(tmp_path / f"{bundle}.jsonl", exact=exact)
            assert new.verify().ok and [info.session for info in new.sessions()] == names
            assert bool({commit.hash for commit in new.admin.log.tail(0, 9_999)} & hashes) is (nth == 0)
            for name in names:
                if name != "other":
                    with refused("erased", ErasedError):
                        new.session(name).content("p6")


def test_seals_and_proofs_stay_true(path: Path, tmp_path: Path) -> None:
    """What was sealed before holds, and the erased page is proven to have been there, by its commitment alone."""
    with vmstore.open(path) as store:
        actual_seal = read_seal(tmp_path / "seal")
        assert store.verify(seals=[actual_seal]).ok
        proof = store.trust.prove(sessions(path)[0], "p6", call=1, seal=actual_seal)
        assert proof.content is None
