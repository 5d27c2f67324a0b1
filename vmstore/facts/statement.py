"""What a predicate states that is worth keeping: its verb and object in words, its type, and how it stands.

Most of what people say is about the talk itself, about how they feel just now, or about what they may do: of that
nothing is kept. The word classes that decide it stand in the file of the language.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vmstore.core.facts import FactType
from vmstore.core.page import Standing
from vmstore.facts.grammar import Grammar
from vmstore.facts.predicate import ClausePredicate

_GONE = ("went over", "moved on", "stepped down", "gone over")
_OF_SPEAKER = re.compile(r"\b(?:my|our|me|us)\b", re.IGNORECASE)


class Statement(NamedTuple):
    """What a predicate states: the verb as it is stored, its type, how it stands, and at which attribute of one value.

    `ends` is what is no more by it, `what` the object where it is not all that follows the verb.
    """

    verb: str
    type: FactType
    status: Standing
    attribute: str = ""
    ends: str = ""
    what: str = ""


def stated_by(said: ClausePredicate, what: str, grammar: Grammar) -> Statement | None:
    """What a predicate states of its subject, `what` its object without what only goes on from it; None for nothing."""
    if grammar.patterns["said_to_you"].search(what) or said.verb == "":
        return None
    if said.tense in ("is", "was"):
        return _of_being(said, what, grammar)
    if said.tense == "wish":
        return _of_wish(said, grammar)
    if said.tense == "able":
        return _of_ability(said, what, grammar)
    if _is_talk(said, what, grammar) or _was_meant(said) or _is_mood(said, grammar):
        return None
    ends = _ended_by(said, what, grammar)
    if said.subject.name and not _is_concrete(said, what, grammar) and not ends:
        return None
    kind, attribute = _type(said, what, grammar), _attribute(said, what, grammar)
    status = Standing.ACTIVE if attribute else _status(said, grammar)
    return Statement(_verb(said), kind, status, attribute, ends)


def _is_talk(said: ClausePredicate, what: str, grammar: Grammar) -> bool:
    """Whether a predicate is about the talk itself or what is thought in it, and not about a thing or an act."""
    if said.words.endswith(" to") and said.verb != "get":
        return grammar.is_in(what.partition(" ")[0].lower(), "saying") and not grammar.patterns["dated"].search(what)
    if not grammar.is_in(said.verb, "talking") or grammar.patterns["kept_talk"].match(f"{said.words} {what}"):
        return False
    is_done = said.tense in ("past", "perfect") or (said.tense == "progressive" and said.helper != "")
    is_act = is_done and grammar.is_in(said.verb, "telling")
    return not is_act or grammar.patterns["is_clause"].match(what) is not None


def _was_meant(said: ClausePredicate) -> bool:
    """Whether a predicate is of what was meant to be, and may never have been."""
    return said.tense == "past" and said.words.startswith(("going to", "planning", "thinking", "hoping", "about to"))


def _is_mood(said: ClausePredicate, grammar: Grammar) -> bool:
    """Whether a predicate says how somebody was made to feel: `I was touched`."""
    rest = said.words.partition(" ")[2]
    if said.tense != "passive" or said.subject.name or grammar.patterns["lasting"].match(f"{rest} "):
        return False
    return grammar.patterns["moods"].match(rest) is not None


def _ended_by(said: ClausePredicate, what: str, grammar: Grammar) -> str:
    """What is no more by what a predicate says: what was left, and what was not done since."""
    if said.tense in ("future", "wish"):
        return ""
    if said.is_denied:
        return f"{said.words} {what}" if said.tense == "perfect" and grammar.patterns["since"].search(what) else ""
    if said.subject.name:
        is_gone = said.verb in ("die", "leave", "pass", "split", "disband") or said.words.startswith(_GONE)
        if said.tense not in ("past", "perfect"):
            return ""
        return said.subject.name if is_gone else what if grammar.is_in(said.verb, "ending") else ""
    if said.words.startswith("ended up"):
        return ""
    if said.words.startswith("used to "):
        return what
    first, _, rest = what.partition(" ")
    if said.words.endswith(" to") and grammar.is_in(first.lower(), "revoking"):
        return rest
    return what if grammar.is_in(said.verb, "ending") or grammar.patterns["over"].match(said.words) else ""


def _is_concrete(said: ClausePredicate, what: str, grammar: Grammar) -> bool:
    """Whether what is said of somebody or something else names a thing that can be known."""
    subject = said.subject
    if subject.is_own or subject.is_named:
        return True
    if grammar.patterns["concrete"].search(what) or grammar.is_in(said.verb, "affecting"):
        return True
    is_asserted = said.tense in ("past", "perfect", "passive", "present", "progressive")
    return is_asserted and grammar.patterns["telling_object"].match(what) is not None


def _of_being(said: ClausePredicate, what: str, grammar: Grammar) -> Statement | None:
    """What somebody or something is: of who speaks what lasts, of others what can be known."""
    own = not said.subject.name
    pattern = "traits" if own else "qualities"
    quality = " ".join([*said.words.split()[1:], what])
    is_mood = (own or (quality == what and not _OF_SPEAKER.search(what))) and grammar.patterns["moods"].match(quality)
    if (is_mood and not grammar.patterns["lasting"].match(quality)) or not grammar.patterns[pattern].match(quality):
        return None
    is_known = own or said.subject.is_own or (said.subject.is_named and " " in said.subject.name)
    is_known = is_known or grammar.patterns["named_kind"].match(quality) is not None
    if not is_known and not grammar.patterns["concrete"].search(what):
        return None
    verb = ("was" if said.tense == "was" else "is") if own else said.helper or "is"
    toward = grammar.patterns["toward"].match(quality)
    if toward is None:
        verb = " ".join([verb, *said.words.split()[1:]])
    else:
        verb, what = f"{verb} {toward['trait']}", quality[toward.end() :]
    plain = grammar.patterns["kind_of_trait"].match(quality)
    kind = FactType[plain.lastgroup.upper()] if plain and plain.lastgroup else _type(said, what, grammar)
    over = said.tense == "was" and own and said.helper != "been"
    status = Standing.COMPLETED if over else Standing.ACTIVE
    return Statement(_denied(said, verb), kind, status, _attribute(said, quality, grammar), what=what)


def _of_wish(said: ClausePredicate, grammar: Grammar) -> Statement | None:
    """`Would` is a wish where it goes with liking or `rather`; else it supposes."""
    if grammar.is_in(said.verb, "liking") or said.verb in ("rather", "prefer"):
        verb = {"rather": "would rather"}.get(said.verb, f"would {said.words}")
        return Statement(_denied(said, verb), FactType.PREFERENCE, Standing.ACTIVE)
    return None


def _of_ability(said: ClausePredicate, what: str, grammar: Grammar) -> Statement | None:
    is_act = not said.subject.name and not grammar.is_in(said.verb, "talking") and " " in what
    was_done = grammar.form(said.verb, "participle") and not grammar.form(said.verb, "base")  # `couldn't have done`
    is_known = not was_done and (is_act or grammar.is_in(said.verb, "skills"))
    is_asserted = said.helper == "can" or (said.helper == "could" and said.is_denied and said.verb != "have")
    if not is_known or not is_asserted:
        return None
    kind = FactType.PREFERENCE if said.verb == "stand" else FactType.SKILL
    able = {("can", True): "cannot", ("can", False): "can"}.get((said.helper, said.is_denied), "could not")
    return Statement(f"{able} {said.words}".strip(), kind, Standing.ACTIVE)


def _verb(said: ClausePredicate) -> str:
    if said.tense == "future":
        return _denied(said, f"will {said.words}")
    return _denied(said, said.words)


def _denied(said: ClausePredicate, verb: str) -> str:
    if not said.is_denied:
        return verb
    if said.tense == "present" and said.helper in ("do", "does"):
        return f"{said.helper}n't {verb}"
    if said.tense == "past" and said.helper == "did":
        return f"didn't {verb}"
    if said.tense == "perfect":
        return f"never {verb}"
    if said.tense in ("is", "was"):
        head, _, rest = verb.partition(" ")
        return f"{head} not {rest}".strip()
    return f"never {verb}" if said.tense in ("present", "past") else f"not {verb}"


def _status(said: ClausePredicate, grammar: Grammar) -> Standing:
    if said.tense == "future" or grammar.is_in(said.verb, "planning"):
        return Standing.PLANNED
    if said.tense in ("past", "perfect") and not said.is_denied:
        return Standing.COMPLETED
    return Standing.RECURRING if said.tense == "present" and grammar.is_in(said.verb, "habits") else Standing.ACTIVE


def _type(said: ClausePredicate, what: str, grammar: Grammar) -> FactType:
    for name in ("medical", "financial"):
        if grammar.patterns[name].search(f"{said.subject.name} {said.words} {what}"):
            return FactType[name.upper()]
    if grammar.is_in(said.verb, "liking"):
        return FactType.PREFERENCE
    if grammar.is_in(said.verb, "planning") or said.tense == "future":
        return FactType.PLAN
    if grammar.is_in(said.verb, "deciding"):
        return FactType.DECISION
    if said.verb in ("think", "believe", "find", "consider"):
        return FactType.OPINION
    if said.subject.is_own and grammar.is_in(said.subject.name.split()[0].lower(), "relatives"):
        return FactType.RELATIONSHIP
    if said.verb in ("speak", "play", "know", "code"):
        return FactType.SKILL
    if said.subject.name:
        return FactType.GENERAL
    return FactType.ROUTINE if said.tense == "present" and grammar.is_in(said.verb, "habits") else FactType.BIOGRAPHICAL


def _attribute(said: ClausePredicate, what: str, grammar: Grammar) -> str:
    """The attribute of one value that a predicate gives; empty for none."""
    if said.is_denied or said.tense in ("future", "was"):
        return ""
    for name, attribute in _ATTRIBUTES:
        if grammar.patterns[name].match(
            f"{said.words.split()[0]} {what}" if said.verb == "be" else f"{said.words} {what}"
        ):
            return attribute
    return ""


_ATTRIBUTES = (
    ("of_home", "home"), ("of_name", "name"), ("of_weight", "weight"), ("of_status", "relationship_status"),
    ("of_diet", "diet"),
)  # fmt: skip
