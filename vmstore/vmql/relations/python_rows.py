"""Relations whose rows are made in Python: from the log, from a context, from a walk over links."""

from __future__ import annotations

from vmstore.core.decision import Recaller
from vmstore.core.metric import Metric
from vmstore.core.mutation_kind import MUTATION_NAMES
from vmstore.core.page import Level, LinkKind, PageType, Role, Standing, Tier, WordEnum
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.vmql.column_types import (
    BOOLEAN,
    INTEGER,
    JSON,
    LIST,
    MESSAGE,
    PAGE,
    REAL,
    TEXT,
    TIME,
    ColumnType,
    numbered,
    said,
)
from vmstore.vmql.relations.relation import Field, Relation, made

Kind: type[WordEnum] = WordEnum("Kind", {name.upper(): n for n, name in MUTATION_NAMES.items()})  # type: ignore
"""Every kind of mutation there is a name for, as an enumeration."""


def _field(name: str, form: ColumnType, meaning: str, *, asked: bool = False, later: str = "") -> Field:
    return Field(name, form, meaning, f'g."{name}"', (), asked, later)


MUTATIONS = made(
    "MUTATIONS",
    "every fact the log holds, in the order it was logged",
    _field("position", INTEGER, "its place in its session"),
    _field("session", TEXT, "the session that wrote it"),
    _field("turn", INTEGER, "the turn in force"),
    _field("call", INTEGER, "the call in force"),
    _field("kind", said(Kind), "what kind of fact"),
    _field("page", PAGE, "the page it is about"),
    _field("actor", TEXT, "who did it: user, model, tool or system"),
    _field("actor_id", TEXT, "which user, model, tool, policy or other part of the system, where that is known"),
    _field("cause", INTEGER, "the position that brought it about, where that is known"),
    _field("at", TIME, "when it happened"),
    _field("logged_at", TIME, "when it was written"),
    _field("tier_before", numbered(Tier), "where the page was"),
    _field("tier_after", numbered(Tier), "where it is"),
    _field("version_before", INTEGER, "the page's version before"),
    _field("version_after", INTEGER, "and after"),
    _field("level", numbered(Level), "the level of the content it brings"),
    _field("reason", TEXT, "why it was asked for or decided"),
    _field("tokens", INTEGER, "estimated tokens of what it brings, or of the room it makes"),
    _field("request_id", TEXT, "the request id of its commit"),
    _field("cursor", TEXT, "its place in the log: WATCH resumes after it", asked=True),
    _field("detail", JSON, "all of its fields; a path leads in: detail.leaves", asked=True),
)

CONTEXT = made(
    "CONTEXT",
    "the pages the model saw at a call, in order",
    _field("order", INTEGER, "its place in the context, from 1"),
    _field("page", PAGE, "the page's name"),
    _field("message", MESSAGE, "the message it is part of"),
    _field("role", said(Role), "who speaks in its message"),
    _field("type", said(PageType), "what it is for"),
    _field("level", numbered(Level), "how much of it is shown, 0 is full"),
    _field("tokens", INTEGER, "estimated tokens of what is shown"),
    _field("pinned", BOOLEAN, "whether somebody held it"),
    _field("since_turn", INTEGER, "the turn since when it is there, unbroken"),
    _field("since_call", INTEGER, "the call since when it is there, unbroken"),
    _field("tool", TEXT, "the tool it calls or answers for", asked=True),
    _field("tool_call", TEXT, "the provider's id of that call", asked=True),
    _field("outcome", said(ToolOutcome), "how a tool's answer ended, where its source says so", asked=True),
    _field("text", TEXT, "what it showed as text; null where it is none", asked=True),
)

CONTEXTS = made(
    "CONTEXTS",
    "the pages the model saw at each of some calls, for a series over them",
    *CONTEXT.fields.values(),
    _field("turn", INTEGER, "the turn of the call"),
    _field("call", INTEGER, "the call"),
)

DIFF = made(
    "DIFF",
    "what differs between two contexts",
    _field("page", PAGE, "the page that differs"),
    _field("session", TEXT, "the session that wrote it"),
    _field("change", TEXT, "entered, left, changed, compressed, or moved to another place"),
    _field("tokens", INTEGER, "how many tokens more it takes after than before"),
    _field("before", INTEGER, "the tokens it took before"),
    _field("after", INTEGER, "the tokens it takes after"),
    _field("message", MESSAGE, "the message it is part of"),
    _field("role", said(Role), "who speaks in its message"),
    _field("type", said(PageType), "what it is for"),
    _field("level_before", numbered(Level), "how much of it was shown before"),
    _field("level_after", numbered(Level), "how much of it is shown after"),
    _field("text", TEXT, "its beginning"),
)

FAULTS = made(
    "FAULTS",
    "every time a page was asked for; without a kernel, every time one came back to the context",
    _field("position", INTEGER, "where it was granted or denied, or the pack that brought it back"),
    _field("session", TEXT, "the session of that"),
    _field("turn", INTEGER, "the turn of it"),
    _field("call", INTEGER, "the call of it"),
    _field("page", PAGE, "the page; null where none has the name asked for"),
    _field("reason", TEXT, "why it was asked for"),
    _field("level_asked", numbered(Level), "how much of it was asked for"),
    _field("level_served", numbered(Level), "how much of it is shown"),
    _field("from_tier", numbered(Tier), "where it was"),
    _field("out_since", INTEGER, "the position that had put it out"),
    _field("tokens", INTEGER, "estimated tokens of what is shown"),
    _field("granted", BOOLEAN, "whether it was brought in"),
    _field("denied_because", TEXT, "why it was not"),
    _field("tool", TEXT, "the tool that the page calls or answers for", asked=True),
    _field("away_calls", INTEGER, "how many calls it had been out; null where it was in or had never been", asked=True),
)

MOVES = made(
    "MOVES",
    "every time a page came into the prompt, changed or moved there, or left it, by the pack that says so",
    _field("position", INTEGER, "the pack"),
    _field("session", TEXT, "the session of that"),
    _field("turn", INTEGER, "the turn of it"),
    _field("call", INTEGER, "the call of it"),
    _field("page", PAGE, "the page"),
    _field("tier_before", numbered(Tier), "where it was"),
    _field("tier_after", numbered(Tier), "where it is"),
    _field("level_before", numbered(Level), "how much of it was shown before; null where it was not there"),
    _field("level_after", numbered(Level), "how much of it is shown; null where it left"),
    _field("tokens", INTEGER, "estimated tokens of what is shown, or was"),
    _field("cause", INTEGER, "the position of the decision that the pack shows; null without one"),
    _field("reason", TEXT, "what was decided there, and why"),
    _field("tool", TEXT, "the tool that the page calls or answers for", asked=True),
    _field("away_calls", INTEGER, "of a page that came back, how many calls it had been out", asked=True),
)

COMPACTIONS = made(
    "COMPACTIONS",
    "every time a summary replaced pages of the prompt",
    _field("session", TEXT, "the session of it"),
    _field("call", INTEGER, "the first call whose request has the summary in their place"),
    _field("turn", INTEGER, "the turn of it"),
    _field("position", INTEGER, "the pack of that call"),
    _field("pages", INTEGER, "how many pages left"),
    _field("tokens", INTEGER, "estimated tokens they took in the prompt"),
    _field("summary", PAGE, "the page that stands in their place"),
    _field("summary_tokens", INTEGER, "estimated tokens it takes there"),
    _field("returned", INTEGER, "how many of them came back to the prompt since"),
    _field("left", LIST, "the pages that left", asked=True),
)

RECALLS = made(
    "RECALLS",
    "what sessions asked their memory: a row for each page that was given; one without a page where none was",
    _field("position", INTEGER, "where it was asked"),
    _field("session", TEXT, "the session that asked"),
    _field("turn", INTEGER, "the turn it was asked in"),
    _field("call", INTEGER, "the call before it"),
    _field("recaller", said(Recaller), "how it was asked"),
    _field("query", TEXT, "what was asked"),
    _field("page", PAGE, "the page that was given"),
    _field("rank", INTEGER, "its place in the answer, from 1"),
    _field("tokens", INTEGER, "estimated tokens of its full content"),
    _field("used", BOOLEAN, "whether an answer of that turn or the next used it"),
    _field("used_at", INTEGER, "the position of the first use"),
    _field("given", INTEGER, "tokens of the whole answer, the same in each of its rows"),
    _field("total", INTEGER, "how many pages there were to give"),
    _field("entered", BOOLEAN, "whether it came into the prompt after that, in the same turn", asked=True),
)

METRICS = made(
    "METRICS",
    "how each session's memory did, number by number, with the targets; nothing of sessions without a kernel",
    _field("session", TEXT, "whose memory"),
    _field("policy", TEXT, "which policy decides, with its version"),
    _field("budget", INTEGER, "the tokens the prompt may hold"),
    _field("metric", said(Metric), "which number; specs/replay.md says what each is"),
    _field("value", REAL, "what it is; null where there is nothing to measure"),
    _field("target", TEXT, "what it should be"),
    _field("met", BOOLEAN, "whether it is; null without a target or a value"),
    _field("flag", TEXT, "what should give pause"),
)._replace(wide=True)

TAGS = made(
    "TAGS",
    "what each session is about: every tag its pages have, and other names of it",
    _field("tag", TEXT, "the tag"),
    _field("session", TEXT, "whose pages"),
    _field("canonical", TEXT, "the tag it counts as, itself where nobody said otherwise"),
    _field("aliases", LIST, "the names that count as it"),
    _field("pages", INTEGER, "how many pages have it, or a name that counts as it"),
    _field("turns", INTEGER, "in how many turns these were made"),
    _field("first_turn", INTEGER, "the first of them"),
    _field("last_turn", INTEGER, "the last of them"),
    _field("tokens", INTEGER, "estimated tokens of these pages"),
    _field("share", REAL, "its turns of all there are, from 0 to 1"),
    _field("related", LIST, "the tags that stand in its turns most often, five at most"),
    _field("methods", LIST, "how it was found: noted, or the method of a tag mutation"),
    _field("depth", TEXT, "how much of it the prompt shows: none, summary, segments or full"),
    _field("turn_numbers", LIST, "the numbers of these turns"),
)

SEGMENTS = made(
    "SEGMENTS",
    "stretches of a session about one thing, as they were said or summed up, and the summaries of its tags",
    _field("session", TEXT, "whose segment"),
    _field("number", INTEGER, "its number, from 1; null of a tag's summary"),
    _field("layer", INTEGER, "0 as it was said, 1 summed up, 2 the summary of a tag's segments"),
    _field("tags", LIST, "what was said in it is about"),
    _field("title", TEXT, "what it is called, else its tags"),
    _field("first_turn", INTEGER, "the first turn with a page of it"),
    _field("last_turn", INTEGER, "the last of them"),
    _field("pages", INTEGER, "pages that were said in it"),
    _field("tokens_before", INTEGER, "estimated tokens of these pages"),
    _field("tokens_after", INTEGER, "estimated tokens of its summaries and of what stands in none"),
    _field("summary", PAGE, "the last page that sums it up"),
    _field("state", TEXT, "open, ended, fresh, or stale where its summaries lack something said or changed since"),
)

HISTORY = made(
    "HISTORY",
    "what happened to a page",
    _field("position", INTEGER, "where it happened"),
    _field("turn", INTEGER, "the turn in force"),
    _field("call", INTEGER, "the call in force"),
    _field("event", TEXT, "create, enter, shown, leave, or the kind of what happened"),
    _field("level", numbered(Level), "the level of the content"),
    _field("version", INTEGER, "the version of the content"),
    _field("tokens", INTEGER, "estimated tokens of the content"),
    _field("method", TEXT, "how a shorter form was made"),
    _field("detail", TEXT, "what else is known of it"),
    _field("at", TIME, "when it happened"),
)

LINEAGE = made(
    "LINEAGE",
    "the links met on a walk from a page",
    _field("depth", INTEGER, "steps from where it began"),
    _field("source", PAGE, "the page that relates"),
    _field("kind", said(LinkKind), "how"),
    _field("target", PAGE, "the page it relates to"),
    _field("position", INTEGER, "the position that said so"),
    _field("text", TEXT, "the beginning of the page on the far side"),
    _field("status", said(Standing), "how the page on the far side stands"),
)

EVIDENCE = made(
    "EVIDENCE",
    "what an answer may have come from where nobody logged it: pages of its call's prompt, and no links",
    _field("rank", INTEGER, "its place, from 1 for the most likely"),
    _field("page", PAGE, "the page that it may have come from"),
    _field("role", said(Role), "who speaks in its message"),
    _field("type", said(PageType), "what it is for"),
    _field("call", INTEGER, "the call that answered"),
    _field("new", BOOLEAN, "whether the call before did not have it"),
    _field("score", REAL, "how well it fits, comparable within one answer"),
    _field("text", TEXT, "its beginning"),
    _field("shared", LIST, "what both have: names, runs of eight words, words, the rarest first"),
)

WHY = made(
    "WHY",
    "what brought a page in, what kept it, or what put it out",
    _field("position", INTEGER, "where it happened"),
    _field("turn", INTEGER, "the turn of it"),
    _field("call", INTEGER, "the call of it"),
    _field("event", TEXT, "create, enter, shown, leave, the kind of what was decided, or the answer: in or out"),
    _field("page", PAGE, "the page it happened to"),
    _field("reason", TEXT, "what the log says about it, or what is known where it holds no decision"),
    _field("contest", JSON, "policy, tokens, candidates, scores, winner and nearest losers of a decision"),
)

PROBLEMS = made(
    "PROBLEMS",
    "what VERIFY found",
    _field("kind", TEXT, "what is wrong: hash, cell, view, rule, …"),
    _field("where", TEXT, "where"),
    _field("what", TEXT, "what about it"),
)

FORKED = made(
    "FORKED",
    "the session that FORK made",
    _field("session", TEXT, "its name"),
    _field("parent", TEXT, "the session it was forked from"),
    _field("position", INTEGER, "the last position they share"),
    _field("turn", INTEGER, "the turn there"),
    _field("call", INTEGER, "the call there"),
)

REPLAYED = made(
    "REPLAYED",
    "a session's run as it was recorded, and as another policy, budget or setting would have had it",
    _field("run", TEXT, "recorded, or what if"),
    _field("policy", TEXT, "which policy decided, with its version"),
    _field("budget", INTEGER, "the tokens the prompt may hold"),
    _field("references", INTEGER, "uses of pages"),
    _field("faults", INTEGER, "uses of pages that were not in the prompt at the level asked for"),
    _field("fault_tokens", INTEGER, "tokens brought in for them"),
    _field("fault_rate", REAL, "faults of all uses"),
    _field("denied", INTEGER, "faults that were not served"),
    _field("thrash_index", REAL, "repeated faults a turn over five turns, the mean"),
    _field("evictions", INTEGER, "pages that left the prompt"),
    _field("compressions", INTEGER, "pages shown at a higher level instead"),
    _field("prefetches", INTEGER, "pages brought in before they were asked for"),
    _field("prefetch_hits", INTEGER, "of those, used before they left"),
    _field("utilisation", REAL, "how much of the budget calls used, the mean"),
    _field("l0_peak", INTEGER, "the most tokens a call had"),
    _field("prefix_voided", INTEGER, "tokens that a provider's cache lost"),
    _field("invalidated", INTEGER, "the same on requests as they were sent, where they were"),
    _field("searched_pages", INTEGER, "pages that recall gave"),
    _field("searched_used", INTEGER, "of those, used by an answer of that turn or the next"),
    _field("searched_in_prompt", INTEGER, "of those, in the prompt anyway when they were given"),
    _field("searched_tokens", INTEGER, "tokens that recall gave"),
    _field("call_cost", REAL, "what a call's input costs, in tokens: a tenth where it was kept, 1.25 where written"),
    _field("turn", INTEGER, "where the first other decision is"),
    _field("position", INTEGER, "the recorded position there"),
    _field("recorded", TEXT, "what was decided there"),
    _field("found", TEXT, "what is decided there now"),
    _field("reason", TEXT, "both with their reasons"),
)

RENDERED = made(
    "RENDERED", "a context as text", _field("text", TEXT, "all of it, as VM:CONTEXT text, checked against its pack")
)

CHAT = made(
    "CHAT",
    "the chat messages of a call's request",
    _field("order", INTEGER, "its place, from 1"),
    _field("role", TEXT, "who speaks"),
    _field("message", JSON, "the message as it was sent"),
)

RELATIONS_SHOWN = made(
    "RELATIONS",
    "what can be asked for",
    _field("relation", TEXT, "its name"),
    _field("columns", INTEGER, "how many columns it has"),
    _field("meaning", TEXT, "what its rows are"),
)

COLUMNS = made(
    "COLUMNS",
    "the columns of a relation",
    _field("column", TEXT, "its name"),
    _field("type", TEXT, "integer, real, text, boolean, time, list or json"),
    _field("meaning", TEXT, "what it says"),
    _field("words", TEXT, "the words it can hold, where they are few"),
    _field("filled_by", TEXT, "what will fill it, where it is empty until then"),
)

FUNCTIONS = made(
    "FUNCTIONS",
    "what can be computed over the rows of a group",
    _field("function", TEXT, "how it is written"),
    _field("type", TEXT, "what it gives"),
    _field("meaning", TEXT, "what it says"),
)

PLAN = made(
    "PLAN",
    "how a statement is answered",
    _field("depth", INTEGER, "how deep in the tree"),
    _field("step", TEXT, "what is done"),
    _field("detail", TEXT, "how"),
    _field("estimated", INTEGER, "the rows expected"),
    _field("rows", INTEGER, "the rows there were, with ANALYZE"),
    _field("ms", REAL, "milliseconds it took, with ANALYZE"),
)

MADE: tuple[Relation, ...] = (
    *(
        MUTATIONS,
        CONTEXT,
        CONTEXTS,
        DIFF,
        FAULTS,
        MOVES,
        METRICS,
        TAGS,
        SEGMENTS,
        COMPACTIONS,
        HISTORY,
        LINEAGE,
        EVIDENCE,
        WHY,
        PROBLEMS,
        FORKED,
        REPLAYED,
    ),
    *(RENDERED, CHAT, RECALLS),
    *(RELATIONS_SHOWN, COLUMNS, FUNCTIONS, PLAN),
)
