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
    numbered,
    said,
)
from vmstore.vmql.relations.relation import Field, Relation, asked, made

Kind: type[WordEnum] = WordEnum("Kind", {name.upper(): n for n, name in MUTATION_NAMES.items()})  # type: ignore
"""Every kind of mutation there is a name for, as an enumeration."""


MUTATIONS = made(
    "MUTATIONS",
    "every fact the log holds, in the order it was logged",
    Field("position", INTEGER, "its place in its session"),
    Field("session", TEXT, "the session that wrote it"),
    Field("turn", INTEGER, "the turn in force"),
    Field("call", INTEGER, "the call in force"),
    Field("kind", said(Kind), "what kind of fact"),
    Field("page", PAGE, "the page it is about"),
    Field("actor", TEXT, "who did it: user, model, tool or system"),
    Field("actor_id", TEXT, "which user, model, tool, policy or other part of the system, where that is known"),
    Field("cause", INTEGER, "the position that brought it about, where that is known"),
    Field("at", TIME, "when it happened"),
    Field("logged_at", TIME, "when it was written"),
    Field("tier_before", numbered(Tier), "where the page was"),
    Field("tier_after", numbered(Tier), "where it is"),
    Field("version_before", INTEGER, "the page's version before"),
    Field("version_after", INTEGER, "and after"),
    Field("level", numbered(Level), "the level of the content it brings"),
    Field("reason", TEXT, "why it was asked for or decided"),
    Field("tokens", INTEGER, "estimated tokens of what it brings, or of the room it makes"),
    Field("request_id", TEXT, "the request id of its commit"),
    asked("cursor", TEXT, "its place in the log: WATCH resumes after it"),
    asked("detail", JSON, "all of its fields; a path leads in: detail.leaves"),
    order="position",  # it is the same however few rows are made
)._replace(across=("g.row",))

CONTEXT = made(
    "CONTEXT",
    "the pages the model saw at a call, in order",
    Field("order", INTEGER, "its place in the context, from 1"),
    Field("page", PAGE, "the page's name"),
    Field("message", MESSAGE, "the message it is part of"),
    Field("role", said(Role), "who speaks in its message"),
    Field("type", said(PageType), "what it is for"),
    Field("level", numbered(Level), "how much of it is shown, 0 is full"),
    Field("tokens", INTEGER, "estimated tokens of what is shown"),
    Field("pinned", BOOLEAN, "whether somebody held it"),
    Field("since_turn", INTEGER, "the turn since when it is there, unbroken"),
    Field("since_call", INTEGER, "the call since when it is there, unbroken"),
    asked("tool", TEXT, "the tool it calls or answers for"),
    asked("tool_call", TEXT, "the provider's id of that call"),
    asked("outcome", said(ToolOutcome), "how a tool's answer ended, where its source says so"),
    asked("text", TEXT, "what it showed as text; null where it is none"),
)

CONTEXTS = made(
    "CONTEXTS",
    "the pages the model saw at each of some calls, for a series over them",
    *CONTEXT.fields.values(),
    Field("turn", INTEGER, "the turn of the call"),
    Field("call", INTEGER, "the call"),
)

DIFF = made(
    "DIFF",
    "what differs between two contexts",
    Field("page", PAGE, "the page that differs"),
    Field("session", TEXT, "the session that wrote it"),
    Field("change", TEXT, "entered, left, changed, compressed, or moved to another place"),
    Field("tokens", INTEGER, "how many tokens more it takes after than before"),
    Field("before", INTEGER, "the tokens it took before"),
    Field("after", INTEGER, "the tokens it takes after"),
    Field("message", MESSAGE, "the message it is part of"),
    Field("role", said(Role), "who speaks in its message"),
    Field("type", said(PageType), "what it is for"),
    Field("level_before", numbered(Level), "how much of it was shown before"),
    Field("level_after", numbered(Level), "how much of it is shown after"),
    Field("text", TEXT, "its beginning"),
)

FAULTS = made(
    "FAULTS",
    "every time a page was asked for; without a kernel, every time one came back to the context",
    Field("position", INTEGER, "where it was granted or denied, or the pack that brought it back"),
    Field("session", TEXT, "the session of that"),
    Field("turn", INTEGER, "the turn of it"),
    Field("call", INTEGER, "the call of it"),
    Field("page", PAGE, "the page; null where none has the name asked for"),
    Field("reason", TEXT, "why it was asked for"),
    Field("level_asked", numbered(Level), "how much of it was asked for"),
    Field("level_served", numbered(Level), "how much of it is shown"),
    Field("from_tier", numbered(Tier), "where it was"),
    Field("out_since", INTEGER, "the position that had put it out"),
    Field("tokens", INTEGER, "estimated tokens of what is shown"),
    Field("granted", BOOLEAN, "whether it was brought in"),
    Field("denied_because", TEXT, "why it was not"),
    asked("tool", TEXT, "the tool that the page calls or answers for"),
    asked("away_calls", INTEGER, "how many calls it had been out; null where it was in or had never been"),
)

MOVES = made(
    "MOVES",
    "every time a page came into the prompt, changed or moved there, or left it, by the pack that says so",
    Field("position", INTEGER, "the pack"),
    Field("session", TEXT, "the session of that"),
    Field("turn", INTEGER, "the turn of it"),
    Field("call", INTEGER, "the call of it"),
    Field("page", PAGE, "the page"),
    Field("tier_before", numbered(Tier), "where it was"),
    Field("tier_after", numbered(Tier), "where it is"),
    Field("level_before", numbered(Level), "how much of it was shown before; null where it was not there"),
    Field("level_after", numbered(Level), "how much of it is shown; null where it left"),
    Field("tokens", INTEGER, "estimated tokens of what is shown, or was"),
    Field("cause", INTEGER, "the position of the decision that the pack shows; null without one"),
    Field("reason", TEXT, "what was decided there, and why"),
    asked("tool", TEXT, "the tool that the page calls or answers for"),
    asked("away_calls", INTEGER, "of a page that came back, how many calls it had been out"),
)

COMPACTIONS = made(
    "COMPACTIONS",
    "every time a summary replaced pages of the prompt",
    Field("session", TEXT, "the session of it"),
    Field("call", INTEGER, "the first call whose request has the summary in their place"),
    Field("turn", INTEGER, "the turn of it"),
    Field("position", INTEGER, "the pack of that call"),
    Field("pages", INTEGER, "how many pages left"),
    Field("tokens", INTEGER, "estimated tokens they took in the prompt"),
    Field("summary", PAGE, "the page that stands in their place"),
    Field("summary_tokens", INTEGER, "estimated tokens it takes there"),
    Field("returned", INTEGER, "how many of them came back to the prompt since"),
    asked("left", LIST, "the pages that left"),
)

RECALLS = made(
    "RECALLS",
    "what sessions asked their memory: a row for each page that was given; one without a page where none was",
    Field("position", INTEGER, "where it was asked"),
    Field("session", TEXT, "the session that asked"),
    Field("turn", INTEGER, "the turn it was asked in"),
    Field("call", INTEGER, "the call before it"),
    Field("recaller", said(Recaller), "how it was asked"),
    Field("query", TEXT, "what was asked"),
    Field("page", PAGE, "the page that was given"),
    Field("rank", INTEGER, "its place in the answer, from 1"),
    Field("score", REAL, "what it was returned with; null where that was not logged"),
    Field("tokens", INTEGER, "estimated tokens of its full content as it was given"),
    Field("used", BOOLEAN, "whether an answer of that turn or the next used it"),
    Field("used_at", INTEGER, "the position of the first use"),
    Field("given", INTEGER, "tokens of the whole answer, the same in each of its rows"),
    Field("total", INTEGER, "how many pages there were to give"),
    asked("entered", BOOLEAN, "whether it came into the prompt after that, in the same turn"),
)

METRICS = made(
    "METRICS",
    "how each session's memory did, number by number, with the targets; nothing of sessions without a kernel",
    Field("session", TEXT, "whose memory"),
    Field("policy", TEXT, "which policy decides, with its version"),
    Field("budget", INTEGER, "the tokens the prompt may hold"),
    Field("metric", said(Metric), "which number; specs/replay.md says what each is"),
    Field("value", REAL, "what it is; null where there is nothing to measure"),
    Field("target", TEXT, "what it should be"),
    Field("met", BOOLEAN, "whether it is; null without a target or a value"),
    Field("flag", TEXT, "what should give pause"),
)._replace(wide=True)

TAGS = made(
    "TAGS",
    "what each session is about: every tag its pages have, and other names of it",
    Field("tag", TEXT, "the tag"),
    Field("session", TEXT, "whose pages"),
    Field("canonical", TEXT, "the tag it counts as, itself where nobody said otherwise"),
    Field("aliases", LIST, "the names that count as it"),
    Field("pages", INTEGER, "how many pages have it, or a name that counts as it"),
    Field("turns", INTEGER, "in how many turns these were made"),
    Field("first_turn", INTEGER, "the first of them"),
    Field("last_turn", INTEGER, "the last of them"),
    Field("tokens", INTEGER, "estimated tokens of these pages"),
    Field("share", REAL, "its turns of all there are, from 0 to 1"),
    Field("related", LIST, "the tags that stand in its turns most often, five at most"),
    Field("methods", LIST, "how it was found: noted, or the method of a tag mutation"),
    Field("depth", TEXT, "how much of it the prompt shows: none, summary, segments or full"),
    Field("turn_numbers", LIST, "the numbers of these turns"),
)._replace(filled="`vmstore tags STORE SESSION --keyword` tags turns by their words")

SEGMENTS = made(
    "SEGMENTS",
    "stretches of a session about one thing, as they were said or summed up, and the summaries of its tags",
    Field("session", TEXT, "whose segment"),
    Field("number", INTEGER, "its number, from 1; null of a tag's summary"),
    Field("layer", INTEGER, "0 as it was said, 1 summed up, 2 the summary of a tag's segments"),
    Field("tags", LIST, "what was said in it is about"),
    Field("title", TEXT, "what it is called, else its tags"),
    Field("first_turn", INTEGER, "the first turn with a page of it"),
    Field("last_turn", INTEGER, "the last of them"),
    Field("pages", INTEGER, "pages that were said in it"),
    Field("tokens_before", INTEGER, "estimated tokens of these pages"),
    Field("tokens_after", INTEGER, "estimated tokens of its summaries and of what stands in none"),
    Field("summary", PAGE, "the last page that sums it up"),
    Field("state", TEXT, "open, ended, fresh, or stale where its summaries lack something said or changed since"),
)

HISTORY = made(
    "HISTORY",
    "what happened to a page",
    Field("position", INTEGER, "where it happened"),
    Field("turn", INTEGER, "the turn in force"),
    Field("call", INTEGER, "the call in force"),
    Field("event", TEXT, "create, enter, shown, leave, or the kind of what happened"),
    Field("level", numbered(Level), "the level of the content"),
    Field("version", INTEGER, "the version of the content"),
    Field("tokens", INTEGER, "estimated tokens of the content"),
    Field("method", TEXT, "how a shorter form was made"),
    Field("detail", TEXT, "what else is known of it"),
    Field("at", TIME, "when it happened"),
)

LINEAGE = made(
    "LINEAGE",
    "the links met on a walk from a page",
    Field("depth", INTEGER, "steps from where it began"),
    Field("source", PAGE, "the page that relates"),
    Field("kind", said(LinkKind), "how"),
    Field("target", PAGE, "the page it relates to"),
    Field("position", INTEGER, "the position that said so"),
    Field("text", TEXT, "the beginning of the page on the far side"),
    Field("status", said(Standing), "how the page on the far side stands"),
)

EVIDENCE = made(
    "EVIDENCE",
    "what an answer may have come from where nobody logged it: pages of its call's prompt, and no links",
    Field("rank", INTEGER, "its place, from 1 for the most likely"),
    Field("page", PAGE, "the page that it may have come from"),
    Field("role", said(Role), "who speaks in its message"),
    Field("type", said(PageType), "what it is for"),
    Field("call", INTEGER, "the call that answered"),
    Field("new", BOOLEAN, "whether the call before did not have it"),
    Field("score", REAL, "how well it fits, comparable within one answer"),
    Field("text", TEXT, "its beginning"),
    Field("shared", LIST, "what both have: names, runs of eight words, words, the rarest first"),
)

WHY = made(
    "WHY",
    "what brought a page in, what kept it, or what put it out",
    Field("position", INTEGER, "where it happened"),
    Field("turn", INTEGER, "the turn of it"),
    Field("call", INTEGER, "the call of it"),
    Field("event", TEXT, "create, enter, shown, leave, the kind of what was decided, or the answer: in or out"),
    Field("page", PAGE, "the page it happened to"),
    Field("reason", TEXT, "what the log says about it, or what is known where it holds no decision"),
    Field("contest", JSON, "policy, tokens, candidates, scores, winner and nearest losers of a decision"),
)

PROBLEMS = made(
    "PROBLEMS",
    "what VERIFY found",
    Field("kind", TEXT, "what is wrong: hash, cell, view, rule, …"),
    Field("where", TEXT, "where"),
    Field("what", TEXT, "what about it"),
)

FORKED = made(
    "FORKED",
    "the session that FORK made",
    Field("session", TEXT, "its name"),
    Field("parent", TEXT, "the session it was forked from"),
    Field("position", INTEGER, "the last position they share"),
    Field("turn", INTEGER, "the turn there"),
    Field("call", INTEGER, "the call there"),
)

REPLAYED = made(
    "REPLAYED",
    "a session's run as it was recorded, and as another policy, budget or setting would have had it",
    Field("run", TEXT, "recorded, or what if"),
    Field("policy", TEXT, "which policy decided, with its version"),
    Field("budget", INTEGER, "the tokens the prompt may hold"),
    Field("references", INTEGER, "uses of pages"),
    Field("faults", INTEGER, "uses of pages that were not in the prompt at the level asked for"),
    Field("fault_tokens", INTEGER, "tokens brought in for them"),
    Field("fault_rate", REAL, "faults of all uses"),
    Field("denied", INTEGER, "faults that were not served"),
    Field("thrash_index", REAL, "repeated faults a turn over five turns, the mean"),
    Field("evictions", INTEGER, "pages that left the prompt"),
    Field("compressions", INTEGER, "pages shown at a higher level instead"),
    Field("prefetches", INTEGER, "pages brought in before they were asked for"),
    Field("prefetch_hits", INTEGER, "of those, used before they left"),
    Field("utilisation", REAL, "how much of the budget calls used, the mean"),
    Field("l0_peak", INTEGER, "the most tokens a call had"),
    Field("prefix_voided", INTEGER, "tokens that a provider's cache lost"),
    Field("invalidated", INTEGER, "the same on requests as they were sent, where they were"),
    Field("searched_pages", INTEGER, "pages that recall gave"),
    Field("searched_used", INTEGER, "of those, used by an answer of that turn or the next"),
    Field("searched_in_prompt", INTEGER, "of those, in the prompt anyway when they were given"),
    Field("searched_tokens", INTEGER, "tokens that recall gave"),
    Field("call_cost", REAL, "what a call's input costs, in tokens: a tenth where it was kept, 1.25 where written"),
    Field("turn", INTEGER, "where the first other decision is"),
    Field("position", INTEGER, "the recorded position there"),
    Field("recorded", TEXT, "what was decided there"),
    Field("found", TEXT, "what is decided there now"),
    Field("reason", TEXT, "both with their reasons"),
)

RENDERED = made(
    "RENDERED", "a context as text", Field("text", TEXT, "all of it, as VM:CONTEXT text, checked against its pack")
)

CHAT = made(
    "CHAT",
    "the chat messages of a call's request",
    Field("order", INTEGER, "its place, from 1"),
    Field("role", TEXT, "who speaks"),
    Field("message", JSON, "the message as it was sent"),
)

RELATIONS_SHOWN = made(
    "RELATIONS",
    "what can be asked for",
    Field("relation", TEXT, "its name"),
    Field("columns", INTEGER, "how many columns it has"),
    Field("meaning", TEXT, "what its rows are"),
)

COLUMNS = made(
    "COLUMNS",
    "the columns of a relation",
    Field("column", TEXT, "its name"),
    Field("type", TEXT, "integer, real, text, boolean, time, list or json"),
    Field("meaning", TEXT, "what it says"),
    Field("words", TEXT, "the words it can hold, where they are few"),
)

FUNCTIONS = made(
    "FUNCTIONS",
    "what can be computed over the rows of a group",
    Field("function", TEXT, "how it is written"),
    Field("type", TEXT, "what it gives"),
    Field("meaning", TEXT, "what it says"),
)

PLAN = made(
    "PLAN",
    "how a statement is answered",
    Field("depth", INTEGER, "how deep in the tree"),
    Field("step", TEXT, "what is done"),
    Field("detail", TEXT, "how"),
    Field("estimated", INTEGER, "the rows expected"),
    Field("rows", INTEGER, "the rows there were, with ANALYZE"),
    Field("ms", REAL, "milliseconds it took, with ANALYZE"),
)

MADE = [each for each in [*globals().values()] if isinstance(each, Relation)]
"""All of them."""
