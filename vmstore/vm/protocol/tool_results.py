"""Results of the memory tools: one envelope for pages, one for search hits, one for a refusal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vmstore.core.page import Modality, Tier
from vmstore.vm.protocol.context import medium
from vmstore.vm.protocol.escape import loads, printed
from vmstore.vm.protocol.prompt_page import PromptPage


class LoadedPage(NamedTuple):
    """A fault that was granted: the page as it came, from where, and what had to go for it.

    `promoted` says whether it will stand in the next prompt too.
    """

    leaf: PromptPage
    source: Tier
    promoted: bool = True
    evictions: tuple[str, ...] = ()


class SearchHit(NamedTuple):
    """A page that matches; `relevance` is in parts per million."""

    leaf: PromptPage
    relevance: int


class SearchResults(NamedTuple):
    """Search hits, best first, and the number of pages searched."""

    hits: Sequence[SearchHit]
    total: int


class Budget(NamedTuple):
    """The requests and tokens the model has left in this turn."""

    rounds: int
    faults: int
    fault_tokens: int


def page_result(loaded: LoadedPage, budget: Budget | None = None) -> dict[str, Any]:
    """The envelope of a page that was loaded: what it is, and that it stands in the context now.

    Its text is not said again: the context shows the page as long as it is mapped.
    """
    leaf = loaded.leaf
    page = {
        "page_id": printed(leaf.name),
        "modality": leaf.modality.word,
        "level": leaf.level,
        "tier": leaf.tier.name,
        "content": _where(leaf),
        "meta": _meta(loaded),
    }
    effects = {
        "promoted_to_working_set": loaded.promoted,
        "tokens_est": leaf.tokens,
        "evictions": [printed(name) for name in loaded.evictions] or None,
    }
    return _with({"page": page, "effects": effects}, budget)


def search_result(found: SearchResults, budget: Budget | None = None) -> dict[str, Any]:
    """The envelope of pages that match: what they are, never what they say."""
    results = [
        {
            "page_id": printed(leaf.name),
            "modality": leaf.modality.word,
            "tier": leaf.tier.name,
            "levels": leaf.levels,
            "hint": leaf.about,
            "relevance": min(max(relevance, 0), 1_000_000) / 1_000_000,
        }
        for leaf, relevance in found.hits
    ]
    return _with({"results": results, "total_available": found.total}, budget)


def recall_result(answer: dict[str, Any], budget: Budget | None = None) -> dict[str, Any]:
    """The envelope of what a tool recalled that only reads."""
    return _with(answer, budget)


def refusal(code: str, message: str, budget: Budget | None = None) -> dict[str, Any]:
    """The envelope of what cannot be done, and why."""
    return _with({"error": {"code": code, "message": message}}, budget)


def _with(answer: dict[str, Any], budget: Budget | None) -> dict[str, Any]:
    if budget is not None:
        limits = (("rounds_left", budget.rounds), ("faults_left", budget.faults))
        answer["budget"] = {**dict(limits), "fault_tokens_left": budget.fault_tokens}
    return answer


def _meta(loaded: LoadedPage) -> dict[str, Any]:
    leaf = loaded.leaf
    meta: dict[str, Any] = {"mime_type": leaf.mime, "source_tier": loaded.source.name}
    if leaf.content is not None:
        meta["size_bytes"] = len(leaf.content)
    if leaf.width and leaf.height:
        meta["dimensions"] = [leaf.width, leaf.height]
    if leaf.duration_ms:
        meta["duration_seconds"] = leaf.duration_ms / 1000
    if leaf.modality is Modality.TEXT and leaf.text is not None:
        meta["word_count"] = len(leaf.text.split())
    return meta


def _where(leaf: PromptPage) -> dict[str, Any]:
    """The place where a page can be read now; for media also their words, which are few."""
    contents_of = CONTENTS.get(leaf.modality)
    place = f"{printed(leaf.name)} is in the context above"
    if contents_of is not None:
        return contents_of(leaf)
    return {"data": {"text": place}} if leaf.modality is Modality.STRUCTURED else {"text": place}


def _image(leaf: PromptPage) -> dict[str, Any]:
    # Its bytes go beside the envelope, as a picture: in base64 they would cost a hundred times the tokens.
    return {"caption": leaf.caption().text or medium(leaf)}


def _audio(leaf: PromptPage) -> dict[str, Any]:
    caption = _object(leaf.caption().text)
    content: dict[str, Any] = {"transcript": str(caption.get("transcript") or leaf.caption().text or "")}
    times = [
        {"time": moment["time"], "text": str(moment["text"])}
        for moment in _dicts(caption.get("timestamps"))
        if _is_number(moment.get("time")) and "text" in moment
    ]
    if times:
        content["timestamps"] = times
    return {**content, "duration_seconds": leaf.duration_ms / 1000}


def _video(leaf: PromptPage) -> dict[str, Any]:
    words = leaf.caption().text
    caption = _object(words)
    scenes: list[dict[str, Any]] = []
    for scene in _dicts(caption.get("scenes")):
        if _is_number(scene.get("timestamp")) and isinstance(scene.get("description"), str):
            url = scene.get("keyframe_url")
            known = {"timestamp": scene["timestamp"], "description": scene["description"]}
            scenes.append({**known, "keyframe_url": url} if isinstance(url, str) else known)
    transcript = caption.get("transcript") if caption else words
    return {"scenes": scenes, "transcript": transcript} if isinstance(transcript, str) else {"scenes": scenes}


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = loads(text or "")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


CONTENTS: dict[Modality, Callable[[PromptPage], dict[str, Any]]] = {
    Modality.IMAGE: _image,
    Modality.AUDIO: _audio,
    Modality.VIDEO: _video,
}
