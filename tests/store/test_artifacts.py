"""Artifacts: files of a project with path and digest, and the prompts that hold them where somebody approved."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests.refusals import refused
from vmstore.core.address import page_position
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.decision import Signal, Use
from vmstore.core.mutation import FaultDenied, Reference
from vmstore.debug.events import happened
from vmstore.debug.rows import SessionRows
from vmstore.errors import ErasedError, InputError, RefusedError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store
from vmstore.vm.kernel.decide import decide
from vmstore.work import artifact

TEXT = "The vendor is Acme and its rate is 7 percent.\n" * 8
SECRET = "sk-ant-api03-" + "Zq8xW3vT" * 11 + "AA"


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a report."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.md").write_text(TEXT)
    return tmp_path


def asking(store: Store, name: str = "s1", **settings: Any) -> Live:
    """A session of Ann's in which files wait for approval, with a task."""
    settings = {"rules": "short", **settings}
    live = store.live_session(name, user="ann", l0_tokens_max=8_000, artifacts="ask", **settings)
    live.user("What does the report say?")
    live.work.plans.create("review", steps=["read", "judge"])
    return live


def sent(live: Live) -> str:
    """What the next call is sent."""
    request = json.dumps(live.pack().request)
    live.assistant("Fine.")
    return request


def mutations(store: Store) -> int:
    """How many mutations the log holds."""
    rows = list(store.query("MUTATIONS count(*) ACROSS SESSIONS"))
    return int(rows[0][0])


# ---- files


def test_a_file_is_held_to_the_byte_with_path_and_digest(store: Store, root: Path) -> None:
    """Its page has the bytes, its row the path below the project, the SHA-256 of the file and its task."""
    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root, task="review")
    assert live.content(file.page) == TEXT.encode()
    assert (file.path, file.sha256) == ("out/report.md", hashlib.sha256(TEXT.encode()).hexdigest())
    assert (file.bytes, file.mime, file.status) == (len(TEXT), "text/markdown", "active")
    assert file.task == live.work.plans.get("review").page
    assert live.work.artifacts.all() == live.work.artifacts.all(task="review") == [file]
    assert live.work.artifacts.get("out/report.md") == live.work.artifacts.get(file.page) == file
    assert store.query("ARTIFACTS path", session="s1").to_dicts() == [{"path": "out/report.md"}]


def test_said_again_nothing_is_written(store: Store, root: Path) -> None:
    """The same file as it was is the same artifact, by another way to it too."""
    live = asking(store)
    first = live.work.artifacts.add("out/report.md", root=root)
    before = mutations(store)
    assert live.work.artifacts.add(root / "out" / ".." / "out" / "report.md", root=root) == first
    assert mutations(store) == before


def test_a_changed_file_is_noticed_and_takes_the_place_of_the_earlier(store: Store, root: Path) -> None:
    """A check says changed and both digests; taken in again it is the artifact of the path, the past has its own."""
    live = asking(store)
    first = live.work.artifacts.add("out/report.md", root=root, task="review")
    assert [item.state for item in live.work.artifacts.check(root)] == ["same"]
    position = live.info().position
    (root / "out" / "report.md").write_text("The vendor is Bolt.")
    (actual,) = live.work.artifacts.check(root)
    assert (actual.state, actual.sha256) == ("changed", first.sha256) != ("same", actual.sha256_now)
    second = live.work.artifacts.add("out/report.md", root=root)
    assert live.work.artifacts.all() == [second] and second.task == first.task
    assert live.work.artifacts.all(position=position) == [first]
    assert live.content(first.page) == TEXT.encode()
    links = store.query("LINKS source, kind, target WHERE kind = supersedes", session="s1").to_dicts()
    assert [(link["source"], link["target"]) for link in links] == [(second.page, first.page)]


def test_a_file_that_is_gone_is_said_to_be_gone(store: Store, root: Path) -> None:
    """A check names it with the reason, and its bytes are in the log all the same."""
    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root)
    (root / "out" / "report.md").unlink()
    (actual,) = live.work.artifacts.check(root)
    assert actual.state == "gone" and "out/report.md" in (actual.why or "")
    assert live.content(file.page) == TEXT.encode()


def test_what_is_no_file_of_the_project_is_refused_whole(store: Store, root: Path) -> None:
    """Outside, by a link that leads out, gone, a folder, too large, no path: a code each, and nothing written."""
    live = asking(store)
    inner = root / "out"
    (inner / "link").symlink_to("/etc/hostname")
    large = inner / "large"
    with large.open("wb") as file:
        file.truncate(50 << 20)
    before = mutations(store)
    refusals: list[tuple[Any, str]] = [
        ("../secret", "outside-the-project"),
        ("/etc/hostname", "outside-the-project"),
        ("link", "outside-the-project"),
        (".", "outside-the-project"),
        ("none.md", "unreadable-file"),
        ("large", "too-large"),
        ("", "not-a-name"),
        (7, "not-a-name"),
    ]
    for path, code in refusals:
        with refused(code, InputError):
            live.work.artifacts.add(path, root=inner)
    with refused("unreadable-file", InputError):
        live.work.artifacts.add("out", root=root)
    with refused("no-plan", UnknownError):
        live.work.artifacts.add("report.md", root=inner, task="none")
    assert mutations(store) == before and live.work.artifacts.all() == []


def test_a_file_of_the_largest_size_is_taken_in(store: Store, tmp_path: Path) -> None:
    """Sixteen MiB are an artifact, a byte more is none."""
    (tmp_path / "a.bin").write_bytes(b"\x00" * artifact.BYTES_MAX)
    session = store.session("r", create=True)
    assert session.work.artifacts.add("a.bin", root=tmp_path).bytes == artifact.BYTES_MAX
    (tmp_path / "b.bin").write_bytes(b"\x00" * (artifact.BYTES_MAX + 1))
    with refused("too-large", InputError):
        session.work.artifacts.add("b.bin", root=tmp_path)


def test_a_recorded_session_has_artifacts_too(store: Store, root: Path) -> None:
    """Without a kernel a file is taken in, approved and told alike."""
    store.record("r", {"model": "m", "messages": [{"role": "user", "content": "Read it."}]})
    work = store.session("r").work
    file = work.artifacts.add("out/report.md", root=root)
    uri = f"artifact://{file.page}"
    assert work.digests.pack(500, expand=uri).denied == [uri], "nobody said that it lets files in"
    assert work.artifacts.approve(file.page, who="Ann").approval == "approved" and store.verify().ok
    assert not work.digests.pack(500, expand=uri).denied


# ---- approval


def test_a_file_enters_no_prompt_before_somebody_approved_it(store: Store, root: Path) -> None:
    """Asked for by the model or the program it is denied for want of approval, and no request holds a word of it."""
    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root)
    for by_model in (True, False):
        answer = live.page_fault("out/report.md", 0, by_model=by_model)
        assert (answer.granted, answer.denied_because) == (False, "approval")
    assert "Acme" not in sent(live)
    assert live.work.artifacts.get(file.page).refused == 2
    faults = store.query("FAULTS page, denied_because", session="s1").to_dicts()
    assert faults == [{"page": file.page, "denied_because": "approval"}] * 2


def test_an_approved_file_is_sent_and_a_denied_one_leaves(store: Store, root: Path) -> None:
    """Somebody's word is logged with who gave it; what is denied goes with the next call, pinned or not."""
    live = asking(store)
    live.work.artifacts.add("out/report.md", root=root)
    approved = live.work.artifacts.approve("out/report.md", who="Ann")
    assert (approved.approval, approved.approved_by) == ("approved", "Ann")
    assert live.page_fault("out/report.md", 0, by_model=True).granted and "Acme" in sent(live)
    live.pin("out/report.md")
    denied = live.work.artifacts.approve("out/report.md", who="Bea", granted=False)
    assert (denied.approval, denied.approved_by) == ("denied", "Bea")
    assert "Acme" not in sent(live)
    assert live.page_fault("out/report.md", 0).denied_because == "approval"
    with refused("not-approved", RefusedError, denied.page):
        live.pin("out/report.md")
    assert live.debug.check().difference is None and store.verify().ok


def test_a_denial_holds_where_files_are_allowed(store: Store, root: Path) -> None:
    """By itself a session lets files in; one that somebody denied stays out there too."""
    live = store.live_session("s1", l0_tokens_max=8_000, rules="short")
    live.user("Read it.")
    live.work.artifacts.add("out/report.md", root=root)
    assert "Acme" not in sent(live), "no prompt holds it before it is asked for"
    assert live.page_fault("out/report.md", 0, by_model=True).granted
    live.work.artifacts.approve("out/report.md", who="Ann", granted=False)
    assert "Acme" not in sent(live)


def test_an_approval_is_of_what_the_file_held(store: Store, root: Path) -> None:
    """A page with another content, and the next file of the path, wait for a word of their own; a denial goes on."""
    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root)
    live.work.artifacts.approve(file.page, who="Ann")
    live.page_fault(file.page, 0)
    live.update(file.page, "The vendor is Bolt.")
    assert "Bolt" not in sent(live) and not live.page_fault(file.page, 0).granted
    (root / "out" / "report.md").write_text("Other.")
    assert live.work.artifacts.add("out/report.md", root=root).approval is None
    assert live.page_fault("out/report.md", 0).denied_because == "approval"
    live.work.artifacts.approve(file.page, who="Ann", granted=False)
    live.update(file.page, "The vendor is Cora.")
    live.configure(artifacts="allow")
    assert not live.page_fault(file.page, 0).granted


def test_the_setting_takes_files_out_and_lets_them_in(store: Store, root: Path) -> None:
    """Where it changes to ask, what nobody approved leaves with the next call; with allow it may be asked for."""
    live = store.live_session("s1", l0_tokens_max=8_000, rules="short")
    live.user("Read it.")
    page = live.attach(TEXT.encode(), "text/plain", name="notes")
    assert "Acme" in sent(live)
    live.configure(artifacts="ask")
    assert "Acme" not in sent(live) and live.page_fault(page, 0).denied_because == "approval"
    live.configure(artifacts="allow")
    assert live.page_fault(page, 0).granted and "Acme" in sent(live)
    evicted = store.query("MUTATIONS page, reason WHERE kind = evict", session="s1").to_dicts()
    assert [row["reason"] for row in evicted if row["page"] == page] == ["asked", "unapproved"]


def test_what_was_retracted_leaves_as_that_beside_a_file_nobody_approved(store: Store) -> None:
    """Each of the two goes once, for its own reason."""
    live = store.live_session("s1", l0_tokens_max=8_000, rules="short")
    live.user("Read it.")
    page = live.attach(TEXT.encode(), "text/plain", name="notes")
    claim = live.work.atoms.add("fact", "Acme is in Naxos.")
    live.configure(artifacts="ask")
    live.delete(claim)
    sent(live)
    gone = store.query("MUTATIONS page, reason WHERE kind = evict AND reason != 'asked'", session="s1").to_dicts()
    assert {(row["page"], row["reason"]) for row in gone} == {(page, "unapproved"), (claim, "retracted")}
    assert len(gone) == 2


def test_the_kernel_wishes_for_no_file_nobody_approved(store: Store, root: Path) -> None:
    """A wish for it, as a replay under the setting has, brings nothing in; once somebody approved it does."""
    live = asking(store)
    page = page_position(live.work.artifacts.add("out/report.md", root=root).page) or 0

    def wished() -> list[str]:
        """The decisions that follow from a wish for the file."""

        def decided(runtime: Any) -> list[str]:
            wish = Reference(page, Use.SIGNAL, runtime.state.call, signal=Signal.TOPIC)
            return [type(each).__name__ for each in decide(runtime.state, [(page, wish)]).mutations]

        return live.look(decided)

    assert wished() == []
    live.work.artifacts.approve(page, who="Ann")
    assert wished() == ["Prefetch"]


def test_no_side_door_tells_what_waits(store: Store, root: Path) -> None:
    """Search of the model, its tools, recall, marks and the manifest say nothing of it but its name."""
    live = asking(store, rules="strict")
    file = live.work.artifacts.add("out/report.md", root=root)
    heard: list[str] = []

    @vmstore.tool
    def read(ctx: vmstore.ToolMemory) -> str:
        """Reads the report."""
        try:
            return str(ctx.get_page(file.page).content)
        except RefusedError as error:
            return error.code

    @vmstore.tool
    def look(ctx: vmstore.ToolMemory) -> str:
        """Looks for the vendor."""
        return ", ".join(str(page.content) for page in ctx.search_pages("vendor rate percent"))

    asked = iter([("search_pages", {"query": "vendor rate percent"}), ("read", {}), ("look", {}), None])

    def model(request: dict[str, Any]) -> dict[str, Any]:
        heard.append(json.dumps(request))
        call = next(asked)
        message: dict[str, Any] = {"role": "assistant", "content": "So."}
        if call is not None:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"id": f"c{len(heard)}", "type": "function", "function": function}]
        return {"choices": [{"message": message}]}

    live.run(model, tools={"read": read, "look": look})
    assert not [request for request in heard if "Acme" in request]
    assert "not-approved" in heard[-1]
    known = live.developer_message
    assert "out/report.md" in known and "Acme" not in known
    assert "Acme" not in str(live.memory.recall("vendor rate percent"))
    assert "Acme" not in str(live.memory.find_quote("The vendor is Acme"))
    live.mark("here", [file.page])
    live.restore("here")
    assert "Acme" not in sent(live)


def test_a_word_says_who_and_is_of_a_file(store: Store, root: Path) -> None:
    """An approval of nobody, of what is no file, of nothing there is, is refused and writes nothing."""
    live = asking(store)
    live.work.artifacts.add("out/report.md", root=root)
    before = mutations(store)
    for who in ("", 7, "a\nb"):
        with refused("not-a-text", InputError):
            live.work.artifacts.approve("out/report.md", who=who)  # type: ignore[arg-type]
    plan = live.work.plans.get("review").page
    for name in (plan, "none.md"):
        with refused("no-artifact", UnknownError):
            live.work.artifacts.approve(name, who="Ann")
    assert mutations(store) == before


# ---- everywhere


def test_a_fork_has_the_words_from_before_it(store: Store, root: Path) -> None:
    """What was approved before the fork may be asked for there, what is denied there stays in its parent."""
    live = asking(store)
    live.work.artifacts.add("out/report.md", root=root)
    early = live.fork("early")
    live.work.artifacts.approve("out/report.md", who="Ann")
    late = live.fork("late")
    assert early.page_fault("out/report.md", 0).denied_because == "approval"
    assert late.page_fault("out/report.md", 0).granted
    late.work.artifacts.approve("out/report.md", who="Bea", granted=False)
    assert live.page_fault("out/report.md", 0).granted
    assert live.work.artifacts.get("out/report.md").approval == "approved"
    uri = f"artifact://{live.work.artifacts.get('out/report.md').page}"
    assert (
        late.work.digests.pack(500, expand=uri).denied == [uri] and not live.work.digests.pack(500, expand=uri).denied
    )


def test_what_was_approved_holds_after_a_rebuild_and_a_reopening(tmp_path: Path, root: Path) -> None:
    """Another process, and rebuilt views, give the rows and the prompt that were there."""
    path = tmp_path / "agent.vms"
    with vmstore.open(path) as store:
        live = asking(store)
        live.work.artifacts.add("out/report.md", root=root)
        (root / "b.md").write_text("Bolt offers 9 percent.")
        live.work.artifacts.add("b.md", root=root)
        live.work.artifacts.approve("out/report.md", who="Ann")
        rows = store.query("ARTIFACTS", session="s1").to_dicts()
        store.admin.rebuild()
        assert store.query("ARTIFACTS", session="s1").to_dicts() == rows and store.verify().ok
    with vmstore.open(path) as store:
        live = store.live_session("s1")
        assert live.page_fault("out/report.md", 0).granted
        assert live.page_fault("b.md", 0).denied_because == "approval"


def test_an_erased_file_is_gone_with_path_and_digest(store: Store, root: Path) -> None:
    """Its row tells neither, asked for it is said to be erased, and what is there verifies."""
    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root)
    live.work.artifacts.approve(file.page, who="Ann")
    store.trust.erase(page=f"s1/{file.page}")
    assert [file for file in live.work.artifacts.all() if file.path or file.sha256] == []
    with refused("no-artifact", UnknownError):
        live.work.artifacts.get("out/report.md")
    with refused("erased", ErasedError):
        live.content(file.page)
    assert live.work.artifacts.check(root) == [] and store.verify().ok


def test_a_masking_session_keeps_no_secret_and_no_digest_of_one(store: Store, root: Path) -> None:
    """Of a file in which something is masked no digest is kept, and a check says so."""
    live = store.live_session("s1", l0_tokens_max=8_000, redaction="mask")
    live.user("Read it.")
    (root / "keys.txt").write_text(f"The key is {SECRET}.")
    file = live.work.artifacts.add("keys.txt", root=root)
    assert file.sha256 is None and SECRET.encode() not in live.content(file.page)
    assert [item.state for item in live.work.artifacts.check(root)] == ["masked"]
    assert live.work.artifacts.add("out/report.md", root=root).sha256 is not None


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "masked"])
def test_a_bundle_carries_files_and_words(tmp_path: Path, root: Path, exact: bool) -> None:
    """A bundle brings the rows of files, what was said of each too, and the store that takes it verifies."""
    with vmstore.open(tmp_path / "a.vms") as store:
        live = asking(store)
        live.work.artifacts.add("out/report.md", root=root, task="review")
        live.work.artifacts.approve("out/report.md", who="Ann")
        rows = store.query("ARTIFACTS page, path, sha256, task, approval", session="s1").to_dicts()
        store.export(tmp_path / "out.jsonl", ["s1"], exact=exact)
    with vmstore.open(tmp_path / "b.vms") as other:
        other.import_file(tmp_path / "out.jsonl", exact=exact)
        assert other.query("ARTIFACTS page, path, sha256, task, approval", session="s1").to_dicts() == rows
        assert other.verify().ok


def test_a_bundle_brings_no_word_to_a_session_that_is_here_unasked(tmp_path: Path, root: Path) -> None:
    """An exact bundle that would let a file into the prompts of a session here is refused, unless somebody agrees."""
    with vmstore.open(tmp_path / "a.vms") as store:
        live = asking(store)
        live.work.artifacts.add("out/report.md", root=root)
        store.export(tmp_path / "first.jsonl", ["s1"], exact=True)
        live.work.artifacts.approve("out/report.md", who="Ann")
        store.export(tmp_path / "second.jsonl", ["s1"], exact=True)
    with vmstore.open(tmp_path / "b.vms") as other:
        other.import_file(tmp_path / "first.jsonl", exact=True)
        with refused("effect-not-allowed", RefusedError, "approved"):
            other.import_file(tmp_path / "second.jsonl", exact=True)
        other.import_file(tmp_path / "second.jsonl", exact=True, agreed=True)


def test_a_word_cannot_be_written_by_hand(store: Store, root: Path) -> None:
    """A batch takes no approval: it says which door writes one."""
    from vmstore.core.mutation import Approve

    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root)
    with refused("commands_write_it", RefusedError), live.batch() as batch:
        batch.add(Approve(1, page=int(file.page[1:])))


def test_a_redriven_session_has_the_words_of_its_source(store: Store, root: Path) -> None:
    """What was approved in a session holds in the one that it is driven into again."""
    store.record("r", {"model": "m", "messages": [{"role": "user", "content": "Read it."}]})
    source = store.session("r").work.artifacts
    source.add("out/report.md", root=root)
    again = store.admin.redrive("r", "before", l0_tokens_max=8_000, artifacts="ask")
    assert again.page_fault("out/report.md", 0).denied_because == "approval"
    source.approve("out/report.md", who="Ann")
    again = store.admin.redrive("r", "after", l0_tokens_max=8_000, artifacts="ask")
    assert again.work.artifacts.get("out/report.md").approval == "approved"
    assert again.page_fault("out/report.md", 0).granted


def test_what_the_log_says_of_a_denial_is_a_decision(store: Store, root: Path) -> None:
    """The denial is a `fault_denied` with its contest, which a replay decides alike."""
    live = asking(store)
    live.work.artifacts.add("out/report.md", root=root)
    live.page_fault("out/report.md", 0, by_model=True)
    kinds = [row["kind"] for row in store.query("MUTATIONS kind", session="s1").to_dicts()]
    assert kinds.count(FaultDenied(0, 0, 0, None).kind) == 1  # type: ignore[arg-type]
    assert live.debug.check().difference is None


def test_the_debugger_tells_who_said_what_of_a_file(store: Store, root: Path) -> None:
    """An approval and a denial are events of the page, each with who gave it."""
    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root)
    live.work.artifacts.approve(file.page, who="Ann")
    live.work.artifacts.approve(file.page, who="Bea", granted=False)
    lane = live._lane()
    rows = SessionRows(lane, store.admin.log, live.info().position)
    reasons = [event.why for event in happened(lane, store.admin.log, rows) if event.kind == "approve"]
    assert reasons == ["approved by Ann", "denied by Bea"]


def test_a_file_of_a_region_waits_for_a_word_here(store_path: Path, root: Path) -> None:
    """Approved in its region or not, a file that a session copies from there waits for approval of its own."""
    with vmstore.open(store_path, namespace="lessons") as keeper:
        theirs = keeper.session("offers", create=True).work.artifacts
        file = theirs.add("out/report.md", root=root)
        theirs.approve(file.page, who="Ann")
        vmstore.share(keeper, "session:team-a/s1")
    with vmstore.open(store_path, namespace="team-a") as home:
        live = asking(home)
        answer = live.page_fault(f"vm://lessons/offers/{file.page}", 0, by_model=True)
        assert (answer.granted, answer.denied_because) == (False, "approval")
        assert "Acme" not in sent(live)
        live.work.artifacts.approve(answer.page, who="Bea")
        assert live.page_fault(answer.page, 0, by_model=True).granted and home.verify().ok


def test_the_async_twin_takes_files_in_and_asks(root: Path) -> None:
    """Awaited, a file is taken in, denied, approved and packed, an atom stated and a brief written, all alike."""

    async def work() -> None:
        async with vmstore.aio.memory_store() as store:
            live = await store.live_session("s1", user="ann", l0_tokens_max=8_000, artifacts="ask")
            await live.user("What does the report say?")
            await live.work.plans.create("review")
            file = await live.work.artifacts.add("out/report.md", root=root, task="review")
            assert (await live.page_fault(file.page, 0)).denied_because == "approval"
            assert (await live.work.artifacts.approve(file.page, who="Ann")).approval == "approved"
            page = await live.work.atoms.add("question", "Is it usual?", task="review")
            assert [atom.page for atom in await live.work.atoms.all(task="review")] == [page]
            packed = await live.work.digests.pack(900, expand=[f"artifact://{file.page}"])
            assert "Acme" in packed.text and [checked.state for checked in await live.work.artifacts.check(root)] == [
                "same"
            ]
            assert (await live.work.digests.write("review", "It waits.")).short == "It waits."
            assert (await live.work.digests.report("review", root, topic="x")).markdown.is_file()
            assert [task.title for task in await store.work.tasks(user="ann")] == ["review"]
            assert await live.work.digests.tasks() == await store.work.tasks()

    asyncio.run(work())


def test_another_session_of_the_user_recalls_no_file_that_waits(store: Store, root: Path) -> None:
    """A file is told to no other session before somebody approved it in its own, and to no recall once it is denied."""
    live = asking(store)
    live.work.artifacts.add("out/report.md", root=root)
    other = asking(store, "s2", remembers="user")
    other.user("What rate does the vendor ask, in percent?")
    assert "Acme" not in str(other.memory.recall_user("vendor rate percent")) + sent(other)
    live.work.artifacts.approve("out/report.md", who="Ann")
    assert "Acme" in str(other.memory.recall_user("vendor rate percent"))
    recorded = store.session("r", create=True)
    file = recorded.work.artifacts.add("out/report.md", root=root)
    assert "Acme" in str(recorded.memory.recall("vendor rate percent"))
    recorded.work.artifacts.approve(file.page, who="Ann", granted=False)
    assert "Acme" not in str(recorded.memory.recall("vendor rate percent"))


def test_an_approval_of_an_earlier_content_opens_nothing(store: Store, root: Path) -> None:
    """A file whose page got another content since is packed for no host, and its row tells no approval."""
    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root)
    live.work.artifacts.approve(file.page, who="Ann")
    assert "Acme" in live.work.digests.pack(500, expand=[f"artifact://{file.page}"]).text
    live.update(file.page, "The vendor is Acme & Sons.")
    assert live.work.artifacts.get(file.page).approval is None
    assert live.work.digests.pack(500, expand=[f"artifact://{file.page}"]).denied == [f"artifact://{file.page}"]
    live.work.artifacts.approve(file.page, who="Ann")
    assert "Sons" in live.work.digests.pack(500, expand=[f"artifact://{file.page}"]).text


def test_a_denial_goes_on_where_the_file_changes(store: Store, root: Path) -> None:
    """What somebody denied is packed and recalled nowhere with another content either, even where files are allowed."""
    live = asking(store)
    file = live.work.artifacts.add("out/report.md", root=root)
    live.work.artifacts.approve(file.page, who="Ann", granted=False)
    live.configure(artifacts="allow")
    live.update(file.page, "The vendor is Acme & Sons.")
    assert live.work.digests.pack(500, expand=[f"artifact://{file.page}"]).denied == [f"artifact://{file.page}"]
    assert "Sons" not in str(asking(store, "s2", remembers="user").memory.recall_user("vendor sons"))
