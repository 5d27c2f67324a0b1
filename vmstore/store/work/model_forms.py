"""Forms of observations that a model writes: asked for some at a time, kept as pages, told in the place of the others.

A model is asked outside of every lock, and its answer is logged with what was written of it, so that nobody asks
again. Where it fails, or says nothing of an observation that can be used, the form by rules stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from vmstore.capture.facts import FactAnswer, write_answer
from vmstore.core.address import page_name, page_position
from vmstore.core.asof import Head
from vmstore.core.decision import Cause
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import Evict
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role
from vmstore.errors import InputError
from vmstore.providers.text_model import TextModel
from vmstore.store.host import SessionHost
from vmstore.store.recall.pen import Pen, write
from vmstore.views.observations import FORMS_BY, observed
from vmstore.views.reads.resolve_asof import basis
from vmstore.vm.compressors.callback import Outcome, heard
from vmstore.work.observation import FACTS_MAX, TAG, TOKENS_MAX, TOKENS_MIN, Observation, WrittenForm, tokens

FormModel = Callable[[str], Any] | TextModel
"""A function from a prompt to a text, or a text model."""
AT_ONCE = 10  # observations that a model is asked about in one prompt
LONG = 2 * TOKENS_MIN  # what has fewer tokens has a form by rules that is as good
CHARS = 4_000  # of an observation, as the model is shown it: the beginning and the end
NO_FORMS = "no_forms"
PROMPT = """Below are calls of tools by an agent with what they gave, each under its page. Write a summary of each for \
the agent that goes on with the work: what was done, how it ended, names, paths, numbers and errors as they stand, in \
at most a sixth of its length. Give with it up to 6 key facts, each copied word for word.
Answer with JSON alone: {"observations": [{"page": "p7", "summary": "…", "key_facts": ["…"]}]}

"""


class ModelForms(msgspec.Struct, frozen=True):
    """The pages of the forms that a model wrote, and of how many observations the form by rules stands because it said
    nothing that could be used.
    """

    forms: list[str]
    by_rules: int


def write_forms(session: SessionHost, model: FormModel, timeout_s: float) -> ModelForms:
    """Has a model write a form of each longer observation that has none; a second time it finds those left alone."""
    complete: Any = getattr(model, "complete", None) or model
    if not callable(complete):
        raise InputError(f"{model!r:.60} cannot be asked for forms; give a function of a prompt or a text model")
    pages: list[str] = []
    by_rules, done, ns = 0, set[str](), session._ns
    while True:
        erasure, waiting = _waiting(session, done)
        if not waiting:
            return ModelForms(pages, by_rules)
        log, forms = _asked(complete, waiting, timeout_s)
        with ns.lock:
            if not ns.as_read(erasure):
                continue  # what was erased meanwhile may be in the answer
            written = write(session, partial(_written, seen=waiting, log=log, forms=forms))
        done.update(one.page for one in waiting)
        pages += map(page_name, written)
        by_rules += len(waiting) - len(forms)


def _waiting(session: SessionHost, done: set[str]) -> tuple[int, list[Observation]]:
    """The next observations without a form, and the last erasure before they were read."""
    ns = session._ns
    with ns.asking():
        lane, erasure = session._lane(), ns.projection.last_erasure
        seen = observed(ns.log, lane, session.name, 0, basis(lane, Head()).position)
    left = [one for one in seen if one.written is None and one.tokens > LONG and one.page not in done]
    return erasure, left[:AT_ONCE]


def _asked(
    complete: Callable[[str], Any], seen: Sequence[Observation], timeout_s: float
) -> tuple[bytes, dict[str, WrittenForm]]:
    """The answer of a model as it is logged, and the forms in it."""
    prompt = PROMPT + "\n\n".join(f"page {one.page}\n{_shown(one.text)}" for one in seen)
    outcome, answer = heard(lambda: complete(prompt), timeout_s)
    text, forms = str(answer)[:200], dict[str, WrittenForm]()
    word = outcome.word
    if outcome is Outcome.ANSWERED:
        text = getattr(answer, "text", answer)
        if isinstance(text, str):
            forms = _read(text, {one.page: one for one in seen})
            word = outcome.word if forms else NO_FORMS
        else:
            text, word = "", Outcome.WRONG_TYPE.word
    log = {"phase": "observations", "outcome": word, "pages": [one.page for one in seen], "answer": text[:20_000]}
    return json.dumps(log, ensure_ascii=False).encode("utf-8", "replace"), forms


def _shown(text: str) -> str:
    return text if len(text) <= CHARS else f"{text[: CHARS // 2]}\n…\n{text[-CHARS // 2 :]}"


def _read(text: str, asked: dict[str, Observation]) -> dict[str, WrittenForm]:
    """The forms that an answer has of what was asked about; key facts that do not stand there are left out."""
    try:
        value = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return {}
    listed = value.get("observations") if isinstance(value, dict) else None
    forms: dict[str, WrittenForm] = {}
    for item in listed if isinstance(listed, list) else ():
        one = asked.get(str(item.get("page"))) if isinstance(item, dict) else None
        if one is None:
            continue
        summary = " ".join(str(item.get("summary") or "").split())
        given = item.get("key_facts") if isinstance(item.get("key_facts"), list) else []
        whole = " ".join(one.text.split())
        facts = [fact for each in given if (fact := " ".join(str(each).split())) and fact in whole]
        if 0 < tokens(summary) <= TOKENS_MAX and tokens(summary) < one.tokens:
            forms[one.page] = WrittenForm(one.page, summary, facts[:FACTS_MAX])
    return forms


def _written(pen: Pen, seen: Sequence[Observation], log: bytes, forms: dict[str, WrittenForm]) -> list[int]:
    """Writes a model's answer and a page for each of its forms, which no prompt holds by itself; these pages."""
    sources = {one.page: tuple(page_position(name) or 0 for name in (one.page, one.result)) for one in seen}
    shown = tuple(dict.fromkeys(page for pair in sources.values() for page in pair))
    answer = write_answer(FactAnswer(log, shown), pen.page, pen.add)
    pages = []
    for name, form in forms.items():
        links = [(int(LinkKind.DERIVES), page) for page in sources[name]] + [(int(LinkKind.CAUSED_BY), answer)]
        part = Part(msgspec.json.encode(form), Modality.STRUCTURED, Mime.JSON, PageType.SUMMARY)
        page = pen.page(Draft(Role.OTHER, b"", (part,), hint=f"form of {name}", tags=(TAG,), actor=FORMS_BY), links)
        if pen.act is not None and (here := pen.act.state.here.get(page)) is not None:
            pen.add(Evict(page, Cause.ASKED, here.tokens))
        pages.append(page)
    return pages
