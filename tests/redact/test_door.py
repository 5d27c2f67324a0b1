"""What a session is told, masked or refused before it is written: the value is nowhere, the record says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from tests.redact.labelled import lines
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Create, Redact
from vmstore.core.page import Modality, PageType, Role
from vmstore.core.redaction import TAG, HiddenKind, Redaction, RedactionSource
from vmstore.errors import InputError, RefusedError
from vmstore.redact.redactor import Redactor
from vmstore.redact.span import SecretKind

PASSWORD, KEY, MAIL = "tango-77-foxtrot", "sk-ant-api03-" + "aB3" * 12, "ada@lovelace.dev"
VALUES = (PASSWORD, KEY, MAIL)
ASK = {"role": "user", "content": f'my password: "{PASSWORD}", key {KEY}'}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "login", "arguments": json.dumps({"password": PASSWORD, "who": MAIL})},
        }
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": f"welcome {MAIL}, {PASSWORD} was right"}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """A chat-completions answer, with a secret in a field of its own."""
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    usage = {"prompt_tokens": 30, "completion_tokens": 4}
    return {
        "id": "r",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
        "note": {"api_key": KEY},
    }


def recorded(store: vmstore.Store, redaction: str | None) -> None:
    """A recorded session that is told the values in every place a call has."""
    request: dict[str, Any] = {"model": "m", "messages": [ASK], "metadata": {"user": MAIL}}
    store.record("s", request, answer(CALL), redaction=redaction, request_id="one")
    request["messages"] = [ASK, CALL, RESULT]
    store.record("s", request, ValueError(f"refused: password={PASSWORD}"), request_id="two")
    store.admin.record_gap("s", f"lost with api_key: {KEY}")
    session = store.session("s")
    session.annotate(session.pages()[0].page, tags=[f"of {MAIL}"], anchors={"user.password": PASSWORD, MAIL: "x"})
    with session.batch() as batch:
        content = f"password={PASSWORD}".encode()
        batch.add(Create(PageType.CLAIM, Modality.TEXT, Role.USER, 0, 0, batch.cell(content), len(content), 9))


def live(store: vmstore.Store, redaction: str | None) -> None:
    """A live session that is told the values by every way there is."""
    session = store.live_session(
        "s", l0_tokens_max=4_000, redaction=redaction, user=MAIL, system=f"password: '{PASSWORD}'",
        tools=[{"type": "function", "function": {"name": "f", "description": f"for {MAIL}"}}],
        compressor=lambda *_, **__: f"shorter, password={PASSWORD}",
    )  # fmt: skip
    session.user(f"I am {MAIL}, my password is {PASSWORD}! Let us use {KEY} for the database.")
    session.pack()
    session.assistant(CALL)
    session.tool("c1", RESULT["content"])
    session.assistant(f"We decided to use {KEY} as the key. [ref: p3]")
    page = session.attach(f"password={PASSWORD}\n".encode() * 200, "text/plain", name=f"{MAIL}.txt", words=None)
    session.attach(b"\x89PNG\r\n", "image/png", words=f"a note with the password: '{PASSWORD}'")
    session.claim(f"the key is {KEY}", name=f"key of {MAIL}")
    session.compress(page, 2)
    session.search(f"password={PASSWORD}")
    session.page_fault(f"page of {MAIL}")
    session.mark(f"before {MAIL}")
    session.segment(f"about {MAIL}", summary=f"the password is '{PASSWORD}', password={PASSWORD}")
    session.pack(model=f"m-{KEY}")


def imported(store: vmstore.Store, redaction: str | None) -> None:
    """A session imported from a file that holds the values."""
    file = Path(str(store.folder)).parent.parent / "talk.json"
    system = {"role": "system", "content": f"password={PASSWORD}"}
    file.write_text(json.dumps([system, ASK, CALL, RESULT]))
    store.import_file(file, session="s", redaction=redaction)


def texts(store: vmstore.Store, name: str) -> list[str]:
    """What the pages of a session say."""
    session = store.session(name)
    return [session.content(page.page).decode() for page in session.pages()]


def bytes_in(folder: Path, value: str) -> list[str]:
    """The files that hold a value, in its own letters or as JSON writes them."""
    return [str(path) for path in sorted(folder.rglob("*")) if path.is_file() and value.encode() in path.read_bytes()]


WAYS: list[Callable[[vmstore.Store, str | None], None]] = [recorded, live, imported]


@pytest.mark.parametrize("act", WAYS, ids=lambda rule: rule.__name__)
def test_what_is_masked_is_in_no_file(tmp_path: Path, act: Callable[[vmstore.Store, str | None], None]) -> None:
    """No file of the store holds a value that was told to it by any way, and without a policy they do."""
    for redaction in ("mask", None):
        folder = tmp_path / str(redaction) / "a.vms"
        folder.parent.mkdir()
        with vmstore.open(folder) as store:
            act(store, redaction)
            for question in ("PAGES IN SESSION 's'", "SEARCH 'password' IN SESSION 's'", "MUTATIONS IN SESSION 's'"):
                list(store.query(question))
            assert store.verify().ok
            info = store.session("s").info()
            cells = [
                store.admin.log.cells([number])
                for number in range(1, store.admin.log.tail(store.admin.log.ordinal - 1, 1)[0].cell + 99)
            ]
            sealed = b"\n".join(cell.content for actual_cell in cells for cell in actual_cell.values())
            tagged = store.session("s").pages(tag=TAG)
        contents = {value: bytes_in(folder, value) or value.encode() in sealed for value in VALUES}  # some lie packed
        if redaction is None:
            assert all(contents.values()), "the planted values are found where nothing hides them"
            assert (info.redaction, info.redactions, tagged) == ("off", 0, [])
        else:
            assert not any(contents.values()), contents
            assert info.redaction == "mask" and info.redactions >= 3 and tagged


@pytest.mark.parametrize("act", WAYS, ids=lambda rule: rule.__name__)
def test_what_is_refused_is_written_nowhere(tmp_path: Path, act: Callable[[vmstore.Store, str | None], None]) -> None:
    """A session that refuses says what kind stands where and what to do, never the value, and writes nothing."""
    with vmstore.open(tmp_path / "a.vms") as store:
        with refused("hides-in-a-content") as caught:
            act(store, "refuse")
        assert not any(value in str(caught.value) for value in VALUES)
        assert "redaction='mask'" in str(caught.value)
        assert [entry.kind for entry in store.tail()] == []


def test_a_refusal_leaves_the_session_as_it_was() -> None:
    """What came before a refused call stays, what comes after it is taken, and the refused one left no trace."""
    store = vmstore.memory_store()
    request = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    store.record("s", request, redaction="refuse")
    before = store.admin.log.ordinal
    with refused("hides-in-a-content", RefusedError, "messages[1].content"):
        store.record("s", {**request, "messages": [*request["messages"], ASK]})
    assert store.admin.log.ordinal == before
    assert store.record("s", request).call == 2


def test_the_record_says_what_was_done() -> None:
    """A redaction is logged with its fields, told in the history and counted; the page has the masked sizes."""
    store = vmstore.memory_store(clock=ManualClock(1_700_000_000_000_000), ids=SeededIds(1))
    store.record("s", {"model": "m", "messages": [ASK]}, redaction="mask")
    session = store.session("s")
    (page,) = session.pages(tag=TAG)
    content = session.content(page.page)
    assert content == b'my password: "[PASSWORD 1]", key [API_KEY 1]'
    (mutation,) = [entry.mutation for entry in store.tail() if entry.kind == "redact" and entry.mutation["page"]]
    assert mutation["found"] == ((HiddenKind.API_KEY, 1, 1), (HiddenKind.PASSWORD, 1, 1))
    assert (mutation["count"], mutation["recoverable"], mutation["policy"], mutation["by"]) == (
        2,
        0,
        None,
        RedactionSource.DETECTORS_2,
    )
    assert mutation["tokens_after"] == page.tokens == 11
    assert abs(mutation["tokens_before"] - len(str(ASK["content"])) / 4) <= 1
    (event,) = [event for event in session.lineage.history(page.page) if event.event == "redact"]
    assert event.detail == "masked 1 api key, 1 password (sensitive credentials, 21 tokens before)"
    assert list(store.query("SESSIONS session, redactions")) == [("s", 2)]
    assert list(store.query("SESSIONS redactions IN SESSION 's' AS OF POSITION 3")) == [(0,)]
    assert [row[0] for row in store.query("PAGES page WHERE 'REDACTED' IN tags")] == [page.page]


def test_the_same_value_has_one_number_across_processes(tmp_path: Path) -> None:
    """A value keeps its number as a conversation goes on, in the process and in the next, and another gets its own."""
    messages: list[dict[str, Any]] = [ASK]
    for step, address in enumerate(("eve@x.dev", "bob@x.dev", "eve@x.dev")):
        with vmstore.open(tmp_path / "a.vms") as store:
            messages.append({"role": "user", "content": f"step {step}: {address} knows {PASSWORD}"})
            store.record("s", {"model": "m", "messages": messages}, redaction="mask")
            other_texts = texts(store, "s")
    assert other_texts[1:] == [
        "step 0: [EMAIL 1] knows [PASSWORD 1]",
        "step 1: [EMAIL 2] knows [PASSWORD 1]",
        "step 2: [EMAIL 1] knows [PASSWORD 1]",
    ]


def test_a_live_session_never_takes_one_value_for_another(tmp_path: Path) -> None:
    """In another process a new value has a new number, though the words around it are the same."""
    for address in ("eve@x.dev", "bob@x.dev"):
        with vmstore.open(tmp_path / "a.vms") as store:
            session = store.live_session("s", l0_tokens_max=4_000, redaction="mask")
            session.user(f"write to {address} at once")
    with vmstore.open(tmp_path / "a.vms") as store:
        other_texts = texts(store, "s")
    assert other_texts == ["write to [EMAIL 1] at once", "write to [EMAIL 2] at once"]


@pytest.mark.parametrize("act", [recorded, live], ids=lambda rule: rule.__name__)
def test_the_same_stimuli_make_the_same_log(act: Callable[[vmstore.Store, str | None], None]) -> None:
    """Told the same twice, two stores hold the same bytes, placeholders and records included."""
    heads = []
    for _ in range(2):
        store = vmstore.memory_store(clock=ManualClock(1_700_000_000_000_000, 7), ids=SeededIds(3))
        act(store, "mask")
        heads.append([commit.hash for commit in store.admin.log.tail(0, 999)])
    assert heads[0] == heads[1]


def test_a_fork_inherits_the_policy_and_a_change_holds_from_there() -> None:
    """A fork masks as its parent did where it left it; the parent's later policy is not the fork's."""
    store = vmstore.memory_store()
    store.record("s", {"model": "m", "messages": [ASK]}, redaction="mask")
    child = store.session("s").fork("t")
    store.session("s", redaction="off")
    later = [ASK, {"role": "user", "content": f"mail {MAIL}"}]
    for name, shown in (("s", f"mail {MAIL}"), ("t", "mail [EMAIL 1]")):
        store.record(name, {"model": "m", "messages": later})
        assert texts(store, name)[-1] == shown
    assert (store.session("s").info().redaction, child.info().redaction) == ("off", "mask")


def test_an_import_goes_on_masked(tmp_path: Path) -> None:
    """A masked import is masked as the file grows, unasked, and the same file again changes nothing."""
    file = tmp_path / "talk.json"
    store = vmstore.memory_store()
    file.write_text(json.dumps([ASK, CALL]))
    store.import_file(file, session="s", redaction="mask")
    before = store.admin.log.ordinal
    store.import_file(file)
    assert store.admin.log.ordinal == before
    file.write_text(json.dumps([ASK, CALL, RESULT]))
    store.import_file(file)
    (info,) = store.sessions()
    assert info.redaction == "mask"
    assert texts(store, "s")[-1] == "welcome [EMAIL 1], [PASSWORD 1] was right"


def test_a_name_is_refused_and_not_masked() -> None:
    """A session is not opened under a name that would be masked, since nobody would find it again."""
    store = vmstore.memory_store()
    with refused("hides-in-a-name"):
        store.session(f"with {MAIL}", create=True, redaction="mask")
    with refused("no-redaction", InputError, "'hide'"):
        store.session("s", create=True, redaction="hide")


def test_a_masked_live_session_is_decided_again_alike() -> None:
    """A replay of a masked session makes every decision as it was recorded."""
    store = vmstore.memory_store()
    live(store, "mask")
    assert store.session("s").debug.check().ok


def test_the_log_knows_every_kind() -> None:
    """Each kind the detectors find has a number of its own in the log."""
    assert [kind.name for kind in SecretKind] == [item.name for item in HiddenKind if item is not HiddenKind.OTHER]


def test_masking_twice_is_masking_once() -> None:
    """What passed a door passes it again unchanged, as text and within JSON."""
    for text, _ in lines():
        door = Redactor(Redaction.MASK)
        once = door.text(text, "")
        assert door.text(once, "") == Redactor(Redaction.MASK).text(once, "") == once
        content = json.dumps({"said": [text]}).encode()
        again = door.content(content, "")
        assert door.content(again, "") == again
        assert json.loads(again) == {"said": [once]}


JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(), lambda inner: st.lists(inner))


@given(JSON)
def test_what_holds_nothing_is_not_touched(value: Any) -> None:
    """Bytes in which nothing is found stay the very same, however they are written."""
    door = Redactor(Redaction.MASK)
    content = json.dumps(value, indent=1).encode()
    if not door.counts or door.value(value, "") == value:
        assert door.content(content, "") == content


def test_a_page_that_says_a_placeholder_is_no_redaction() -> None:
    """A text that speaks of placeholders is not counted as masked where none was given."""
    store = vmstore.memory_store()
    store.record("s", {"model": "m", "messages": [{"role": "user", "content": "see [EMAIL 7]"}]}, redaction="mask")
    assert [entry.mutation["policy"] for entry in store.tail() if entry.kind == "redact"] == [Redaction.MASK]
    assert Redact().count == 0


def test_suspects_are_counted_once(tmp_path: Path) -> None:
    """An import that masks nothing counts each value once and names the pages; again, or masked, there are none."""
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([ASK, CALL, RESULT]))
    store = vmstore.memory_store()
    report = store.import_file(file, session="s")
    assert report.suspects == {"api_key": 1, "email": 1, "password": 1}
    assert len(report.suspect_pages) == 3 and report.suspect_pages[0].startswith("s/p")
    again = store.import_file(file)
    assert (again.new, again.suspects, again.suspect_pages) == (0, {}, [])
    masked = vmstore.memory_store().import_file(file, session="s", redaction="mask")
    assert masked.suspects == {} and set(masked.masked) == {"api_key", "email", "password"}


@pytest.mark.parametrize("redaction", ["mask", "refuse"])
def test_a_request_id_that_holds_a_secret_is_refused(tmp_path: Path, redaction: str) -> None:
    """An id by which a retry is known cannot be masked: refused in a session that is new and in one that is not."""
    ask = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    with vmstore.open(tmp_path / "a.vms") as store:
        for number in range(2):
            with refused("hides-in-a-name"):
                store.record("s", ask, None, request_id=f"mail-{MAIL}", redaction=redaction)
            assert store.record("s", ask, None, request_id=f"r-{number}", redaction=redaction).call == number + 1
        assert store.record("s", ask, None, request_id="r-1").call == 2 and store.verify().ok
    assert not any(MAIL.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


@pytest.mark.parametrize("redaction", ["mask", "refuse"])
def test_a_batch_of_ones_own_cannot_be_let_past_the_door(tmp_path: Path, redaction: str) -> None:
    """What a batch hands out leads to nothing that switches redaction off, and takes no attribute of anybody's."""
    content = f"password={PASSWORD}".encode()
    with vmstore.open(tmp_path / "a.vms") as store:
        session = store.session("s", create=True, redaction=redaction)
        with session.batch() as batch:
            for name in ("passing", "redaction", "base", "place", "take", "redact", "_redaction"):
                assert not hasattr(batch, name)
                with pytest.raises(AttributeError):
                    setattr(batch, name, None)
            reached = {name for name in dir(batch) if not name.startswith("_")}
            properties = {"empty", "head", "position", "redacts", "spent"}
            assert reached == {"add", "cell", "commit", "end", "request"} | properties
            with pytest.raises(AttributeError):
                batch.redacts = False  # type: ignore[misc]
            batch.head.redaction = 0
            with refused("hides-in-a-name"):
                batch.request(f"mail-{MAIL}", b"")
            if redaction == "mask":
                created = Create(PageType.CLAIM, Modality.TEXT, Role.USER, 0, 0, batch.cell(content), len(content), 9)
                batch.add(created)
            else:
                with refused("hides-in-a-content"):
                    batch.cell(content)
        assert session.info().redactions == (redaction == "mask") and store.verify().ok
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(PASSWORD.encode() in data or MAIL.encode() in data for data in files)
