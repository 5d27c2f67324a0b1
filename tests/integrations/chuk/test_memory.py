"""A memory over a store: what it answers is in the log, and the log gives it back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused

pytest.importorskip("pydantic", reason="runs with the extra `chuk`")

from vmstore.integrations.chuk import (
    CompressionLevel,
    CompressorRegistry,
    MemoryManager,
    Modality,
    MutationType,
    PageType,
    StorageTier,
    TextCompressor,
    VMMode,
    WorkingSetConfig,
    using,
)
from vmstore.store.store import Store

CONFIG = WorkingSetConfig(max_l0_tokens=300, reserved_tokens=0)
LINE = "The harbour master is Olga, and the ferry leaves at nine. "


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory."""
    with vmstore.memory_store() as opened:
        yield opened


def memory(store: Store, **options: Any) -> MemoryManager:
    """A memory of 300 tokens, in the session `chuk/trip`."""
    return MemoryManager("trip", config=CONFIG, store=store, **options)


def filled(store: Store, pages: int = 6, **options: Any) -> MemoryManager:
    """The same with pages of 120 tokens in it, of which two or three fit."""
    made = memory(store, **options)
    made.new_turn()
    for number in range(pages):
        page = made.create_page(LINE * 8 + str(number), page_id=f"note{number}", hint=f"note {number}")
        asyncio.run(made.add_to_working_set(page))
    return made


def standing(made: MemoryManager) -> dict[str, Any]:
    """A memory as its users can read it, without counts of what its buffers answered."""
    stats = made.get_stats().model_dump(exclude={"tlb", "pack_cache", "fault_handler"})
    return {
        "stats": stats,
        "mutations": [mutation.model_dump() for mutation in made.mutation_log.get_all_mutations()],
        "contexts": [made.mutation_log.get_context_at_turn(turn) for turn in range(made.turn + 1)],
        "pages": {
            page_id: (page.content, page.compression_level, page.storage_tier, page.size_tokens, page.pinned)
            for page_id, page in made._page_store.items()
        },
        "table": {
            page_id: entry.model_dump(exclude={"last_accessed", "access_count"})
            for page_id, entry in made.page_table.entries.items()
        },
        "prompt": made.working_set.get_l0_page_ids(),
        "weights": made.working_set.importance_overrides,
        "hints": made._page_hints,
    }


def test_a_memory_opened_again_stands_as_it_stood(tmp_path: Path) -> None:
    """Pages, tiers, levels, pins, weights, mutations and contexts come back from the files, with the next prompt."""
    with vmstore.open(tmp_path / "agent.vms") as store:
        made = filled(store, compressor_registry=CompressorRegistry.default())
        made.pin_page("note5")
        made.working_set.set_importance("note4", 0.9)
        asyncio.run(made.handle_fault("note0", 0))
        before, sent = standing(made), made.build_context(model_id="m-1").developer_message
    with vmstore.open(tmp_path / "agent.vms") as store:
        again = memory(store)
        assert standing(again) == before
        assert again.build_context(model_id="m-1").developer_message == sent


@pytest.mark.parametrize("seed", range(6))
def test_the_fold_of_any_acts_is_the_memory_that_did_them(store: Store, seed: int) -> None:
    """After each of forty acts at random a memory that is folded from the log stands as the one that did them."""
    chance = random.Random(seed)
    made = memory(store, compressor_registry=CompressorRegistry.default())
    for number in range(40):
        act(made, chance, number)
    assert standing(memory(store)) == standing(made)
    assert store.verify().ok


def act(made: MemoryManager, chance: random.Random, number: int) -> None:
    """One act at random, where there is a page for it."""
    pages = list(made.page_table.entries)
    if not pages or chance.random() < 0.3:
        content = chance.choice([LINE * chance.randint(1, 9), {"answer": number}, None, LINE.encode()])
        kind = chance.choice(list(PageType))
        sources = pages[:1] if chance.random() < 0.5 else []
        page = made.create_page(content, page_type=kind, page_id=f"p{number}", provenance=sources)
        asyncio.run(made.add_to_working_set(page))
        return
    page_id = chance.choice(pages)
    match chance.randint(0, 8):
        case 0:
            made.new_turn()
        case 1:
            asyncio.run(made.evict_page(page_id, chance.choice([StorageTier.L2, StorageTier.L3])))
        case 2 | 3:
            asyncio.run(made.handle_fault(page_id, chance.choice(list(CompressionLevel))))
        case 4:
            asyncio.run(made.compress_page(page_id, chance.choice(list(CompressionLevel))))
        case 5:
            made.pin_page(page_id) if chance.random() < 0.5 else made.unpin_page(page_id)
        case 6:
            made.update_page(page_id, f"It is {number} now.")
        case 7:
            made.delete_page(page_id)
        case 8:
            made.build_context(mode=chance.choice(list(VMMode)), token_budget=chance.choice([None, 100]))


def test_each_call_is_sent_again_as_it_was(store: Store) -> None:
    """What each of three calls was sent is made again of the log to the letter, whatever happened since."""
    made, sent = memory(store, compressor_registry=CompressorRegistry.default()), []
    for number in range(3):
        made.new_turn()
        page = made.create_page(LINE * 9, page_id=f"note{number}", hint="the harbour")
        asyncio.run(made.add_to_working_set(page))
        sent.append(made.build_context(model_id="m-1", system_prompt="Be brief.", token_budget=200))
    made.delete_page("note1")
    again = [made.recall_context(call).developer_message for call in (1, 2, 3)]
    assert again == [context.developer_message for context in sent]
    assert len(set(again)) == 3


def test_a_context_of_the_store_is_what_was_packed(store: Store) -> None:
    """`session.context` answers of a call with the pages packed for it, in their order, as they were shown."""
    made = filled(store, 3)
    made.build_context()
    session = store.session("chuk/trip")
    hints = [session.page(page).anchors["page_id"] for page in session.context(1).page_ids]
    assert hints == made.working_set.get_l0_page_ids()
    assert list(session.context(1).contents().values())[-1].decode() == LINE * 8 + "2"


def test_a_shortened_page_comes_back_whole(store: Store) -> None:
    """A page that was shortened, put away and asked for at level 0 comes back with every byte."""
    made = memory(store, compressor_registry=CompressorRegistry.default())
    page = made.create_page(LINE * 8, page_id="note")
    asyncio.run(made.add_to_working_set(page))
    asyncio.run(made.compress_page("note", CompressionLevel.REFERENCE))
    asyncio.run(made.evict_page("note", StorageTier.L3))
    fault = asyncio.run(made.handle_fault("note", 0))
    assert fault.page is not None and fault.page.content == LINE * 8
    assert fault.page.compression_level is CompressionLevel.FULL


def test_a_page_that_nothing_can_shorten_says_that_it_is_whole(store: Store) -> None:
    """Without compressors a page that is asked for as an abstract comes whole, and its level says so."""
    made = memory(store)
    made.create_page(LINE, page_id="note")
    fault = asyncio.run(made.handle_fault("note", CompressionLevel.ABSTRACT))
    assert fault.page is not None and fault.page.compression_level is CompressionLevel.FULL
    assert not fault.was_compressed


def test_an_eviction_tells_its_contest(store: Store) -> None:
    """The log says for which page another went, what was used and needed, and which would have gone next."""
    made = filled(store, 4)
    (gone,) = [m for m in made.mutation_log.get_mutations_by_type(MutationType.EVICT) if m.page_id == "note0"]
    made.build_context()
    (answer, *_) = store.query(f"WHY NOT {gone.mutation_id.partition('@')[0]} IN CONTEXT", session="chuk/trip")
    assert "a policy of the program's own" in str(answer)
    assert "of 300 tokens were used" in str(answer)


def test_a_change_stays_in_the_past(store: Store) -> None:
    """A page that was changed answers for a moment before with the content it had, and its mutation has a payload."""
    made = memory(store)
    made.create_page("It leaves at nine.", page_id="ferry")
    before = made.session.info().position
    made.update_page("ferry", "It leaves at ten.")
    page = made.session.pages()[0].page
    assert made.session.content(page, position=before) == b"It leaves at nine."
    assert made.session.content(page) == b"It leaves at ten."
    assert made.mutation_log.get_mutations_by_type(MutationType.UPDATE)[0].page_id == "ferry"


def test_a_tier_is_known_as_of_any_moment(store: Store) -> None:
    """The tier a page had at a moment is an anchor of it as of that moment."""
    made = filled(store, 1)
    before = made.session.info().position
    asyncio.run(made.evict_page("note0", StorageTier.L3))
    assert made.session.pages(position=before)[0].anchors["tier"] == "L0"
    assert made.session.pages()[0].anchors["tier"] == "L3"


def test_a_denied_fault_is_logged(store: Store) -> None:
    """A request for a page nobody knows is in the log with the id that was asked for."""
    made = filled(store, 1)
    assert not asyncio.run(made.handle_fault("nobody")).success
    (fault,) = store.query("FAULTS denied_because WHERE granted = false", session="chuk/trip")
    assert fault == ("no_page",)


def test_a_search_finds_texts_that_are_away(store: Store) -> None:
    """A page that was put away, with no hint, is found by a word of its text."""
    made = memory(store)
    made.create_page(LINE, page_id="note")
    asyncio.run(made.evict_page("note", StorageTier.L4))
    assert [entry.page_id for entry in asyncio.run(made.search_pages("harbour")).results] == ["note"]


def test_a_search_keeps_to_a_modality(store: Store) -> None:
    """A search of pictures finds no text."""
    made = memory(store)
    made.create_page(LINE, page_id="note")
    made.create_page("https://harbour/map.png", page_id="map", modality=Modality.IMAGE, hint="map of the harbour")
    assert [entry.page_id for entry in asyncio.run(made.search_pages("harbour", "image")).results] == ["map"]


def test_another_id_is_a_fork(store: Store) -> None:
    """A memory that goes on under another id shares its past, and the session before stays as it was."""
    made = filled(store, 2)
    made.update_session_id("trip-2")
    made.create_page("More.", page_id="more")
    assert set(memory(store).page_table.entries) == {"note0", "note1"}
    assert set(MemoryManager("trip-2", store=store).page_table.entries) == {"note0", "note1", "more"}


def test_an_id_that_has_a_session_is_refused(store: Store) -> None:
    """A memory with pages does not go on under an id that has others."""
    made = filled(store, 1)
    MemoryManager("other", store=store).create_page("Mine.")
    with refused("name-taken", vmstore.ConflictError, "chuk/other"):
        made.update_session_id("other")


def test_a_second_writer_is_not_written_over(store: Store) -> None:
    """A memory whose session somebody else wrote to refuses to go on from what it does not know."""
    made, other = filled(store, 1), memory(store)
    other.create_page("Theirs.", page_id="theirs")
    with refused("overtaken", vmstore.OvertakenError, "chuk/trip"):
        made.create_page("Mine.", page_id="mine")
    assert "mine" not in made.page_table
    assert "theirs" in memory(store).page_table


def test_an_erased_page_is_nowhere(store: Store) -> None:
    """A page that was erased is in the memory no more, its content in no file, and what it was sent in says so."""
    made = filled(store, 2)
    made.build_context()
    store.trust.erase(page=made.session.pages()[0].page, in_session="chuk/trip")
    again = memory(store)
    assert list(again.page_table.entries) == ["note1"]
    with pytest.raises(vmstore.ErasedError):
        again.recall_context(1)
    assert store.verify().ok


def test_a_secret_is_masked_in_the_memory_too(store: Store) -> None:
    """In a session that masks secrets a page and its hint are masked in memory as in the log, and in what is sent."""
    store.session("chuk/trip", create=True, redaction="mask")
    made = filled(store, 1, compressor_registry=CompressorRegistry.default())
    page = made.create_page("Write to bob@example.com. " * 4, page_id="mail", hint="bob@example.com")
    asyncio.run(made.add_to_working_set(page))
    asyncio.run(made.handle_fault("mail", CompressionLevel.REFERENCE))
    sent = made.build_context().developer_message
    assert "bob@" not in page.content + sent + made._page_hints["mail"]
    assert made.recall_context(1).developer_message == sent
    assert standing(memory(store)) == standing(made)


def test_an_id_is_given_once(store: Store) -> None:
    """A second page of one id is refused."""
    made = filled(store, 1)
    with refused("input", vmstore.InputError, "note0"):
        made.create_page("Another.", page_id="note0")


def test_what_json_cannot_hold_is_refused_whole(store: Store) -> None:
    """A page whose content would not come back equal is refused, and nothing of it is there."""
    made = memory(store)
    with refused("input", vmstore.InputError, "JSON"):
        made.create_page({"share": float("nan")}, page_id="odd")
    assert "odd" not in made.page_table


def test_a_pin_of_no_page_is_refused(store: Store) -> None:
    """A page nobody made cannot be pinned."""
    with refused("no-page", vmstore.UnknownError, "nobody"):
        memory(store).pin_page("nobody")


def test_bytes_come_back_as_bytes(store: Store) -> None:
    """A picture's bytes are read back equal."""
    made = memory(store)
    made.create_page(b"\x89PNG\x00\xff", page_id="map", modality=Modality.IMAGE)
    page = memory(store)._page_store["map"]
    assert page.content == b"\x89PNG\x00\xff"


def test_a_memory_without_a_store_keeps_to_the_one_in_use(store: Store) -> None:
    """Within `using` a memory that is given no store keeps its pages in the one that is named."""
    with using(store):
        MemoryManager("trip").create_page(LINE, page_id="note")
    assert "note" in memory(store).page_table


def test_two_memories_without_a_store_share_nothing() -> None:
    """Two memories of one id that were given no store are two."""
    MemoryManager("trip").create_page(LINE, page_id="note")
    assert "note" not in MemoryManager("trip").page_table


class Waiting(TextCompressor):
    """A compressor that lets others go on while it works, as one that asks a model."""

    async def compress(self, page: Any, level: Any) -> Any:
        """The page, after a while."""
        await asyncio.sleep(0)
        return await super().compress(page, level)


def test_tasks_that_act_at_once_leave_what_the_log_says(store: Store) -> None:
    """Of acts that wait for a compressor together each decides over the memory as it stands when it writes."""
    made = memory(store, compressor_registry=CompressorRegistry({Modality.TEXT: Waiting()}))
    made.new_turn()
    pages = [made.create_page(LINE * 8 + str(number), page_id=f"note{number}") for number in range(6)]

    async def together() -> None:
        added = [made.add_to_working_set(page) for page in pages]
        shortened = [made.compress_page(page.page_id, CompressionLevel.ABSTRACT) for page in pages[:3]]
        faults = [made.handle_fault(page.page_id, 0) for page in pages]
        await asyncio.gather(*added, *shortened, *faults, *(made.evict_page(page.page_id) for page in pages[:2]))

    asyncio.run(together())
    assert standing(memory(store)) == standing(made)
    assert made.working_set.tokens_used <= CONFIG.max_l0_tokens
    assert made.get_stats().fault_handler.faults_this_turn <= made._fault_policy.max_faults_per_turn
