"""What a predicate states that is worth keeping: its verb and object in words, its type, and how it stands.

Most of what people say is about the talk itself, about how they feel just now, or about what they may do: of that
nothing is kept. The word classes that decide it stand in the file of the language.
"""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.facts import FactType
from vmstore.core.page import Standing
from vmstore.facts.grammar import Grammar
from vmstore.facts.predicate import ClausePredicate


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
    own = not said.subject.name
    if said.tense in ("is", "was"):
        return _of_being(said, what, grammar)
    if said.tense == "wish":
        return _of_wish(said, grammar)
    if said.tense == "able":
        return _of_ability(said, what, grammar)
    if grammar.is_in(said.verb, "talking") and not _keeps(said, what, grammar):
        return None
    if not own and not _is_concrete(said, what, grammar):
        return None
    if said.words.endswith(" to") and grammar.patterns["duty"].match(said.words):
        return None  # what was to be done, and may not have been
    done = what.partition(" ")[0].lower()
    if said.words.endswith(" to") and grammar.is_in(done, "talking") and not grammar.patterns["dated"].search(what):
        return None
    if said.tense == "passive" and own and grammar.patterns["moods"].match(said.words.partition(" ")[2]):
        return None
    if said.tense == "past" and said.words.startswith(("going to", "planning", "thinking", "hoping", "about to")):
        return None  # what was meant to be
    if said.tense == "progressive" and grammar.is_in(said.verb, "deciding"):
        return None
    if said.tense == "future" and said.helper != "gonna" and not (grammar.patterns["dated"].search(what) and own):
        return None
    kind, attribute = _type(said, what, grammar), _attribute(said, what, grammar)
    status = Standing.ACTIVE if attribute else _status(said, grammar)
    return Statement(_verb(said), kind, status, attribute, _ended_by(said, what, grammar))


def _ended_by(said: ClausePredicate, what: str, grammar: Grammar) -> str:
    """What is no more by what a predicate says: what was left, and what was not done since."""
    if said.tense in ("future", "wish"):
        return ""
    if said.is_denied:
        return f"{said.words} {what}" if said.tense == "perfect" and grammar.patterns["since"].search(what) else ""
    if said.subject.name:
        gone = said.verb in ("die", "leave", "pass", "split", "disband") and said.tense in ("past", "perfect")
        return said.subject.name if gone else ""
    if said.words.startswith("used to "):
        return what
    return what if grammar.is_in(said.verb, "ending") or grammar.patterns["over"].match(said.words) else ""


def _keeps(said: ClausePredicate, what: str, grammar: Grammar) -> bool:
    """Whether a verb of talking or thinking is about a thing here: `believe in ghosts`, `know how to sail`."""
    return grammar.patterns["kept_talk"].match(f"{said.words} {what}") is not None


def _is_concrete(said: ClausePredicate, what: str, grammar: Grammar) -> bool:
    """Whether what is said of somebody or something else names a thing that can be known."""
    subject = said.subject
    if subject.is_own or subject.is_named:
        return True
    return grammar.patterns["concrete"].search(what) is not None or grammar.is_in(said.verb, "affecting")


def _of_being(said: ClausePredicate, what: str, grammar: Grammar) -> Statement | None:
    """What somebody or something is: of who speaks what lasts, of others what can be known."""
    own = not said.subject.name
    pattern = "traits" if own else "qualities"
    quality = " ".join([*said.words.split()[1:], what])
    is_mood = (own or quality == what) and grammar.patterns["moods"].match(quality) is not None
    if is_mood or not grammar.patterns[pattern].match(quality):
        return None
    if not own and not said.subject.is_own and not grammar.patterns["concrete"].search(what):
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
    if said.helper != "can" or not grammar.is_in(said.verb, "skills"):
        return None
    kind = FactType.PREFERENCE if said.verb == "stand" else FactType.SKILL
    return Statement(f"{'cannot' if said.is_denied else 'can'} {said.words}".strip(), kind, Standing.ACTIVE)


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
