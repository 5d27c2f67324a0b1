"""What the relations over views share: the rows of a view that a statement wants, and who wrote them."""

from __future__ import annotations

from vmstore.vmql.column_types import TEXT
from vmstore.vmql.relations.relation import Field, Join, Path, by

NO = "CAST(0 AS INTEGER)"  # a bare 0 to order by would count columns
WITHIN = "{0} > lane.since AND {0} <= lane.until"
WRITER = Join(by("CROSS JOIN sessions w ON w.session = lane.session"))
SESSION = Field("session", TEXT, "the session that wrote it", "w.name", ("writer",))
USER = Field("user", TEXT, "the user of its session", "w.user", ("writer",))


def maker(role: str) -> str:
    """Who made a page: whom its labels name, else the role it was made in."""
    named = "iif(json_type(p.labels, '$.actor') = 'text', nullif(p.labels ->> '$.actor', ''), NULL)"
    return f"coalesce({named}, {role})"


def scan(table: str, alias: str, moment: str) -> dict[str, Path]:
    """The one way to the rows of a view whose key is their order: all that a statement wants."""
    return {"scan": Path("scan", by(rows(table, alias, moment)), sorted=True)}


def beside(table: str, of: str, key: str) -> Join:
    """What a common table, `name` or `name alias`, says of a row: where many sessions are asked, of its own."""
    alias = table.rsplit(maxsplit=1)[-1]
    text = f"LEFT JOIN {table} ON {alias}.{key} = {of}.{key}"
    return Join(by(text, across=f"{text} AND {alias}.session = {of}.session"))


def holds(*, across: bool = False) -> str:
    """Whether a link `k` was not ended since, by the one session asked or what it inherits, or by each for itself."""
    where = (
        "unlinks u" if across else "lane ul CROSS JOIN unlinks u ON u.session = ul.session AND u.position <= ul.high"
    )
    own = " AND u.session = lane.session AND u.position <= lane.high" if across else ""
    return f"""NOT EXISTS (SELECT 1 FROM {where} WHERE u.source = k.source AND u.target = k.target
   AND u.kind = k.kind AND u.position > k.position{own})"""


def rows(table: str, alias: str, moment: str) -> str:
    """The rows of a view that a statement wants."""
    return f"FROM lane CROSS JOIN {table} {alias} ON {alias}.session = lane.session AND " + WITHIN.format(moment)
