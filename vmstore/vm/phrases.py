"""What a sentence does in a decision: asks, offers, agrees, decides, takes back.

Patterns stand at the beginning of the sentence, after words that only lead in, so that "if we decided",
"they decided" and "as we decided" match none of them. English only.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from vmstore.vm.reading import Kind, bounded, pieces, without_controls
from vmstore.vm.topics import profile

MESSAGE_CHARS_MAX = 4_000  # in a longer message somebody's words stand around what was pasted
SENTENCE_CHARS_MAX = 400
OBJECT_WORDS_MAX = 14
TOPIC_WORDS_MAX = 6


class Act(IntEnum):
    """What a sentence does."""

    NONE = 0
    ASK = 1
    OFFER = 2
    AGREE = 3
    DECIDE = 4  # weakly: whoever decides here may say so, another only proposes
    STATE = 5  # strongly: it says that it was decided
    ANSWER = 6  # nothing by itself, and an answer where a question is open


class Choice(NamedTuple):
    """Something that may be decided: what to do, of what, about what."""

    verb: str
    object: str
    topic: str = ""

    @property
    def words(self) -> str:
        """The choice as a sentence would have it."""
        about = f" for {self.topic}" if self.topic and self.verb in _TAKES else ""
        return f"{self.verb} {self.object}".strip() + about


class Phrase(NamedTuple):
    """A sentence as it counts towards a decision."""

    act: Act
    choices: tuple[Choice, ...] = ()
    topic: str = ""
    agrees: bool = False  # it opens with a word of agreement
    reverses: bool = False  # it takes back what was said before
    instead_of: str = ""  # what it takes back, where it says so
    text: str = ""


def spoken(text: str) -> list[str]:
    """The sentences somebody says in a message: code, tables and quotations are somebody else's."""
    head, tail = bounded(without_controls(text), MESSAGE_CHARS_MAX)
    found: list[str] = []
    for part in (head, tail):
        for piece in pieces(_QUOTED.sub("…", part)):
            if piece.kind in (Kind.SENTENCE, Kind.ITEM) and len(piece.text) <= SENTENCE_CHARS_MAX:
                bare = " ".join(_ITEM.sub("", piece.text).replace("**", "").replace("`", "").replace("’", "'").split())
                found.append(bare)
    return found


def read(sentence: str) -> Phrase:
    """What a sentence does."""
    rest, topic, agrees, reverses = _led_in(sentence)
    if _AGREED_WHOLE.fullmatch(sentence) or (agrees and not rest):
        return Phrase(Act.AGREE, agrees=True, text=sentence)
    if sentence.rstrip(" )\"'").endswith("?"):
        return _question(rest.rstrip("? )\"'"), topic)
    if not rest or _UNSURE.search(rest) or _DOUBTED.match(rest):
        return Phrase(Act.NONE, agrees=agrees, reverses=reverses, text=rest)
    return _decision(rest, topic, agrees, reverses)


def _led_in(sentence: str) -> tuple[str, str, bool, bool]:
    """A sentence without the words that lead in, and what these said: its topic, agreement, reversal."""
    topic, agrees, reverses = "", False, False
    for _ in range(4):
        if found := _AGREEING.match(sentence):
            agrees = True
        elif found := _REVERSING.match(sentence):
            reverses = True
        elif found := _ABOUT.match(sentence):
            topic = _topic(found[1])
        elif not (found := _FILLER.match(sentence)):
            break
        sentence = sentence[found.end() :]
    return sentence.strip(), topic, agrees, reverses


def _decision(rest: str, topic: str, agrees: bool, reverses: bool) -> Phrase:
    """The decision or the offer a sentence states, without its lead-in."""
    instead_of = ""
    if found := _INSTEAD_FIRST.match(rest):
        reverses, instead_of, rest = True, found[1], found[2]
    if found := _IT_IS.match(rest):
        choices = _choices("use", found[1], topic)
        return Phrase(Act.DECIDE if choices else Act.NONE, choices, topic, agrees, reverses, _bare(instead_of), rest)
    for act, pattern in _HEADS:
        found = pattern.match(rest)
        if found is None:
            continue
        groups = found.groupdict()
        verb, tail = (groups.get("verb") or "").lower(), rest[found.end() :]
        if cut := _INSTEAD.search(tail):
            reverses, instead_of, tail = True, instead_of or cut[1] or "", tail[: cut.start()] + (cut[2] or cut[3] or "")
        if act is Act.OFFER and not verb:
            verb, tail = "use", "" if _DOING.match(tail) else tail
        elif act is Act.OFFER and (agrees or reverses):
            act = Act.DECIDE
        choices = _choices(_plain(verb, groups.get("no")), tail, topic)
        act = act if choices else Act.NONE
        return Phrase(act, choices, topic, agrees, reverses or verb in _TURNS, _bare(instead_of), rest)
    return Phrase(Act.ANSWER, (), topic, agrees, reverses, _bare(instead_of), rest)


def _choices(verb: str, tail: str, topic: str) -> tuple[Choice, ...]:
    """What a sentence chooses: one thing, or several where each has its own `for`."""
    tail = _REASON.split(tail, maxsplit=1)[0]
    parts = [tail]
    if verb in _TAKES and len(several := _AND.split(tail)) > 1 and all(_FOR.search(part) for part in several):
        parts = several
    found = [_choice(verb, part, topic) for part in parts]
    return tuple(one for one in found if one is not None)


def _choice(verb: str, part: str, topic: str) -> Choice | None:
    """One thing chosen; None where it is nothing that could be remembered."""
    part = _bare(part)
    if _IDLE.match(f"{verb.removeprefix('do not ')} {part}".strip()):
        return None
    if verb in _TAKES and (about := _AS.search(part) or _last_for(part)):
        thing, named = part[: about.start()].strip(" ,"), _topic(about[1])
        if named and _is_something(thing):
            return Choice(verb, thing, named)
    if not _is_something(part):
        return None
    if verb == "set" and (to := _SET_TO.match(part)):
        return Choice(verb, part, f"{topic} {_topic(to[1])}".strip())
    if not verb and (equal := _IS.match(part)):
        return Choice(verb, part, _topic(equal[1]) or topic)  # "the timeout is 30 seconds" is about the timeout
    return Choice(verb, part, topic)


def _last_for(part: str) -> re.Match[str] | None:
    found = None
    for found in _FOR.finditer(part):
        pass
    return found


def _question(rest: str, topic: str) -> Phrase:
    """What is asked: between choices, whether to make one, or which to make."""
    if _RECALLED.search(rest):
        return Phrase(Act.NONE, text=rest)
    rest = _TAG.sub("", rest)
    if found := _OPEN.match(rest):
        named = next((_topic(one) for one in found.groups() if one and _topic(one)), topic)
        listed = re.split(r"[:,–—]\s", rest, maxsplit=1)[1:]
        choices = _options("use", listed[0], named) if listed and _OR.search(listed[0]) else ()
        return Phrase(Act.ASK if named or choices else Act.NONE, choices, named, text=rest)
    found = _WHETHER.match(rest)
    if found is None and not (_OR.search(rest) and len(rest.split()) <= 10 and not _AUXILIARY.match(rest)):
        return Phrase(Act.NONE, text=rest)
    verb = _plain((found and found["verb"]) or "use", None)
    choices = _options(verb, rest[found.end() :] if found else rest, topic)
    named = next((choice.topic for choice in reversed(choices) if choice.topic), topic)
    choices = tuple(one._replace(topic=named) for one in choices)
    return Phrase(Act.ASK if choices else Act.NONE, choices, named, text=rest)


def _options(verb: str, tail: str, topic: str) -> tuple[Choice, ...]:
    found = []
    for part in _OR.split(tail):
        again = _HEAD_VERB.match(part)
        found.append(_choice(verb, part[again.end() :] if again else part, topic))
    return tuple(one for one in found if one is not None)


def _plain(verb: str, no: str | None) -> str:
    """A verb as a claim has it: in its plain form, one word for all ways to take something."""
    plain = "use" if _TAKE_WHOLE.fullmatch(verb) else " ".join(verb.lower().split())
    return f"do not {plain}" if no and plain else "not to" if no else plain


def _topic(text: str) -> str:
    """A topic as it was said, in a few words; nothing where it names none."""
    words = _bare(text).split()
    return " ".join(words) if 0 < len(words) <= TOPIC_WORDS_MAX and profile(" ".join(words)).weights else ""


def without_article(topic: str) -> str:
    """A topic without its article: how a claim names it."""
    return _ARTICLE.sub("", topic)


def _bare(text: str) -> str:
    return _TRAILING.sub("", text.strip(" ,.!?;:-–—\"'()"))


def _is_something(text: str) -> bool:
    """Whether a text names a thing that can be understood alone."""
    words = text.split()
    return 0 < len(words) <= OBJECT_WORDS_MAX and not _NOTHING.match(text) and any(c.isalnum() for c in text)


_I = re.IGNORECASE
_QUOTED = re.compile(r"\"(?:[^\s\"]{1,60}\s+){3}[^\"]{0,1000}\"|“(?:[^\s”]{1,60}\s+){3}[^”]{0,1000}”")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s)?")

# What a thing is taken with: a claim says "use" for all of these.
_TAKE = (
    r"(?:use|using|go(?:ing)? with|go for|pick|choose|adopt|stick with|stick to|settle on|standardi[sz]e on|opt for"
    r"|switch(?:ing)? (?:over )?to|mov(?:e|ing) (?:over )?to|migrate to|change to|go back to|revert to|keep using|stay with)"
)
_TOOK = (
    r"(?:chose|chosen|picked|selected|adopted|settled on|opted for|standardi[sz]ed on|agreed on|agreed to use"
    r"|decided on|decided for|decided in favou?r of|switched to|moved to)"
)
_DO = (
    r"(?:keep|set|name|limit|cap|drop|avoid|support|enable|disable|allow|forbid|require|store|deploy(?: to| on| with)?"
    r"|host(?: on)?|target|replace|default to)"
)
_TAKE_WHOLE = re.compile(f"{_TAKE}|{_TOOK}|(?:would )?prefer|say", _I)
_HEAD_VERB = re.compile(rf"\s*(?:to )?(?:{_TAKE}|{_DO})\s", _I)
_TAKES = ("use", "do not use")
_TURNS = ("switch to", "switching to", "switch over to", "change to", "go back to", "revert to", "migrate to", "replace")

_END = r"(?:\s*[,.!:;–—]+\s*|\s+-\s+|\s*$|\s+(?=let's|go with|we'll|use ))"
_AGREEING = re.compile(
    r"(?:yes|yep|yeah|yup|sure|ok|okay|agreed|i agree|we agree|alright|all right|great|good|perfect|right|fine|cool"
    r"|deal|excellent|exactly|absolutely|definitely|confirmed|approved|sounds (?:good|great|right|fine)|fair enough"
    r"|(?:that )?makes sense|that works|works for me|good (?:idea|point|call|choice))"
    rf"(?: then| to (?:me|that)| (?:for|with|by) me)?{_END}",
    _I,
)
_REVERSING = re.compile(
    r"(?:actually|on (?:second|further) thoughts?|(?:hmm,? )?scratch that|never ?mind(?: that)?|correction|wait|no|nope"
    r"|sorry|change of plans?|new plan|i(?:'ve| have)? (?:just )?changed my mind|we(?:'ve| have)? changed our minds?"
    r"|i take (?:that|it) back|forget (?:that|it|what i said)|after all|thinking about it(?: again| more)?|update)"
    r"(?:\s*[,.!:;–—]+\s*(?:and |but |so )?|\s+-\s+|\s+(?=let's|use |go with|we(?:'ll)? ))",
    _I,
)
_FILLER = re.compile(
    r"(?:so|and|but|then|well|now|thanks|thank you|got it|understood|hey|hi|hello|please|oh|ah|great question|in that case|to sum up|in short|finally"
    r"|also|next|first|second|third|lastly|after (?:some|much|a lot of) (?:thought|discussion)|as a team|team|all|folks)"
    r"(?:\s*[,:!–—]+\s*|\s+(?=let's|we |i |use |go ))",
    _I,
)
_ABOUT = re.compile(
    r"(?:as for|for|regarding|concerning|on|when it comes to|with regard to|as to) "
    r"([\w./+#-]{1,40}(?: [\w./+#-]{1,40}){0,5})\s*[,:–—]\s+",
    _I,
)
_AGREED_WHOLE = re.compile(
    r"(?:(?:yes|yep|yeah|yup|sure|ok|okay|great|perfect|agreed|good|cool|fine|sounds (?:good|great)|please)[,.!]?\s+)"
    r"{0,3}(?:yes|yep|yeah|yup|sure|ok|okay|agreed|i agree|sounds (?:good|great|right)(?: to me)?|do (?:it|that)|deal"
    r"|that works(?: for me)?|works for me|perfect|great|excellent|please do(?: so| that)?|go ahead|let's do "
    r"(?:it|that|this)|(?:let's )?go with (?:it|that)|go for it|fine (?:by|with) me|approved|confirmed|absolutely"
    r"|definitely|exactly|makes sense|good (?:idea|choice|call)|i like (?:it|that)|lgtm|ship it"
    r"|that's (?:fine|good|great|decided)|please)[,.! ]*(?:then|thanks|please)?[.! ]*",
    _I,
)
_NOT = r"(?P<no>not (?:to )?)?"
_WE_WILL = r"(?:we|i)(?:'ll| will| shall|'re going to| are going to|'m going to| am going to|'re gonna)"
_THAT_WE = rf"(?:[,:]| that| to)*\s+(?:(?:we|i|let)(?:'ll|'s| will| should| would)?\s)?{_NOT}(?:(?P<verb>{_TAKE}|{_DO})\s)?"
_SO_FAR = r"(?:all |both |now |finally |just |already |jointly )?"
_ADVERB = r"(?:(?:just|simply|definitely|then|also|now|always|instead|all|both|actually|finally|only|therefore)\s)?"
_HEADS = tuple(
    (act, re.compile(pattern, _I))
    for act, pattern in (
        (Act.STATE, rf"(?:we|i)(?:'ve| have|'d| had)? {_SO_FAR}(?P<verb>{_TOOK})\s"),
        (Act.STATE, rf"(?:we|i)(?:'ve| have|'d| had)? {_SO_FAR}(?:decided|agreed|resolved|committed){_THAT_WE}"),
        (Act.STATE, rf"it(?:'s| is| was| has been) (?:decided|agreed|settled){_THAT_WE}"),
        (Act.STATE, rf"(?:the|our|my) (?:final )?(?:decision|agreement|conclusion) (?:is|was){_THAT_WE}"),
        (Act.STATE, rf"(?:final |team |the )?(?:decision|verdict|resolution|decided|agreed)\s?:{_THAT_WE}"),
        (Act.DECIDE, rf"let(?:'s| us) {_ADVERB}{_NOT}(?P<verb>{_TAKE}|{_DO})\s"),
        (Act.DECIDE, rf"{_WE_WILL} {_ADVERB}{_NOT}(?P<verb>{_TAKE}|{_DO})\s"),
        (Act.DECIDE, rf"we (?P<no>won't|will not) {_ADVERB}(?P<verb>use|support|ship|adopt|allow|store)\s"),
        (Act.DECIDE, r"(?:we|i)(?:'re| are|'m| am) (?:now )?(?P<verb>going with|switching to|moving to)\s"),
        (Act.DECIDE, rf"(?:from (?:now|here) on|going forward),? (?:we(?:'ll| will)? |please )?{_ADVERB}{_NOT}(?P<verb>{_TAKE}|{_DO})\s"),
        (Act.OFFER, rf"(?:i|we)(?:'d| would)? (?:strongly |highly |also )?(?:recommend|suggest|propose|advise)(?: that)?(?: we| you)?(?: {_TAKE})?\s"),
        (Act.OFFER, rf"(?:my|our|the) (?:recommendation|suggestion|proposal|advice) (?:is|would be)(?: to)?(?: {_TAKE})?:?\s"),
        (Act.OFFER, rf"(?:i|we)(?:'d| would) (?:rather |like to |love to )?(?P<verb>{_TAKE}|prefer|say)\s"),
        (Act.OFFER, rf"(?:we|you|i) (?:should|could|can|ought to) {_ADVERB}(?P<verb>{_TAKE})\s"),
        (Act.OFFER, rf"{_ADVERB}(?:please )?(?P<verb>{_TAKE}|set|drop|replace)\s"),
    )
)
"""What a sentence does by how it begins; the first that fits holds."""

_IT_IS = re.compile(r"(?!(?:i|we|you|how|what|that|as) )(\S+(?: \S+){0,3}) it is\b[.! ]*\Z", _I)
_INSTEAD = re.compile(
    r",? (?:instead of|rather than|in place of|and not|over)\s+(.+?)(\s(?:for|as)\s.+)?\Z|,? instead\b(.*)", _I
)
_INSTEAD_FIRST = re.compile(
    r"(?:instead of|rather than|forget|drop)\s+([^,]{1,60}),\s*(?:and |but )?((?:let's |we'll |we're |use |go ).+)", _I
)
_REASON = re.compile(
    r"\s(?:because|since|so that|so we|so it|as (?:it|we|they|that)|which|until|given|due to|and then|and see"
    r"|and (?:let's|we))\b|\s?[—–;]\s?|\s-\s|\.\s|\s\("
    r"|,\s(?:and\s)?(?:but|so|as|since|because|it|that|which|then|with|we|i|not|please|ok)\b",
    _I,
)
_AND = re.compile(r",? and |, ", _I)
_FOR = re.compile(r"\sfor\s(.+?)(?=\sfor\s|$)", _I)
_AS = re.compile(r"\sas\s((?:the|our|a|an|my)\s.+)", _I)
_SET_TO = re.compile(r"(.{2,60}?) (?:to|at) (.+)", _I)
_IS = re.compile(
    r"(\S.{1,60}?) (?:is|are|will be|should be|must be|has to be|stays?|uses?|goes?|will|runs?|gets?|needs?)\s", _I
)
_OR = re.compile(r",?\s(?:or|vs\.?|versus)\s", _I)
_ARTICLE = re.compile(r"^(?:the|our|my|your|this|a|an|all(?: of)? the|all|both)\s+", _I)
_TRAILING = re.compile(
    r"(?:[,\s]+(?:then|please|instead|now|too|as well|again|thanks|here|after all|for now|everyone|all))+\Z", _I
)
_TAG = re.compile(r",\s*(?:right|ok|okay|yes|no|agreed|correct|shall we|don't you think|what do you think)\Z", _I)
_OPEN = re.compile(
    r"(?:(?:what|which)(?: kind of| sort of| type of)?(?: (\w\S{0,40}(?: \w\S{0,40}){0,3}?))? (?:should|shall|do|would"
    r"|can|could|will|are) (?:we|i|you)\b[^?]*?(?:\sfor\s([^?,:]+))?"
    r"|what(?:'s| is| would be) (?:the|your|our) (?:best|right|preferred|recommended|preference|recommendation|choice)"
    r"(?: of| for)? ?([^?,:]*)|what should (?:the|our|my) ([^?,:]{2,50}?) be)\s*(?:[:,–—]\s.*)?\Z",
    _I,
)
_WHETHER = re.compile(
    r"(?:(?:(?:should|shall|could|can|may|might|are|will) (?:we|i)|(?:do|would) (?:you|we)(?: want| like)?(?: us| me)?(?: to)?)"
    rf" (?:rather |better |just |going to |still |all )?(?P<verb>{_TAKE}|{_DO}|prefer)\s"
    rf"|(?:how|what) about (?:{_TAKE}\s)?|why don't we {_TAKE}\s|let's {_TAKE}\s|(?:shall|should) (?:it|that) be )",
    _I,
)
_AUXILIARY = re.compile(
    r"(?:is|are|was|were|am|does|do|did|can|could|have|has|had|will|would|should|may|must|how|why|who|where|when)\b", _I
)
_RECALLED = re.compile(
    r"\b(?:did (?:we|i|you)|have we|had we|what was|which was|were we|was it|as we|remember|remind|recall"
    r"|we (?:decided|agreed|chose|picked|said|discussed))\b",
    _I,
)
_UNSURE = re.compile(
    r"\b(?:if|unless|whether|maybe|perhaps|possibly|probably|might|suppose|assuming|hypothetically|imagine|would have"
    r"|could have|not sure|not certain|don't know|haven't|hasn't|undecided|i guess|or something|say we|depending"
    r"|remind me|tbd)\b",
    _I,
)
_DOUBTED = re.compile(r"(?:as|like) (?:we|i|you) |(?:when|once|before|after|while|until|every time) ", _I)
# What stands for a thing said elsewhere, or for no thing at all.
_NOTHING = re.compile(
    r"(?:it|that|this|these|those|them|one|some|something|anything|everything|nothing|none|not|yet|later|tomorrow"
    r"|today|whatever|what|who|how|why|when|where|which|you|me|us|him|her|there|both|either|neither|another|sure|in"
    r"|on|up|out|off|over|by|ahead|back|down|through|going|trying|moving|working|here|against|ok|okay|with|of|yes|no"
    r"|i|we|they|the (?:same|first|second|other|former|latter|next|flow|above|following)|(?:a|the|my|your) (?:look|break|walk"
    r"|moment|minute|step|bit|time|chance|few|couple))\b",
    _I,
)
_DOING = re.compile(r"(?!(?:using|adopting|choosing)\b)\w+ing\s", _I)  # what is recommended to do, not to take
# What people do next, which is no decision to remember.
_IDLE = re.compile(
    r"(?:(?:not to )?(?:think|discuss|talk|wait|see|look|revisit|postpone|decide|disagree|consider|investigate"
    r"|explore|evaluate|check|review|ask|try|meet|get|leave|continue|proceed|move on|start|begin|take|go|come|stay|do"
    r"|have|hold|sleep|eat|watch|visit|be|spend|give|bring|help|make sure|find|run|read|work|play|join|sign|celebrate)"
    r"\b(?! with)|(?:keep|support) (?:\w+ing\b|an eye|track|things|calm|each|you|ya\b|people|my |your )|set (?:aside|a (?:date|time|reminder|goal))"
    r"|drop (?:a|me|by)|use (?:the|this|that|a) (?:\w+ )?(?:time|opportunity|chance|tool|command|function|bathroom|following|file"
    r"|search|find|grep|edit|bash|terminal)\b)",
    _I,
)
