"""What cannot be answered is refused with its place in the text and a way out; what is stopped says so."""

from __future__ import annotations

import pytest

from tests.refusals import refused
from tests.vmql.conftest import NAME
from vmstore.store.store import Store
from vmstore.vmql.syntax.errors import QueryError


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("PAGES WHERE typ = claim", "unknown-column", "did you mean type?"),
        ("CALLS call, reported", "unknown-column", "did you mean tokens_reported?"),
        ("PAGES WHERE type = clam", "unknown-word", "did you mean claim?"),
        ("PAGES WHERE tokens = 'many'", "wrong-type", "tokens is an integer"),
        ("PAGES WHERE tokens", "not-a-condition", "compare it: tokens = …"),
        ("PAGES sum(page)", "wrong-type", "sum takes numbers"),
        ("PAGES quantile(tokens, 2)", "wrong-type", "a number from 0 to 1"),
        ("PAGES quantile(tokens, page)", "wrong-type", "write quantile(tokens, 0.5)"),
        ("PAGES type, count(*)", "not-grouped", "add it to BY"),
        ("PAGES cuont(*)", "unknown-function", "did you mean count"),
        ("PAGES AS OF TURN 999", "no-such-moment", "the nearest is turn 220"),
        ("PAGES AS OF TIME 'no day at all'", "not-a-time", "write it like"),
        ("PAGES ACROSS SESSIONS AS OF TURN 3", "moment-of-one-session", "AS OF TIME"),
        ("PAGES AS OF TURN 5 SINCE TURN 7", "no-such-moment", "ends before it begins"),
        ("PAGES IN SESSION 'planing-220'", "unknown-session", "the nearest is 'planning-220'"),
        ("PAGES WHERE page = p99999", "unknown-page", "the nearest is"),
        ("PAGES LIMIT 3 AFTER 'nonsense'", "no-cursor", "is no cursor"),
        ("PAGES WHERE page = $which", "unknown-parameter", "$which"),
        ("PAGES WHERE text > 3", "wrong-type", "text is a text"),
        ("PAGES WHERE type < claim", "wrong-type", "have no order"),
        ("PAGES metadata.x.y, hint.z", "no-path", "hint is a text"),
        ("HISTORY OF p99999", "unknown-page", "the nearest is"),
        ("CONTEXT AT CALL 999", "no-such-moment", "the nearest is call 525"),
        ("SEARCH '?!'", "no-words", "has no word"),
        ("WATCH MUTATIONS FROM 'x'", "no-cursor", "is no cursor"),
        ("DESCRIBE pagse", "unknown-relation", "did you mean PAGES?"),
        ("SET limit = 3", "no-settings", "keeps no setting"),
        ("CONTEXT AT CALL 3 SINCE TURN 1", "clause-unused", "CONTEXT AT takes no SINCE"),
        ("CONTEXT UNTIL CALL 3", "clause-unused", "write AT"),
        ("CONTEXT AT CALL 3 AS OF TURN 2", "clause-unused", "keep AT"),
        ("CONTEXT AT CALL 3 RENDER LIMIT 2", "clause-unused", "RENDER takes no LIMIT"),
        ("CONTEXT page MESSAGES", "clause-unused", "MESSAGES takes no columns"),
        ("DIFF CONTEXT CALL 1 TO CALL 2 BETWEEN TURN 1 AND TURN 2", "clause-unused", "DIFF takes no BETWEEN"),
        ("DIFF SESSION 'try-b' TO 'try-b' AS OF CALL 3", "clause-unused", "write AT"),
        ("DIFF CONTEXT CALL 1 TO CALL 999", "no-such-moment", "the nearest is call 525"),
        ("PAGES WHERE tags = 'topic:db'", "wrong-type", "write 'one' IN tags"),
        ("PAGES WHERE represents IN (p8)", "wrong-type", "represents is a list"),
        ("RESIDENCIES p8", "unknown-column", "write RESIDENCIES WHERE page = p8"),
        ("PAGES avg(tokens, 2)", "wrong-arguments", "avg takes 1, not 2; write avg(x)"),
        ("SHOW pages", "no-settings", "DESCRIBE PAGES lists its columns"),
        ("SHOW tables", "no-settings", "write SHOW RELATIONS"),
        ("PAGES count(*) WHERE DISTINCT type", "sql-clause", "BY x has a row for each x"),
        ("PAGES DISTINCT type", "sql-clause", "write PAGES BY type"),
        ("SELECT DISTINCT type FROM PAGES", "sql-select", "write PAGES BY type"),
        ("PAGES type, count(*) BY type HAVING tokens > 2", "not-grouped", "tokens differs within a group"),
        ("PAGES page HAVING tokens > 2", "not-grouped", "HAVING chooses groups, and there are none"),
        ("PAGES page WHERE role + 1 > 2", "wrong-type", "+ takes numbers, and role is a text"),
        ("PAGES page WHERE created_at + 1 > 2", "wrong-type", "of two times - gives the seconds between them"),
        ("PAGES sum(DISTINCT tokens)", "wrong-arguments", "sum takes no DISTINCT"),
        ("PAGES page WHERE tokens > (PAGES tokens)", "not-single", "a value is wanted, and the statement gives"),
        ("PAGES page WHERE tokens IN (PAGES tokens, page)", "not-single", "has one column, and this has 2"),
        ("PAGES page WHERE role = (PAGES page LIMIT 1)", "unknown-word", "role is never 'p"),
        ("PAGES page WHERE tokens IN (PAGES tokens AS OF CALL 99999)", "no-such-moment", "call 99999 does not exist"),
        ("PAGES JOIN CALLS", "sql-clause", "join the relations in SQL"),
        ("PAGES page INNER JOIN CALLS ON page = call", "sql-clause", "join the relations in SQL"),
        ("PAGES OFFSET 3", "sql-clause", "AFTER with the cursor"),
        ("PAGES WHERE created_at < now()", "empty-call", "write PAGES WHERE created_at < 'now'"),
        ("PAGES sum()", "empty-call", "SHOW FUNCTIONS lists"),
        ("FORK SESSION 'planning-220' AS 'try-b'", "bad-name", "the name is taken"),
        ("FORK SESSION 'planning-220' AS ''", "bad-name", "a name that is not empty"),
        ("FORK SESSION 'planning-220' AT POSITION 8 AS 'x'", "no-such-moment", "is no commit end"),
        ("EXPLAIN FORK SESSION 'planning-220' AS 'x'", "not-explained", "explain a question"),
        ("EXPLAIN VERIFY", "not-explained", "explain a question"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(store: Store, text: str, code: str, words: str) -> None:
    """A query that cannot be answered is a QueryError with a stable code, a place in the text and a way out."""
    with pytest.raises(QueryError) as caught:
        list(store.query(text, session=NAME))
    assert (caught.value.code, caught.value.text) == (code, text)
    assert words in str(caught.value)
    assert 0 <= caught.value.span.start < caught.value.span.end <= len(text)


def test_a_session_must_be_told_where_there_are_many(store: Store) -> None:
    """Without a session the only one is asked; where there are more their names are listed."""
    with refused("which-session", QueryError, "'planning-220'"):
        store.query("PAGES")


def test_a_cancelled_query_ends(store: Store) -> None:
    """Rows are taken until the query is cancelled, then it says so, and so does an interrupted store."""
    for stop in (lambda result: result.cancel(), lambda _: store.admin.interrupt()):
        result = store.query("MUTATIONS", session=NAME)
        next(result)
        stop(result)
        with pytest.raises(QueryError) as caught:
            list(result)
        assert caught.value.code == "cancelled"


@pytest.mark.parametrize("share", [95, -0.1, float("nan"), True, "half"])
def test_a_quantile_that_is_handed_in_is_a_share(store: Store, share: object) -> None:
    """What is no number from 0 to 1 is refused, where it was taken for the greatest value or the least."""
    with refused("wrong-type", QueryError, "quantile"):
        store.query("PAGES quantile(tokens, $share)", session=NAME, share=share)
