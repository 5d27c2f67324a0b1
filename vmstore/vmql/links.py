"""LINKS, VERSIONS and RESIDENCIES: how pages relate, what they held, when they were in the prompt."""

from __future__ import annotations

from vmstore.core.page import Level, LinkKind, Method, Role, Tier
from vmstore.vmql.forms import BOOLEAN, INTEGER, PAGE, TEXT, TIME, numbered, word
from vmstore.vmql.relation import Field, Join, Order, Path, Relation, by, fields
from vmstore.vmql.shared import NO, RUNTIME, SESSION, WRITER, rows

LINKS = Relation(
    "LINKS",
    "every link: source was made from, replaces or otherwise relates to target",
    fields(
        SESSION,
        Field("source", PAGE, "the page that relates", "k.source"),
        Field("target", PAGE, "the page it relates to", "k.target"),
        Field("kind", word(LinkKind), "how", "k.kind"),
        Field("position", INTEGER, "the position that said so", "k.position"),
        Field("valid_from", TIME, "since when it holds in the world", "k.valid_from"),
        Field("valid_to", TIME, "until when it holds in the world", "k.valid_to"),
    ),
    {"scan": Path("scan", by(rows("links", "k", "k.position")))},
    {"writer": WRITER},
    (Order("k.position"), Order("k.source"), Order("k.target"), Order("k.kind")),
    moment="k.position",
)

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
        Field("actor", word(Role), "who made the page", "p.role", ("page",)),
        Field("method", word(Method), "how a shorter form was made", "v.method"),
        Field("text", TEXT, "the content as text; null where it is none", "vm_text(v.cell, v.commitment)", (), True),
    ),
    {"scan": Path("scan", by(rows("versions", "v", "v.position")))},
    {
        "writer": WRITER,
        "page": Join(
            by("LEFT JOIN pages p ON p.session = vm_owner(lane.session, v.page) AND p.page = v.page"),
        ),
    },
    (Order("v.position"),),
    moment="v.position",
)

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
        Field("tokens", INTEGER, "estimated tokens of what was shown", "v.tokens", ("content",)),
        Field("pinned", BOOLEAN, "whether it was held", NO, later=RUNTIME),
        Field("reason", TEXT, "why it was let in", "NULL", later=RUNTIME),
    ),
    {"scan": Path("scan", by("FROM (SELECT 1) CROSS JOIN stays r ON r.f > r.lo AND r.f <= r.hi"))},
    {
        "writer": Join(by("CROSS JOIN sessions w ON w.session = r.session")),
        "from": Join(by("LEFT JOIN calls cf ON cf.session = r.session AND cf.position = r.f")),
        "to": Join(
            by(
                "LEFT JOIN calls ct ON ct.session = r.session AND ct.position = r.t",
                chain="LEFT JOIN calls ct ON ct.session = vm_owner(:head, r.t) AND ct.position = r.t",
            )
        ),
        "content": Join(
            by(
                "LEFT JOIN versions v ON v.session = vm_owner(r.session, r.content) AND v.position = r.content",
                chain="LEFT JOIN versions v ON v.session = vm_owner(:head, r.content) AND v.position = r.content",
            )
        ),
    },
    (Order("r.f"), Order("r.page")),
    moment="r.f",
)
