"""Assembling a prompt: candidates are gathered, the selector chooses, and what it chose is written as a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.core.address import page_name
from vmstore.core.asof import Head
from vmstore.core.decision import PromptPart
from vmstore.core.page import Role
from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.errors import InputError
from vmstore.live.request import tokens_of, written
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import Basis
from vmstore.search.passages import texts_of
from vmstore.store.host import SessionHost
from vmstore.store.reads.search import Moments
from vmstore.store.recall.assembly.candidates import (
    RecalledTexts,
    anchors,
    asks,
    conversation,
    earlier,
    recalled_texts,
    text_candidate,
    tokens_in,
    words_of,
)
from vmstore.store.recall.assembly.known import facts_at
from vmstore.store.recall.assembly.message_values import CONVERSATIONS, recorded_values, shape_of
from vmstore.store.recall.assembly.results import AssembledPrompt, PartChoice, PromptChoice, PromptOmission
from vmstore.store.recall.assembly.summaries import summaries
from vmstore.store.recall.assembly.topics import TopicsOf, topics_at
from vmstore.store.recall.cold import others
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import ResolvedMoment, basis
from vmstore.views.reads.spoken_turns import SpokenMessage, instructions, newest_turns, spoken_so_far, turns_from
from vmstore.vm.assembly import blocks
from vmstore.vm.assembly.candidate import CandidateForm, PromptCandidate
from vmstore.vm.assembly.hint import hint
from vmstore.vm.assembly.recent_turns import first_turn, in_short
from vmstore.vm.assembly.selector import PROTECTED_TURNS, SHARES, TOKENS, Assembly, assemble, holds_required
from vmstore.vm.assembly.tag_rules import TAG_RULES, TagRule, checked, is_over, priority_of
from vmstore.vm.assembly.tag_rules import texts_of as rule_texts
from vmstore.vm.protocol.conversation import ChatMessage, TextPart
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.messages import dialect

TOKENS_MAX = 10_000_000
RECALL_OF_WORK, RECALL_OF_WORK_MAX = 0.08, 160  # for a message that asks nothing: of the budget, and in tokens
REQUEST_TOKENS = 40  # what a request takes beside its messages
WRITTEN = 0.9  # of its estimate, what a conversation takes at the least
TRIES = 8
MESSAGE = "message"
AROUND_VALUE = len('{"": }')


class AssemblyOptions(NamedTuple):
    """How a prompt is assembled: its budget, rules by tag, protected turns, whether other sessions are looked at.

    `filtered` drops turns of other topics; `rounds` are the tool rounds the hint speaks of.
    """

    tokens: int = TOKENS
    rules: tuple[TagRule, ...] = TAG_RULES
    protected: int = PROTECTED_TURNS
    across: bool = False
    filtered: bool = False
    rounds: int = 0
    shape: str | None = None


class _Material(NamedTuple):
    """All that a prompt is chosen from."""

    candidates: list[PromptCandidate]
    instructions: str
    role: Role
    shape: str
    protected: int
    recalled: RecalledTexts
    topics: TopicsOf


def options_of(tokens: int, rules: Sequence[TagRule] | None, **options: Any) -> AssemblyOptions:
    """Options, checked."""
    if type(tokens) is not int or not 1 <= tokens <= TOKENS_MAX:
        raise InputError(f"{tokens!r:.60} is no token budget; give a count from 1 to {TOKENS_MAX:,}")
    if type(options.get("protected", 0)) is not int or options.get("protected", 0) < 0:
        raise InputError(f"{options['protected']!r:.60} is no number of turns; give 0 or more")
    return AssemblyOptions(tokens=tokens, rules=TAG_RULES if rules is None else checked(rules), **options)


def assembled(
    session: SessionHost,
    moment: ResolvedMoment,
    message: str | None,
    options: AssemblyOptions,
    topics: TopicsOf | None = None,
) -> AssembledPrompt:
    """The prompt for a message, or for what was said last, of a session as it stood at a moment."""
    ns, lane = session._ns, session._lane()
    if topics is None:
        with ns.asking():
            topics = topics_at(lane, moment.position, message or "", ns.projection.last_erasure)
    material = _gathered(session, lane, moment, message, options, topics)
    room = options.tokens - _around(material, message)
    now = ns.clock.now()
    filtered = topics.of_message if options.filtered and topics.of_message else None
    for _ in range(TRIES):
        if not holds_required(material.candidates, room):
            break
        choice = assemble(material.candidates, room, protected=material.protected, topics=filtered)
        prompt = _written(session, moment, message, options, material, choice, now)
        if prompt.tokens <= options.tokens:
            return prompt
        room = min(room, choice.tokens) - (prompt.tokens - options.tokens)
    raise InputError(
        f"a prompt of {options.tokens:,} tokens cannot hold what instructs, the message itself and what stands around "
        "them; give it more tokens"
    )


def _around(material: _Material, message: str | None) -> int:
    """The tokens of an empty request."""
    body = _request(material._replace(instructions=""), "", [], "" if message is None else MESSAGE)
    return tokens_of(body, written(body), pictured=False)


def _gathered(
    session: SessionHost,
    lane: Branch,
    moment: ResolvedMoment,
    message: str | None,
    options: AssemblyOptions,
    topics: TopicsOf,
) -> _Material:
    ns, position, tokens = session._ns, moment.position, options.tokens
    with ns.asking():
        core = instructions(lane, position)
        system_text = "\n\n".join(text for _, text in texts_of(ns.log, lane, {lane.session: position}, core))
        spoken_of = spoken_so_far(lane, position)
        around = tokens_in(system_text) + tokens_in(message or "") + REQUEST_TOKENS
        first = first_turn(spoken_of.before, spoken_of.total, tokens, options.protected) if spoken_of.turns else 0
        begin = spoken_of.turns[first] if spoken_of.turns else 0
        is_whole = int(spoken_of.total * WRITTEN) + around <= tokens
        window = turns_from(lane, position, 0 if is_whole else begin) if spoken_of.turns else []
        moments: Moments = [(session.name, lane, position)]
        user = session.info().user if options.across else None
        cold = others(ns, user, lane) if user is not None else []
        before = _texts(ns, lane, position, window[-1:] if message is not None else window[-2:])
    known = facts_at(ns, lane, session.name, user, position)
    spoken = [one for turn in window for one in turn]
    shape, values = session._spoken_values(spoken, position)
    talk = conversation(window, values, topics.of_turns)
    is_whole = is_whole and sum(one.tokens for one in talk) + around <= tokens
    if is_whole:
        begin = 0
    window = [turn for turn in window if turn[0].turn >= begin]
    talk = [one for one in talk if one.turn >= begin]
    spoken = [one for turn in window for one in turn]
    shown = frozenset([*core, *(page for one in spoken for page in one.pages)])
    asked = message if message is not None else (before[-1] if before else "")
    share = tokens * SHARES[PromptPart.RECALLED] // 1_000_000
    if not asks(asked):
        share = min(int(tokens * RECALL_OF_WORK), RECALL_OF_WORK_MAX)
    found = recalled_texts(ns, moments, cold, asked, words_of(asked, before), shown, session._untold, share, known)
    with ns.asking():
        short = summaries(ns, lane, position, shown)
    before_it = [] if is_whole else earlier(ns, lane, position, window, in_short(tokens), session._untold)
    said = [] if message is None else [text_candidate(MESSAGE, PromptPart.CORE, message, order=1)]
    candidates = [
        *([text_candidate("instructions", PromptPart.CORE, system_text)] if system_text else []),
        *said,
        *talk,
        *_prioritised(short, options.rules, ns.clock.now()),
        *before_it,
        *found.facts,
        *found.passages,
        *anchors(known),
        *_rules(options.rules, topics.of_message),
        *_hint(topics, options, begin),
    ]
    role = Role(_role_of(lane, core)) if core else Role.DEVELOPER
    protected = max(options.protected, len(window)) if is_whole else options.protected
    return _Material(candidates, system_text, role, options.shape or shape, protected, found, topics)


def _rules(rules: Sequence[TagRule], tags: frozenset[str]) -> list[PromptCandidate]:
    texts = rule_texts(tags, rules)
    return [
        text_candidate(f"rule {place + 1}", PromptPart.RULES, f"- {blocks.plain(text)}", priority=len(texts) - place)
        for place, text in enumerate(texts)
    ]


def _hint(topics: TopicsOf, options: AssemblyOptions, begin: int) -> list[PromptCandidate]:
    """The topics of what was said before the conversation: they change when it begins elsewhere, and seldom else."""
    room = options.tokens * SHARES[PromptPart.HINT] // 1_000_000
    text = hint(
        topics.before(begin), tokens=room, rounds=options.rounds, budget=options.tokens if options.rounds else 0
    )
    return [text_candidate("topics", PromptPart.HINT, text)] if text else []


def _prioritised(short: Sequence[PromptCandidate], rules: Sequence[TagRule], now: int) -> list[PromptCandidate]:
    """Summaries whose time is not over, each with the priority of its tags."""
    return [
        msgspec.structs.replace(one, priority=priority_of(one.tags, rules))
        for one in short
        if not is_over(one.tags, one.at_us, now, rules)
    ]


def _role_of(lane: Branch, pages: Sequence[int]) -> int:
    found: int = lane.db.execute(
        "SELECT role FROM pages WHERE session = ? AND page = ?", (lane.owner(pages[0]), pages[0])
    ).get
    return found


def _texts(ns: Namespace, lane: Branch, position: int, turns: Sequence[Sequence[SpokenMessage]]) -> list[str]:
    """What people said in some turns."""
    pages = [page for turn in turns for one in turn if one.role == Role.USER for page in one.pages]
    return [text for _, text in texts_of(ns.log, lane, {lane.session: position}, pages)]


def _request(material: _Material, front: str, values: Sequence[Any], last: str) -> dict[str, Any]:
    """The request: what instructs, the conversation as it was said, the message with what goes beside it."""
    shape = material.shape
    speaks = dialect("chat-system" if shape == "chat" and material.role is Role.SYSTEM else shape)
    turns = [ChatMessage(Role.USER, (TextPart(last),))] if last else []
    head = "\n\n".join(text for text in (material.instructions, front) if text)
    request = speaks.request(head, turns, Memo())
    key = next(key for key in CONVERSATIONS if key in request)
    given = list(request[key])
    at = len(given) - 1 if last else len(given)
    return {**request, key: [*given[:at], *values, *given[at:]]}


def _written(
    session: SessionHost,
    moment: ResolvedMoment,
    message: str | None,
    options: AssemblyOptions,
    material: _Material,
    choice: Assembly,
    now: int,
) -> AssembledPrompt:
    front, beside = blocks.front(choice.shown), blocks.beside(choice.shown, now)
    talk = [one for one in choice.shown if one.part is PromptPart.CONVERSATION]
    values = [value for one in talk for value in _listed(one.form)]
    core = next((one for one in choice.shown if one.name == MESSAGE), None)
    last = "\n\n".join(text for text in (beside, "" if core is None else str(core.form.content)) if text)
    body = _request(material, front, values, last)
    tokens = tokens_of(body, written(body), pictured=True)
    said = {part: sum(len(str(one.form.content)) for one in choice.shown if one.part is part) for part in PromptPart}
    parts = {part.word: characters // CHARACTERS_PER_TOKEN for part, characters in said.items()}
    parts[PromptPart.CONVERSATION.word] = (
        sum(len(written({"": value})) - AROUND_VALUE for value in values) // CHARACTERS_PER_TOKEN
    )
    return AssembledPrompt(
        basis=Basis(session.name, moment.position, moment.turn, moment.call),
        shape=material.shape,
        request=body,
        tokens=tokens,
        budget=options.tokens,
        breakdown={**parts, "form": tokens - sum(parts.values())},
        prepend=front,
        beside=beside,
        topics=sorted(material.topics.of_message),
        turns=(talk[0].turn, talk[-1].turn) if talk else (0, 0),
        chosen=[_chosen(one, session.name) for one in choice.shown],
        left=_left(choice, material.candidates),
        contests=_contests(choice, material.candidates, session.name),
        note=material.recalled.note,
        conversation=values,
    )


def _listed(form: CandidateForm) -> Sequence[Any]:
    return form.content if isinstance(form.content, list) else ()


def _chosen(one: PromptCandidate, session: str) -> PromptChoice:
    pages = [page_name(page) for page in one.pages]
    return PromptChoice(
        one.name, one.part.word, one.level, one.tokens, round(one.score, 6), one.session or session, pages, _reason(one)
    )


REASONS = {
    PromptPart.CORE: "it is never left out",
    PromptPart.IDENTITY: "who the user is",
    PromptPart.RULES: "a topic of the message has this rule",
    PromptPart.SUMMARIES: "what came before the conversation, in short",
    PromptPart.HINT: "which topics can be asked for",
    PromptPart.CONVERSATION: "one of the newest turns",
    PromptPart.FACTS: "it holds, and answers the message",
    PromptPart.RECALLED: "it answers the message",
    PromptPart.EXPANDED: "its topic was expanded",
    PromptPart.EARLIER: "said not long before the conversation",
}


def _reason(one: PromptCandidate) -> str:
    return REASONS[one.part] + (f", shown at level {one.level} for want of room" if one.level else "")


def _left(choice: Assembly, candidates: Sequence[PromptCandidate]) -> list[PromptOmission]:
    known = {one.name: one for one in candidates}
    return [
        PromptOmission(left.name, known[left.name].part.word, left.tokens, round(known[left.name].score, 6), left.why)
        for left in choice.left
    ]


def _contests(choice: Assembly, candidates: Sequence[PromptCandidate], session: str) -> list[PartChoice]:
    known = {one.name: one for one in candidates}
    return [
        PartChoice(
            contest.part.word,
            contest.candidates,
            contest.chosen,
            choice.breakdown[contest.part],
            round(contest.cutoff, 6),
            [
                (page_name(known[name].pages[0]), round(score, 6))
                for score, name in contest.losers
                if known[name].pages and known[name].session in ("", session)
            ],
        )
        for contest in choice.contests
    ]


def recorded(session: SessionHost, spoken: Sequence[SpokenMessage], position: int) -> tuple[str, dict[int, list[Any]]]:
    """The messages of a recorded session by their number, and the shape they are in."""
    ns, lane = session._ns, session._lane()
    with ns.asking():
        values = recorded_values(ns, lane, position, spoken)
        return shape_of(lane, position, [value for some in values.values() for value in some]), values


assert tokens_in("") == 0, "no text takes no tokens"


def spoken_by(session: SessionHost) -> list[Any]:
    """Every message of a session, in order, in the shape it speaks."""
    ns = session._ns
    with ns.asking():
        lane = session._lane()
        position = basis(lane, Head()).position
        turns = newest_turns(lane, position, TOKENS_MAX, 0)
    spoken = [one for turn in reversed(turns) for one in turn]
    _, values = session._spoken_values(spoken, position)
    return [value for one in spoken for value in values[one.message]]
