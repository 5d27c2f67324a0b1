"""How much of what is searched has vectors of the model in use, and whether it is to be embedded again."""

from __future__ import annotations

import apsw

from vmstore.maintenance.embeddings import unembedded
from vmstore.namespace.reports import VectorCoverage

REEMBED_SHARE = 0.10  # of the texts, without a vector of the model in use, from which on they are to be embedded
REEMBED_TEXTS = 1_000  # or so many
_CURRENT = "SELECT model, dimension FROM vectors ORDER BY at DESC, session DESC, position DESC LIMIT 1"
_OTHERS = "SELECT model, count(DISTINCT session || '.' || content) FROM vectors WHERE model <> ? GROUP BY model"
_SESSIONS = "SELECT session FROM sessions WHERE hidden = 0 ORDER BY session"


def vector_coverage(db: apsw.Connection) -> VectorCoverage | None:
    """The share of the texts in force that have vectors of the model that was asked last; None where none was."""
    current = db.execute(_CURRENT).fetchone()
    if current is None:
        return None
    model, dimension = current
    keys = [key for (key,) in db.execute(_SESSIONS)]
    texts = sum(len(unembedded(db, key, "")) for key in keys)
    lacking = sum(len(unembedded(db, key, model)) for key in keys)
    others = dict(db.execute(_OTHERS, (model,)))
    return VectorCoverage(model, dimension, texts - lacking, texts, others, _why(model, lacking, texts, others))


def _why(model: str, lacking: int, texts: int, others: dict[str, int]) -> str | None:
    """The reason to embed texts; None where too few lack a vector."""
    if not lacking or (lacking < REEMBED_TEXTS and lacking < REEMBED_SHARE * texts):
        return None
    lacks = f"{lacking:,} of {texts:,} texts have no vector of {model}"
    return f"{lacks}; the model was {', '.join(sorted(others))} before" if others else lacks
