"""Each statement answers as the store's own objects do, on the session that ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests import refusals
from tests.vmql.conftest import NAME
from tests.vmql.facts import iso
from vmstore import Call, Position, ReadOnlyError, Turn
from vmstore.core.text.tokenizer import readable, words
from vmstore.namespace.results import to_json
from vmstore.shell.demo.demo import SHIPPED
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.vmql.planner.scope import ManySessions
from vmstore.vmql.relations.mutations import SessionStream
from vmstore.vmql.relations.pages import PAGES
from vmstore.vmql.relations.python_rows import Kind


def dicts(store: Store, text: str, **params: Any) -> list[dict[str, Any]]:
    """The rows of an answer by column."""
    return store.query(text, session=NAME, **params).to_dicts()


# ---- relations


@pytest.mark.parametrize("moment", [{}, {"turn": 42}, {"call": 317}, {"position": 4136}, {"turn": 0}])
@pytest.mark.parametrize("name", [NAME, "try-b"])
def test_pages_are_the_sessions(store: Store, name: str, moment: dict[str, int]) -> None:
    """PAGES tells of every page what Session.pages does, at any moment that both have."""
    if name == "try-b" and moment.get("position", moment.get("call", 0)) > 101:
        moment = {"call": 101}
    word = "".join(f" AS OF {unit} {number}" for unit, number in moment.items())
    wanted = to_json(store.session(name).pages(**moment))
    columns = ", ".join(column for column in PAGES.fields if column not in ("text", "metadata", "since_position"))
    rows = store.query(f"PAGES {columns}{word}", session=name).to_dicts()
    assert len(rows) == len(wanted)
    for row, page in zip(rows, wanted, strict=True):
        fields = {**page, "created_at": iso(page["created_at"])}
        shared = row.keys() & fields.keys()
        assert len(shared) > 24
        assert {key: row[key] for key in shared} == {key: fields[key] for key in shared}


@pytest.mark.parametrize("name", [NAME, "try-b"])
def test_calls_and_turns_are_the_sessions(store: Store, name: str) -> None:
    """CALLS and TURNS tell what Session.calls and Session.turns do."""
    session = store.session(name)
    for text, wanted in (("CALLS", to_json(session.calls())), ("TURNS", to_json(session.turns()))):
        rows = store.query(f"{text} {', '.join(wanted[0])}", session=name).to_dicts()
        assert len(rows) == len(wanted)
        for row, record in zip(rows, wanted, strict=True):
            fields = {**record, "at": iso(record["at"])}
            assert {key: row[key] for key in fields} == fields


def test_sessions_are_the_stores(store: Store) -> None:
    """SESSIONS tells what Store.sessions does, whatever session is asked otherwise."""
    rows = store.query("SESSIONS", session=NAME).to_dicts()
    hidden = list(store.query("SESSIONS redaction, redactions, outcome, reward", session=NAME))
    assert hidden == [
        (session.redaction, session.redactions, session.outcome, session.reward) for session in store.sessions()
    ]
    for row, info in zip(rows, to_json(store.sessions()), strict=True):
        fields = {**info, **{name: iso(info[name]) for name in ("opened_at", "began_at", "last_at")}}
        for name in ("raw", "redaction", "redactions", "outcome", "reward", "recorded"):
            del fields[name]
        assert {key: row[key] for key in fields} == fields


def test_mutations_are_the_tail(store: Store) -> None:
    """MUTATIONS across sessions are the entries of the tail, each once, in the order of the log."""
    entries = list(store.tail())
    result = store.query("MUTATIONS session, position, kind, at, logged_at ACROSS SESSIONS")
    wanted = [(e.session, e.position, e.kind, iso(e.at), iso(e.logged_at)) for e in entries]
    assert list(result) == wanted


def test_details_of_mutations_can_be_asked_into(store: Store) -> None:
    """A path into `detail` gives a field of the mutation."""
    packs = [e.mutation["leaves"] for e in store.tail() if e.kind == "pack" and e.session == NAME]
    result = store.query("MUTATIONS detail.leaves WHERE kind = pack AND detail.leaves > 3", session=NAME)
    assert [leaves for (leaves,) in result] == [leaves for leaves in packs if leaves > 3]


def test_a_request_id_is_the_one_that_was_given(tmp_path: Path) -> None:
    """MUTATIONS finds a call by its request id, as it was given and with nothing beside it."""
    with vmstore.open(tmp_path / "a.vms") as store:
        for nth in range(3):
            fields = {"model": "m", "messages": [{"role": "user", "content": f"Line {nth}"}]}
            store.record("s", fields, None, request_id=f"r {nth}")
        result = store.query("MUTATIONS request_id, call WHERE request_id = 'r 1' AND kind = pack", session="s")
        assert list(result) == [("r 1", 2)]


@pytest.mark.parametrize("condition", ["kind = 9", "kind IN ($kinds)", "kind IN $kinds", "kind = kind AND kind = PACK"])
def test_kinds_are_chosen_however_they_are_written(store: Store, condition: str) -> None:
    """A kind is chosen by its word, by its number or from a list that is handed in."""
    wanted = list(store.query("MUTATIONS position WHERE kind = pack", session=NAME))
    number = int(Kind["PACK"])
    text = f"MUTATIONS position WHERE {condition}".replace("9", str(number))
    params = {"kinds": ["pack", number]} if "$" in condition else {}
    assert list(store.query(text, session=NAME, **params)) == wanted and wanted


@pytest.mark.parametrize("name", [NAME, "try-b"])
def test_faults_are_the_sessions(store: Store, name: str) -> None:
    """FAULTS tells what Session.faults does."""
    result = store.query("FAULTS page, position, turn, call, out_since, tokens", session=name)
    wanted = [(f.page, f.position, f.turn, f.call, f.out_since, f.tokens) for f in store.session(name).debug.faults()]
    assert list(result) == wanted


# ---- contexts


@pytest.mark.parametrize("moment", ["CALL 317", "TURN 42", "POSITION 4137"])
def test_a_context_has_the_fields_of_the_command(store: Store, trip: Session, moment: str) -> None:
    """CONTEXT AT tells exactly the page fields of `vmstore context --json`."""
    unit, number = moment.split()
    wanted = trip.context(**{unit.lower(): int(number)}).to_dict()
    result = store.query(f"CONTEXT AT {moment}", session=NAME)
    assert result.basis == {**wanted["basis"], "fidelity": wanted["fidelity"]}
    assert result.to_dicts() == wanted["pages"]
    assert result.kind == "context"


def test_a_context_can_be_rendered_and_read_as_messages(store: Store, trip: Session) -> None:
    """RENDER is the exact text, MESSAGES the chat messages in order."""
    context = trip.context(call=317)
    assert list(store.query("CONTEXT AT CALL 317 RENDER", session=NAME)) == [(context.text(),)]
    messages = store.query("CONTEXT AT CALL 317 MESSAGES", session=NAME).to_dicts()
    assert [row["message"] for row in messages] == context.messages()


def test_a_context_is_chosen_from_and_summed(store: Store, trip: Session) -> None:
    """What a context holds can be filtered, grouped and ordered like a relation."""
    pages = trip.context(call=317).pages
    result = store.query("CONTEXT count(*), sum(tokens) AT CALL 317 WHERE role = tool", session=NAME)
    tools = [page.tokens for page in pages if page.role == "tool"]
    assert list(result) == [(len(tools), sum(tools))]
    (first,) = store.query("CONTEXT page, tokens AT CALL 317 ORDER BY tokens DESC LIMIT 1", session=NAME)
    assert first[1] == max(page.tokens for page in pages)


def test_a_diff_is_the_sessions(store: Store, trip: Session) -> None:
    """DIFF CONTEXT tells the changes that Session.diff does, and both bases."""
    wanted = trip.diff(Call(365), Call(366))
    result = store.query("DIFF CONTEXT CALL 365 TO CALL 366", session=NAME)
    assert result.basis == {"before": to_json(wanted.before), "after": to_json(wanted.after)}
    assert [(row["page"], row["change"], row["before"], row["after"]) for row in result.to_dicts()] == [
        (c.page, c.change, c.tokens_before, c.tokens_after) for c in wanted.changes
    ]


def test_sessions_are_compared_by_who_wrote_a_page(store: Store) -> None:
    """A fork and its parent do not differ before they part, and afterwards by the pages each has of its own."""
    assert list(store.query(f"DIFF SESSION 'try-b' TO '{NAME}' AT CALL 101")) == []
    rows = store.query(f"DIFF SESSION '{NAME}' TO 'try-b'").to_dicts()
    assert {(row["change"], row["session"]) for row in rows} == {("left", NAME), ("entered", "try-b")}


# ---- pages


@pytest.mark.parametrize("page", ["p8", "claim_storage_1", "p3298"])
def test_a_history_is_the_sessions(store: Store, trip: Session, page: str) -> None:
    """HISTORY OF tells what Session.history does, and BETWEEN bounds it on both ends."""
    wanted = to_json(trip.lineage.history(page))
    times = dict(store.query("MUTATIONS position, at", session=NAME))
    for event in wanted:
        event["at"] = times[event["position"]]
    assert dicts(store, f"HISTORY OF {page}") == wanted
    end = trip.context(turn=149).basis.position
    between = dicts(store, f"HISTORY OF {page} BETWEEN TURN 1 AND CALL 366")
    assert between == [event for event in wanted if event["position"] <= 4136], end


def test_lineage_is_the_sessions(store: Store, trip: Session) -> None:
    """SOURCES OF and DERIVED FROM walk as the session does, to a depth, over kinds, and as of a moment."""
    for text, wanted in (
        ("SOURCES OF claim_storage_1", trip.lineage.ancestors("claim_storage_1")),
        ("SOURCES OF claim_storage_1 DEPTH 1", trip.lineage.ancestors("claim_storage_1", depth=1)),
        ("DERIVED FROM p8", trip.lineage.descendants("p8")),
        ("DERIVED FROM p8 AS OF TURN 3", []),
    ):
        records = dicts(store, text)
        assert records == to_json(wanted), text


def test_residencies_of_a_page_are_its_history(store: Store, trip: Session) -> None:
    """RESIDENCIES OF tells from which call to which a page was in the prompt."""
    (row,) = dicts(store, "RESIDENCIES OF p8")
    events = {event.event: event for event in trip.lineage.history("p8")}
    assert (row["from_call"], row["to_call"]) == (events["enter"].call, events["leave"].call)
    assert dicts(store, "VERSIONS OF p8") == [row for row in dicts(store, "VERSIONS") if row["page"] == "p8"]


def test_why_tells_what_brought_a_page_in_and_what_put_it_out(store: Store) -> None:
    """WHY answers first, by the compaction where one took the page, then tells what happened, the oldest first."""
    rows = dicts(store, "WHY NOT p8 IN CONTEXT AT TURN 200")
    assert [(row["event"], row["position"]) for row in rows if row["page"] == "p8"] == [
        ("out", 5162),
        ("create", 8),
        ("enter", 11),
        ("leave", 4136),
    ]
    left = next(row for row in rows if row["event"] == "leave")
    assert "the source does not say why" in left["reason"]
    assert rows[0]["reason"].startswith(
        "p8 left at call 366: a compaction replaced 832 pages (49,858 tokens) by summary p3298"
    )
    assert any("made from p8" in row["reason"] for row in rows if row["position"] == 4136)
    assert dicts(store, "WHY p4 IN CONTEXT AT CALL 317")[0]["event"] == "in"
    assert "it was made later" in dicts(store, "WHY NOT claim_storage_1 IN CONTEXT AT CALL 3")[0]["reason"]


# ---- words


def test_search_is_the_sessions(store: Store, trip: Session) -> None:
    """SEARCH finds the pages Session.search does, with their scores, and chooses among them."""
    wanted = [(hit.page, hit.score) for hit in trip.search("postgres decision", limit=None)]
    rows = store.query("SEARCH 'postgres decision'", session=NAME).to_dicts()
    assert [(row["page"], round(row["score"], 6)) for row in rows] == wanted
    claims = dicts(store, "SEARCH 'postgres decision' AS OF TURN 100 WHERE type = claim LIMIT 3")
    assert [row["type"] for row in claims] == ["claim"] * 3


def test_context_matches_finds_the_calls_that_saw_the_words(store: Store, trip: Session) -> None:
    """CALLS WHERE CONTEXT MATCHES finds exactly the calls whose context has one page with all the words."""
    fields: dict[bytes, set[str]] = {}  # the words of each content: most are in hundreds of contexts
    shown: dict[int, list[bytes]] = {
        call.call: list(trip.context(call=call.call).contents().values()) for call in trip.calls()
    }
    for content in {content for contents in shown.values() for content in contents}:
        fields[content] = set(words(readable(content) or ""))
    for pattern in ("the hard part", "postgres", "Decision storage", "tidemark"):
        wanted = {
            call
            for call, contents in shown.items()
            if any(set(words(pattern)) <= fields[content] for content in contents)
        }
        result = store.query("CALLS call WHERE CONTEXT MATCHES $pattern", session=NAME, pattern=pattern)
        assert [call for (call,) in result] == sorted(wanted), pattern
        assert wanted


# ---- sessions and the log


def test_a_fork_is_the_one_statement_that_writes(tmp_path: Path) -> None:
    """FORK makes the session Session.fork makes, and a handle for reading refuses it; nothing else changes the log."""
    path = tmp_path / "agent.vms"
    with vmstore.open(path) as store:
        store.import_file(SHIPPED)
        (row,) = store.query("FORK SESSION 'planning-220' AT TURN 42 AS 'try-b'").to_dicts()
        assert row["position"] == store.session("try-b").info().position - 1
        assert row["turn"] == 42
        before = store.admin.log.ordinal
        for text in ("PAGES LIMIT 1", "SESSIONS", "SHOW RELATIONS", "WHY p8 IN CONTEXT", "SEARCH 'gate'"):
            list(store.query(text, session=NAME))
        assert store.admin.log.ordinal == before
    with vmstore.open(path, "r") as reading, pytest.raises(ReadOnlyError):
        reading.query("FORK SESSION 'planning-220' AS 'try-c'")


def test_verify_says_that_all_is_well(store: Store) -> None:
    """VERIFY gives a row a problem, none where there is none, and says so in its basis."""
    result = store.query("VERIFY")
    assert (list(result), result.basis["ok"]) == ([], True)


def test_what_is_new_costs_the_same_in_a_store_of_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """WATCH from a cursor looks at the sessions that it meets, however many there are."""
    looked: list[int] = []
    written = ManySessions.written

    def counted(scope: ManySessions, session: int | None = None) -> list[SessionStream]:
        actual = written(scope, session)
        looked.append(len(actual))
        return actual

    monkeypatch.setattr(ManySessions, "written", counted)
    with vmstore.memory_store() as store:
        for n in range(40):
            store.record(f"s{n}", {"model": "m", "messages": [{"role": "user", "content": "here"}]})
        first = store.query("WATCH MUTATIONS session")
        assert len({name for (name,) in first}) == 40 == len(looked)
        looked.clear()
        store.record("s7", {"model": "m", "messages": [{"role": "user", "content": "there"}]})
        late = store.query("WATCH MUTATIONS session FROM $cursor", cursor=first.next)
        assert {name for (name,) in late} == {"s7"}
    assert looked == [1, 1], "the session of the cursor, and the one that wrote"


def test_a_watch_goes_on_where_it_ended(store: Store) -> None:
    """WATCH gives what is there, and from its `next` only what came later."""
    first = store.query("WATCH MUTATIONS WHERE kind = create")
    seen = len(list(first))
    assert seen == sum(entry.kind == "create" for entry in store.tail())
    assert list(store.query("WATCH MUTATIONS FROM $cursor", cursor=first.next)) == []
    store.record("watched", {"messages": [{"role": "user", "content": "and on"}]}, None, at_us=1)
    late = store.query("WATCH MUTATIONS kind WHERE kind = create FROM $cursor", cursor=first.next)
    assert list(late) == [("create",)]


def test_a_watch_says_the_same_turn_and_call_from_any_cursor(store: Store) -> None:
    """Whatever cursor a watch goes on from, it tells of each mutation what the log as a whole does."""
    asked = "session, position, turn, call, kind, cursor"
    whole = list(store.query(f"MUTATIONS {asked} ACROSS SESSIONS"))
    for at in (1, 700, 4_000, len(whole) - 3):
        later = store.query(f"WATCH MUTATIONS {asked} FROM $cursor", cursor=whole[at][-1])
        assert list(later) == whole[at + 1 :]


def test_a_fork_begins_where_its_parent_stands(tmp_path: Path) -> None:
    """FORK without a moment forks at the end of what was written, and finds a session that was only just opened."""
    request: dict[str, Any] = {"messages": [{"role": "user", "content": "and on"}]}
    with vmstore.open(tmp_path / "agent.vms") as store, vmstore.open(tmp_path / "agent.vms") as other:
        store.record("trip", request, None, at_us=1)
        list(store.query("FORK SESSION trip AS first"))
        for handle in (store, other):
            request = {"messages": [*request["messages"], {"role": "user", "content": "and further"}]}
            handle.record("trip", request, None, at_us=2)
            (row,) = store.query(f"FORK SESSION trip AS {handle.admin.log.ordinal}x").to_dicts()
            assert row["position"] == store.session("trip").info().position
        other.record("late", request, None, at_us=3)
        assert list(store.query("FORK SESSION late AS later"))


# ---- what every answer has


@pytest.mark.parametrize(
    "text",
    [
        "PAGES page, tokens ORDER BY tokens DESC",
        "PAGES page",
        "CALLS",
        "MUTATIONS position, kind, page ORDER BY page, kind DESC",
        "PAGES count(*) BY type, role ORDER BY count(*) DESC",
        "RESIDENCIES page, to_call ORDER BY to_call DESC",
        "SESSIONS session, parent ORDER BY parent",
        "MUTATIONS session, position ACROSS SESSIONS",
    ],
)
def test_pages_of_an_answer_make_the_whole(store: Store, text: str) -> None:
    """An answer taken a few rows at a time, each after the `next` of the one before, is the whole answer."""
    whole = list(store.query(text, session=NAME))
    size = max(1, len(whole) // 5)
    taken, after = [], None
    for _ in range(12):
        more = " AFTER $after" if after is not None else ""
        part = store.query(f"{text} LIMIT $size{more}", session=NAME, size=size, after=after)
        taken += list(part)
        after = part.next
        if after is None:
            break
    assert taken == whole


@pytest.mark.parametrize("text", ["PAGES page, tier, tokens", "CALLS", "CONTEXT", "HISTORY OF p8", "RESIDENCIES"])
def test_a_basis_given_back_repeats_the_answer(store: Store, text: str) -> None:
    """The basis of an answer is a moment; asked again there it is the same answer."""
    at_end = text.startswith("HISTORY") or text.startswith("CONTEXT")
    first = store.query(f"{text} AT CALL 200" if text == "CONTEXT" else f"{text} AS OF CALL 200", session=NAME)
    rows, position = list(first), first.basis["position"]
    word = "AT" if text == "CONTEXT" else "AS OF"
    again = store.query(f"{text} {word} POSITION $position", session=NAME, position=position)
    assert (list(again), again.basis) == (rows, first.basis), at_end


def test_an_answer_is_plain_json(store: Store) -> None:
    """The JSON of an answer has its basis, columns, rows and how long it took, and nothing that JSON lacks."""
    text = store.query("PAGES LIMIT 2", session=NAME).to_json()
    assert set(text) == {"basis", "columns", "rows", "elapsed_ms", "next"}
    assert json.loads(json.dumps(text)) == text
    assert [column["name"] for column in text["columns"]] == list(text["rows"][0])


def test_the_past_is_the_same_on_a_fork(store: Store, trip: Session) -> None:
    """What is asked of a moment before a fork is answered alike by the fork and its parent."""
    end = trip.context(Turn(42)).basis.position
    for text in ("PAGES", "CALLS", "MUTATIONS", "RESIDENCIES", "LINKS", "VERSIONS", "MESSAGES", "TURNS"):
        asked = f"{text} AS OF POSITION {end}"
        assert list(store.query(asked, session="try-b")) == list(store.query(asked, session=NAME)), text
    assert trip.context(Position(end)).basis.position == end


# ---- what a prompt has room for


@pytest.mark.parametrize("tokens", [40, 300, 1_000])
def test_a_search_within_tokens_is_what_is_recalled(store: Store, tokens: int) -> None:
    """SEARCH WITHIN gives the pages that the session's memory recalls within as many tokens, in their order."""
    recalled = store.session(NAME).memory.recall("cursor pages", tokens=tokens)
    texts = [text for passage in recalled.passages for text in passage.texts]
    rows = dicts(store, "SEARCH 'cursor pages' page, role, score, tokens WITHIN $room TOKENS", room=tokens)
    assert [(row["page"], row["role"], row["score"] is not None) for row in rows] == [
        (text.page, text.role, text.found) for text in texts
    ]
    assert recalled.tokens <= tokens
    assert rows


def test_a_search_within_tokens_of_some_pages(store: Store) -> None:
    """WHERE chooses before the room is shared out: pages that pass are found though others fit better."""
    plain = {row["type"] for row in dicts(store, "SEARCH 'cursor pages' type WITHIN 60 TOKENS")}
    other = next(row["type"] for row in dicts(store, "SEARCH 'cursor pages' type") if row["type"] not in plain)
    rows = dicts(store, "SEARCH 'cursor pages' type WITHIN 60 TOKENS WHERE type = $type", type=other)
    assert {row["type"] for row in rows} == {other}


def test_a_search_within_tokens_of_all_sessions(store: Store) -> None:
    """Across sessions a page is found under the session that wrote it, within the same room."""
    rows = dicts(store, "SEARCH 'cursor pages' session, page, tokens ACROSS SESSIONS WITHIN 500 TOKENS")
    assert {row["session"] for row in rows} <= {info.session for info in store.sessions()}
    assert len({(row["session"], row["page"]) for row in rows}) == len(rows) > 0


@pytest.mark.parametrize("room", [0, -1, True, "many", 1.5])
def test_no_room(store: Store, room: object) -> None:
    """A room that is no number of tokens is refused where it stands."""
    with refusals.refused("wrong-type", vmstore.QueryError) as caught:
        store.query("SEARCH 'cursor' WITHIN $room TOKENS", session=NAME, room=room)
    assert caught.value.code == "wrong-type"


# ---- corners


def test_a_page_without_a_message_has_a_null_there(store: Store) -> None:
    """A page of no message is counted, compared and grouped as a null is."""
    ((rows, named),) = store.query("PAGES count(*), count(message)", session=NAME)
    ((without,),) = store.query("PAGES count(*) WHERE message IS NULL", session=NAME)
    assert without > 0
    assert named == rows - without
    for unlike in ("message != 'm3'", "NOT (message = 'm3')"):
        assert [*store.query(f"PAGES count(*) WHERE {unlike}", session=NAME)] == [(named - 1,)]
    assert [*store.query("PAGES count(*) BY message", session=NAME)][-1] == (None, without), "nulls come last"


def test_numbers_are_summed_among_values_of_any_type(store: Store) -> None:
    """sum, avg and quantile of a path take the numbers there are and leave out texts, of which many look like some."""
    asked = "MUTATIONS sum(detail.root), avg(detail.root), quantile(detail.root, 0.5)"
    assert [*store.query(asked, session=NAME)] == [(None, None, None)]
    ((some, ends),) = store.query("MUTATIONS sum(detail.size), quantile(detail.size, 1)", session=NAME)
    sizes = [row["detail.size"] or 0 for row in dicts(store, "MUTATIONS detail.size")]
    assert (some, ends) == (sum(sizes), max(sizes))


def test_an_infinite_value_is_refused() -> None:
    """A sum that became too large is refused, because JSON could not say it."""
    with vmstore.memory_store() as made:
        message = {"role": "user", "content": "Hello."}
        made.record("s", {"messages": [message], "temperature": 1e308}, None)
        made.record("s", {"messages": [message, message], "temperature": 1e308}, None)
        with pytest.raises(vmstore.QueryError) as refused:
            made.query("CALLS sum(metadata.temperature)").to_dicts()
    assert refused.value.code == "not-finite"


def test_groups_by_a_path_are_shown_and_ordered(store: Store) -> None:
    """A path into JSON that stands in BY can be shown, named and ordered by."""
    asked = "MUTATIONS detail.role AS role, count(*) BY detail.role"
    results = [*store.query(f"{asked} WHERE kind = create ORDER BY detail.role DESC", session=NAME)]
    roles = [row["detail.role"] for row in dicts(store, "MUTATIONS detail.role WHERE kind = create")]
    assert results == [(role, roles.count(role)) for role in sorted(set(roles), reverse=True)]


@pytest.mark.parametrize("name", ["text", "session", "self", "params", "word"])
def test_a_parameter_can_have_any_name(store: Store, name: str) -> None:
    """A parameter is handed in beside the text under any name, and its hint says how."""
    asked = f"PAGES count(*) WHERE type = ${name}"
    wanted = [*store.query("PAGES count(*) WHERE type = artifact", session=NAME)]
    assert [*store.query(asked, session=NAME, params={name: "artifact"})] == wanted
    if name not in ("session", "params"):
        assert [*store.query(asked, session=NAME, **{name: "artifact"})] == wanted
    with pytest.raises(vmstore.QueryError) as refused:
        store.query(asked, session=NAME).to_dicts()
    handed = {"session": "params={'session': …}", "params": "params={'params': …}"}.get(name, f"{name}=…")
    assert refused.value.hint == f"pass {handed} beside the text"


@pytest.mark.parametrize(
    "bounds",
    [
        "AS OF TURN 5 SINCE TURN 7",
        "SINCE TURN 9 UNTIL TURN 7",
        "BETWEEN CALL 9 AND CALL 7",
        "SINCE CALL 300 UNTIL TURN 7",
        "SINCE TIME '2026-03-05' UNTIL TIME '2026-03-04'",
        "ACROSS SESSIONS SINCE TIME '2026-03-05' UNTIL TIME '2026-03-04'",
    ],
)
def test_bounds_that_contradict_are_refused(store: Store, bounds: str) -> None:
    """Bounds that end before they begin are refused at the first of them, not answered with nothing."""
    with pytest.raises(vmstore.QueryError) as refused:
        store.query(f"PAGES count(*) {bounds}", session=NAME).to_dicts()
    assert refused.value.code == "no-such-moment"
    unit = bounds[refused.value.span.start - len("PAGES count(*) ") :]
    assert unit.startswith(("TURN", "CALL", "TIME", "SINCE", "BETWEEN"))


def test_bounds_that_touch_hold_nothing_and_are_no_mistake(store: Store) -> None:
    """Rows since a moment up to the same moment are none."""
    assert [*store.query("PAGES count(*) SINCE TURN 7 UNTIL TURN 7", session=NAME)] == [(0,)]
    ((within,),) = store.query("MUTATIONS count(*) BETWEEN TURN 7 AND TURN 7", session=NAME)
    assert within > 0


def test_the_fidelity_of_a_session_is_of_the_moment(store: Store) -> None:
    """Before its first rebuilt request a session has none, whatever came later; a fork has those of its past."""
    (first,) = dicts(store, "CALLS at LIMIT 1")
    (opened,) = dicts(store, "SESSIONS opened_at IN SESSION 'planning-220'")
    assert opened["opened_at"] < first["at"]
    for name, at, fidelity in (
        (NAME, opened["opened_at"], "recorded"),
        (NAME, first["at"], "derived"),
        ("try-b", "2033-01-01", "partly"),
    ):
        asked = f"SESSIONS fidelity IN SESSION '{name}' AS OF TIME $at"
        assert [*store.query(asked, at=at)] == [(fidelity,)]
