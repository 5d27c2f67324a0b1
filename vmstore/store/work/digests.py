"""Digests of a session's tasks, cards of what its user's sessions taught, and both packed into a budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from vmstore.core.address import Address, page_position, parse
from vmstore.core.asof import AsOf, Head, Moment, Position, When, one_moment
from vmstore.core.decision import Cause
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import Evict
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role
from vmstore.errors import InputError
from vmstore.redact.mask import Mask
from vmstore.redact.span import SecretKind
from vmstore.search.passages import texts_of
from vmstore.store.host import SessionHost
from vmstore.store.recall.fact_reads import asked_at, known
from vmstore.store.recall.pen import Pen, write
from vmstore.store.work.artifacts import ArtifactInfo, Artifacts, opens
from vmstore.store.work.atoms import AtomInfo, Atoms
from vmstore.store.work.lessons import guards_of, skills_of
from vmstore.store.work.plans import AgentPlan, Plans, content_of
from vmstore.store.work.tasks import AgentTask, tasks_at
from vmstore.views.branch import NEVER, Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.work import digest as digests
from vmstore.work.digest import Expansion, PackedDigests, TaskDigest, WrittenDigest
from vmstore.work.observation import tokens

if TYPE_CHECKING:
    from vmstore.store.work.report import Brief

FACT_SHARE, RECURS_SHARE = 0.5, 0.1
"""The weight of a fact among cards, and what each further source of it adds."""
_WRITTEN = f"PAGES page, dirty WHERE type = summary AND '{digests.TAG}' IN tags"


Parts = Sequence[tuple[AtomInfo | ArtifactInfo, str]]
"""Atoms and files that are a part of some task, each with its line in a digest."""


class Digests:
    """The digests of a session: `session.work.digests`. Each is made as it is asked for; `write` alone writes."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    # ---- tasks

    def tasks(self, at: When | None = None, *, status: str | None = None, **moment: Unpack[Moment]) -> list[AgentTask]:
        """The tasks of the session, which are its plans, oldest first, now or at a moment."""
        return tasks_at(self._session, one_moment(at, moment), status)

    def all(self, at: When | None = None, **moment: Unpack[Moment]) -> list[TaskDigest]:
        """The digest of each task, oldest first, now or at a moment."""
        when = self._when(at, moment)
        by_task, parts = dict(self._written(when)), self._parts(when)
        return [self._digest(plan, parts, by_task) for plan in Plans(self._session).all(when)]

    def get(self, task: str | int, at: When | None = None, **moment: Unpack[Moment]) -> TaskDigest:
        """The digest of a task by its page or its title; ErasedError where it was erased."""
        when = self._when(at, moment)
        return self._digest(Plans(self._session).get(task, when), self._parts(when), dict(self._written(when)))

    def write(
        self, task: str | int, paragraph: str, *, short: str | None = None, at_us: int | None = None
    ) -> TaskDigest:
        """Writes the digest of a task in other words, as a model says it; it holds until the plan changes.

        A page that derives from the plan and its decisions, and is erased with any of them; no prompt holds it by
        itself. A paragraph has 640 characters at most, `short` 80; without it the paragraph's first sentence is it.
        """
        plan = Plans(self._session).get(task)
        content = digests.written(plan.page, paragraph, short)
        named = [self._named(plan, each) for each in plan.decisions]
        sources = [number for page in (plan.page, *named) if (number := page_position(page))]

        def do(pen: Pen) -> None:
            """Adds the page."""
            part = Part(msgspec.json.encode(content), Modality.STRUCTURED, Mime.JSON, PageType.SUMMARY)
            draft = Draft(Role.ASSISTANT, b"", (part,), hint=f"digest: {plan.title}"[:200], tags=(digests.TAG,))
            page = pen.page(draft, [(int(LinkKind.DERIVES), number) for number in sources])
            if pen.act is not None and (here := pen.act.state.here.get(page)) is not None:
                pen.add(Evict(page, Cause.ASKED, here.tokens))

        write(self._session, do, at_us)
        return self.get(plan.page)

    # ---- the system, and what was learned

    def system(self) -> str:
        """A line on what the memory holds: pages, turns, atoms by kind, files, tools, active tasks."""
        info = self._session.info()
        of = f" of {info.user}" if info.user else ""
        counts: dict[str, int] = {}
        for atom in Atoms(self._session).all():
            counts[atom.kind] = counts.get(atom.kind, 0) + 1
        said = [_counted(info.pages, "page"), _counted(info.turns, "turn")]
        said += [_counted(number, kind) for kind, number in sorted(counts.items(), key=lambda one: -one[1])]
        files = len([file for file in Artifacts(self._session).all() if file.path is not None])
        said += [_counted(files, "file")] if files else []
        tools = [tool for tool, _ in asked_at(self._session, _TOOLS, Head())]
        tasks = ", ".join(f"{plan.title} ({plan.page})" for plan in Plans(self._session).all(status="active")[-3:])
        text = f"Session {info.session}{of}: {', '.join(said)}."
        text += f" Active tasks: {tasks}." if tasks else ""
        text += f" Tools: {', '.join(tools)}." if tools else ""
        return unsecret(digests.within(text, digests.SYSTEM_CHARS_MAX))

    def cards(self, limit: int = digests.CARDS) -> list[str]:
        """Lessons of the sessions of the session's user, of its own alone where it has none, the surest first.

        Warnings of what failed, sequences that succeed, and facts that hold: by how often they were seen.
        """
        if type(limit) is not int or limit < 0:
            raise InputError(f"limit is {limit!r:.40}; give a number of cards from 0 up", code="not-a-limit")
        weighed = ((weight, digests.card(text)) for weight, text in self._weighed())
        return list(map(unsecret, digests.chosen_cards(weighed, limit)))

    def _weighed(self) -> Iterator[tuple[float, str]]:
        """Texts that may be cards, with their weights from 0 to 1; of one weight the newest first."""
        ns, user = self._session._ns, self._session.info().user
        scope = None if user is not None else self._session.name
        for guard in reversed(guards_of(ns, scope, user)):
            yield digests.guard_weight(guard.count), guard.text
        for skill in skills_of(ns, scope, user):
            text = f"{' → '.join(skill.tools)} succeeded {skill.successes} of {skill.tries} times."
            yield skill.importance, text
        for fact in reversed(known(ns, scope, user, Head())):
            again = RECURS_SHARE * max(0, len(fact.sources) - 1)
            sure = FACT_SHARE * fact.confidence + 0.4 * fact.strength + again
            yield min(0.9, sure), fact.text or f"{fact.subject} {fact.verb} {fact.what}"

    # ---- expansion

    def expand(self, uri: str, token_budget: int = 2_000, at: When | None = None, **moment: Unpack[Moment]) -> str:
        """Opens `expand://task/p7?depth=2`: 0 a sentence, 1 a paragraph, 2 the steps, 3 all that is a part of it.

        As the task stands now or stood at a moment. At depth 3 each decision, atom and file is named by its page, whose
        content is the whole. Each depth is checked
        against the budget; InputError names the one that has no room, ErasedError a task that was erased.
        """
        page, depth = digests.reference(uri)
        budget, when = _budget(token_budget), self._when(at, moment)
        return digests.opened(self._shards(Plans(self._session).get(page, when), self._parts(when)), depth, budget)

    def pack(
        self,
        token_budget: int,
        *,
        task: str | int | None = None,
        cards: int = digests.CARDS,
        expand: Iterable[str] = (),
    ) -> PackedDigests:
        """The digests of the system and a task, cards, and expansions in the order asked for, within a budget.

        Without `task` the newest active one. An expansion is `expand://task/p7?depth=2`, or `artifact://p12`, which is
        opened where the session allows files and nobody denied it, or somebody approved it; `denied` names the others.
        What has no room is named in `dropped`: expansions go before cards, those of ended tasks and the last ones
        first, each opened less far before it is left out.
        """
        if task is None:
            active = Plans(self._session).all(status="active")
            about = self.get(active[-1].page) if active else None
        else:
            about = self.get(task)
        uris = [expand] if isinstance(expand, str) else list(expand)
        parts = self._parts() if any(not str(uri).startswith(_FILE) for uri in uris) else ()
        asked = [self._file(uri) if str(uri).startswith(_FILE) else self._task(uri, parts) for uri in uris]
        denied = [uri for uri, expansion in zip(uris, asked, strict=True) if expansion is None]
        expansions = [expansion for expansion in asked if expansion is not None]
        packed = digests.pack(self.system(), about, self.cards(cards), expansions, _budget(token_budget))
        return msgspec.structs.replace(packed, denied=denied)

    def report(self, task: str | int, folder: str | Path, *, topic: str | None = None) -> Brief:
        """Writes a brief of a task as `storage/briefs/<date>-<topic>.md` below a folder, with a sidecar and a bundle.

        The sidecar names both with their SHA-256 and the pages they are made of; the bundle has these in their words,
        of files the text where somebody approved it. Secrets and personal data are masked as in any export. StoreError
        where one of the files is there already.
        """
        from vmstore.store.work.report import report

        digest = self.get(task)
        return report(self._session, digest, folder, digest.title if topic is None else topic)

    # ---- parts

    def _when(self, at: When | None, moment: Any) -> AsOf:
        """The moment as a position, so that all that is asked for one answer is of the same."""
        when = one_moment(at, moment)
        if when == Head():
            return when
        with self._session._ns.asking():
            return Position(basis(self._session._lane(), when).position)

    def _digest(self, plan: AgentPlan, parts: Parts, written: dict[str, tuple[str, WrittenDigest, bool]]) -> TaskDigest:
        texts = self._shards(plan, parts)
        made = digests.digest(plan.page, content_of(plan))
        costs = [tokens(text) for text in texts]
        made = msgspec.structs.replace(
            made, title=unsecret(plan.title), short=texts[0], paragraph=texts[1], tokens=costs[1], costs=costs
        )
        if plan.page not in written:
            return made
        page, content, stale = written[plan.page]
        content = WrittenDigest(content.task, *map(unsecret, (content.short, content.paragraph)))
        return digests.with_written(made, page, content, stale=stale)

    def _written(self, when: AsOf) -> Iterator[tuple[str, tuple[str, WrittenDigest, bool]]]:
        """The digests that somebody wrote, by the page of their task, oldest first, and whether it changed since."""
        dirty = {
            page_position(page) or 0: page_is_dirty for page, page_is_dirty in asked_at(self._session, _WRITTEN, when)
        }
        ns = self._session._ns
        with ns.asking():
            lane = self._session._lane()
            position = basis(lane, when).position
            texts = list(texts_of(ns.log, lane, {lane.session: position}, dirty))
        for page, text in texts:
            try:
                content = msgspec.json.decode(text, type=WrittenDigest)
            except msgspec.MsgspecError:  # somebody gave the page another content
                continue
            yield content.task, (f"p{page}", content, bool(dirty[page]))

    def _task(self, uri: str, parts: Parts) -> Expansion:
        page, depth = digests.reference(uri)
        plan = Plans(self._session).get(page)
        return Expansion(
            digests.references(page, depth), self._shards(plan, parts)[: depth + 1], plan.status == "active"
        )

    def _file(self, uri: str) -> Expansion | None:
        """A file as an expansion: its name, then what it holds; None where nobody approved it."""
        session: Any = self._session
        file = Artifacts(session).get(uri.removeprefix(_FILE))
        if not opens(session, file):
            return None
        uris, texts = [f"{_FILE}{file.page}#level=reference"], [_file_line(file)]
        with suppress(UnicodeDecodeError):  # of a picture its name alone
            content = session.content(file.page).decode("utf-8")
            texts.append(unsecret(f"{_file_line(file)}\n{content}"))
            uris.append(f"{_FILE}{file.page}")
        return Expansion(uris, texts)

    def _parts(self, when: AsOf | None = None) -> Parts:
        """All atoms and files that are a part of some task, each with its line."""
        atoms = [atom for atom in Atoms(self._session).all(when or Head()) if atom.task is not None]
        files = [file for file in Artifacts(self._session).all(when or Head()) if file.task is not None]
        lines: list[tuple[AtomInfo | ArtifactInfo, str]] = []
        lines += [(atom, f"{atom.kind.capitalize()} ({atom.page}): {digests.card(atom.text or '')}") for atom in atoms]
        lines += [(file, f"File ({file.page}): {_file_line(file)}") for file in files]
        return lines

    def _shards(self, plan: AgentPlan, parts: Parts) -> list[str]:
        named = {self._named(plan, each): each for each in plan.decisions}
        lines = [f"Decided ({name}): {self._decision(plan.session, each)}" for name, each in named.items()]
        lines += [line for part, line in parts if part.task == plan.page and part.page not in named]
        return list(map(unsecret, digests.shards(content_of(plan), lines)))

    def _named(self, plan: AgentPlan, address: str) -> str:
        """A page as the session calls it: by its number where it is its own, or inherited."""
        found, ns = parse(address), self._session._ns
        number = page_position(found.page or "") if isinstance(found, Address) else None
        if number is None:
            return address
        with ns.asking():
            owner = self._session._lane().owner(number)
        return f"p{number}" if ns.key(found.session or plan.session) == owner else address

    def _decision(self, session: str, address: str) -> str:
        """The words of a decision; those of one that was erased are gone."""
        ns, found = self._session._ns, parse(address)
        key = ns.key(found.session or session) if isinstance(found, Address) else None
        page = page_position(found.page or "") if isinstance(found, Address) else None
        if key is None or page is None:
            return f"{address}, which is no longer there"
        with ns.asking():
            lane = Branch(ns.views, key).alone()
            texts = texts_of(ns.log, lane, {key: NEVER}, [page])
            return next((text for _, text in texts), f"{address}, which is no longer there")


def unsecret(text: str) -> str:
    """A text in which every secret is masked, whatever its session does with them."""
    return Mask(_SECRETS).text(text, "a digest")


_SECRETS = (
    *(SecretKind.PRIVATE, SecretKind.PRIVATE_KEY, SecretKind.JWT, SecretKind.API_KEY, SecretKind.AUTHORIZATION),
    *(SecretKind.PASSWORD, SecretKind.SECRET),
)
_FILE = "artifact://"
_TOOLS = "TOOLS tool, count(*) AS n BY tool ORDER BY n DESC LIMIT 5"


def _file_line(file: ArtifactInfo) -> str:
    sha = f", sha256 {file.sha256[:12]}" if file.sha256 else ""
    return f"{file.path or file.page}, {file.bytes:,} bytes{sha}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _budget(tokens_max: int) -> int:
    if type(tokens_max) is not int or tokens_max < 1:
        raise InputError(f"the budget is {tokens_max!r:.40}; give a number of tokens from 1 up", code="not-a-limit")
    return tokens_max
