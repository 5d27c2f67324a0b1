"""PAGES and SEARCH: every page as it stood at a moment, and those that hold words."""

from __future__ import annotations

from vmstore.core.page import Level, Modality, PageType, Role, Standing, Tier
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.vmql import column_types
from vmstore.vmql.column_types import BOOLEAN, INTEGER, JSON, LIST, MESSAGE, PAGE, REAL, TEXT, TIME, numbered, word
from vmstore.vmql.relations.ctes import SAID
from vmstore.vmql.relations.relation import Field, Path, Relation, asked, by, fields, joins
from vmstore.vmql.relations.shared_columns import (
    CONTENT,
    LATEST,
    MIME,
    SESSION,
    TYPED,
    USER,
    WITHIN,
    WRITER,
    at_position,
    beside,
    maker,
    scan,
)

_ACTOR = maker(column_types.case({int(role): role.word for role in Role}).format("p.role"))
_SHOWN = "iif(h.content = p.page, p.{0}, coalesce(s.{0}, c.{0}, p.{0}))"
_LINE = f"vm_line(p.session, p.page, {CONTENT}, p.modality, p.mime)"
_SNIPPET = f"vm_snippet(p.session, p.page, {CONTENT}, p.modality, p.mime, :words)"
# Each stay was seen by the calls from the one it began with to the one before its end, or to the last of the moment.
# Of one session's own pages that is counted where they stand, of those it inherits by the table `seen`.
_OF = "WHERE x.session = p.session AND x.page = p.page AND x.f <= lane.high"
_BEGAN = "CROSS JOIN calls cf ON cf.session = x.session AND cf.position = x.f"
_PAST = f"""FROM spans x INDEXED BY spans_page {_BEGAN}
 LEFT JOIN calls ct ON ct.session = x.session AND ct.position = x.t AND x.t <= lane.high {_OF}"""
_SAW = f"""coalesce((SELECT sum(coalesce(ct.call, v.after) - cf.call) {_PAST}), 0)
 + coalesce((SELECT v.after - cf.call FROM residents x {_BEGAN} {_OF}), 0)"""
_LAST = f"""(SELECT c.turn FROM calls c WHERE c.session = p.session AND c.call = coalesce(
 (SELECT v.after FROM residents x {_OF}), (SELECT max(coalesce(ct.call, v.after)) {_PAST})) - 1)"""
_BESIDE = ("flushed", "tagged g", "held", "used uses", "derived y", "anchored a", "stands_for b")

PAGES = Relation(
    "PAGES",
    "every page there was at a moment, in the context or out of it",
    fields(
        Field("page", PAGE, "the page's name", "p.page"),
        SESSION,
        USER,
        Field("message", MESSAGE, "the message it is part of", "nullif(p.message, 0)"),
        Field("type", word(PageType), "what it is for", "p.type"),
        Field("role", word(Role), "who speaks in its message", "p.role"),
        Field("modality", word(Modality), "what kind of content it holds", "p.modality"),
        Field("mime", TEXT, "its content type", MIME),
        Field("tier", numbered(Tier), "0 in the prompt, 2 in the event store", "iif(h.page IS NULL, 2, 0)"),
        Field("level", numbered(Level), "how much of it is shown, 0 is full", "coalesce(h.level, 0)"),
        Field(
            "tokens",
            INTEGER,
            "estimated tokens of what is shown of it, or of its full content",
            _SHOWN.format("tokens"),
        ),
        Field("bytes", INTEGER, "bytes of the same", _SHOWN.format("size")),
        Field(
            "importance",
            REAL,
            "how important it is, from 0 to 1",
            "coalesce(said_importance.value, p.importance) / 1000000.0",
        ),
        Field("version", INTEGER, "the number of its last version", "coalesce(c.version, 1)"),
        Field("pinned", BOOLEAN, "whether somebody holds it in the prompt", "held.page IS NOT NULL"),
        Field(
            "dirty",
            BOOLEAN,
            "whether it was made from one that changed since",
            "(p.session, p.page) IN (SELECT session, page FROM stale)",
        ),
        Field(
            "last_flushed", TIME, "when it was last said to be up to date with what it was made from", "flushed.value"
        ),
        Field("tags", LIST, "its tags", "coalesce(g.tags, '[]')"),
        Field("hint", TEXT, "the name its maker gave it", "p.hint"),
        Field("actor", TEXT, "who made it: whom its labels name, else its role", _ACTOR),
        asked("status", word(Standing), "whether what it says still holds", "said_status.value"),
        asked("valid_from", TIME, "since when it holds in the world", "said_valid_from.value"),
        asked("valid_to", TIME, "until when it holds in the world", "said_valid_to.value"),
        Field("represents", LIST, "the pages it stands for", "coalesce(b.pages, '[]')"),
        asked("anchors", JSON, "values by name; a path leads in: anchors.file", "coalesce(a.anchors, '{}')"),
        asked("tool", TEXT, "the tool it calls, or answers for", "k.tool"),
        asked("tool_call", TEXT, "the provider's id of that call", "k.name"),
        asked("outcome", word(ToolOutcome), "how a tool's answer ended, where its source says so", "k.outcome"),
        Field("created_turn", INTEGER, "the turn in which it was made", "p.turn"),
        Field("created_call", INTEGER, "the call before which it was made", "p.call"),
        Field("created_at", TIME, "when it was made", "p.at"),
        asked("last_access_turn", INTEGER, "the turn of the last call that saw it", f"coalesce(v.turn, {_LAST})"),
        asked("access_count", INTEGER, "how many calls saw it", f"coalesce(v.calls, {_SAW})"),
        asked(
            "uses",
            INTEGER,
            "how often it was cited, quoted or reused, or something was made from it",
            "coalesce(uses.uses, 0)",
        ),
        asked(
            "derivation",
            INTEGER,
            "how many steps of derivation lead to the farthest page it was made from, 0 where it was made from none",
            "coalesce(y.depth, 0)",
        ),
        Field("position", INTEGER, "the position that made it", "p.page"),
        asked("since_position", INTEGER, "the position since when it is in the prompt, unbroken", "h.since"),
        asked("metadata", JSON, "what its source says of it; a path leads in: metadata.reason", "p.labels"),
        asked(
            "line",
            TEXT,
            "its content as people read it, on one line; a tool's result begins with what the tool was asked",
            _LINE,
        ),
        asked("text", TEXT, "its full content as text; null where it is none", f"vm_text({CONTENT})"),
    ),
    {
        **scan("pages", "p", "p.page"),
        "typed": Path(
            "typed",
            by(TYPED),
            sorted=True,
        ),
        "prompt": Path(
            "prompt",
            by(
                f"FROM here h CROSS JOIN lane ON {WITHIN.format('h.page')}"
                " CROSS JOIN pages p ON p.session = lane.session AND p.page = h.page",
                across=f"FROM here h CROSS JOIN lane ON lane.session = h.session AND {WITHIN.format('h.page')}"
                " CROSS JOIN pages p ON p.session = lane.session AND p.page = h.page",
            ),
            joined=("h",),
        ),
        "found": Path(
            "found",
            by(
                f"FROM hits f CROSS JOIN lane ON lane.session = f.session AND {WITHIN.format('f.page')}"
                " CROSS JOIN pages p ON p.session = f.session AND p.page = f.page"
            ),
        ),
    },
    joins(
        WRITER,
        by("LEFT JOIN tools k ON k.session = p.session AND k.page = p.page"),
        beside("here h", "p", "page"),
        by(LATEST, chain="LEFT JOIN latest c ON c.page = p.page"),
        at_position("changes s", "p.session", "h.content"),
        *(beside(f"said_{column}", "p", "page") for column in SAID),
        *(beside(table, "p", "page") for table in _BESIDE),
        by("LEFT JOIN ends v ON v.session = p.session", chain="LEFT JOIN seen v ON v.page = p.page"),
    ),
    ("p.page",),
    moment="p.page",
    brief=("session", "page", "created_turn", "role", "type", "tokens", "line"),
)

SEARCH = PAGES._replace(
    name="SEARCH",
    meaning="pages that hold words, best first",
    fields={
        "page": PAGES.fields["page"],
        "score": Field("score", REAL, "how well it fits; greater is better; null beside what was found", "f.score"),
        "features": asked(
            "features", JSON, "what the score is the sum of; a path leads in: features.near.adds", "f.features"
        ),
        "words": asked("words", JSON, "the asked words that it has or stands near, and how", "f.words"),
        **{name: field for name, field in PAGES.fields.items() if name != "page"},
        "snippet": asked(
            "snippet", TEXT, "the place in it that answers best, the asked words between « and »", _SNIPPET
        ),
    },
    brief=("session", "page", "created_turn", "role", "tokens", "snippet"),
    paths={"found": PAGES.paths["found"]},
)
