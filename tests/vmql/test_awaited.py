"""Queries awaited: the same answers, taken by a task, stopped by another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import vmstore
import vmstore.aio as aio
from vmstore.shell.demo.demo import SHIPPED
from vmstore.vmql.syntax.errors import QueryError

TEXTS = ("PAGES LIMIT 300", "CONTEXT AT CALL 200", "MUTATIONS position, kind WHERE kind = pack", "SESSIONS")


def test_an_awaited_query_is_the_same_answer() -> None:
    """Rows, columns, basis, kind and cursor are those of the sync store."""

    async def asked() -> list[Any]:
        async with aio.memory_store() as store:
            await store.import_file(SHIPPED)
            actual_rows = []
            for text in TEXTS:
                result = await store.query(text)
                rows = [row async for row in result]
                actual_rows.append((rows, result.columns, result.basis, result.kind, result.next))
            dicts = await (await store.query(TEXTS[1])).to_dicts()
            other_text = await (await store.query(TEXTS[3])).to_json()
            return [actual_rows, dicts, other_text["rows"]]

    statement, dicts, number = asyncio.run(asked())
    with vmstore.memory_store() as store:
        store.import_file(SHIPPED)
        for text, answer in zip(TEXTS, statement, strict=True):
            result = store.query(text)
            rows = list(result)
            assert answer == (rows, result.columns, result.basis, result.kind, result.next), text
        assert dicts == store.query(TEXTS[1]).to_dicts()
        assert number[0]["session"] == "planning-220"


def test_a_task_stops_what_another_takes() -> None:
    """A cancelled result and an interrupted store end in a QueryError with the code `cancelled`."""

    async def stopped(interrupt: bool) -> str:
        async with aio.memory_store() as store:
            await store.import_file(SHIPPED)
            result = await store.query("MUTATIONS")
            taken = 0
            with pytest.raises(QueryError) as caught:
                async for _ in result:
                    taken += 1
                    if taken == 1:
                        await (store.admin.interrupt() if interrupt else result.cancel())
            return caught.value.code

    assert [asyncio.run(stopped(case)) for case in (True, False)] == ["cancelled"] * 2
