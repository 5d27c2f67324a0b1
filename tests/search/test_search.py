"""Search: the same answer from the index, from reading everything, and from the definition of BM25."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vmstore
from tests.disasters.child import joined, start
from tests.engine.stories import answer, chat
from tests.growing import grows_at_most
from tests.refusals import refused
from vmstore.core.asof import Position
from vmstore.core.text.tokenizer import readable, words
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.results import Hit
from vmstore.relevance.words import Analyzer
from vmstore.search import folder as index_folder
from vmstore.search import index as index_module
from vmstore.search import moment
from vmstore.search.moment import MomentTexts
from vmstore.search.rank import READ
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.testing.simulate import play
from vmstore.testing.strategies import Life, lives

TALK = ("Where is Kyoto?", "Kyoto is in Japan, and Nara too.", "How far is Nara from Kyoto?", "An hour by train.")


def record_sessions(path: Path) -> None:
    """A session of two calls, and a fork of its first that went elsewhere."""
    with vmstore.open(path) as store:
        store.record("trip", chat(TALK[0]), answer(TALK[1]))
        store.record("trip", chat(*TALK[:3]), answer(TALK[3]))
        store.session("trip").fork("other", call=1)
        store.record("other", chat("Where is Osaka?"), answer("Near Kyoto."))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Such a store, closed."""
    record_sessions(tmp_path / "a.vms")
    return tmp_path / "a.vms"


def by_definition(session: Session, query: str, position: int) -> list[tuple[str, float]]:
    """BM25 over the texts of a session as its own answers give them."""
    forms = Analyzer().forms
    texts: dict[str, Counter[str]] = {}
    lengths: dict[str, int] = {}
    for page in session.pages(Position(position)):
        try:
            text = readable(session.content(page.page, Position(position)))
        except UnknownError:
            continue  # opaque
        if text is not None:
            actual_forms = list(forms(text))
            texts[page.page] = Counter(term for form in actual_forms for term in form.terms + form.wholes + form.stops)
            lengths[page.page] = sum(len(form.terms) for form in actual_forms)
    asked = forms(query)
    wanted = {term for form in asked for term in form.terms} or {term for form in asked for term in form.stops}
    mean = sum(lengths.values()) / len(texts) if any(lengths.values()) else 1
    scores = {}
    for page, counts in texts.items():
        score = 0.0
        for word in wanted:
            n = sum(word in c for c in texts.values())
            norm = 1.2 * (0.25 + 0.75 * lengths[page] / mean)
            score += math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) * counts[word] * 2.2 / (counts[word] + norm)
        if wanted & counts.keys():
            scores[page] = round(score, 6)
    return sorted(scores.items(), key=lambda item: (-item[1], int(item[0][1:])))


def scores_of(hits: list[Hit]) -> dict[str, float]:
    """The pages of an answer, each with its score."""
    return {hit.page: hit.score for hit in hits}


@settings(max_examples=25)
@given(life=lives(steps_max=10), written=st.sampled_from((0, 3, 24)))
def test_every_way_to_an_answer_gives_the_same(life: Life, written: int) -> None:
    """At any position, on forks too, the index, a reader without one and the definition agree to the last digit."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "WRITTEN", written)
        player = play(life, Path(folder))
        names = [info.session for info in player.store.sessions()]
        asked = [(name, position) for name in names for position in _positions(player.store.session(name))]
        query = _query(player.store, names)
        before = [
            scores_of(player.store.session(n).search(query, Position(p), limit=None, score="score@1")) for n, p in asked
        ]
        player.store.close()
        with vmstore.open(player.path, "r") as reader:
            for (name, position), hits in zip(asked, before, strict=True):
                session = reader.session(name)
                right = by_definition(session, query, position)
                assert hits == dict(right)
                assert scores_of(session.search(query, Position(position), limit=None, score="score@1")) == hits


def _query(store: Store, names: list[str]) -> str:
    """Some words that stand in the sessions."""
    pages = [(store.session(name), page.page) for name in names for page in store.session(name).pages(modality="text")]
    texts = [readable(session.content(page)) or "" for session, page in pages[:5]]
    return " ".join(words(" ".join(texts))[:3]) or "nothing"


def _positions(session: Session) -> list[int]:
    calls = session.calls()
    return [call.position for call in calls[:: max(1, len(calls) // 3)]] + [session.info().position]


def test_the_best_comes_first_and_says_why(path: Path) -> None:
    """Hits fall in score, each shows its words, and a limit gives the first of them."""
    with vmstore.open(path) as store:
        hits = store.session("trip").search("nara kyoto")
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True) and len(hits) == 3
        assert all("Kyoto" in hit.text for hit in hits)
        assert store.session("trip").search("nara kyoto", limit=1) == hits[:1]


def test_a_search_is_of_its_moment(path: Path) -> None:
    """What was written later is neither found nor counted, and a fork finds what it inherits."""
    with vmstore.open(path) as store:
        trip, other = store.session("trip"), store.session("other")
        assert trip.search("train") and not trip.search("train", call=1) and not other.search("train")
        assert [hit.text for hit in other.search("osaka")] == ["Where is Osaka?"]
        assert scores_of(trip.search("kyoto", call=1, score="score@1")) == dict(
            by_definition(trip, "kyoto", trip.context(call=1).basis.position)
        )


def test_all_sessions_are_searched_at_once(path: Path) -> None:
    """Across sessions a page is found once, under the session that wrote it."""
    with vmstore.open(path) as store:
        hits = store.search("osaka kyoto", limit=None)
        assert {(hit.session, hit.text) for hit in hits} == {
            *(("trip", text) for text in TALK[:3]),
            *(("other", text) for text in ("Where is Osaka?", "Near Kyoto.")),
        }


def test_a_changed_page_is_found_by_its_last_words(path: Path) -> None:
    """A page that was changed answers with the content in force at the moment, and only with that."""
    with vmstore.open(path) as store:
        store.record("trip", chat("Where is Sapporo, what is it like and how far?", *TALK[1:3]), None)
        trip = store.session("trip")
        changed = {hit.page: hit.version for hit in trip.search("sapporo kyoto")}
        assert 2 in changed.values()
        before = {hit.page: hit.version for hit in trip.search("sapporo kyoto", call=2)}
        assert set(before.values()) == {1}
        assert scores_of(trip.search("kyoto nara", score="score@1")) == dict(
            by_definition(trip, "kyoto nara", trip.info().position)
        )


@pytest.mark.parametrize("query", ["", "  ", "?! -", '"""', "*", "\u200b", "- + OR"])
def test_whatever_a_person_typed_is_answered(path: Path, query: str) -> None:
    """A query without a word finds nothing and says so, explained or not, of a session or of all."""
    with vmstore.open(path) as store:
        for answer in (store.session("trip").search(query, explain=True), store.search(query)):
            assert answer == [] and any("nothing is found by it" in note for note in answer.notes)


def test_what_is_no_search_is_refused(path: Path) -> None:
    """A query that is no text, and a limit that is no number of pages, are errors."""
    with vmstore.open(path) as store, refused("not-a-text", InputError, "is none"):
        store.session("trip").search(5)  # type: ignore[arg-type]
    with vmstore.open(path) as store, refused("not-a-limit", InputError, "limit 0"):
        store.search("kyoto", limit=0)


def test_what_nobody_said_is_not_found(path: Path) -> None:
    """A word, or a sign, that stands nowhere gives an empty answer that says so."""
    with vmstore.open(path) as store:
        for answer in (store.search("zebra"), store.session("trip").search("zebra"), store.search("🎉")):
            assert answer == [] and len(answer.notes) == 1


# ---- the index as a view


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index follows each commit, as it does where much was written."""
    monkeypatch.setattr(index_module, "WRITTEN", 0)


def answers(store: Store) -> list[Hit]:
    """What a store says to a few searches."""
    return [hit for query in ("kyoto", "nara where far", "train osaka") for hit in store.search(query, limit=None)]


def mark_of(path: Path) -> Path:
    """Where the index says how far it is."""
    return path / "default" / "text" / "at.json"


def changed(path: Path, **fields: Any) -> None:
    """Makes the index claim something else."""
    mark_of(path).write_text(json.dumps({**json.loads(mark_of(path).read_text()), **fields}))


@pytest.mark.usefixtures("eager")
def test_what_came_after_the_index_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the index, what it does not know yet is read, and the answer is the same."""
    with vmstore.open(path) as store:
        assert store.search("kyoto")
        store.record("trip", chat(*TALK, "And Kobe?"), answer("Nearer than Kyoto."))
        store.record("new", chat("Kobe?"), None)
        with monkeypatch.context() as busy:
            busy.setattr(index_module.Applier, "take", lambda lock: False)
            behind = store.search("kobe kyoto", limit=None)
        assert json.loads(mark_of(path).read_text())["ordinal"] < store.admin.log.ordinal
        assert store.search("kobe kyoto", limit=None) == behind and len(behind) >= 5
        assert json.loads(mark_of(path).read_text())["ordinal"] == store.admin.log.ordinal


def test_little_that_is_new_is_not_written_down(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text or two are read by each who asks; once there are more they are written down; the answer is the same."""
    monkeypatch.setattr(index_module, "WRITTEN", 8)
    marks = []
    with vmstore.open(path) as store:
        for n in range(12):
            store.record("trip", chat(*(TALK * 8)[: 2 * n + 3]), answer(f"{n} from Kyoto."))
            hits = store.search("kyoto", limit=None)
            marks.append(json.loads(mark_of(path).read_text())["ordinal"] if mark_of(path).exists() else 0)
            assert store.admin.log.ordinal - marks[-1] < 10
            with vmstore.open(path, "r") as reader:
                assert reader.search("kyoto", limit=None) == hits
        assert 2 <= len(set(marks)) <= 4 and marks[-1] < store.admin.log.ordinal


def neighbours(path: Path, sessions: int) -> Store:
    """A store whose index knows a session that is asked, and others."""
    store = vmstore.open(path)
    store.record("trip", chat(*TALK[:3]), answer(TALK[3]))
    for n in range(sessions):
        store.record(f"s{n}", chat(*TALK[:3]), answer(f"An hour by train, {n}."))
    store.search("kyoto")
    return store


@pytest.mark.usefixtures("eager")
def test_a_search_of_one_session_does_not_go_through_others(tmp_path: Path) -> None:
    """With forty times as many sessions beside it, a search of one costs hardly more."""

    def asked(store: Store) -> None:
        for n in range(20):
            store.record("other", chat(TALK[0], TALK[1], f"And {n}?"), answer("Yes."))
            assert len(store.session("trip").search("nara kyoto", limit=None)) == 3

    with neighbours(tmp_path / "few.vms", 20) as few, neighbours(tmp_path / "many.vms", 800) as many:
        assert grows_at_most(lambda: asked(few), lambda: asked(many), 1.6)


def followed(path: Path) -> dict[str, object]:
    """What the mark says, but for the names of files, which are drawn again."""
    document = json.loads(mark_of(path).read_text())
    return {name: document[name] for name in document if name != "files"}


def index_files(path: Path) -> list[Path]:
    """The files of an index that hold what it knows."""
    return sorted(mark_of(path).parent.glob("*.seg"))


def in_its_place(path: Path) -> Path:
    """Where the folder of an index was."""
    folder = mark_of(path).parent
    shutil.rmtree(folder)
    return folder


DAMAGES = [
    lambda path: changed(
        path, segments=[[*segment[:2], 3] for segment in json.loads(mark_of(path).read_text())["segments"]]
    ),
    lambda path: changed(path, version=0),
    lambda path: changed(path, hash="00" * 32),
    lambda path: changed(path, ordinal=10_000),
    lambda path: mark_of(path).unlink(),
    lambda path: mark_of(path).write_text("{"),
    lambda path: changed(path, rules="words of another time"),
    lambda path: changed(path, segments=[["../at.json", "", 1]]),
    lambda path: index_files(path)[0].write_bytes(index_files(path)[0].read_bytes()[:100]),
    lambda path: index_files(path)[0].write_bytes(b""),
    lambda path: index_files(path)[0].unlink(),
    lambda path: in_its_place(path).write_text("no index"),
]


@pytest.mark.usefixtures("eager")
def test_a_link_in_the_place_of_an_index_goes(path: Path) -> None:
    """Where a link takes the place of the folder while it is searched, the link goes, and the answer stays."""
    with vmstore.open(path) as store:
        right = answers(store)
        folder = in_its_place(path)
        folder.symlink_to("/nowhere/at/all")
        assert answers(store) == right
        assert folder.is_dir() and not folder.is_symlink()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("damage", DAMAGES)
def test_an_index_that_is_not_right_is_made_anew(path: Path, damage: Any) -> None:
    """An index that was lost in part, is of another log or version, or was never finished answers as before."""
    with vmstore.open(path) as store:
        right = answers(store)
        marked = followed(path)
    damage(path)
    with vmstore.open(path) as store:
        assert answers(store) == right
        assert followed(path) == marked


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("share", range(3, 100, 32))
def test_no_damage_of_a_file_changes_an_answer(path: Path, share: int) -> None:
    """A byte changed anywhere in a file of the index is named by verify, and a search answers as before."""
    with vmstore.open(path) as store:
        right = answers(store)
        for number, file in enumerate(index_files(path)):
            with file.open("r+b") as actual_file:
                at = file.stat().st_size * share // 100
                actual_file.seek(at)
                byte = actual_file.read(1)[0]
                actual_file.seek(at)
                actual_file.write(bytes([byte ^ 1 << (number % 8)]))
    for mode in ("r", "rw"):
        with vmstore.open(path, mode) as store:
            (problem,) = store.verify().problems
            assert problem.kind == "text" and "is damaged" in problem.what
            assert answers(store) == right
    with vmstore.open(path) as store:
        assert store.verify().ok


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("damage", DAMAGES[:1] + DAMAGES[-2:])
def test_an_index_that_another_makes_anew_is_not_read(path: Path, damage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process is at an index that is not whole, every text is read, and the answer is the same."""
    with vmstore.open(path) as store:
        right = answers(store)
        damage(path)
        monkeypatch.setattr(index_module.Applier, "take", lambda lock: False)
        assert answers(store) == right


@pytest.mark.usefixtures("eager")
def test_a_killed_index_is_made_again(path: Path) -> None:
    """A process killed after its texts were indexed and before it said so leaves nothing that harms the next."""

    def work() -> None:
        index_folder.IndexFolder.settle = lambda folder, mark: os_exit()  # type: ignore[method-assign]
        with vmstore.open(path) as store:
            store.search("kyoto")

    def os_exit() -> None:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    joined(start(work))
    assert not mark_of(path).exists()
    with vmstore.open(path, "r") as reader:
        right = answers(reader)
    with vmstore.open(path) as store:
        assert answers(store) == right and mark_of(path).exists()


def test_without_the_extra_every_text_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numpy is not installed searches answer the same and make no index."""
    with vmstore.open(path) as store:
        right = answers(store)
    monkeypatch.setattr("vmstore.search.place.installed", lambda: False)
    with vmstore.open(path) as store:
        assert answers(store) == right


def test_a_planted_fault_is_seen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where superseded contents were taken as in force, the definition would disagree."""
    monkeypatch.setattr(moment, "_replaced", lambda segments, lane, runs: {})
    with vmstore.open(path) as store:
        store.record("trip", chat("Where is Sapporo, what is it like and how far?", *TALK[1:3]), None)
        trip = store.session("trip")
        assert scores_of(trip.search("kyoto nara")) != dict(by_definition(trip, "kyoto nara", trip.info().position))


def test_a_hit_shows_where_it_answers(path: Path) -> None:
    """A hit's line is the place that answers most, with the words that were found, and the answer says what is odd."""
    with vmstore.open(path) as store:
        store.record("long", chat("It rained all day. " * 30 + "The museum’s café was\nclosed. " + "So we left. " * 30))
        (hit, *_) = hits = store.session("long").search('"the museum" cafe "closed')
        words = [hit.text[start:end] for start, end in hit.marks]
        assert words == ["The museum’s", "café", "closed"]
        assert hit.text.startswith("…The museum’s café was closed.")
        assert len(hit.text) <= 120
        assert hits.notes == ["The quote before closed is not closed; its words are asked for."]


def test_what_is_excluded_costs_few_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that excludes a word looks into texts some at a time, and no further than its limit asks."""
    with vmstore.memory_store() as store:
        store.record("talk", chat(*(f"The handler {'broke' if n % 2 else 'holds'} {n}." for n in range(400))), None)
        read: list[int] = []
        right = MomentTexts.texts

        def counted(texts: MomentTexts, rows: Any) -> list[str]:
            read.append(len(rows))
            return right(texts, rows)

        monkeypatch.setattr(MomentTexts, "texts", counted)
        hits = store.session("talk").search("handler -broke", limit=3)
        assert len(hits) == 3 and all("holds" in hit.text for hit in hits)
        assert max(read) > 1 and sum(read) <= 2 * READ
