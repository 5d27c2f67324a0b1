"""What was said of pages is asked in VMQL as the session's own answers tell it."""

from __future__ import annotations

import vmstore
from tests.vmql.facts import iso
from vmstore.namespace.results import to_json


def test_what_was_said_of_pages_is_the_sessions() -> None:
    """Importance, tags, status, validity, anchors and uses are as Session.pages tells them, on a fork too."""
    store = vmstore.memory_store()
    user = {"role": "user", "content": "Where is Kyoto?"}
    fields = {"role": "assistant", "content": "In Japan."}
    store.record("trip", {"messages": [user]}, {"choices": [{"message": fields}]}, at_us=1_000_000)
    trip = store.session("trip")
    trip.annotate("p4", importance=0.8, tags=["place", "asia"], anchors={"city": "Kyoto", "at": "35,135"})
    child = trip.fork("trip-b", turn=1)
    store.record("trip", {"messages": [user, fields]}, None, at_us=2_000_000)
    trip.annotate("p4", untags=["asia"], status="completed", valid_from_us=1_000, anchors={"at": None, "yes": "y"})
    child.annotate("p4", tags=["child"], importance=0.1)
    columns = "page, importance, tags, status, valid_from, valid_to, anchors, represents, actor, access_count"
    for session in (trip, child):
        for position in range(4, session.info().position + 1):
            text = f"PAGES {columns}, last_access_turn AS OF POSITION {position}"
            rows = store.query(text, session=session.name).to_dicts()
            wanted = [to_json(page) for page in session.pages(position=position)]
            for page in wanted:
                page.update(valid_from=iso(page["valid_from"]), valid_to=iso(page["valid_to"]))
            assert rows == [{key: page[key] for key in rows[0]} for page in wanted], (session, position)
    assert list(store.query("PAGES page WHERE 'child' IN tags ACROSS SESSIONS")) == []
    assert list(store.query("PAGES page WHERE 'child' IN tags AND importance < 0.2", session="trip-b")) == [("p4",)]
    anchors = store.query("PAGES anchors.city, anchors.yes WHERE anchors.city = 'Kyoto'", session="trip")
    assert list(anchors) == [("Kyoto", "y")]
    assert list(store.query("MUTATIONS page WHERE kind = annotate", session="trip")) == [("p4",)] * 2
