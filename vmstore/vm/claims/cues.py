"""The cues of decisions that are kept in their own words: what agrees, refuses, proposes, lays down, changes.

English only. Texts come with single spaces and plain quotation marks, some hundred characters at most.
"""

from __future__ import annotations

import re

CASE = re.IGNORECASE
LEADING = frozenset(
    ("the", "our", "my", "a", "an", "all", "every", "each", "any", "your", "this", "that", "these", "those", "so",
     "and", "but", "of", "in", "on", "as", "at")
)  # fmt: skip
NO_TOPIC = frozenset(
    ("to", "i", "it", "he", "she", "they", "we", "you", "what", "there", "which", "who", "then", "not", "no", "and",
     "or", "when", "i'm", "it's", "that's", "everyone", "everybody", "nobody", "anybody", "anyone", "somebody",
     "someone", "whoever", "everything", "something", "nothing", "all", "both",
     "please", "reason", "that")
)  # fmt: skip
ACKNOWLEDGED_WORDS_MAX = 12
TAKES_NOTE = re.compile(
    r"\b(?:ok(?:ay)?|noted|got it|saved|recorded|understood|sure|will do|thanks|set|added|lovely|great|fine"
    r"|right|entered|it is"
    r"|i'll|booked|reserved|configured|in the \w+|building|all right|alright|you did|written|remember|good)\b",
    re.IGNORECASE,
)
LAYS_DOWN = re.compile(
    r"^(?:\w+, )?(?P<s>(?:the |our |my )?[\w./+#&'-]+(?: [\w./+#&'-]+){0,6}?) (?:is|are|will be|shall be"
    r"|should be|shall|lives? in|runs? on"
    r"|goes? out|goes? to|rotates?|gets?|uses?) "
    r"|^(?:please )?(?:use|take|book|answer|write|keep|put|i want|i take|we'll have|i said) .*?\b(?:for|on|in"
    r"|of) (?P<t>.+)"
    r"|^\S+(?: \S+){0,2} for (?P<u>the .+?)(?:,|$)",
    re.IGNORECASE,
)
CHANGES = re.compile(
    r"\b(?:actually|no longer|not any ?more|any longer|instead|replaced?|replaces|revised|amendment"
    r"|correction|changed?|back to|moved?"
    r"|switch(?:ed)?|is out|dropp?(?:ed)?|overturn\w*|overrul\w+|undo|void|slipped|new|rather|raised|lowered"
    r"|reassigned|swap|takes? over"
    r"|steps in|second thoughts|ignore|sorry|mistake|no more|cut it|cancel|too (?:often|long|short|small|slow"
    r"|many|few)|re-settled"
    r"|can't|couldn't|won't|said no|says no|happier|pulled the plug|reverse|upgrade|safer|fell|instead|now"
    r"|only|until|off|these days"
    r"|from (?:now|here|today)|gave up|goes to|out)\b|^no\b|\bno[.,]",
    re.IGNORECASE,
)
GIVES_WAY = re.compile(
    r"\b(?:moving|becom\w+|became|turn(?:s|ed)? (?:out|into|down)|history|ha[sd] to go|had its chance|wrong|scratch"
    r"|scrap\w*|replac\w+|swap\w*|ditch\w*|abandon\w*|retir\w+|discontinu\w*|withdr[ae]w\w*|supersed\w*|deprecat\w*"
    r"|obsolete|no good|shift\w*|migrat\w+|convert\w*|gone|adjust\w*|updat\w+|alter\w*|revers\w+|revert\w*|veto\w*"
    r"|forbid\w*|reject\w*|leav(?:e|es|ing)|left|it is|not|then|so)\b",
    CASE,
)
"""What a message has that says what takes the place of what it names, too weak where it does not name it."""
OTHERS = re.compile(
    r"(?:\w+, |the |my |our |a |an |some |their |her |his |these |those ){0,2}(?:\w+ ){0,3}?"
    r"(?:neighbou?rs?|competitors?|compan(?:y|ies)|friends?|colleagues?|teams?|people|folks|they|he"
    r"|she)(?: \w+){0,2}? "
    r"(?:went|moved|switched|chose|picked|uses?|used|decided|changed|dropped|migrated|had|has|did|does)\b",
    CASE,
)
"""What others did, which decides nothing here."""
NO_MORE = re.compile(
    r"\b(?:instead of|rather than|in place of|not any ?more|no longer|no more|forget|scrap\w*|drop\w*|ditch\w*"
    r"|replac\w+"
    r"|swap\w*|from|over|bye|goodbye|out with|away from|abandon\w*|retir\w+|not|without|enough of|so much for"
    r"|done with"
    r"|give up|gave up|kill\w*|remov\w+|stopp?(?:ed)? using|wrong about|can't keep|end of|past)(?: the| our| my"
    r"| on)? "
    r"([\w./+#&'-]+(?: [\w./+#&'-]+){0,2})"
    r"|([\w./+#&'-]+(?: [\w./+#&'-]+)?),? (?=(?:is|was|are) (?:out|history|gone|off|dead|no longer|over"
    r"|wrong)\b|didn't"
    r"|did not|no longer|turned out|proved|failed|flopped|fell|gets the boot|had to go|has to go|won't|can't|cannot"
    r"|for [^.?!]{1,40}\? not any ?more)",
    CASE,
)
"""What is no more, or goes: in its first group behind the word for that, in its second before it."""
ENDS = (
    r"(?=\s*(?:\Z|[.,:;!?)(=→>–—-]| (?:is|are|was|were|will|shall|should|must|has|have|had|gets?|got|goes|go|moves?"
    r"|becomes?|stays?|uses?|runs?|needs?|takes?|lives?|comes?|starts?|ends?|to|from|over|at|in|on|with|by"
    r"|since|because"
    r"|instead|now|then|after|until|as|and|but|so|for|went|moved|changed?|switch\w*|can|could|may|might|no|not|isn't"
    r"|aren't|won't|can't|doesn't|didn't|would|doing|still|just|also|never|always|fell|got|again|today|tomorrow"
    r"|please|up|down|we|i|it|they|\w+ed)\b))"
)
"""What stands behind the name of a thing where it is named whole."""
CALLED = re.compile(
    r"(?:the |my |our |a |an )?(?:\w+ )?(?:call|vote|one|word|note|update|news|decision|choice|pick|answer"
    r"|question|idea|thought|opinion)s? "
    r"(?:on|for|of|about|as to) ",
    CASE,
)
"""What stands before the name of a thing that is set or chosen."""
NAMED = re.compile(r"\b(?:the|our|my) ((?:(?!the\b|our\b|my\b)[\w./+#-]+ ){0,3}?[\w./+#-]+)" + ENDS, CASE)
"""The thing that is spoken of first, with its article."""
SO = re.compile(r"[,;:–—] ?(?:and )?(?:so|hence|therefore|thus|then) ", CASE)
OF = re.compile(
    r"\b(?:for|of|about|as to|on) (the [\w./+#-]+(?:\s(?!(?:is|are|was|will|to|in|at|on|and|with|the|our|since|by|any"
    r"|from|who|that|which)\b)[\w./+#-]+){0,3})",
    CASE,
)
SUBJECT = re.compile(
    r"(?:^|[.:;,!?] )((?:the|our|my) [\w./+#&'-]+(?: [\w./+#&'-]+){0,4}?) "
    r"(?:is|are|becomes?|goes|moves?|will|gets?|uses?)\b",
    CASE,
)
MODAL = re.compile(r" (?:can|could|may|might|must|should|would|will|has|have|does|did)\Z", CASE)
DEFINITE = re.compile(r"(?:the|our|my|all|every|each) ", CASE)
AFTER_TALK = re.compile(r"after (?:the|our|a|an|some|this|that|today's|yesterday's|last) ", re.IGNORECASE)
NAMES = re.compile(r"\b(?:[A-Z][\w.+#-]*|[\w.-]*\d[\w.-]*|[a-z]+_\w+|\w+\Z)")
PLAIN_WORDS_MAX = 35  # of a message that may say how things are without a word of deciding
TASK = re.compile(
    r"(?:please |now |then |ok,? |haha,? )*(?:rename|run|fix|add|remove|create|look|show|explain|check|open"
    r"|read|tell|give|translate|summari[sz]e"
    r"|list|find|help|fantastic|tight|thanks|thank you|hm+|funny|continue|next)\b",
    re.IGNORECASE,
)
CLAUSE = re.compile(
    r"(?:now that|since|because|given(?: that)?|seeing(?: that)?|considering) [^,;]{1,120}[,;] (?:so )?", CASE
)
"""A clause that says why or since when: what the sentence does stands behind it."""
WORK = re.compile(
    r"(?:please |now |then )*(?:write|draft|prepare|count|clean|measure|compare|describe|debug|investigate"
    r"|review|print"
    r"|plot|search|download|refactor)\b",
    re.IGNORECASE,
)
TROUBLE = re.compile(
    r"\b(?:errors?|fail\w*|broken|wrong|bugs?|slow|crash\w*|doesn't|isn't|weird|missing|why|how|exception"
    r"|trace\w*|stuck|hangs?|issue"
    r"|problem|look at|check|fix|run|show|explain|write|rename|add|remove|make|create|find|read|open|try"
    r"|tests? pass\w*)\b",
    re.IGNORECASE,
)
DOUBTED = re.compile(
    r"\b(?:if|unless|whether|maybe|perhaps|might|not sure|don't know|i guess|could you|can you|would you"
    r"|thinking|considering"
    r"|wonder|thinks?|i read|according to|apparently|supposedly|reportedly|i hear|i heard|they say|rumou?r\w*)\b",
    CASE,
)
AGREES = re.compile(
    r"(?:^|[.,!;]\s|^(?:\w+,? ){1,3})(?:ok(?:ay)?|yes|yep|yeah|yup|sure|fine|good|great|perfect|lovely"
    r"|excellent|nice|agreed|deal|lgtm"
    r"|go (?:ahead|for it)|do (?:it|that|so)|sounds \w+|works|that works|makes sense|please do|i do\b"
    r"|i accept|accept\w*"
    r"|approved|confirmed|me too|i don't mind|convinced|on board|i'll trust you|i trust you|you're right"
    r"|exactly|absolutely"
    r"|let's|reasonable|ship it|by all means|no objections?|as you (?:suggest|say|propose)|i'm (?:in|for it"
    r"|on board|fine)"
    r"|\+1|right|of course|book it|definitely|certainly|happy with|all right|alright|done|be it)\b",
    CASE,
)
MILD = re.compile(r"\b(?:no (?:need|objections?|problem|worries|doubt)|don't mind|why not|not bad)\b", CASE)
REFUSES = re.compile(
    r"\b(?:no|not|nope|nah|never|don't|won't|can't|isn't|doesn't|but|later|wait|maybe|instead|rather|hold|unless"
    r"|if|before|think about"
    r"|ask me|perhaps|unsure|however|although|yet|except)\b",
    CASE,
)
PROPOSES = re.compile(
    r"\b(?:i(?:'d|'ll| would| could| can| will)|suggest\w*|propos\w+|recommend\w*|could|should i|shall (?:i"
    r"|we)|may i|let me"
    r"|do you (?:want|agree)|want me to|what if|how about|what about|my vote|would|one approach|simplest"
    r"|if nobody minds"
    r"|i lean|we (?:could|should|can)|sensible|best|you (?:could|should)|proposal|idea|option|plan|vote"
    r"|prefer|advise|lean)\b",
    CASE,
)
WHICH = re.compile(
    r"\b(?:which|what|where|when|who|how (?:many|much|long|often|should)|or|preference|prefer)\b",
    CASE,
)
ITEMS = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)]|\(?[a-e][.)])\s+(.+)$", re.MULTILINE)
INLINE = re.compile(r"(?:^|[\s:,])\(?(?:\d|[a-e])\)\s*")
PLACE = re.compile(
    r"^(?:(?:the|option|number|no\.?|choice|take|go with|let's take|i'd take|variant|yes,?) )*#?(1|2|3|4|a|b"
    r"|c|d|one|two|three|first|second|third|former|latter|last)\b",
    CASE,
)
PLACES = (
    ("1", "a", "one", "first", "former"),
    ("2", "b", "two", "second", "latter"),
    ("3", "c", "three", "third"),
    ("4", "d"),
)
FOR = re.compile(
    r"\b(?:for|about|as|on) ((?:the|our|my|your|all|every|an?)\s[\w./+#-]+(?:\s(?!(?:is|are|was|will"
    r"|to|in|at|on|and|with|the|our|everybody|did|since|i|we|you)\b)[\w./+#-]+){0,3})",
    CASE,
)
BESIDE = re.compile(
    r"\b(?:of|with|in) ((?:the|our|my|your|all|every|an?)\s[\w./+#-]+(?:\s(?!(?:is|are|was|will"
    r"|to|in|at|on|and|with|the|our|everybody|did|since|i|we|you)\b)[\w./+#-]+){0,3})",
    CASE,
)
UNSURE = re.compile(
    r"\b(?:if|unless|whether|maybe|perhaps|possibly|probably|might|suppose|not sure|don't know|i guess|tbd"
    r"|could you|can you"
    r"|would you|think about|considering|thinking (?:of|about)|what about|wonder|undecided|haven't|hasn't"
    r"|they|he|she|translate|apparently|supposedly|reportedly"
    r"|i read|i heard|according to|previous company|competitors?|in (?:19|20)\d\d|thinks?|somebody|someone"
    r"|used to|before my time|could've|could|would|at the moment|says to|disagree"
    r"|i(?:'d like| need| have| just| also| appreciate| noticed| did| know| don't|'m (?:sure|hoping|having"
    r"|trying|not|sorry))|refund|there (?:is|are|must|should)|i booked|i want to|go ahead|please proceed"
    r"|more than i|user id|reservation|my (?:name|number|card|account|order|e-?mail|phone|id|dob|birth\w*|zip)"
    r"|imagine|example|hypothetical\w*|once upon|story|quote|i saw|leaning|ask me again)\b",
    CASE,
)
REVERSES = re.compile(
    r"\b(?:actually|no longer|not any ?more|any longer|instead|replace[sd]?|replaced by|revised|amendment"
    r"|correction|changed?|back to"
    r"|moved?|switch(?:ed)?|is out|drop(?:ped)?|overturn\w*|overrul\w+|undo|void|slipped|new|now|rather"
    r"|raised|lowered|reassigned"
    r"|swap|took over|takes over|steps in|second thoughts|ignore|sorry|mistake|earlier|no more|cut it)\b",
    CASE,
)
NOT_VALUE = (
    r"(?!(?:the same|funny|not|n't|broken|failing|red|green|slow|down|up|done|ready|empty|missing|wrong|there"
    r"|here|ok|okay"
    r"|fine|great|good|bad|very"
    r"|so|too|still|already|what|why|how|where|because|also|just|only|that|this|it|easy|hard|nice|correct"
    r"|right|true|false|a bit"
    r"|unclear|clear|open|pending|\w+ing)\b)"
)
S = (
    r"(?P<s>(?:the |our |my |every |all )?[\w./+#&'-]+(?: (?!is\b|are\b|was\b|isn't\b|aren't\b|wasn't\b|will\b"
    r"|to\b|i\b|we\b)[\w./+#&'-]+){0,4})"
)
LABEL = re.compile(
    r"^(?:[-*] )?(?!(?:note|todo|error|warning|ps|btw|fyi|hint|example|https?"
    r"|re)\b)(?P<s>[A-Za-z][\w /-]{2,40}?)(?: ?(?:=|->|=>|→) ?"
    r"|: )(?P<v>[\w.,@+#%'/ -]{1,60}(?: \([^()]{1,60}\))?)[.!]?$",
    CASE,
)
STATES = tuple(
    re.compile(form, CASE)
    for form in (
        rf"\b{S} (?:is|are|was|stays?|reads?) (?:now |from now on |officially |hereby |to be |set to "
        rf"|going to be |run with |run on )?{NOT_VALUE}[\w'@\"][^?]*\b(?:now|from (?:now|today)|from here on"
        rf"|these days|as of|settled|final|end of story|done deal|always|no exceptions|please)\b",
        rf"\b(?:from now on|from here on|since \w+|as of \w+|effective \w+|these days|now)[, ]+(?:the |our "
        rf"|my )?{S} (?:is|are|goes?|gets?|will be) {NOT_VALUE}\w",
        rf"^(?:\w+, |so |and |quick one: |fyi |btw |correction, .{{0,60}}: |revised: |one amendment: )?(?:my"
        rf"|our) (?P<s>[\w /'-]{{2,40}}?) (?:is|are|lives? in|will be|carry|carries) {NOT_VALUE}\w",
        rf"\b{S} (?:shall|must|has to|have to|mustn't|should) (?:be|run|live|go|use|have|drop|stay|get) ",
        rf"\b{S} (?:goes?|moves?|moved|went|will (?:be|come|go|live|run|move)|gets?|live[sd]?|runs?"
        rf"|stays?) (?:over )?(?:to|into|in|on|out on|from|with|at|by|a|an|the|under)? ?{NOT_VALUE}[\w@]",
        r"\b(?:we|i|they|the (?:board|team|committee|group)|everybody|everyone|board|management)(?:'ve|'s| have| has"
        r"| had)? (?:just |finally |all |now )?(?:settled on|picked|chose|chosen|ordered|approved|replaced"
        r"|reassigned|adopted|agreed on|decided|signed|went for|raised|lowered|fixed|confirmed|voted for"
        r"|switched|opted for)\b",
        r"\b(?:it'll be|it will be|it shall be|the choice fell on|so that is that|is in\b|it is then"
        r"|takes? over|steps? in|won on|beat \w+|put me on|gets deployed|replaces)\b",
        r"\b(?:we'll|we will|we're|we are|i'll be|i'm) (?:be )?(?:using|writing|taking|going with|moving"
        r"|running|building|having|doing|keeping|storing|deploying) ",
        r"^(?:please,? )?(?:always|never) \w+ .*",
        r"\bi (?:always )?(?:prefer|want|like my|take) (?!to know|to see|you|a look)[\w'\"].* (?:in|on|for|of) ",
        r"^put \S+(?: \S+){0,3} down for ",
        r"\b(?:back to|no more|cut it to|change it to|make it|replace (?:it|that) with|treat|compress|swap it"
        r"|upgrade) .{3,}",
    )
)  # fmt: skip
IS_NO_HABIT = (
    r"(?:a?re|was|were|had|have|has|need|saw|see|think|know|hope|wonder|could|can|can't|cannot|should|would"
    r"|might|may|must|did|didn't"
    r"|don't|got|get|tried|found|lost|met|talked|spoke|read|heard|went|came|said|told|made|look|looks|like|feel"
    r"|believe"
    r"|expect|love|hate|wish|remember|agree|disagree|discuss|try|wait|seem|happen|still|also|already|never|not"
    r"|won't|weren't"
    r"|aren't|wouldn't|couldn't|shouldn't|haven't|hadn't|ran|began|left|knew|thought|felt|kept|took|gave|wrote"
    r"|if|that|what|will|shall"
    r"|just|all|now|only|always|want|to|and|or|in|on|at|of|for|with|from)"
)
NO_HABIT = (
    r"(?:is|was|has|does|costs|contains|weighs|looks|seems|feels|says|fails|works|crashes|hangs|prints|shows|returns"
    r"|takes|thinks|reads|means|knows"
    r"|makes|sounds|tells|wants|likes|loves|hates|happens|appears|breaks|throws|raises|gives|this|its|his"
    r"|always|sometimes"
    r"|whereas|thus|uses|across|plus|yes|us|as|ours|theirs|news|asks|asked)"
)
VERBS = (
    r"(?:use[sd]?|uses|using|swap\w*|replac\w+|is|are|was|were|has|have|had|keeps?|add|remove|need|let's|let"
    r"|set|change|wait\w*|check)"
)
JOINS = (
    r"(?:to|into|in|on|with|by|from|at|through|over|via|as|under|every|each|a|an|the|only|no|one|two|three"
    r"|four|five|six|ten)\b"
)
THING = (
    r"(?P<s>(?!(?:it|that|there|he|she|this|what|who|here|let|i|we|you|they|one|where|how|everyone|everybody)\b)"
    r"(?:(?:the |our |my |all |every |each )[\w./+#&'-]+|[A-Z][\w./+#&'-]*|[a-z][\w./+#&'-]*)"
    r"(?: (?!is\b|are\b|was\b|will\b|to\b|i\b|we\b)[\w./+#&-]+){0,4}?)"
)
PLAIN = tuple(
    re.compile(form, CASE)
    for form in (
        rf"^(?:[\w' ]{{1,24}}[,:] )?(?P<s>(?:the |our |my |all |every "
        rf"|each )[\w./+#&'-]+(?: [\w./+#&'-]+){{0,5}}?)(?: \w+ly)? (?:is|are|will be|must be|should be"
        rf"|shall be|comes? from|lives? (?:in|on)|runs? (?:on|in)|goes? (?:to|into|out)|gets?|uses?|stays?"
        rf"|starts?|ends?|needs?|carries|carry) {NOT_VALUE}[\w'\"@]",
        rf"^(?:[\w' ]{{1,24}}[,:] )?(?P<s>[A-Z][\w./+#&'-]*(?: [\w./+#&'-]+){{0,4}}?) (?:is|are|will be"
        rf"|must be|should be|shall be|runs? (?:on|in)|goes? to|gets?) "
        rf"{NOT_VALUE}[\w'\"@]",
        r"^(?P<s>[A-Za-z][\w /-]{2,40}?)(?: ?(?:=|->|=>|→) ?"
        r"|: )(?P<v>[\w.,@+#%'/ -]{1,60}(?: \([^()]{1,60}\))?)[.!]?$",
        r"\b(?:we|i)(?:'ve|'ll|'re|'m| have| had| will)? (?:\w+ ){0,2}?(?:going with|went with"
        r"|decided|agreed|booked|bought|hired|signed"
        r"|picked|landed on|ended up with|committed to|standardi[sz]ed on|rolled out|moved)\b",
        r"^(?:please )?(?:store|stick|default|limit|cap) .*\b(?:for|in|on|to|at|as|with) ",
    )
)
HABITS = tuple(
    re.compile(form, CASE)
    for form in (
        # what we do, as a habit: any verb but those that tell what happened or is thought
        rf"\b(?:we|everybody|everyone|all of us)(?: all| now| always| only| will| shall"
        rf"| just){{0,2}} (?!{IS_NO_HABIT}\b)"
        r"[a-z]{2,}(?<!ed)(?<!ing) (?!to\b)\S(?!.*\bat (?:work|home|school)\b)",
        # what a thing does, as a habit, or has been changed to
        rf"^(?:[\w' ]{{1,24}}[,:] )?{THING} (?:now |only "
        rf"|always )?(?!{NO_HABIT}\b)[a-z]{{2,}}[a-rt-z]s (?:{JOINS}|(?-i:[A-Z]))",
        rf"^(?:[\w' ]{{1,24}}[,:] )?{THING}(?:'s| is| are| has been| have been| got| gets| was| were"
        rf"| will be)? (?:[a-z]{{3,}}ed"
        r"|cut|put|set) (?:down |up |back )?(?:to|until|till|into|onto|through) ",
        rf"^(?:[\w' ]{{1,24}}[,:] )?{THING}'s (?:a |an |the )?{NOT_VALUE}\S",
        # a value for a thing, and nothing else
        r"^(?!thanks?\b|time\b|ready\b|reason\b|good\b|sorry\b|here\b|what\b|looking\b|waiting\b|more\b|we\b"
        r"|i\b|you\b|it\b|generate\b|give\b|kill\b|busca\b|print\b|something\b|which\b|is\b|are\b)(?:(?:ok|so"
        r"|yes|then|fine|"
        r"let's do|book|take|put|do|go with|proceed with|opted for|get|keep|make|i'm getting|we want|i want)[, ]+)?"
        rf"(?!(?:\S+ ){{0,2}}{VERBS}\b)\S+(?: \S+){{0,3}} (?:for|as) (?:the |our |my "
        rf"|all )?(?P<t>[\w/'-]+(?: [\w/'-]+){{0,3}})[.!]?$",
    )
)
"""How things are done from here on, said without a word of deciding: heard where a message ends with it."""


ERRAND_LAST = re.compile(
    r"[,;.:] (?:please |and |so |can you |could you )*(?:have a look|take a look|look (?:at|into)|check|fix"
    r"|find out|list|show|tell me"
    r"|run|explain|describe|summari[sz]e|investigate)\b[^,.;]*[.!? ]*\Z",
    CASE,
)
"""A task behind what it is about: "the page looks odd, have a look"."""
LOOKING = re.compile(
    r"(?:please |now |then |so |ok,? |and )*(?:test|check|look|fix|try|see|explain|run|debug)\b",
    CASE,
)
WHY = re.compile(
    r"\s(?:because|since|as (?:it|we|they|the)|which|given|due to)\b|[,;:(–—]\s?(?=(?:it|they|he|she|we|there"
    r"|half|nobody|some|our|their|its"
    r"|that|because|since|as|which|the)\b)",
    CASE,
)
"""Where a sentence begins to say why."""
BEGINS = re.compile(
    r"(?:\w+, )?(?:(?:we|i|they)(?:'ll|'ve|'re|'m|'d)?(?: have| had| are| am| will)? (?:just |all |finally |now )?"
    r"(?:decided to |agreed to |want to |going to |)|let's )",
    CASE,
)
ERRAND = re.compile(
    r"\b(?:run(?:ning)? |search(?:ing)?(?: (?:for|in|through|the|it)\b|\W*\Z)|grep\b|look (?:at|into)|check\b|fix\b"
    r"|read |open |continue\b|proceed|the tests\b|commit(?:ted|s)?\b|push\b|clean\b|show\b|explain|ready for)",
    CASE,
)
