"""LINKS, VERSIONS, VECTORS and RESIDENCIES: how pages relate, what they held, when they were in the prompt."""

from __future__ import annotations

from vmstore.core.decision import Cite, Reference
from vmstore.core.page import Level, LinkKind, Method, PageType, Role, Tier
from vmstore.core.recalls import USES
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.core.vectors import Quantisation
from vmstore.vmql.column_types import BOOLEAN, INTEGER, PAGE, TEXT, TIME, case, numbered, word
from vmstore.vmql.relations.relation import Field, Path, Relation, asked, by, fields, joins
from vmstore.vmql.relations.shared_columns import (
    NO,
    SESSION,
    WRITER,
    at_position,
    beside,
    holds,
    maker,
    page_of,
    rows,
    scan,
)

_ROLE = case({int(role): role.word for role in Role}).format("p.role")


def _contents(also: str = "", index: str = "") -> str:
    """Every content that is wanted: a page's first, and those it was given later."""
    rows = "FROM lane CROSS JOIN {0} x ON x.session = lane.session AND {1} > lane.since AND {1} <= lane.until"
    first = f"""SELECT x.session, x.page AS position, x.page, 1 AS version, 0 AS level, x.size, x.tokens, x.cell,
  x.commitment, NULL AS method {rows.format("pages", "x.page")}{also}"""
    later = f"""SELECT x.session, x.position, x.page, x.version, x.level, x.size, x.tokens, x.cell, x.commitment,
  x.method {rows.format("changes", "x.position").replace(" x ON", f" x {index} ON")}{also}"""
    return f"FROM ({first} UNION ALL {later}) v CROSS JOIN lane ON lane.session = v.session"


def _content(owner: str) -> str:
    """What a stay showed: a page's first content, or one it was given later."""
    return (
        f"LEFT JOIN pages v ON v.session = {owner} AND v.page = r.content"
        f" LEFT JOIN changes x ON v.page IS NULL AND x.session = {owner} AND x.position = r.content"
    )


_ENDS = ("source", "target")


def _end(end: str) -> tuple[Field, ...]:
    """What the page at an end of a link is."""
    return (
        asked(f"{end}_type", word(PageType), f"what the {end} is for", f"{end}_p.type"),
        asked(f"{end}_role", word(Role), f"who speaks in the {end}'s message", f"{end}_p.role"),
        asked(f"{end}_tool", TEXT, f"the tool that the {end} calls or answers for", f"{end}_t.tool"),
        asked(f"{end}_outcome", word(ToolOutcome), f"how the {end} ended as a tool's answer", f"{end}_t.outcome"),
    )


_JOINED = [
    page_of(f"k.{end}", "k.session", f"{table} {end}_{table[0]}") for end in _ENDS for table in ("pages", "tools")
]
_EVERY = rows("links", "k", "k.position")

LINKS = Relation(
    "LINKS",
    "every link that holds: source was made from, replaces or otherwise relates to target",
    fields(
        SESSION,
        Field("source", PAGE, "the page that relates", "k.source"),
        Field("target", PAGE, "the page it relates to", "k.target"),
        Field("kind", word(LinkKind), "how", "k.kind"),
        Field("position", INTEGER, "the position that said so", "k.position"),
        Field("valid_from", TIME, "since when it holds in the world", "k.valid_from"),
        Field("valid_to", TIME, "until when it holds in the world", "k.valid_to"),
        *(field for end in ("source", "target") for field in _end(end)),
    ),
    {
        "scan": Path(
            "scan",
            by(f"{_EVERY} AND {holds()}", across=f"{_EVERY} AND {holds(across=True)}"),
        )
    },
    joins(WRITER, *_JOINED),
    ("k.position", "k.source", "k.target", "k.kind"),
    moment="k.position",
)

_TURN_AT = """coalesce((SELECT t.turn FROM turns t INDEXED BY turns_position WHERE t.session = v.session
  AND t.position <= v.position ORDER BY t.position DESC LIMIT 1), w.turn_before)"""
_TIME_AT = """(SELECT x.at FROM commits x WHERE x.session = v.session AND x.last >= v.position
  ORDER BY x.last LIMIT 1)"""

VERSIONS = Relation(
    "VERSIONS",
    "every content of every page: its versions, and shorter forms of them",
    fields(
        Field("page", PAGE, "whose content it is", "v.page"),
        SESSION,
        Field("version", INTEGER, "which version", "v.version"),
        Field(
            "parent", INTEGER, "the version it was made from", "iif(v.level > 0, v.version, nullif(v.version - 1, 0))"
        ),
        Field("position", INTEGER, "the position that brought it", "v.position"),
        Field("level", numbered(Level), "0 is full content, above it a shorter form", "v.level"),
        Field("bytes", INTEGER, "its bytes", "v.size"),
        Field("tokens", INTEGER, "its estimated tokens", "v.tokens"),
        Field("actor", TEXT, "who made the page", maker(_ROLE)),
        Field("method", word(Method), "how a shorter form was made", "v.method"),
        asked("turn", INTEGER, "the turn in which it came", _TURN_AT),
        asked("at", TIME, "when it came", _TIME_AT),
        asked("text", TEXT, "the content as text; null where it is none", "vm_text(v.cell, v.commitment)"),
    ),
    {
        "scan": Path("scan", by(_contents())),
        "page": Path("page", by(_contents(" AND x.page = :page", "INDEXED BY changes_page"))),
    },
    joins(WRITER, page_of("v.page")),
    ("v.position",),
    moment="v.position",
)

VECTORS = Relation(
    "VECTORS",
    "every chunk of a text that an embedder gave a vector to",
    fields(
        Field("page", PAGE, "whose text it is of", "x.page"),
        SESSION,
        Field("model", TEXT, "the embedder", "x.model"),
        Field("chunk", INTEGER, "which chunk of the text, from 1", "x.chunk"),
        Field("dimension", INTEGER, "how many numbers the vector has", "x.dimension"),
        Field("quantisation", word(Quantisation), "how they are kept", "x.quantisation"),
        Field("content", INTEGER, "the position that brought the text", "x.content"),
        Field("begins", INTEGER, "where the chunk begins in it, in characters", "x.begins"),
        Field("ends", INTEGER, "where it ends", "x.ends"),
        Field("position", INTEGER, "the position that says so", "x.position"),
        Field("at", TIME, "when it was embedded", "x.at"),
    ),
    scan("vectors", "x", "x.position"),
    joins(WRITER),
    ("x.position", "x.chunk"),
    moment="x.position",
)

_USES_THEN = f"""(SELECT count(*) FROM decisions d INDEXED BY decisions_page WHERE d.session = r.session
  AND d.page = r.page AND d.position >= r.f AND (r.t IS NULL OR d.position < r.t) AND d.position <= r.hi
  AND (d.kind = {Cite.NUMBER} OR (d.kind = {Reference.NUMBER} AND d.word IN ({", ".join(map(str, sorted(USES)))}))))
 + (SELECT count(*) FROM links k INDEXED BY links_target WHERE k.session = r.session AND k.target = r.page
  AND k.position >= r.f AND (r.t IS NULL OR k.position < r.t) AND k.position <= r.hi
  AND k.kind = {int(LinkKind.REFERENCES)})"""

RESIDENCIES = Relation(
    "RESIDENCIES",
    "which pages were in the prompt from when to when",
    fields(
        Field("page", PAGE, "the page that stayed", "r.page"),
        Field("session", TEXT, "the session whose pack let it in", "w.name"),
        Field("tier", numbered(Tier), "where it stayed: 0, the prompt", NO),
        Field("level", numbered(Level), "how much of it was shown", "r.level"),
        Field("from_position", INTEGER, "since the pack at this position", "r.f"),
        Field("to_position", INTEGER, "until the pack at this one; null where it stays", "r.t"),
        Field("from_call", INTEGER, "since this call", "cf.call"),
        Field("to_call", INTEGER, "until this call, which no longer had it", "ct.call"),
        Field("since_position", INTEGER, "since when it is there, whatever was shown of it", "r.since"),
        asked(
            "away_calls",
            INTEGER,
            "how many calls it had been away; null where it was not there before, or had not left",
            "iif(sb.left < r.f, cf.call - cl.call, NULL)",
        ),
        asked("uses", INTEGER, "how often it was cited, quoted or reused meanwhile", _USES_THEN),
        Field("tokens", INTEGER, "estimated tokens of what was shown", "coalesce(v.tokens, x.tokens)"),
        Field("pinned", BOOLEAN, "whether somebody held it meanwhile", "coalesce(e.pinned, 0)"),
        Field("reason", TEXT, "what let it in or showed it so, and why; null without a decision", "e.reason"),
    ),
    {
        "scan": Path("scan", by("FROM (SELECT 1) CROSS JOIN stays r ON r.f > r.lo AND r.f <= r.hi")),
        "page": Path("page", by("FROM (SELECT 1) CROSS JOIN stays_of r ON r.f > r.lo AND r.f <= r.hi")),
    },
    joins(
        by("CROSS JOIN sessions w ON w.session = r.session"),
        by("LEFT JOIN calls cf ON cf.session = r.session AND cf.position = r.f"),
        at_position("calls ct", "r.session", "r.t"),
        beside("stays_before sb", "r", "page", "f"),
        at_position("calls cl", "r.session", "sb.left"),
        beside("kept e", "r", "page", "f"),
        by(
            _content("vm_owner(r.session, r.content)"),
            lane=_content("r.session"),
            chain=_content("vm_owner(:head, r.content)"),
        ),
    ),
    ("r.f", "r.page"),
    moment="r.f",
)
