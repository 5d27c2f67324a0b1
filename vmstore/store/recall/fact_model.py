"""Asks a model for facts in two phases: of each message what it states, then how the facts hang together.

Each answer is written with what was made of it, in one commit, as a page that no prompt shows: a replay reads it and
asks nobody, and a message that was asked about once is not asked about again. Where a model fails in whatever way, the
patterns find what they know, and the page says how it failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vmstore.capture.facts import ANSWERED, FactAnswer
from vmstore.core.address import page_name
from vmstore.core.asof import Head
from vmstore.core.erasure import is_gone
from vmstore.errors import InputError
from vmstore.facts.addition import HeldFact, additions
from vmstore.facts.fact import StatedFact
from vmstore.facts.find import Utterance
from vmstore.facts.parse import PARSER, ParsedFacts, parse_facts, parse_links
from vmstore.facts.prompt import KNOWN_MAX, REPAIR, links_prompt, signals_prompt
from vmstore.providers.text_model import TextModel
from vmstore.store.host import SessionHost
from vmstore.store.recall.fact_finder import checked_language, dated, found_in, held, language_of, utterances
from vmstore.store.recall.fact_reads import engine_of, known
from vmstore.vm.compressors.callback import TIMEOUT_S, Outcome, heard

FactModel = Callable[[str], Any] | TextModel
"""A function from a prompt to a text, or a text model."""
ATTEMPTS = 2  # where an answer is no JSON the model is shown it once
CONSOLIDATED_MAX = 60  # facts shown at once, the newest
BEFORE = 200  # positions before a message, in which what was said right before it is looked for
NO_JSON = "no_json"
_ANSWERS = f"PAGES page, text WHERE type = value AND actor = '{ANSWERED}' AND position > $after ORDER BY position"


class _Heard(NamedTuple):
    """What a model answered, how it ended, and what was wrong."""

    outcome: str
    text: str
    note: str = ""


class FactExtractor:
    """A model that is asked for facts, within a time; `language` has the patterns that stand in for it."""

    def __init__(self, model: FactModel, timeout_s: float = TIMEOUT_S, language: str | None = None) -> None:
        if language is not None:
            checked_language(language)
        complete = getattr(model, "complete", None)
        if not (callable(model) or callable(complete)):
            raise InputError(
                f"{model!r:.60} cannot be asked for facts; give a function of a prompt, or a text model",
                code="not-a-model",
            )
        self._complete = complete
        self._model, self._timeout_s, self._language = model, timeout_s, language
        self._name = str(getattr(model, "name", ""))[:80]

    def signals(self, session: SessionHost, after: int = 0) -> list[int]:
        """States what is new in the messages after a position that were not asked about; the pages.

        Where something was erased while the model was asked, what is left is read and asked about again.
        """
        pages: list[int] = []
        while not self._signalled(session, after, pages):
            pass
        return pages

    def _signalled(self, session: SessionHost, after: int, pages: list[int]) -> bool:
        """States what is new, adding its pages to those given; False where it stops at an erasure."""
        ns = session._ns
        with ns.asking():
            erasure = ns.projection.last_erasure
        asked = {page for answer in recorded(session, after) for page in answer.get("shown", ())}
        every = utterances(session, max(0, after - BEFORE))
        for place, said in enumerate(every):
            if said.page <= after or page_name(said.page) in asked:
                continue
            near = every[max(0, place - 3) : place]
            before = "\n".join(f"{one.speaker}: {one.text}" for one in near)
            facts = held(known(ns, session.name, None, Head(), ever=True))
            by_page = {one.page: one.fact for one in facts}
            prompt = signals_prompt(said, by_page, before)
            answer, parsed = self._signals(prompt, said, by_page, before)
            shown = (said.page, *(one.page for one in near), *list(by_page)[-KNOWN_MAX:])
            language = language_of(session, self._language)
            with ns.lock:
                if not ns.as_read(erasure):
                    return False
                pages += session._add_facts(*_written(answer, parsed, said, shown, facts, language, self._name))
        return True

    def _signals(
        self, prompt: str, said: Utterance, facts: dict[int, StatedFact], before: str
    ) -> tuple[_Heard, ParsedFacts]:
        """What the model answered, and the facts in it; asked once more where the answer is no JSON."""
        answer, parsed = _Heard(NO_JSON, ""), ParsedFacts((), (), False)
        for attempt in range(ATTEMPTS):
            answer = self._asked(prompt if not attempt else prompt + REPAIR + answer.text[:2_000])
            if answer.outcome != Outcome.ANSWERED.word:
                return answer, parsed
            parsed = parse_facts(answer.text, [said], facts, before)
            if parsed.is_json:
                return answer, parsed
        return answer._replace(outcome=NO_JSON), parsed

    def consolidate(self, session: SessionHost) -> None:
        """Links what was stated since this was asked last with what was known before."""
        last = max((int(answer.get("upto", 0)) for answer in recorded(session)), default=0)
        facts = held(known(session._ns, session.name, None, Head()))[-CONSOLIDATED_MAX:]
        by_page = {one.page: one.fact for one in facts}
        if len(by_page) < 2 or max(by_page) <= last:
            return
        answer = self._asked(links_prompt(by_page))
        parsed = parse_links(answer.text, by_page)
        if answer.outcome == Outcome.ANSWERED.word and not parsed.is_json:
            answer = answer._replace(outcome=NO_JSON)
        links = [{"from": page_name(a), "kind": kind.word, "to": page_name(b)} for a, kind, b in parsed.links]
        stands = [{"page": page_name(page), "status": status.word} for page, status in parsed.stands]
        content = {
            "phase": "consolidation", "parser": PARSER, "model": self._name, "outcome": answer.outcome,
            "note": answer.note, "upto": max(by_page), "answer": [*links, *stands], "refused": len(parsed.refused),
        }  # fmt: skip
        logged = FactAnswer(
            _json(content), (), tuple((a, int(kind), b) for a, kind, b in parsed.links),
            tuple((page, int(status)) for page, status in parsed.stands),
        )  # fmt: skip
        session._add_facts([], None, logged)

    def _asked(self, prompt: str) -> _Heard:
        """What the model answers to a prompt, or how it failed."""

        def ask() -> Any:
            answers: Callable[[str], Any] = self._complete or self._model  # type: ignore[assignment]
            return answers(prompt)

        outcome, answer = heard(ask, self._timeout_s)
        if outcome is not Outcome.ANSWERED:
            return _Heard(outcome.word, "", str(answer)[:200])
        text = getattr(answer, "text", answer)
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        if not isinstance(text, str):
            return _Heard(Outcome.WRONG_TYPE.word, "", f"a {type(text).__name__}, and a text is asked for")
        return _Heard(outcome.word, text)


def recorded(session: SessionHost, after: int = 0) -> list[dict[str, Any]]:
    """What models answered of a session's facts after a position, and how that ended; nothing of what was erased."""
    rows: list[Any] = list(engine_of(session._ns).ask(_ANSWERS, session=session.name, params={"after": after}))
    found = [(name, json.loads(text)) for name, text in rows if text and not is_gone(text)]
    return [{"page": name, **content} for name, content in found if isinstance(content, dict)]


def _written(
    answer: _Heard,
    parsed: ParsedFacts,
    said: Utterance,
    shown: Sequence[int],
    facts: Sequence[HeldFact],
    language: str,
    model: str,
) -> tuple[list[Any], None, FactAnswer]:
    """What an answer adds to the facts that are known, and the answer itself."""
    read = [dated(fact, said.at_us) for fact in parsed.facts]
    found = read if parsed.is_json else found_in(said, language)
    content = {
        "phase": "signals", "parser": PARSER, "model": model, "outcome": answer.outcome, "note": answer.note,
        "shown": [page_name(said.page)], "answer": answer.text, "refused": list(parsed.refused),
    }  # fmt: skip
    return additions(facts, found), None, FactAnswer(_json(content), tuple(dict.fromkeys(shown)))


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
