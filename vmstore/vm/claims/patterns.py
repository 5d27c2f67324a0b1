"""The wording of decisions: how sentences begin that ask, offer, agree, decide and take back.

English only. Sentences come with single spaces and plain quotation marks, 400 characters at most; no
pattern repeats what repeats, so none takes long on any of them.
"""

from __future__ import annotations

import re
from enum import IntEnum


class SpeechAct(IntEnum):
    """The act of a sentence."""

    NONE = 0
    ASK = 1
    OFFER = 2
    AGREE = 3
    DECIDE = 4  # weakly: of the role that decides here a decision, of another only a proposal
    STATE = 5  # strongly: it says that it was decided
    ANSWER = 6  # nothing by itself, and an answer where a question is open
    WISH = 7  # what somebody wants: of the user a decision where its topic is named, else an offer


CASE = re.IGNORECASE
QUOTED = re.compile(r"\"(?:[^\s\"]{1,60}\s+){3}[^\"]{0,1000}\"|“(?:[^\s”]{1,60}\s+){3}[^”]{0,1000}”")
UTTERED = re.compile(r"(?:(?<=^)|(?<=\s))(?:um+|uh+|er+m?|hm+|okay so|ok so|right so|yeah about|well)[,.]?\s+", CASE)
IN_FULL = {
    "lets": "let's", "dont": "don't", "doesnt": "doesn't", "thats": "that's", "im": "I'm", "gonna": "going to",
    "wont": "won't", "cant": "can't", "isnt": "isn't", "pls": "please",
}  # fmt: skip
HASTE = re.compile(rf"\b(?:{'|'.join(IN_FULL)})\b", CASE)
ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s)?")

# What a thing is taken with: a claim says "use" for all of these.
TAKE = (
    r"(?:use|using|go(?:ing)? with|go for|pick|choose|adopt|stick with|stick to|settle on|standardi[sz]e on|opt for"
    r"|choosing|picking|switch(?:ing)? (?:over )?to|mov(?:e|ing) (?:over )?to|migrate to|change to|go back to|revert to"
    r"|keep using|stay with)"
)
TOOK = (
    r"(?:chose|chosen|picked|selected|adopted|settled on|opted for|standardi[sz]ed on|agreed on|agreed to use"
    r"|decided on|decided for|decided in favou?r of|switched to|moved to)"
)
DO = (
    r"(?:keep|set|name|limit|cap|drop|avoid|support|enable|disable|allow|forbid|require|store"
    r"|deploy(?: to| on| with| in)?"
    r"|host(?: on| in)?|target|replace|swap|default to|change|raise|lower|increase|decrease|reduce)"
)
TAKE_WHOLE = re.compile(f"{TAKE}|{TOOK}|(?:would )?prefer|say|do|want", CASE)
HEAD_VERB = re.compile(rf"\s*(?:to )?(?:{TAKE}|{DO})\s", CASE)
TAKES = ("use", "do not use")
TURNS = (
    "switch to",
    "switching to",
    "switch over to",
    "change to",
    "go back to",
    "revert to",
    "migrate to",
    "change",
)
SETS = ("set", "change", "raise", "lower", "increase", "decrease", "reduce")
SWAPS = ("replace", "swap", "do not replace", "do not swap")

END = r"(?:\s*[,.!:;–—]+\s*|\s+-\s+|\s*$|\s+(?=let's|go with|we |we'll|use ))"
AGREEING = re.compile(
    r"(?:yes|yep|yeah|yup|sure|ok|okay|agreed|i agree|we agree|alright|all right|great|good|perfect|right|fine|cool"
    r"|deal|excellent|exactly|absolutely|definitely|confirmed|approved|sounds (?:good|great|right|fine)|fair enough"
    r"|(?:that )?makes sense|that works|works for me|good (?:idea|point|call|choice))"
    rf"(?: then| to (?:me|that)| (?:for|with|by) me)?{END}",
    CASE,
)
REVERSING = re.compile(
    r"(?:actually|on (?:second|further) thoughts?|(?:hmm,? )?scratch that|never ?mind(?: that)?|correction|wait|no|nope"
    r"|sorry|change of plans?|new plan|i(?:'ve| have)? (?:just )?changed my mind|we(?:'ve| have)? changed our minds?"
    r"|i take (?:that|it) back|forget (?:that|it|what i said)|after all|thinking about it(?: again| more)?|update)"
    r"(?:\s*[,.!:;–—]+\s*(?:and |but |so )?|\s+-\s+|\s+(?=let's|use |go with|we(?:'ll)? ))",
    CASE,
)
FILLER = re.compile(
    r"(?:so|and|but|then|well|now|thanks|thank you|got it|understood|hey|hi|hello|please|oh|ah|great question"
    r"|in that case|to sum up|in short|finally"
    r"|also|next|first|second|third|lastly|after (?:some|much|a long|a lot of) (?:thought|discussion)|as a team|team"
    r"|all|folks|after [^,]{1,60}(?=,)|(?:yesterday|today|this morning|last (?:week|month|time))(?=,? we )"
    r"|in (?:the|our|today's) (?:last )?meeting)"
    r"(?:\s*[,:!–—]+\s*|\s+(?=let's|we |i |use |go ))",
    CASE,
)
STANDING = re.compile(r",? (?:from (?:now|here) on(?:wards?)?|going forward)[.! ]*\Z", CASE)
ABOUT = re.compile(
    r"(?:as for|for|regarding|concerning|on|when it comes to|with regard to|as to) "
    r"([\w./+#-]{1,40}(?: [\w./+#-]{1,40}){0,5})\s*[,:–—]\s+",
    CASE,
)
AGREED_WHOLE = re.compile(
    r"(?:(?:yes|yep|yeah|yup|sure|ok|okay|great|perfect|agreed|good|cool|fine|sounds (?:good|great)|please)[,.!]?\s+)"
    r"{0,3}(?:yes|yep|yeah|yup|sure|ok|okay|agreed|i agree|sounds (?:good|great|right)(?: to me)?|do (?:it|that)|deal"
    r"|that works(?: for me)?|works for me|perfect|great|excellent|please do(?: so| that)?|go ahead|let's do "
    r"(?:it|that|this)|(?:let's )?go with (?:it|that)|go for it|fine (?:by|with) me|approved|confirmed|absolutely"
    r"|definitely|exactly|makes sense|good (?:idea|choice|call)|i like (?:it|that)|lgtm|ship it"
    r"|that's (?:fine|good|great|decided)|please)[,.! ]*(?:then|thanks|please)?[.! ]*",
    CASE,
)
NOT = r"(?P<no>not (?:to )?)?"
WE_WILL = r"(?:we|i)(?:'ll| will| shall|'re going to| are going to|'m going to| am going to|'re gonna)"
THAT_WE = (
    rf"(?: then)?(?:[,:]| that| to)*\s+(?:(?:we|i|let)(?:'ll|'s| will| should"
    rf"| would)?\s)?{NOT}(?:(?P<verb>{TAKE}|{DO})\s)?"
)
SO_FAR = r"(?:all |both |now |finally |just |already |jointly )?"
ADVERB = (
    r"(?:(?:just|simply|definitely|then|also|now|always|instead|all|both|actually|finally|only|therefore"
    r"|go ahead and)\s)?"
)
NOW_ON = r"(?:from (?:now|here) on|going forward),? "
SUGGEST = r"(?:i|we)(?:'d| would)? (?:strongly |highly |also )?(?:recommend|suggest|propose|advise)"
SUBJECT = r"(?:we|i|the team|our team|everyone|everybody)(?:'ve| have| has|'d| had)?"
HEADS = tuple(
    (act, re.compile(pattern, CASE))
    for act, pattern in (
        (SpeechAct.STATE, rf"{SUBJECT} {SO_FAR}(?P<verb>{TOOK})\s"),
        (
            SpeechAct.STATE,
            rf"{SUBJECT} {SO_FAR}(?:decided|agreed|resolved|committed|made up (?:my|our) minds?){THAT_WE}",
        ),
        (SpeechAct.STATE, rf"it(?:'s| is| was| has been) (?:decided|agreed|settled){THAT_WE}"),
        (SpeechAct.STATE, rf"(?:the|our|my) (?:final )?(?:decision|agreement|conclusion) (?:is|was){THAT_WE}"),
        (
            SpeechAct.STATE,
            rf"(?:final |team |the )?(?:decision|verdict|resolution|decided|agreed)(?: made)?\s?:{THAT_WE}",
        ),
        (SpeechAct.DECIDE, rf"let(?:'s| us) {ADVERB}{NOT}(?P<verb>{TAKE}|{DO})\s"),
        (SpeechAct.DECIDE, rf"{WE_WILL} {ADVERB}{NOT}(?P<verb>{TAKE}|{DO})\s"),
        (SpeechAct.DECIDE, rf"we (?P<no>won't|will not) {ADVERB}(?P<verb>use|support|ship|adopt|allow|store)\s"),
        (
            SpeechAct.DECIDE,
            r"(?:we|i)(?:'re| are|'m| am) (?:now )?(?P<verb>going with|switching to|moving to|choosing)\s",
        ),
        (SpeechAct.DECIDE, r"we (?P<verb>go with)\s"),
        (SpeechAct.DECIDE, rf"{NOW_ON}(?:we(?:'ll| will|'re| are)? |please )?{ADVERB}{NOT}(?P<verb>{TAKE}|{DO})\s"),
        (SpeechAct.DECIDE, r"(?:please )?(?:always|(?P<no>never)) (?P<verb>use|store|allow)\s"),
        (SpeechAct.WISH, rf"let(?:'s| us) {ADVERB}(?P<verb>do)\s"),
        (SpeechAct.WISH, rf"(?:i|we) (?:want|would like|'d like|prefer) (?:us )?(?:to )?(?P<verb>{TAKE})\s"),
        (SpeechAct.WISH, rf"(?:i|we)(?:'d| would)? (?:rather |like to |love to )?(?P<verb>{TAKE}|prefer)\s"),
        (SpeechAct.WISH, r"(?P<verb>going with)\s"),
        (SpeechAct.OFFER, rf"{SUGGEST}(?: that)?(?: we| you)?(?: {TAKE})?\s"),
        (
            SpeechAct.OFFER,
            rf"(?:my|our|the) (?:recommendation|suggestion|proposal|advice) (?:is|would be)(?: to)?(?: {TAKE})?:?\s",
        ),
        (
            SpeechAct.OFFER,
            rf"(?:i think |i believe )?(?:we|you|i) (?:should|could|can|ought to) {ADVERB}(?P<verb>{TAKE})\s",
        ),
        (SpeechAct.OFFER, r"(?:i|we)(?:'d| would) (?P<verb>say)\s"),
        (SpeechAct.OFFER, rf"{ADVERB}(?:please )?(?P<verb>{TAKE}|set|drop|replace)\s"),
    )
)
"""What a sentence does by how it begins; the first that fits holds."""

IT_IS = re.compile(r"(?!(?:i|we|you|how|what|that|as|look|see|guess) )(\S+(?: \S+){0,3}) it is\b[.! ]*\Z", CASE)
INSTEAD = re.compile(
    r",? (?:instead of|rather than|in place of|and not|over)\s+(.+?)(\s(?:for|as)\s.+)?\Z|,? instead\b(.*)", CASE
)
INSTEAD_FIRST = re.compile(
    r"(?:instead of|rather than|forget|drop)\s+([^,]{1,60}?)(?:,\s*|\s+(?=let's |we'll |we're ))(?:and "
    r"|but )?((?:let's |we'll |we're |use |go ).+)",
    CASE,
)
REASON = re.compile(
    r"\s(?:because|since|so that|so we|so it|as (?:it|we|they|that)|which|until|given|due to|and then|and see"
    r"|and (?:let's|we))\b|\s?[—–;]\s?|\s-\s|\.\s|:\s|\s\("
    r"|,\s(?:and\s)?(?:mainly|mostly|partly|but|so|as|since|because|it|that|which|then|with|we|i|not|please|ok)\b",
    CASE,
)
SWAP = re.compile(r"(.{2,60}?) (?:with|by|for) (.+)", CASE)
MAKE = re.compile(
    r"(?:let's|we'll|we will) make (?:(?!(?:\S+ ){0,3}(?:of|for|in|to|on|at|that|from|with|sure|it) (?:the|our)\b)"
    r"(?P<value>\S+(?: \S+){0,3}?) (?P<topic>(?:the|our) \w.{0,60})"
    r"|(?P<what>(?:the|our) \w.{0,60}?) (?:be |to )?(?P<number>\d.{0,40}|true|false))\Z",
    CASE,
)
AND = re.compile(r",? and |, ", CASE)
FOR = re.compile(r"\sfor\s(.+?)(?=\sfor\s|$)", CASE)
AS = re.compile(r"\sas\s((?:the|our|a|an|my)\s.+)", CASE)
SET_TO = re.compile(r"(.{2,60}?) (?:to|at) (.+)", CASE)
IS = re.compile(
    r"(\S.{1,60}?) (?:is|are|will be|should be|must be|has to be|stays?|uses?|goes?|will|runs?|gets?|needs?)\s", CASE
)
OR = re.compile(r",?\s(?:or|vs\.?|versus)\s", CASE)
ARTICLE = re.compile(r"^(?:the|our|my|your|this|a|an|all(?: of)? the|all|both)\s+", CASE)
TRAILING = re.compile(
    r"(?:[,\s]+(?:then|please|instead|now|too|as well|again|thanks|here|after all|for now|everyone|all))+\Z", CASE
)
TAG = re.compile(r",\s*(?:right|ok|okay|yes|no|agreed|correct|shall we|don't you think|what do you think)\Z", CASE)
OPEN = re.compile(
    r"(?:(?:what|which)(?: kind of| sort of| type of)?(?: (\w\S{0,40}(?: \w\S{0,40}){0,3}?))? (?:should|shall|do|would"
    r"|can|could|will|are) (?:we|i|you)\b[^?]*?(?:\sfor\s([^?,:]+))?"
    r"|what(?:'s| is| would be) (?:the|your|our) (?:best|right|preferred|recommended|preference|recommendation|choice)"
    r"(?: of| for)? ?([^?,:]*)|what should (?:the|our|my) ([^?,:]{2,50}?) be)\s*(?:[:,–—]\s.*)?\Z",
    CASE,
)
WHETHER = re.compile(
    r"(?:(?:(?:should|shall|could|can|may|might|are|will) (?:we|i)|(?:do|would) (?:you|we)(?: want"
    r"| like)?(?: us| me)?(?: to)?)"
    rf" (?:rather |better |just |going to |still |all )?(?P<verb>{TAKE}|{DO}|prefer)\s"
    rf"|(?:how|what) about (?:{TAKE}\s)?|why don't we {TAKE}\s|let's {TAKE}\s|(?:shall|should) (?:it|that) be )",
    CASE,
)
AUXILIARY = re.compile(
    r"(?:is|are|was|were|am|does|do|did|can|could|have|has|had|will|would|should|may|must|how|why|who|where|when)\b",
    CASE,
)
RECALLED = re.compile(
    r"\b(?:did (?:we|i|you)|have we|had we|what was|which was|were we|was it|as we|remember|remind|recall"
    r"|we (?:decided|agreed|chose|picked|said|discussed)|as (?:discussed|decided|planned|before))\b",
    CASE,
)
UNSURE = re.compile(
    r"\b(?:if|unless|whether|maybe|perhaps|possibly|probably|might|suppose|assuming|hypothetically|imagine|would have"
    r"|could have|not sure|not certain|don't know|haven't|hasn't|undecided|i guess|or something|say we|depending"
    r"|remind me|tbd)\b",
    CASE,
)
DOUBTED = re.compile(r"(?:as|like) (?:we|i|you) |(?:when|once|before|after|while|until|every time) ", CASE)
# What stands for a thing said elsewhere, or for no thing at all.
NOTHING = re.compile(
    r"(?:it|that|this|these|those|them|one|some|something|anything|everything|nothing|none|not|yet|later|tomorrow"
    r"|today|whatever|what|who|how|why|when|where|which|you|me|us|him|her|there|both|either|neither|another|sure|in"
    r"|on|up|out|off|over|by|ahead|back|down|through|going|trying|moving|working|here|against|ok|okay|with|of|yes|no"
    r"|i|we|they|the (?:same|first|second|other|former|latter|next|flow|above|following)|(?:a|the|my"
    r"|your) (?:look|break|walk"
    r"|moment|minute|step|bit|time|chance|few|couple))\b",
    CASE,
)
DOING = re.compile(r"(?!(?:using|adopting|choosing)\b)\w+ing\s", CASE)  # what is recommended to do, not to take
# What people do next, which is no decision to remember.
IDLE = re.compile(
    r"(?:(?:not to )?(?:think|discuss|talk|wait|see|look|revisit|postpone|decide|disagree|consider|investigate"
    r"|explore|evaluate|check|review|ask|try|meet|get|leave|continue|proceed|move on|start|begin|take|go|come|stay|do"
    r"|have|hold|sleep|eat|watch|visit|be|spend|give|bring|help|make sure|find|run|read|work|play|join|sign|celebrate)"
    r"\b(?! with)|(?:keep|support) (?:\w+ing\b|an eye|track|things|calm|each|you|ya\b|people|my |your )"
    r"|set (?:aside|a (?:date|time|reminder|goal))"
    r"|drop (?:a|me|by)|use (?:the|this|that|a) (?:\w+ )?(?:time|opportunity|chance|tool|command|function"
    r"|bathroom|following|file"
    r"|search|find|grep|edit|bash|terminal)\b)",
    CASE,
)
