"""LINKS, VERSIONS, VECTORS and RESIDENCIES: how pages relate, what they held, when they were in the prompt."""

from __future__ import annotations

from vmstore.core.decision import Cite, Reference
from vmstore.core.page import Level, LinkKind, Method, PageType, Role, Tier
from vmstore.core.recalls import USES
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.core.vectors import Quantisation
from vmstore.vmql.column_types import BOOLEAN, INTEGER, PAGE, TEXT, TIME, case, numbered, word
from vmstore.vmql.relations.relation import Field, Join, OrderKey, Path, Relation, by, fields
from vmstore.vmql.relations.shared_columns import NO, SESSION, WRITER, holds, maker, rows, scan

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
    page, tool = (f"{end}_pages",), (f"{end}_tools",)
    return (
        Field(f"{end}_type", word(PageType), f"what the {end} is for", f"{end}_p.type", page, True),
        Field(f"{end}_role", word(Role), f"who speaks in the {end}'s message", f"{end}_p.role", page, True),
        Field(f"{end}_tool", TEXT, f"the tool that the {end} calls or answers for", f"{end}_t.tool", tool, True),
        Field(
            f"{end}_outcome",
            word(ToolOutcome),
            f"how the {end} ended as a tool's answer",
            f"{end}_t.outcome",
            tool,
            True,
        ),
    )


def _joined(end: str, table: str) -> Join:
    """The row of a view for the page at an end of a link."""
    alias = f"{end}_{table[0]}"
    return Join(
        by(f"LEFT JOIN {table} {alias} ON {alias}.session = vm_owner(k.session, k.{end}) AND {alias}.page = k.{end}")
    )


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
    {"writer": WRITER, **{f"{end}_{table}": _joined(end, table) for end in _ENDS for table in ("pages", "tools")}},
    (OrderKey("k.position"), OrderKey("k.source"), OrderKey("k.target"), OrderKey("k.kind")),
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
        Field("actor", TEXT, "who made the page", maker(_ROLE), ("page",)),
        Field("method", word(Method), "how a shorter form was made", "v.method"),
        Field("turn", INTEGER, "the turn in which it came", _TURN_AT, ("writer",), True),
        Field("at", TIME, "when it came", _TIME_AT, (), True),
        Field("text", TEXT, "the content as text; null where it is none", "vm_text(v.cell, v.commitment)", (), True),
    ),
    {
        "scan": Path("scan", by(_contents())),
        "page": Path("page", by(_contents(" AND x.page = :page", "INDEXED BY changes_page"))),
    },
    {
        "writer": WRITER,
        "page": Join(
            by("LEFT JOIN pages p ON p.session = vm_owner(lane.session, v.page) AND p.page = v.page"),
        ),
    },
    (OrderKey("v.position"),),
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
    {"writer": WRITER},
    (OrderKey("x.position"), OrderKey("x.chunk")),
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
        Field("session", TEXT, "the session whose pack let it in", "w.name", ("writer",)),
        Field("tier", numbered(Tier), "where it stayed: 0, the prompt", NO),
        Field("level", numbered(Level), "how much of it was shown", "r.level"),
        Field("from_position", INTEGER, "since the pack at this position", "r.f"),
        Field("to_position", INTEGER, "until the pack at this one; null where it stays", "r.t"),
        Field("from_call", INTEGER, "since this call", "cf.call", ("from",)),
        Field("to_call", INTEGER, "until this call, which no longer had it", "ct.call", ("to",)),
        Field("since_position", INTEGER, "since when it is there, whatever was shown of it", "r.since"),
        Field(
            "away_calls",
            INTEGER,
            "how many calls it had been away; null where it was not there before, or had not left",
            "iif(sb.left < r.f, cf.call - cl.call, NULL)",
            ("from", "left_at"),
            True,
        ),
        Field("uses", INTEGER, "how often it was cited, quoted or reused meanwhile", _USES_THEN, (), True),
        Field("tokens", INTEGER, "estimated tokens of what was shown", "coalesce(v.tokens, x.tokens)", ("content",)),
        Field("pinned", BOOLEAN, "whether somebody held it meanwhile", "coalesce(e.pinned, 0)", ("kept",)),
        Field(
            "reason", TEXT, "what let it in or showed it so, and why; null without a decision", "e.reason", ("kept",)
        ),
    ),
    {
        "scan": Path("scan", by("FROM (SELECT 1) CROSS JOIN stays r ON r.f > r.lo AND r.f <= r.hi")),
        "page": Path("page", by("FROM (SELECT 1) CROSS JOIN stays_of r ON r.f > r.lo AND r.f <= r.hi")),
    },
    {
        "writer": Join(by("CROSS JOIN sessions w ON w.session = r.session")),
        "from": Join(by("LEFT JOIN calls cf ON cf.session = r.session AND cf.position = r.f")),
        "to": Join(
            by(
                "LEFT JOIN calls ct ON ct.session = r.session AND ct.position = r.t",
                chain="LEFT JOIN calls ct ON ct.session = vm_owner(:head, r.t) AND ct.position = r.t",
            )
        ),
        "left": Join(
            by(
                "LEFT JOIN stays_before sb ON sb.page = r.page AND sb.f = r.f",
                across="LEFT JOIN stays_before sb ON sb.page = r.page AND sb.f = r.f AND sb.session = r.session",
            )
        ),
        "left_at": Join(
            by(
                "LEFT JOIN calls cl ON cl.session = r.session AND cl.position = sb.left",
                chain="LEFT JOIN calls cl ON cl.session = vm_owner(:head, sb.left) AND cl.position = sb.left",
            ),
            needs=("left",),
        ),
        "kept": Join(
            by(
                "LEFT JOIN kept e ON e.page = r.page AND e.f = r.f",
                across="LEFT JOIN kept e ON e.page = r.page AND e.f = r.f AND e.session = r.session",
            )
        ),
        "content": Join(
            by(
                _content("vm_owner(r.session, r.content)"),
                lane=_content("r.session"),
                chain=_content("vm_owner(:head, r.content)"),
            )
        ),
    },
    (OrderKey("r.f"), OrderKey("r.page")),
    moment="r.f",
)
