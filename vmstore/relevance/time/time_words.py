"""The words that expressions of time are made of, and those by which a sentence speaks of the past or the future."""

from __future__ import annotations

import re
from typing import Final

from vmstore.relevance.time.intervals import DAYS, MONTHS, SEASONS

_LISTS: Final = {
    "tens": "twenties thirties forties fifties sixties seventies eighties nineties",
    "numbers": "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
    "units": "second minute hour day week fortnight month quarter year decade weekend night",
    "clear months": "january february july september october november december",
    "generic": "a an every each any some most all another no one per black good how",
    "at": """
        in since until till by during of from before after around through throughout between and to on over early mid
        late last next this past - for back circa about towards come""",
    "after a day": """
        . , ; : ! ? ) and at we i in but he she they it you or for because so when with from to until of""",
    "end in s": "was is has this us always as does his yes perhaps whereas plus thus",
    "not holidays": "tree trees present presents gift gifts card cards egg eggs bunny songs",
    "was": """
        was were did had went got saw took made came met bought said told ate ran won lost found felt spent gave left
        thought kept heard knew wrote sent stood drove flew began broke brought built caught chose drank fell forgot
        grew held led paid read rode sang sat slept sold spoke stole swam taught threw understood woke wore became
        drew fed fought hid hung laid lent lit shook shot shone struck swore tore wasn't weren't didn't hadn't been
        born since ago earlier couldn't haven't hasn't i've we've died slid quit ended previously froze sank rang beat
        """,
    "not participles": """
        need indeed feed speed seed breed bed red led shed wed proceed exceed succeed embed hundred sacred naked wicked
        unrelated united limited based related""",
    "will": """
        will won't shall gonna going plan plans planning planned hope hopes hoping let's lets upcoming due deadline
        appointment scheduled schedule expected supposed expires must should tomorrow soon remind want wants wanna
        would wish intend intends aim eta happening coming forward cannot can see starts begins leaves opens closes
        arrives comes departs lands launches goes flies moves ends meet meeting reserve renew rsvp invited""",
    "is": "is are am be has have i'm we're they're you're he's she's it's i start",
}
_SETS: Final = {name: frozenset(words.split()) for name, words in _LISTS.items()}

SHORT_MONTHS: Final = {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
CLEAR_MONTHS: Final = _SETS["clear months"]
"""Names that stand for nothing else."""
VERBS: Final = frozenset(["may", "march"])
"""Words that are months only where more says so."""
SHORT_DAYS: Final = {name[:3]: number for name, number in DAYS.items()} | {"tues": 1, "thur": 3, "thurs": 3}
TENS: Final = {name: 1920 + 10 * number for number, name in enumerate(_LISTS["tens"].split())}
NUMBERS: Final = {name: number for number, name in enumerate(_LISTS["numbers"].split(), 1)} | {
    "a": 1, "an": 1, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "dozen": 12
}  # fmt: skip
VAGUE: Final = {"couple": (2, 0), "few": (3, 1), "several": (5, 2)}
"""How many, by how much more or fewer."""
ORDINALS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1, "final": -1}
UNITS: Final = {name + end: name for name in (*_LISTS["units"].split(), *SEASONS) for end in ("", "s")} | {
    "sec": "second", "secs": "second", "min": "minute", "mins": "minute", "hr": "hour", "hrs": "hour"
}  # fmt: skip
THIRDS: Final = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
LAST: Final = frozenset(["last", "past", "previous"])
NEXT: Final = frozenset(["next", "coming", "following"])
GENERIC: Final = _SETS["generic"]
"""Before a name of a day they speak of any such day."""
AT: Final = _SETS["at"]
"""Before a year or the name of a month they say that it is one."""
TO: Final = frozenset(["to", "until", "till", "through", "and", "-", "–"])
AFTER_A_DAY: Final = _SETS["after a day"]
"""After "on the 7th" they say that it is no seventh of something."""
END_IN_S: Final = _SETS["end in s"]
"""Words after a year that are no plural of what is counted."""
GLUE: Final = ("/", "=", "@", "#", "$", "\\")
"""Signs after a number by which a path or a value continues."""
NOT_HOLIDAYS: Final = _SETS["not holidays"]
BESIDE: Final = frozenset(["day", "week", "month", "year", "weekend", "night", "evening", "morning"])
DATES: Final = (
    (re.compile(r"(\d{4})[-/](\d\d?)[-/](\d\d?)$"), True),
    (re.compile(r"(\d\d?)[/.](\d\d?)[/.](\d{4})$"), False),
)
"""Dates in figures, and whether the year comes first."""

WAS: Final = _SETS["was"]
NOT_PARTICIPLES: Final = _SETS["not participles"]
WILL: Final = _SETS["will"]
IS: Final = _SETS["is"]
