"""The pre-pass: what a message asks with, and what is likely to answer it, before the model sees it.

All pages of a session are ranked by the terms of the message (`vmstore.live.recall.index`);
here stands what a message's words are signs of.
"""

from __future__ import annotations

import re

from vmstore.core.text.stems import terms
from vmstore.vm.claims import cues
from vmstore.vm.recall.text_pieces import bounded, without_controls

MESSAGE_CHARS_MAX = 4_000

RECALL = (
    # what was said or done before
    r"\b(?:as|like|what|which|where|when|how|why|who) (?:did |do |have |had |were |was )?(?:we|i|you|us)\b"
    r"[^.?!]{0,20}\b(?:decid|agree|discuss|sa[iy]|mention|chose|pick|settle|plan|t[eo]ld?|talk|us(?:e|ing)\b"
    r"|go with|went with)",
    r"\b(?:earlier|previously|before that|last time|the other day|back then|remember|recall|remind me|so far)\b",
    r"\b(?:we|i|you)(?:'d|'ve| had| have)? (?:already |just |once )?"
    r"(?:decided|agreed|discussed|said|mentioned|chose|picked|settled|planned|talked|told|went with)\b",
    # what was decided
    r"\b(?:that|our|the|my|your|which) (?:\w+ ){0,2}(?:decision|choice|plan|approach|agreement|strategy"
    r"|convention)s?\b",
    r"\bwhat(?:'s| is| was| were| are) (?:our|my|the) \w+",
    # going back
    r"\b(?:go(?:ing)? back to|revisit|return(?:ing)? to|back to (?:the|our|that)|again about|still (?:the|our"
    r"|using))\b",
)
"""What a message says that speaks of what was said before: three patterns, as people say them."""


PAST = re.compile(
    r"\b(?:before|earlier|previous(?:ly)?|formerly|originally|used to|first (?:choose|chose|pick|decide)|at first"
    r"|back then"
    r"|initially|until|changed?|switch(?:ed)?|drop(?:ped)?|replaced?|abandon(?:ed)?|gave up|move(?:d)? away|instead of"
    r"|no longer|history|reverse[ds]?|went back|give up|reconsider(?:ed)?|at the start|old(?:er)?|in the beginning)\b",
    re.IGNORECASE,
)
"""What a question has that asks for what held once, and not for what holds."""


PASSING = 0.3  # what a word weighs that asks for the past, and names nothing


def asked(message: str) -> dict[str, float]:
    """The terms a message asks with, and what each weighs."""
    words = read(message)
    past = frozenset(term for found in PAST.finditer(words) for term in terms(found[0]))
    return {term: PASSING if term in past else 1.0 for term in terms(words)}


TELLS = re.compile(
    r"\b(?:decid\w+|decision|let's|we(?:'ll| will)|it(?:'ll| will) be|go(?:ing|es)? with|went with|instead|rather than"
    r"|suggest\w*|propos\w+|recommend\w*|agreed?|choice|cho(?:ose|se|sen)|pick(?:ed|s)?|settle[ds]?|prefer\w*|from now"
    r"|going forward|as of|stick(?:s|ing)? (?:to|with)|switch\w*|mov(?:e|ed|ing) (?:to|from|over)|replac\w+|because"
    r"|since|reason|so that is|it is(?: now)?|must|always|never|default|approved|final|takes? over|no longer"
    r"|not any ?more|use)\b",
    re.IGNORECASE,
)
"""What stands in a sentence that says how things are to be, and why."""

ASKS, TELLING = 0.6, 0.2  # what a question or task is worth beside a statement; what each such word adds, three at most


def likely(text: str) -> float:
    """The likelihood that a message is looked for later: decisions more than questions and tasks."""
    words = read(text)
    asks = words.rstrip().endswith("?") and "." not in words.rstrip("?. \n")[:-1]
    if led := cues.CLAUSE.match(words):
        words = words[led.end() :]
    if asks or cues.TASK.match(words) or cues.WORK.match(words) or cues.ERRAND_LAST.search(words):
        return ASKS
    return 1 + TELLING * min(3, len({found[0].casefold() for found in TELLS.finditer(words)}))


def turns(text: str) -> bool:
    """Whether a message has a word of deciding or of change."""
    return TELLS.search(words := read(text)) is not None or cues.CHANGES.search(words) is not None


def states(text: str) -> bool:
    """Whether a message says something, and neither asks nor sets a task alone."""
    return likely(text) >= 1


def proposes(text: str) -> bool:
    """Whether a message offers how something may be: what a model says beside that decides nothing."""
    return cues.PROPOSES.search(read(text)) is not None and "[ref:" not in text


def asks_for_the_past(message: str) -> bool:
    """Whether a message asks for what held before, or why it changed."""
    return PAST.search(read(message)) is not None


QUESTION = re.compile(
    r"\?(?:\s|\Z)|^(?:what|which|who|whose|where|when|why|how|is|are|do|does|did|can|could|should|remind)\b",
    re.IGNORECASE,
)


def recalls(message: str) -> bool:
    """Whether a message speaks of what was said before."""
    words = read(message)
    return any(pattern.search(words) for pattern in _RECALL)


def asks(message: str) -> bool:
    """Whether a message asks something, or speaks of what was said or held before."""
    return recalls(message) or asks_for_the_past(message) or QUESTION.search(read(message)) is not None


def read(message: str) -> str:
    """A message as far as it is looked at, with plain quotation marks."""
    return "\n".join(bounded(without_controls(message), MESSAGE_CHARS_MAX)).replace("’", "'")


_RECALL = tuple(re.compile(pattern, re.IGNORECASE) for pattern in RECALL)
