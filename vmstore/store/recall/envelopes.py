"""What the recall tools answer a model: the same as Python gets, as plain JSON with days in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vmstore.core.times import iso
from vmstore.store.recall.results import FactsFound, FoundQuotes, Overview, RecallAnswer
from vmstore.store.recall.topic_texts import TopicSession, TopicTexts, topic_texts

if TYPE_CHECKING:
    from vmstore.store.recall.memory import SessionMemory


def topic_json(session: TopicSession, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a session's memory answers where it is to tell more of a topic, or less: it does so from then on."""
    tag, depth = given["tag"], given["depth"]
    if tool == "collapse_topic":
        session.memory.tags.collapse(tag, depth)
        return {"tag": tag, "depth": depth}
    found = topic_texts(session, tag, depth, given["tokens"])
    session.memory.tags.expand(tag, depth)
    return topic_envelope(tag, depth, found)


def recalled_json(memory: SessionMemory, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a session's memory answers to a tool that only reads, as the model gets it."""
    if tool == "query_facts":
        return facts_envelope(memory.facts.query(**given))
    if tool == "find_quote":
        return quotes_envelope(memory.find_quote(given["text"]))
    if tool == "recall_all":
        return overview_envelope(memory.recall_all(tokens=given["tokens"]))
    preset, start, end = (given.get(name) for name in ("preset", "start", "end"))
    query = given.get("query") or None
    return recall_envelope(memory.remember_when(query, preset=preset, start=start, end=end, tokens=given["tokens"]))


def quotes_envelope(found: FoundQuotes) -> dict[str, Any]:
    """The answer of find_quote."""
    quotes = [
        {
            "page_id": quote.page,
            "session": _day(quote.session_at_us),
            "role": quote.role,
            "match": quote.match,
            "excerpt": quote.excerpt,
            "tags": quote.tags,
        }
        for quote in found.quotes
    ]
    return _noted({"quotes": quotes, "total_available": found.total_available}, found.note)


def recall_envelope(recall: RecallAnswer) -> dict[str, Any]:
    """The answer of remember_when."""
    passages = [
        {
            "session": _day(passage.at_us),
            "texts": [{"page_id": text.page, "role": text.role, "text": text.text} for text in passage.texts],
            **({"copies": passage.copies} if passage.copies else {}),
        }
        for passage in recall.passages
    ]
    answer: dict[str, Any] = {"passages": passages, "total_available": recall.total_available}
    if recall.left_out:
        answer["left_out"] = recall.left_out
    for name, at in (("from", recall.from_us), ("to", recall.to_us)):
        if at is not None:
            answer[name] = iso(at)
    return _noted(answer, recall.note)


def overview_envelope(overview: Overview) -> dict[str, Any]:
    """The answer of recall_all."""
    topics = [
        {
            "topic": topic.topic,
            "turns": list(topic.turns),
            "session": _day(topic.at_us),
            "pages": topic.pages,
            **({"text": topic.text} if topic.text else {}),
        }
        for topic in overview.topics
    ]
    answer: dict[str, Any] = {"topics": topics, "total_available": overview.total_available}
    if overview.left_out:
        answer["left_out"] = overview.left_out
    return _noted(answer, overview.note)


def facts_envelope(found: FactsFound) -> dict[str, Any]:
    """The answer of query_facts."""
    facts = [
        {
            "subject": fact.subject,
            "verb": fact.verb,
            "object": fact.what,
            "status": fact.status,
            "fact_type": fact.type,
            **({"since": _day(fact.valid_from_us)} if fact.valid_from_us is not None else {}),
            "said_in": fact.sources,
        }
        for fact in found.facts
    ]
    return _noted({"facts": facts, "total_available": found.total}, found.note)


def topic_envelope(tag: str, depth: str, found: TopicTexts) -> dict[str, Any]:
    """The answer of expand_topic."""
    texts = [
        {
            "page_id": text.page,
            "session": _day(text.at_us),
            "role": text.role,
            **({"turns": list(text.turns)} if text.turns else {}),
            "text": text.text,
        }
        for text in found.texts
    ]
    answer: dict[str, Any] = {"tag": tag, "depth": depth, "texts": texts}
    if found.left_out:
        answer["left_out"] = found.left_out
    return answer


def _day(at_us: int) -> str:
    return iso(at_us)[:10]


def _noted(answer: dict[str, Any], note: str) -> dict[str, Any]:
    return {**answer, "note": note} if note else answer
