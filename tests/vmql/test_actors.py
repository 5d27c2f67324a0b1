"""MUTATIONS says of each mutation who did it, and which one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vmstore
from tests.golden.make_golden import kinds
from vmstore.core.mutation import Unknown, decode
from vmstore.vmql.relations.actors import actor_of

ASKED = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def answer(text: str | None, calls: list[Any] | None = None) -> dict[str, Any]:
    """A provider's response."""
    fields = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    return {"choices": [{"message": fields, "finish_reason": "stop"}], "model": "m-1"}


def actors_of(store: vmstore.Store, session: str, condition: str = "") -> list[tuple[str, str | None, str | None]]:
    """The kinds of a session's mutations, with who did each."""
    rows = store.query(f"MUTATIONS kind, actor, actor_id {condition}", session=session).to_dicts()
    return [(row["kind"], row["actor"], row["actor_id"]) for row in rows]


def test_a_live_session_says_who_did_what(tmp_path: Path) -> None:
    """User, model, tool, finder and policy are told by name, in another process and in a fork as well."""
    with vmstore.open(tmp_path / "s") as store:
        session = store.live_session("s", l0_tokens_max=2_500, user="ann", policy="lru", rules="passive")
        session.user("Let's use Postgres for the billing.")
        responses = [answer(None, [ASKED]), answer("Postgres for the billing, all of it. " * 90)]
        session.run(lambda request: responses.pop(0), tools={"read": lambda: "tables " * 900})
        session.user("And?")
        session.pack()
        session.fork("other").user("Or not?")
    with vmstore.open(tmp_path / "s", "r") as store:
        rows = set(actors_of(store, "s"))
        assert rows >= {
            ("turn", "user", "ann"),
            ("create", "user", "ann"),
            ("create", "system", "claims@3"),
            ("create", "model", "m-1"),
            ("reply", "model", "m-1"),
            ("create", "tool", "read"),
            ("evict", "system", "lru@1"),
            ("settings", "system", None),
        }
        assert all(actor in ("user", "model", "tool", "system") for _, actor, _ in rows)
        assert actors_of(store, "other")[-1][0] != "open" and ("create", "user", "ann") in actors_of(store, "other")
        pages = store.query(
            "MUTATIONS page WHERE actor = 'tool' AND actor_id = 'read' AND kind = create", session="s"
        ).to_dicts()
        assert [row["page"] for row in pages] == [page.page for page in store.session("s").pages(role="tool")]


def test_what_was_erased_names_nobody() -> None:
    """A tool whose call was erased is a tool still, and nobody knows which."""
    with vmstore.memory_store() as store:
        messages = [
            {"role": "user", "content": "Read it."},
            {"role": "assistant", "content": None, "tool_calls": [ASKED]},
            {"role": "tool", "tool_call_id": "c1", "content": "A text."},
        ]
        store.record("s", {"model": "m-1", "messages": messages}, answer("Done."))
        assert ("create", "tool", "read") in actors_of(store, "s")
        (call,) = (page.page for page in store.session("s").pages(role="assistant") if page.modality == "structured")
        vmstore.erase(store, page=call, in_session="s", reason="mistake")
        assert ("create", "tool", None) in actors_of(store, "s") and ("create", "tool", "read") not in actors_of(
            store, "s"
        )


def test_every_kind_has_an_actor() -> None:
    """Of each kind that is written somebody did it, of one that this version does not know nobody knows who."""
    actors = {type(item): actor_of(item) for form in kinds().values() for item in decode(bytes.fromhex(form))}
    assert len(actors) > 25 and set(actors.values()) <= {"user", "model", "tool", "system"}
    assert actor_of(Unknown(999, b"")) is None
