"""The cues of decisions that are kept in their own words: what agrees, refuses, proposes, lays down, changes.

English only. Texts come with single spaces and plain quotation marks, some hundred characters at most.
"""

from __future__ import annotations

import re

CASE = re.IGNORECASE
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
NAMES = re.compile(r"\b(?:[A-Z][\w.+#-]*|[\w.-]*\d[\w.-]*|[a-z]+_\w+|\w+\Z)")
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
PROPOSES = re.compile(
    r"\b(?:i(?:'d|'ll| would| could| can| will)|suggest\w*|propos\w+|recommend\w*|could|should i|shall (?:i"
    r"|we)|may i|let me"
    r"|do you (?:want|agree)|want me to|what if|how about|what about|my vote|would|one approach|simplest"
    r"|if nobody minds"
    r"|i lean|we (?:could|should|can)|sensible|best|you (?:could|should)|proposal|idea|option|plan|vote"
    r"|prefer|advise|lean)\b",
    CASE,
)
ERRAND_LAST = re.compile(
    r"[,;.:] (?:please |and |so |can you |could you )*(?:have a look|take a look|look (?:at|into)|check|fix"
    r"|find out|list|show|tell me"
    r"|run|explain|describe|summari[sz]e|investigate)\b[^,.;]*[.!? ]*\Z",
    CASE,
)
"""A task behind what it is about: "the page looks odd, have a look"."""
