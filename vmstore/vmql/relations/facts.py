"""FACTS: what is known, since when and from where; the value of an attribute of one ends where the next begins.

Nothing of that is stored: the table `known` works it out for the moment that is asked, so that an earlier value
learned late falls into its place, and a retracted one never ended another.
"""

from __future__ import annotations

from vmstore.core.facts import FactType, Precision
from vmstore.core.page import LinkKind, Standing
from vmstore.vmql.column_types import BOOLEAN, INTEGER, LIST, PAGE, REAL, TEXT, TIME, word
from vmstore.vmql.relations.relation import Field, Path, Relation, asked, by, fields, joins
from vmstore.vmql.relations.shared_columns import (
    CONTENT,
    SESSION,
    USER,
    WITHIN,
    WRITER,
    beside,
    holds,
    latest_of,
    own,
    page_of,
)

_RETRACTED, _ABANDONED = int(Standing.SUPERSEDED), int(Standing.ABANDONED)
_PLANNED, _COMPLETED = int(Standing.PLANNED), int(Standing.COMPLETED)
_NOTE = """{name} AS (SELECT key, page, value FROM (SELECT {of} AS key, x.page AS page, x.{name} AS value,
   max(x.position) {rows} WHERE x.{name} IS NOT NULL GROUP BY 1, 2))"""
_STATED = """told AS (SELECT {of} AS key, x.*, max(x.position) AS last, w.name AS wrote, {who} AS who {rows}
   CROSS JOIN sessions w ON w.session = x.session GROUP BY 1, x.page),
  stated AS (SELECT t.*, coalesce(s.value, t.status) AS stands, coalesce(b.value, t.begins) AS since,
   coalesce(e.value, t.valid_to) AS until,
   coalesce(s.value = {retracted} OR (s.value = {abandoned} AND t.status <> {abandoned}), 0) AS retired
   FROM told t LEFT JOIN status s ON s.key = t.key AND s.page = t.page
   LEFT JOIN valid_from b ON b.key = t.key AND b.page = t.page
   LEFT JOIN valid_to e ON e.key = t.key AND e.page = t.page)"""
# Values at one address in the order they began, plans in one of their own; a value said again goes on.
_KNOWN = """known AS MATERIALIZED (WITH {status}, {valid_from}, {valid_to}, {stated},
  ordered AS (SELECT key, page, session, wrote, since, what, lower(what) AS said,
    row_number() OVER (ORDER BY who, lower(subject), lower(attribute), stands = {planned}, since, at, position) AS n,
    dense_rank() OVER (ORDER BY who, lower(subject), lower(attribute), stands = {planned}) AS address
   FROM stated WHERE one AND NOT retired AND stands NOT IN ({completed}, {abandoned})),
  turned AS (SELECT key, page, iif(lag(said) OVER w <> said, lag(what) OVER w, NULL) AS was
   FROM ordered WINDOW w AS (PARTITION BY address ORDER BY n)),
  changed AS (SELECT *, iif(lead(said) OVER (PARTITION BY address ORDER BY n) <> said, n, NULL) AS stop FROM ordered),
  stopped AS (SELECT *, min(stop) OVER (PARTITION BY address ORDER BY n
    ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS final FROM changed),
  followed AS (SELECT a.key, a.page, b.since, b.session, b.wrote, b.page AS next
   FROM stopped a JOIN ordered b ON b.n = a.final + 1),
  replaced AS (SELECT {of} AS key, k.target AS page, k.source AS next, min(k.position) AS position
   {links} WHERE k.kind = {supersedes} AND {holds} GROUP BY 1, 2)
 SELECT t.*, u.was AS was, coalesce(iif(r.next IS NULL, NULL, 'p' || r.next),
   iif(f.session = t.session, 'p' || f.next, f.wrote || '/p' || f.next)) AS superseded_by,
  nullif(min(coalesce(t.until, {never}), coalesce(f.since, {never}), coalesce(o.since, iif(r.next IS NULL, {never},
   t.since))), {never}) AS ends
 FROM stated t LEFT JOIN turned u ON u.key = t.key AND u.page = t.page
  LEFT JOIN followed f ON f.key = t.key AND f.page = t.page
  LEFT JOIN replaced r ON r.key = t.key AND r.page = t.page
  LEFT JOIN stated o ON o.key = t.key AND o.page = r.next)"""
_NEVER = (1 << 63) - 1


def _known(of: str, who: str, *, across: bool) -> str:
    """The table `known`, of one session and what it inherits, or of each for itself."""
    words = {"retracted": _RETRACTED, "abandoned": _ABANDONED, "completed": _COMPLETED, "planned": _PLANNED}
    notes = {name: _NOTE.format(name=name, of=of, rows=own("notes x")) for name in ("status", "valid_from", "valid_to")}
    stated = _STATED.format(of=of, who=who, rows=own("facts x"), **words)
    kinds = {"links": own("links k"), "supersedes": int(LinkKind.SUPERSEDES), "never": _NEVER}
    return _KNOWN.format(**notes, stated=stated, of=of, holds=holds(across=across), **kinds, **words)


KNOWN = by(
    _known("0", "''", across=False),
    across=_known("lane.session", "coalesce('user ' || w.user, 'session ' || w.name)", across=True),
)
_START = f"FROM known k CROSS JOIN lane ON lane.session = k.session AND {WITHIN.format('k.position')}"
_NOW = f"""NOT k.retired AND (k.stands = {_PLANNED} OR k.since <= :valid_at)
 AND (k.stands = {_COMPLETED} AND k.superseded_by IS NULL OR k.ends IS NULL OR k.ends > :valid_at)"""

FACTS = Relation(
    "FACTS",
    "what is known: facts valid at the moment asked and replaced by none; ALL shows the others too",
    fields(
        Field("page", PAGE, "the page that states it", "k.page"),
        SESSION,
        USER,
        Field("subject", TEXT, "whom or what it is about", "k.subject"),
        Field("verb", TEXT, "what the subject does or is", "k.verb"),
        Field("what", TEXT, "the object, or the value of the attribute", "k.what"),
        Field("attribute", TEXT, "which attribute it gives a value; null for none", "k.attribute"),
        Field("type", word(FactType), "what kind of thing it tells", "k.type"),
        Field("status", word(Standing), "how it stands", "k.stands"),
        Field("tags", LIST, "the tags of its page", "coalesce(g.tags, '[]')"),
        Field("valid_from", TIME, "since when it holds; when it was stated where nobody said", "k.since"),
        Field("valid_to", TIME, "until when: as stated, or when the next value began", "k.ends"),
        Field("precision", word(Precision), "how exactly its beginning is known", "k.precision"),
        Field("confidence", REAL, "how sure it is, from 0 to 1", "k.confidence / 1e6"),
        Field("strength", REAL, "over 0 an anchor of who the subject is, up to 1", "k.strength / 1e6"),
        Field("method", TEXT, "what found it, with its version", "k.method"),
        Field("one", BOOLEAN, "whether the attribute has one value at a time", "k.one"),
        Field("superseded_by", TEXT, "the page that states what replaced it", "k.superseded_by"),
        asked("was", TEXT, "the value that the attribute had before, where that is another", "k.was"),
        Field("sources", LIST, "the pages it was found on", "coalesce(d.pages, '[]')"),
        Field("turn", INTEGER, "the turn in which it was stated", "k.turn"),
        Field("position", INTEGER, "the position that states it", "k.position"),
        Field("at", TIME, "when it was stated", "k.at"),
        asked("text", TEXT, "its sentence; null where it was erased", f"vm_text({CONTENT})"),
    ),
    {"scan": Path("scan", by(_START))},
    joins(
        WRITER,
        beside("tagged g", "k", "page"),
        beside("sources d", "k", "page"),
        page_of("k.page"),
        latest_of("k.page"),
    ),
    ("k.position",),
    moment="k.position",
    brief=("session", "page", "subject", "verb", "what", "valid_from", "valid_to"),
    filled="`vmstore facts STORE SESSION --find` looks for facts, and so does a live session with facts=True",
    now=_NOW,
)
