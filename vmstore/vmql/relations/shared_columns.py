"""What the relations over views share: the rows of a view that a statement wants, and who wrote them."""

from __future__ import annotations

from vmstore.core.page import MIME_TYPES, Mime, Origin, PageType
from vmstore.vmql.column_types import TEXT, case
from vmstore.vmql.relations.relation import Field, Join, Path, Shape, by

NO = "CAST(0 AS INTEGER)"  # a bare 0 to order by would count columns
WITHIN = "{0} > lane.since AND {0} <= lane.until"
WRITER = by("CROSS JOIN sessions w ON w.session = lane.session")
SESSION = Field("session", TEXT, "the session that wrote it", "w.name")
USER = Field("user", TEXT, "the user of its session", "w.user")


def past(of: str, high: str) -> str:
    """The table `past` within a row: its session up to a position, and those it forked from, the nearest first."""
    return f"""WITH RECURSIVE past(session, high) AS (SELECT {of}.session, {high}
  UNION ALL SELECT f.parent, min(past.high, f.fork_position) FROM past CROSS JOIN sessions f
   ON f.session = past.session AND f.origin = {int(Origin.FORK)} AND f.parent IS NOT NULL)"""


def maker(role: str) -> str:
    """Who made a page: whom its labels name, else the role it was made in."""
    named = "iif(json_type(p.labels, '$.actor') = 'text', nullif(p.labels ->> '$.actor', ''), NULL)"
    return f"coalesce({named}, {role})"


def scan(table: str, alias: str, moment: str) -> dict[str, Path]:
    """The one way to the rows of a view whose key is their order: all that a statement wants."""
    return {"scan": Path("scan", by(rows(table, alias, moment)), sorted=True)}


def beside(table: str, of: str, *keys: str) -> Join:
    """What a common table, `name` or `name alias`, says of a row: where many sessions are asked, of its own.

    A key is a column of both, or `call = page`.
    """
    alias = table.rsplit(maxsplit=1)[-1]
    same = [(key.partition(" = ")[0], key.rpartition(" = ")[2]) for key in keys]
    text = f"LEFT JOIN {table} ON " + " AND ".join(f"{alias}.{mine} = {of}.{its}" for mine, its in same)
    return by(text, across=f"{text} AND {alias}.session = {of}.session")


def at_position(table: str, session: str, position: str) -> Join:
    """The row of a view at a position of a session, or of one that it inherits from."""
    text = f"LEFT JOIN {table} ON {{0}}.session = {{1}} AND {{0}}.position = {position}"
    alias = table.rpartition(" ")[2]
    return by(text.format(alias, session), chain=text.format(alias, f"vm_owner(:head, {position})"))


def page_of(position: str, session: str = "lane.session", table: str = "pages p") -> Join:
    """The page at a position that a session sees, in a view by page."""
    alias = table.rpartition(" ")[2]
    return by(f"LEFT JOIN {table} ON {alias}.session = vm_owner({session}, {position}) AND {alias}.page = {position}")


def latest_of(page: str) -> Join:
    """The last content that its session knows of the page that a row names; nothing where it has its first."""
    last = f"""({past("lane", "lane.high")} SELECT x.position FROM past CROSS JOIN changes x INDEXED BY changes_page
  ON x.session = past.session AND x.page = {page} AND x.level = 0 AND x.position <= past.high
 ORDER BY x.position DESC LIMIT 1)"""
    across = f"LEFT JOIN changes c ON c.session = vm_owner(lane.session, {last}) AND c.position = {last}"
    return by(f"LEFT JOIN latest c ON c.page = {page}", across=across)


CONTENT = "coalesce(c.cell, p.cell), iif(c.cell IS NULL, p.commitment, c.commitment)"
"""The cell of a page's last content, and its commitment: the first stands in its own row, what came later beside."""


def each(text: str, **parts: str) -> dict[Shape, str]:
    """A common table of one session with what it inherits, or of each by itself: `{of}` is whose a row is."""
    return by(
        text.format(of="0", holds=holds(), **parts),
        across=text.format(of="lane.session", holds=holds(across=True), **parts),
    )


def holds(*, across: bool = False) -> str:
    """Whether a link `k` was not ended since, by the one session asked or what it inherits, or by each for itself."""
    where = (
        "unlinks u" if across else "lane ul CROSS JOIN unlinks u ON u.session = ul.session AND u.position <= ul.high"
    )
    own = " AND u.session = lane.session AND u.position <= lane.high" if across else ""
    return f"""NOT EXISTS (SELECT 1 FROM {where} WHERE u.source = k.source AND u.target = k.target
   AND u.kind = k.kind AND u.position > k.position{own})"""


def own(table: str, moment: str = "position") -> str:
    """The rows of a view, `name alias`, that a session wrote itself up to the moment."""
    alias = table.rpartition(" ")[2]
    seen = f"{alias}.{moment} > lane.low AND {alias}.{moment} <= lane.high"
    return f"FROM lane CROSS JOIN {table} ON {alias}.session = lane.session AND {seen}"


def rows(table: str, alias: str, moment: str) -> str:
    """The rows of a view that a statement wants."""
    return f"FROM lane CROSS JOIN {table} {alias} ON {alias}.session = lane.session AND " + WITHIN.format(moment)


TYPED = rows("pages", "p", "p.page").replace(" p ON", " p INDEXED BY pages_type ON")
TYPED += f" AND p.type <> {int(PageType.TRANSCRIPT)}"
"""The pages of the types that few are of, by an index."""
LATEST = """LEFT JOIN changes c ON c.session = p.session AND c.position = (SELECT x.position FROM changes x
 INDEXED BY changes_page WHERE x.session = p.session AND x.page = p.page AND x.level = 0 AND x.position <= lane.high
 ORDER BY x.position DESC LIMIT 1)"""
"""What a session itself gave a page last, beside the page."""
_TYPES = case({int(mime): name for mime, name in MIME_TYPES.items()}).format("p.mime")
MIME = f"coalesce(iif(p.mime = {int(Mime.OTHER)}, p.labels ->> '$.mime', NULL), {_TYPES})"
"""The content type of a page."""
