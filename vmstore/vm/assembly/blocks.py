"""The blocks of an assembled prompt in words: what stands before the conversation, and what goes with the message."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vmstore.core.decision import PromptPart
from vmstore.core.times import iso
from vmstore.vm.assembly.candidate import PromptCandidate

_OWN = "virtual-context|context-topics|identity|rules|facts|summaries|recalled|earlier|expanded"
TAG = re.compile(rf"<(?=[\s/\u200c\u200d]*(?:(?:{_OWN})\b|V[\u200c\u200d]*M[\u200c\u200d]*:))", re.IGNORECASE)
"""What could begin a block of the memory, or a tag of the protocol."""

NAMES = {
    PromptPart.IDENTITY: "identity",
    PromptPart.RULES: "rules",
    PromptPart.SUMMARIES: "summaries",
    PromptPart.FACTS: "facts",
    PromptPart.RECALLED: "recalled",
    PromptPart.EARLIER: "earlier",
    PromptPart.EXPANDED: "expanded",
}
HEADED = (PromptPart.IDENTITY, PromptPart.EXPANDED, PromptPart.SUMMARIES, PromptPart.EARLIER)
DATED = (PromptPart.RECALLED, PromptPart.EARLIER)
BESIDE = (PromptPart.RULES, PromptPart.FACTS, PromptPart.RECALLED)


def harmless(text: str) -> str:
    """A text that others wrote, with nothing in it that could pass for one of the blocks."""
    return TAG.sub("&lt;", text)


def plain(text: str) -> str:
    """The same on one line."""
    return " ".join(harmless(text).split())


def day(at_us: int) -> str:
    """The day something was said, as the head of what was said then has it."""
    return iso(at_us)[:10]


def front(shown: Sequence[PromptCandidate]) -> str:
    """The block in front of the conversation, which seldom changes: the user, summaries, topics; may be empty."""
    hint = [_text(one) for one in shown if one.part is PromptPart.HINT]
    return _wrapped([*_blocks(shown, HEADED), *hint], "")


def beside(shown: Sequence[PromptCandidate], at_us: int) -> str:
    """The block beside the message: rules, facts, and recalled texts, each under the day of its session."""
    return _wrapped(_blocks(shown, BESIDE), f' session="{day(at_us).replace("-", "/")}"')


def _wrapped(blocks: Sequence[str], attributes: str) -> str:
    return "\n".join([f"<virtual-context{attributes}>", *blocks, "</virtual-context>"]) if blocks else ""


def _blocks(shown: Sequence[PromptCandidate], parts: Sequence[PromptPart]) -> list[str]:
    blocks = []
    for part in parts:
        of = [one for one in shown if one.part is part]
        if not of:
            continue
        name = NAMES[part]
        if part in DATED:
            of.sort(key=lambda one: (one.at_us, one.session, one.order))
            days = dict.fromkeys(day(one.at_us) for one in of)
            blocks += ["\n".join([f'<{name} session="{when}">', *_of_day(of, when), f"</{name}>"]) for when in days]
        else:
            blocks.append("\n".join([f"<{name}>", *map(_text, of), f"</{name}>"]))
    return blocks


def _of_day(shown: Sequence[PromptCandidate], when: str) -> list[str]:
    return [_text(one) for one in shown if day(one.at_us) == when]


def _text(one: PromptCandidate) -> str:
    return str(one.form.content)
