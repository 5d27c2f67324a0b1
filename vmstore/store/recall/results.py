"""What recall answers with."""

from __future__ import annotations

import msgspec


class RecalledText(msgspec.Struct, frozen=True):
    """What one page says, or as much of it as fits (`whole`), and whether it was found or stands beside what was."""

    page: str
    role: str
    at_us: int
    text: str
    tokens: int
    found: bool
    whole: bool = True


class Passage(msgspec.Struct, frozen=True):
    """Texts of one session that follow each other; `relevance` is 1 for the best, `copies` say the same elsewhere."""

    session: str
    at_us: int
    relevance: float
    texts: list[RecalledText]
    copies: int = 0


class RecallAnswer(msgspec.Struct, frozen=True):
    """An answer of the memory: passages and the tokens they take.

    `total_available` is how many pages there are, `left_out` how many of them did not fit. `note` says what was
    done where it is not what was asked: nothing found, a query cut short. `from_us` and `to_us` are the time asked
    about, where one was, whose days are those of `zone`.
    """

    passages: list[Passage]
    tokens: int
    total_available: int
    left_out: int = 0
    note: str = ""
    from_us: int | None = None
    to_us: int | None = None
    zone: str = "UTC"


class NamedTime(msgspec.Struct, frozen=True):
    """A time that a text names: its words, and from when to before when it is, as seen from `at_us`, when it was said.

    `precision` is how exactly it is known: the smallest of instant, day, week, month, season, year that holds it.
    """

    session: str
    page: str
    at_us: int
    words: str
    from_us: int
    to_us: int
    precision: str


class NamedTimes(msgspec.Struct, frozen=True):
    """The times that texts name, the earliest first; `total_available` is how many there are."""

    times: list[NamedTime]
    total_available: int
    note: str = ""


class FoundPage(msgspec.Struct, frozen=True):
    """A page that a search found: what it is and how well it fits, never all that it says."""

    page_id: str
    session: str
    modality: str
    tier: str
    levels: list[int]
    hint: str
    relevance: float


class FoundPages(msgspec.Struct, frozen=True):
    """The best pages of a search, of so many that hold a word of it."""

    results: list[FoundPage]
    total_available: int
    note: str = ""


class FoundQuote(msgspec.Struct, frozen=True):
    """An excerpt that answers a text; `session_at_us` is when it was said.

    `match` is exact where it holds the text, words where it holds a word of it, similar where it holds none: a typo
    was forgiven, or an embedder found it close.
    """

    page: str
    session: str
    session_at_us: int
    role: str
    match: str
    excerpt: str
    tags: list[str]
    relevance: float


class FoundQuotes(msgspec.Struct, frozen=True):
    """The best quotes, exact ones first, of so many pages that hold a word of the text."""

    quotes: list[FoundQuote]
    total_available: int
    note: str = ""


class Topic(msgspec.Struct, frozen=True):
    """A stretch of a session: what it is about, its summary where one was written, else how it began.

    `pages` are those to ask for, `text` is empty where the budget has room for the topic alone.
    """

    topic: str
    session: str
    turns: tuple[int, int]
    at_us: int
    pages: list[str]
    text: str
    tokens: int


class Overview(msgspec.Struct, frozen=True):
    """All that a session's memory is about, oldest first; `left_out` is how many topics did not fit."""

    topics: list[Topic]
    tokens: int
    total_available: int
    left_out: int = 0
    note: str = ""


class RecallWorth(msgspec.Struct, frozen=True):
    """What one way of asking was worth: how often it was asked, the pages and tokens it gave, and what came of them.

    `used` are the pages that an answer of that turn or the next cited, quoted, reused or loaded; `helped` how many
    of the `searches` gave at least one such page.
    """

    recaller: str
    searches: int
    pages: int
    used: int
    helped: int
    tokens: int


class FactLink(msgspec.Struct, frozen=True):
    """A page that a fact hangs together with: how, and whether the link leads from the fact (`out`) or to it."""

    kind: str
    page: str
    out: bool


class KnownFact(msgspec.Struct, frozen=True):
    """A fact as of the moment it was asked for: a row of FACTS, times in microseconds since 1970."""

    page: str
    session: str
    user: str | None
    subject: str
    verb: str
    what: str
    attribute: str | None
    type: str
    status: str
    tags: list[str]
    valid_from_us: int | None
    valid_to_us: int | None
    precision: str
    confidence: float
    strength: float
    method: str
    one: bool
    superseded_by: str | None
    sources: list[str]
    turn: int
    position: int
    at_us: int | None
    text: str | None
    links: list[FactLink] = []


class FactsFound(msgspec.Struct, frozen=True):
    """The facts that were asked for, of `total`; `note` says where some only say something like it."""

    facts: list[KnownFact]
    total: int
    note: str = ""


class FactEdge(msgspec.Struct, frozen=True):
    """A link met `depth` steps from where a walk began."""

    source: str
    target: str
    kind: str
    depth: int


class FactGraph(msgspec.Struct, frozen=True):
    """The facts that a walk met, in its order, and the links between them."""

    facts: list[KnownFact]
    edges: list[FactEdge]
