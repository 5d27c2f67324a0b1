"""Vectors in a store: embedded, replayed, forked, erased, exported, and whatever the embedder does wrong."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Create, Embed, Update
from vmstore.core.page import Modality, PageType, Role
from vmstore.embedders.embedder import FunctionEmbedder
from vmstore.embedders.hash_grams import HashGrams
from vmstore.engine.rules.rules import RULES
from vmstore.errors import InputError, ReadOnlyError, UnknownError

SAID = ["the cat sat on the mat", "we deploy on Friday", "postgres holds the orders", "we deploy on Friday"]
SECRET = "AKIAQ3EGRWVZ5XKJ" + "2M4T"
VECTORS = "VECTORS page, model, chunk, dimension, content, position"


class Recorder:
    """An embedder of hashed grams that keeps what it was asked."""

    def __init__(self, wrong: Callable[[Sequence[str], list[list[float]]], Any] | None = None) -> None:
        self.inner, self.wrong = HashGrams(8), wrong
        self.name, self.dimension = "recorder", 8
        self.asked: list[str] = []
        self.calls = 0

    def embed(self, texts: list[str]) -> Any:
        """Vectors, unless something is to be wrong."""
        self.calls += 1
        self.asked += texts
        actual = self.inner.embed(texts)
        return actual if self.wrong is None else self.wrong(texts, actual)


def page(store: vmstore.Store, session: str, text: str | bytes, modality: Modality = Modality.TEXT) -> str:
    """A page of a session with a text."""
    content = text.encode() if isinstance(text, str) else text
    with store.session(session, create=True).batch() as batch:
        number = batch.add(
            Create(PageType.CLAIM, modality, Role.USER, 0, 0, batch.cell(content), len(content), len(content) // 4)
        )
    return f"p{number}"


def filled(embedder: object = None, path: Path | None = None) -> vmstore.Store:
    """A store whose session `s` says a few things."""
    fixed: dict[str, Any] = {"clock": ManualClock(1_000_000, 7), "ids": SeededIds(3), "embedder": embedder}
    store = vmstore.memory_store(**fixed) if path is None else vmstore.open(path, **fixed)
    for text in SAID:
        page(store, "s", text)
    return store


def rows(store: vmstore.Store, text: str = VECTORS, session: str = "s") -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    return list(store.query(text, session=session))


def test_every_text_is_embedded_once() -> None:
    """Each text gets its vector, what several pages share is asked about once, and a second run asks nothing."""
    embedder = Recorder()
    store = filled(embedder)
    other_rows: list[tuple[int, int]] = []
    report = store.index.embed(batch=2, progress=lambda done, total: other_rows.append((done, total)))
    assert (report.contents, report.vectors, report.copied, report.left, report.stopped) == (4, 4, 1, 0, None)
    assert embedder.asked == SAID[:3] and other_rows[-1] == (4, 4)
    assert [row[:4] for row in sorted(rows(store))] == [(f"p{at}", "recorder", 1, 8) for at in (2, 3, 4, 5)]
    assert store.index.embed().contents == 0 and embedder.calls == 2
    page(store, "s", "something new")
    assert store.index.embed().contents == 1 and embedder.asked[3:] == ["something new"]
    assert store.verify().ok


def test_a_long_text_is_embedded_in_chunks() -> None:
    """A long text has a vector for each of its chunks, which say where they stand in it."""
    store = vmstore.memory_store(embedder=Recorder())
    text = " ".join(f"word{at}" for at in range(400))
    page(store, "s", text)
    store.index.embed()
    asked = [text[begins:ends] for begins, ends in rows(store, "VECTORS begins, ends")]
    assert len(asked) > 3 and asked == store.embedder.asked  # type: ignore[union-attr]
    assert "".join(asked).startswith("word0 word1") and asked[-1].endswith("word399")


def test_a_rebuild_asks_nobody() -> None:
    """Views are folded again and the log is verified without an embedder, and vectors are as they were."""
    store = filled(Recorder())
    store.index.embed()
    before = rows(store)
    store.embedder = None
    store.admin.rebuild()
    assert rows(store) == before and store.verify().ok
    with refused("no-embedder", InputError):
        store.index.embed()


def test_a_past_moment_has_the_vectors_it_had() -> None:
    """VECTORS as of a position has what was embedded by then, of a fork what its past had and what is its own."""
    store = filled(Recorder())
    store.index.embed(limit=2)
    end = store.session("s").info().position
    store.index.embed()
    assert len(rows(store, f"VECTORS AS OF POSITION {end}")) == 2 and len(rows(store)) == 4
    fork = store.session("s").fork("f", position=end)
    assert len(rows(store, "VECTORS", "f")) == 2
    page(store, fork.name, "said in the fork")
    assert store.index.embed("f").contents == 1
    asked = store.embedder.asked.copy()  # type: ignore[union-attr]
    report = store.index.embed("f", inherited=True)
    assert (report.contents, report.copied) == (2, 2)
    assert store.embedder.asked == asked, "its parent's were copied"  # type: ignore[union-attr]
    assert len(rows(store, "VECTORS", "f")) == 5 and len(rows(store)) == 4
    assert store.verify().ok


def test_an_update_is_embedded_anew() -> None:
    """A page that changes has a vector of its new text, and keeps the one of what it said before."""
    store = filled(Recorder())
    store.index.embed()
    with store.session("s").batch() as batch:
        batch.add(Update(2, 2, batch.cell(b"the dog"), 7, 2))
    assert store.index.embed().contents == 1
    assert [row[0] for row in rows(store)].count("p2") == 2
    assert [(share.embedded, share.texts) for share in vmstore.embedded(store)] == [(4, 4)]


def test_secrets_go_to_no_embedder() -> None:
    """A secret that stands in a text is masked before the text is asked about, in the chunk where it stands."""
    embedder = Recorder()
    store = vmstore.memory_store(embedder=embedder)
    page(store, "s", f"the key is {SECRET} keep it")
    page(store, "s", "x " * 395 + SECRET + " y" * 300)
    store.index.embed()
    assert not any(SECRET[:6] in text or SECRET[-6:] in text for text in embedder.asked)
    assert "the key is [secret] keep it" in embedder.asked


def test_what_is_no_text_is_not_embedded() -> None:
    """Pictures, bytes, blanks and what the source never had are not asked about."""
    embedder = Recorder()
    store = vmstore.memory_store(embedder=embedder)
    page(store, "s", b"\x89PNG\r\n\0\0", Modality.IMAGE)
    page(store, "s", b"said in a picture", Modality.IMAGE)
    page(store, "s", " \n ")
    with store.session("s").batch() as batch:
        batch.add(Create(PageType.CLAIM, Modality.TEXT, Role.USER, 0, 0, None, 0, 9))
    report = store.index.embed()
    assert (report.contents, report.empty, embedder.asked) == (0, 1, [])
    with refused("embeds_a_content"), store.session("s").batch() as batch:
        batch.add(Embed(5, 5, batch.cell(b"m"), 1, 2, ((0, 1),), batch.cell(b"\0\0\0\0\0")))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda texts, row: row[1:],
        lambda texts, value: [[math.nan] * 8 for _ in texts],
        lambda texts, value: [[0.5] * 9 for _ in texts],
        lambda texts, value: 1 / 0,
    ],
)
def test_a_wrong_answer_writes_nothing(wrong: Callable[[Sequence[str], list[list[float]]], Any]) -> None:
    """An embedder that fails or answers with what are no vectors stops the run, and nothing is written."""
    store = filled(Recorder(wrong))
    before = store.session("s").info().position
    report = store.index.embed()
    assert report.stopped and "recorder" in report.stopped
    assert (report.contents, report.left) == (0, 4)
    assert store.session("s").info().position == before and not rows(store)


def test_one_bad_text_holds_up_no_other() -> None:
    """Where an embedder refuses one text of many the others get their vectors, and the report says what it said."""

    def refuses(texts: Sequence[str], numbers: list[list[float]]) -> Any:
        if any("postgres" in text for text in texts):
            raise ValueError("too many tokens")
        return numbers

    store = filled(Recorder(refuses))
    page(store, "s", " \n ")
    rows: list[tuple[int, int]] = []
    report = store.index.embed(progress=lambda done, total: rows.append((done, total)))
    assert rows == sorted(set(rows)) and rows[-1] == (5, 5), "what was refused and what is empty is done with too"
    assert (report.contents, report.left, report.stopped) == (3, 0, None)
    assert [(times, "too many tokens" in why) for why, times in report.failed.items()] == [(1, True)]
    assert "too many tokens" in (store.index.embed().stopped or ""), "and is asked about again"


def test_a_model_keeps_its_dimension() -> None:
    """A model that changes its dimension is refused before it is asked, or as it answers, and writes nothing."""
    store = filled(HashGrams(8))
    store.index.embed()
    page(store, "s", "more")
    store.embedder = FunctionEmbedder("hash-4grams@1/8", HashGrams(9).embed, 9)
    with refused("other-dimension", InputError):
        store.index.embed()
    store.embedder = FunctionEmbedder("hash-4grams@1/8", HashGrams(9).embed)
    assert "8 and 9 numbers" in (store.index.embed().stopped or "")
    assert len(rows(store)) == 4


def test_who_hangs_ends_the_run() -> None:
    """An embedder that hangs is asked once, ends the run after its time, and what came before stays."""
    gate = threading.Event()

    def hangs(texts: Sequence[str], numbers: list[list[float]]) -> Any:
        return numbers if "the cat" in texts[0] else gate.wait(60)

    embedder = Recorder(hangs)
    store = filled(embedder)
    report = store.index.embed(batch=1, timeout_s=0.1)
    gate.set()
    assert report.contents == 1 and "hung" in (report.stopped or "") and embedder.calls == 2
    embedder.wrong = None
    assert store.index.embed().left == 0 and len(rows(store)) == 4


def test_erasing_a_page_destroys_its_vectors(store_path: Path) -> None:
    """After an erasure no cell, view or answer holds a vector of what was erased, of a fork's neither."""
    store = filled(HashGrams(16), store_path)
    store.session("s").fork("f", position=store.session("s").info().position)
    store.index.embed()
    store.index.embed("f", inherited=True)
    packed = [cell.content for _, cell in _vectors_of(store, "p2")]
    assert len(packed) == 2 and len(set(packed)) == 1
    store.trust.erase(page="s/p2")
    assert _vectors_of(store, "p2") == [] and [row[0] for row in rows(store)] == ["p3", "p4", "p5"]
    assert all("p2" not in row for row in rows(store, "VECTORS page", "f"))
    assert store.index.embed().contents == 0, "nor is it embedded again"
    assert store.verify().ok
    store.close()
    for file in store_path.rglob("*"):
        assert not file.is_file() or packed[0] not in file.read_bytes(), file
    with vmstore.open(store_path) as again:
        assert [row[0] for row in rows(again)] == ["p3", "p4", "p5"]


def _vectors_of(store: vmstore.Store, name: str) -> list[tuple[int, Any]]:
    """The cells of the vectors of a page, in every session."""
    with store._ns.asking():
        cells = [
            cell for (cell,) in store.admin.views.execute("SELECT cell FROM vectors WHERE page = ?", (int(name[1:]),))
        ]
    return sorted(store.admin.log.cells(cells).items())


def test_what_is_erased_while_it_is_embedded_gets_no_vector() -> None:
    """A text that is erased while the embedder is at it gets no vector."""
    store = filled()

    def erases(texts: Sequence[str], numbers: list[list[float]]) -> Any:
        store.trust.erase(page="s/p2")
        return numbers

    store.embedder = Recorder(erases)
    report = store.index.embed()
    assert (report.contents, report.empty, report.stopped) == (3, 1, None)
    assert [row[0] for row in rows(store)] == ["p3", "p4", "p5"]


def test_a_redacted_export_has_no_vectors(tmp_path: Path) -> None:
    """A bundle that masks leaves vectors out and keeps positions, an exact one has them, tables have none."""
    store = filled(HashGrams(16))
    store.index.embed()
    packed = _vectors_of(store, "p2")[0][1].content
    store.export(tmp_path / "masked.jsonl")
    store.export(tmp_path / "exact.jsonl", exact=True)
    store.export(tmp_path / "rows.sqlite", format="sqlite")
    assert packed not in (tmp_path / "rows.sqlite").read_bytes()
    for name, count in (("masked", 0), ("exact", 4)):
        other = vmstore.memory_store()
        other.import_file(tmp_path / f"{name}.jsonl", exact=name == "exact")
        assert len(rows(other)) == count and other.verify().ok
        assert other.session("s").info().position == store.session("s").info().position
    other.embedder = HashGrams(16)
    assert other.index.embed().contents == 0


def test_an_encrypted_store_keeps_vectors_under_its_keys(tmp_path: Path) -> None:
    """In an encrypted store no file holds the bytes of a vector, and who has the key finds all of them."""
    key = tmp_path / "key"
    vmstore.new_store_key(key)
    path = tmp_path / "locked.vms"
    with vmstore.open(path, key=key, embedder=HashGrams(16)) as store:
        page(store, "s", SAID[0])
        store.index.embed()
        packed = _vectors_of(store, "p2")[0][1].content
    for file in path.rglob("*"):
        assert not file.is_file() or packed not in file.read_bytes()
    with vmstore.open(path, "r", key=key) as store:
        assert _vectors_of(store, "p2")[0][1].content == packed


def test_a_live_session_is_embedded_beside_its_writer() -> None:
    """A worker embeds what a live session says while it goes on, and its decisions are decided again as they were."""
    store = vmstore.memory_store(embedder=Recorder())
    live = store.live_session("live", l0_tokens_max=4_000)
    with vmstore.EmbeddingWorker(store, interval_s=60) as worker:
        for turn in range(4):
            live.user(f"question {turn} about the harbour and its ships")
            live.pack()
            live.assistant(f"answer {turn}: there are {turn} ships")
            assert worker.wake(20)
    assert worker.error is None
    assert len(rows(store, "VECTORS", "live")) >= 8
    assert live.debug.check().difference is None
    assert store.verify().ok


def test_a_what_if_keeps_what_was_embedded() -> None:
    """A session that was embedded is decided again under another budget, and what is kept of that has its vectors."""
    store = vmstore.memory_store(embedder=Recorder())
    live = store.live_session("live", l0_tokens_max=4_000)
    for turn in range(3):
        live.user(f"question {turn} about the harbour and its ships")
        live.pack()
        live.assistant(f"answer {turn}: there are {turn} ships")
        store.index.embed()
    live.debug.replay(policy="lru", keep="other")
    assert len(rows(store, "VECTORS", "other")) == len(rows(store, "VECTORS", "live"))
    assert store.index.embed("other", inherited=True).contents == 0
    assert store.verify().ok


def test_a_worker_goes_on_after_a_failure() -> None:
    """A worker whose embedder fails says so and tries again; stopped, it asks no more."""
    embedder = Recorder(lambda texts, value: 1 / 0)
    store = filled(embedder)
    with vmstore.EmbeddingWorker(store, interval_s=0.01) as worker:
        assert worker.wake(20) and "ZeroDivisionError" in (worker.error or "")
        embedder.wrong = None
        assert worker.wake(20) and worker.error is None
    calls = embedder.calls
    page(store, "s", "later")
    assert not worker.wake(0.05) or embedder.calls == calls
    with refused("not-a-limit", InputError):
        vmstore.EmbeddingWorker(store, interval_s=0)


def test_a_worker_says_how_far_it_is() -> None:
    """A worker tells each batch of how many, in `done` and to its callback, and goes on where that fails."""
    rows: list[tuple[int, int]] = []

    def watch(done: int, total: int) -> None:
        rows.append((done, total))
        raise RuntimeError("the window was closed")

    store = filled(Recorder())
    for at in range(100):
        page(store, "s", f"text {at}")
    with vmstore.EmbeddingWorker(store, interval_s=60, progress=watch) as worker:
        assert worker.wake(20) and worker.done == rows[-1] == (104, 104)
        assert len(rows) > 1 and rows == sorted(rows) and worker.error is None


def test_a_stopped_worker_leaves_the_rest() -> None:
    """A worker that is stopped in a long run ends after the batch under way, and the search says what is there."""
    asked, go_on = threading.Event(), threading.Event()

    def waits(texts: Sequence[str], numbers: list[list[float]]) -> Any:
        asked.set()
        assert go_on.wait(20)
        return numbers

    embedder = Recorder(waits)
    store = filled(embedder)
    for at in range(200):
        page(store, "s", f"text {at}")
    worker = vmstore.EmbeddingWorker(store, interval_s=60)
    assert asked.wait(20)
    worker.stop(timeout_s=0)
    go_on.set()
    worker.stop(timeout_s=20)
    done, total = worker.done
    assert embedder.calls == 1 and 0 < done < total == 204
    assert any(f"{done} of {total}" in note for note in store.session("s").search("text 7").notes)
    assert store.index.embed().left == 0 and store.verify().ok


def test_wrong_arguments_are_named(store_path: Path) -> None:
    """An unknown session, quantisation or batch is named, and a handle for reading embeds nothing."""
    filled(path=store_path).close()
    with vmstore.open(store_path, embedder=HashGrams()) as store:
        with refused("no-session", UnknownError, "'nope'"):
            store.index.embed("nope")
        with refused("no-quantisation", InputError):
            store.index.embed(quantisation="int4")
        with refused("not-a-limit", InputError):
            store.index.embed(batch=0)
    with vmstore.open(store_path, "r", embedder=HashGrams()) as store, pytest.raises(ReadOnlyError):
        store.index.embed()


def test_vectors_are_kept_as_asked() -> None:
    """Vectors of float16 take two bytes a number, those of int8 one and a scale, and both verify."""
    for form, size in (("float16", 16), ("int8", 12)):
        store = filled(Recorder())
        store.index.embed(quantisation=form)
        assert len(_vectors_of(store, "p2")[0][1].content) == size
        assert rows(store, "VECTORS quantisation LIMIT 1") == [(form,)] and store.verify().ok


def test_vectors_by_hand_are_looked_at() -> None:
    """A vector of the wrong length, or that is not finite, is refused where somebody writes it by hand."""
    assert any(rule.__name__ == "embeds_a_content" for rule in RULES)
    store = filled()
    for packed in (b"\0" * 11, b"\0\0\xc0\x7f" + bytes(8)):
        with refused("cells_are_formed"), store.session("s").batch() as batch:
            batch.add(Embed(2, 2, batch.cell(b"m"), 8, 2, ((0, 5),), batch.cell(packed)))
