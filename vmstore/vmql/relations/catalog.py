"""What can be asked for: every relation by name, said once and read by all who need it."""

from __future__ import annotations

from vmstore.vmql.relations.calls import CALLS, MESSAGES, SESSIONS, TURNS
from vmstore.vmql.relations.facts import FACTS
from vmstore.vmql.relations.links import LINKS, RESIDENCIES, VECTORS, VERSIONS
from vmstore.vmql.relations.pages import PAGES, SEARCH
from vmstore.vmql.relations.python_rows import (
    COMPACTIONS,
    CONTEXT,
    DIFF,
    EVIDENCE,
    FAULTS,
    HISTORY,
    LINEAGE,
    METRICS,
    MOVES,
    MUTATIONS,
    RECALLS,
    SEGMENTS,
    TAGS,
    WHY,
)
from vmstore.vmql.relations.relation import Field, Relation
from vmstore.vmql.relations.tools import TOOLS
from vmstore.vmql.relations.work import ARTIFACTS, ATOMS, GUARDS, SKILLS, TASKS

RELATIONS: dict[str, Relation] = {
    relation.name: relation
    for relation in (
        *(PAGES, MESSAGES, MUTATIONS, SESSIONS, TURNS, CALLS, LINKS, FAULTS, VERSIONS, RESIDENCIES),
        *(MOVES, METRICS, VECTORS, FACTS, TAGS, SEGMENTS, RECALLS, TOOLS, COMPACTIONS, GUARDS, SKILLS),
        *(TASKS, ATOMS, ARTIFACTS),
    )
}
"""Those that can be asked for by their name alone."""

DESCRIBED: dict[str, Relation] = {
    **RELATIONS,
    **{relation.name: relation for relation in (CONTEXT, DIFF, HISTORY, LINEAGE, EVIDENCE, WHY, SEARCH)},
}
"""Those that DESCRIBE tells about."""

NAMED: dict[str, Relation] = {"page": PAGES, "message": MESSAGES}
"""Those that have more to say of what a column names, by what that is: `page.type` beside a column `page`."""


def field_of(relation: Relation, path: str) -> Field | None:
    """The column that a name, or a path like `page.type`, leads to; None where there is none."""
    name, _, rest = path.partition(".")
    found = relation.fields.get(name)
    if found is None or not rest:
        return found
    return NAMED[found.form.name].fields.get(rest) if found.form.name in NAMED else None
