"""A person talks to agents over five dated sessions, live and recorded: what is known of them."""

from __future__ import annotations

from pathlib import Path

import vmstore
from tests.erasure.found import found_in
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.erasure.erase import erase

DAY = 86_400_000_000
SAID = (
    ("January", 19_738, ["My name is Ilse Kettering-Vroon.", "I live in Lübeckhafen.", "I work as a cartographer."]),
    ("March", 19_788, ["I prefer oat milk in my coffee.", "We decided to use Marmotdb for the archive of my maps."]),
    ("April", 19_820, ["I moved to Castelbranco.", "I run 7 kilometres every morning."]),
    ("May", 19_850, ["I am allergic to hazelnuts."]),
)
RECORDED = ("June", 19_880, ["I work as a bookbinder now.", "I own a Fjordpony called Rasmus."])
PLANTED = [b"Kettering-Vroon", "Lübeckhafen".encode(), b"Marmotdb", b"Castelbranco", b"Fjordpony", b"hazelnuts"]
FILLER = ["What is the weather on the pass?", "And the second chapter, how long is it?", "Thank you, go on please."]


def talked(path: Path) -> None:
    """Four live sessions that find facts, tag, compact and assemble, and one that is recorded and looked through."""
    clock = ManualClock(0, 1_000)
    with vmstore.open(path, clock=clock, ids=SeededIds(5)) as store:
        for name, day, texts in SAID:
            clock.advance(day * DAY - clock.now())
            live = store.live_session(
                name, user="ilse", l0_tokens_max=1_200, facts=True, tags="keyword", compaction=True
            )
            for text in (*texts, *FILLER):
                live.user(text)
                store.session(name).memory.assemble(text, tokens=900, across=True)
                live.pack()
                live.assistant("Understood, I keep that in mind. " * 6)
        name, day, texts = RECORDED
        clock.advance(day * DAY - clock.now())
        session = store.session(name, create=True, user="ilse")
        for text in texts:
            session.record({"model": "m", "messages": [{"role": "user", "content": text}]})
        session.memory.facts.extract()
        store.record("another", {"model": "m", "messages": [{"role": "user", "content": "I live in Oslo."}]})


STATEMENTS = (
    "FACTS user, subject, verb, what, valid_from, valid_to, session, sources ACROSS SESSIONS OF USER ilse ALL",
    "FACTS what ACROSS SESSIONS OF USER ilse VALID AT '2024-03-08'",
    "TAGS tag, turns, pages, session ACROSS SESSIONS",
    "RECALLS recaller, query, page, session ACROSS SESSIONS",
)


def test_what_is_known_of_a_person_over_five_sessions(tmp_path: Path) -> None:
    """What is known, since when, from where, and what held in March, survives a rebuild, and no erasure."""
    path = tmp_path / "kept" / "five.vms"
    path.parent.mkdir()
    talked(path)
    with vmstore.open(path) as store:
        ever, march, *_ = answers = [store.query(statement).to_dicts() for statement in STATEMENTS]
        (now,) = (row for row in ever if row["what"] == "Castelbranco")
        assert now["valid_from"].startswith("2024-04-07") and now["valid_to"] is None
        assert store.session(now["session"]).content(now["sources"][0]) == b"I moved to Castelbranco."
        (before,) = (row for row in ever if row["what"] == "Lübeckhafen")
        assert before["valid_to"] == now["valid_from"]
        known = [fact.what for fact in store.memory.facts.all(user="ilse", valid_at_us=19_790 * DAY)]
        assert known == [row["what"] for row in march]
        assert "Lübeckhafen" in known and not {"Castelbranco", "hazelnuts", "a Fjordpony called Rasmus"} & {*known}
        prompt = store.session("May").memory.assemble("Am I allergic?", across=True, tokens=900, position=40)
        assert prompt.tokens <= 900
        store.admin.rebuild()
        assert [store.query(statement).to_dicts() for statement in STATEMENTS] == answers
        prompt = store.session("May").memory.assemble("Where do I live?", across=True, tokens=900)
        facts = prompt.messages[-1]["content"].partition("<facts>")[2].partition("</facts>")[0]
        assert "Castelbranco" in facts and "Lübeckhafen" not in facts
        assert {*found_in(path.parent, PLANTED)} == {*PLANTED}
        erase(store, user="ilse")
        assert [row["user"] for row in store.query("FACTS user ACROSS SESSIONS ALL").to_dicts()] == []
        assert {info.session.partition("-")[0] for info in store.sessions()} == {"another", "erased"}
        assert store.verify().ok
    assert found_in(path.parent, PLANTED) == {}
