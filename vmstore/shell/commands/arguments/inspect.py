"""The commands that ask, as data: what each says of itself, its examples, its arguments, what runs it."""

from __future__ import annotations

from vmstore.shell.commands.arguments.arguments import (
    Command,
    add_all,
    add_choice,
    add_context,
    add_delta,
    add_diff,
    add_level,
    add_limit,
    add_moment,
    add_owner,
    add_page,
    add_session,
    add_store,
    add_tail,
    add_walk,
)

QUESTIONS: tuple[Command, ...] = (
    Command(
        "info",
        "ask",
        "what a store holds and how large it is",
        "Says what a store holds, how large its parts are and how far each view has followed the log.",
        ("vmstore info agent.vms", "vmstore info agent.vms --json"),
        ("vmstore.shell.commands.queries.inspect", "info"),
        (add_store,),
    ),
    Command(
        "sessions",
        "ask",
        "every session with its counts",
        "Lists every session: where it came from, its fidelity, turns, calls, pages and tokens.",
        ("vmstore sessions agent.vms", "vmstore sessions agent.vms --user ada"),
        ("vmstore.shell.commands.queries.inspect", "sessions"),
        (add_store, add_owner),
    ),
    Command(
        "turns",
        "ask",
        "the turns of a session",
        "Lists the turns of a session: when each opened and how many calls it made.",
        ("vmstore turns agent.vms planning-220",),
        ("vmstore.shell.commands.queries.inspect", "turns"),
        (add_store, add_session),
    ),
    Command(
        "calls",
        "ask",
        "the calls of a session, with tokens, cost and status",
        "Lists the requests to the model: tokens estimated and as the provider counted them, cost,\n"
        "latency, and how each ended.",
        ("vmstore calls agent.vms planning-220", "vmstore calls agent.vms planning-220 --json"),
        ("vmstore.shell.commands.queries.inspect", "calls"),
        (add_store, add_session),
    ),
    Command(
        "context",
        "ask",
        "what the model saw at a call",
        "Shows what the model saw at one call, in order; without a moment at the last one. A turn stands\n"
        "for its last call, a position for the last call at or before it.",
        (
            "vmstore context agent.vms planning-220 --call 317",
            "vmstore context agent.vms planning-220 --turn 42 --messages",
            "vmstore context agent.vms --render",
        ),
        ("vmstore.shell.commands.queries.inspect", "context"),
        (add_store, add_session, add_moment, add_context),
    ),
    Command(
        "diff",
        "ask",
        "what changed between two contexts",
        "Shows what entered (+), left (-) and changed (~) between the contexts of two moments.",
        (
            "vmstore diff agent.vms planning-220 --calls 40 42",
            "vmstore diff agent.vms planning-220 --turns 1 42 --json",
        ),
        ("vmstore.shell.commands.queries.inspect", "diff"),
        (add_store, add_session, add_diff),
    ),
    Command(
        "pages",
        "ask",
        "every page there was at a moment, in context or not, or those wanted",
        "Lists every page there was at a moment: where it is (L0 is the prompt), its level and size; or those\n"
        "that are wanted, in the order that is. With --user, --agent or --all the pages of many sessions,\n"
        "each as the session that made it has it.",
        (
            "vmstore pages agent.vms planning-220 --type claim",
            "vmstore pages agent.vms planning-220 --turn 42 --tier L0 --order-by tokens --limit 5",
            "vmstore pages agent.vms --all --tag todo --importance-min 0.8",
        ),
        ("vmstore.shell.commands.queries.pages", "pages"),
        (add_store, add_session, add_moment, add_choice, add_owner, add_all),
    ),
    Command(
        "faults",
        "ask",
        "the pages that came back to the context",
        "Lists every time a page came back to the context after it had left: when, since when it was out,\n"
        "and the tokens it shows.",
        ("vmstore faults agent.vms planning-220", "vmstore faults agent.vms --turn 42 --json"),
        ("vmstore.shell.commands.queries.pages", "faults"),
        (add_store, add_session, add_moment),
    ),
    Command(
        "page",
        "ask",
        "a page's exact content",
        "Writes a page's exact content: at level 0 the bytes that were accepted, whether the page is\n"
        "still in the context or not.",
        (
            "vmstore page agent.vms planning-220 p17",
            "vmstore page agent.vms p17 --level 3",
            "vmstore page agent.vms vm://default/planning-220/p17@turn:3 > p17.txt",
        ),
        ("vmstore.shell.commands.queries.inspect", "page"),
        (add_store, add_session, add_page, add_level, add_moment),
    ),
    Command(
        "history",
        "ask",
        "what happened to a page",
        "Shows what happened to a page: made, changed, entered the context, left it, linked.",
        (
            "vmstore history agent.vms planning-220 p17",
            "vmstore history agent.vms p17 --turn 42",
        ),
        ("vmstore.shell.commands.queries.inspect", "history"),
        (add_store, add_session, add_page, add_moment),
    ),
    Command(
        "versions",
        "ask",
        "the versions of a page, and what each added",
        "Lists every content a page was given, its shorter forms included, each with what it added to the one\n"
        "it was made from; with --delta the difference of texts, line by line.",
        ("vmstore versions agent.vms planning-220 p17", "vmstore versions agent.vms p17 --delta"),
        ("vmstore.shell.commands.queries.pages", "versions"),
        (add_store, add_session, add_page, add_delta, add_moment),
    ),
    Command(
        "affinity",
        "ask",
        "which pages a page stood in the context with",
        "Lists the pages that were in the context together with a page, nearest first: the share of calls\n"
        "that saw both among those that saw either.",
        ("vmstore affinity agent.vms planning-220 p17", "vmstore affinity agent.vms p17 --limit 5 --turn 42"),
        ("vmstore.shell.commands.queries.pages", "affinity"),
        (add_store, add_session, add_page, add_limit, add_moment),
    ),
    Command(
        "sources",
        "ask",
        "where a page comes from",
        "Walks from a page towards what it was made from, replaces or refers to.",
        (
            "vmstore sources agent.vms planning-220 claim_storage_7",
            "vmstore sources agent.vms p17 --depth 2 --kinds derives",
        ),
        ("vmstore.shell.commands.queries.inspect", "sources"),
        (add_store, add_session, add_page, add_walk),
    ),
    Command(
        "derived",
        "ask",
        "what came of a page",
        "Walks from a page towards what was made from it or refers to it.",
        (
            "vmstore derived agent.vms planning-220 p17",
            "vmstore derived agent.vms p17 --kinds supersedes --json",
        ),
        ("vmstore.shell.commands.queries.inspect", "derived"),
        (add_store, add_session, add_page, add_walk),
    ),
    Command(
        "tail",
        "ask",
        "mutations in the order they were logged",
        "Prints mutations as they were logged, from the start or after a cursor that an earlier tail\n"
        "gave: one a line, or with --json one object with the cursor to go on from.",
        ("vmstore tail agent.vms --limit 20", "vmstore tail agent.vms --after 812.3 --json"),
        ("vmstore.shell.commands.queries.inspect", "tail"),
        (add_store, add_tail),
    ),
)
