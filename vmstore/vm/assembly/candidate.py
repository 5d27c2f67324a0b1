"""Candidates for an assembled prompt: the part of each, its forms, its relevance and purpose."""

from __future__ import annotations

import msgspec

from vmstore.core.decision import PromptPart


class CandidateForm(msgspec.Struct, frozen=True):
    """One way to show a candidate: how much of it, in how many tokens, in which words or which messages."""

    level: int
    tokens: int
    content: object = ""


class PromptCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate: the form it is shown in, and shorter ones in `others`.

    `score` orders candidates of a part, the greater first; `turn` is the turn it was said in, `turns` how many
    turns a topic has. `pages` are those it shows, `subject` names what two candidates say alike, `at_us` is when it
    was said, `session` where. `tags` are matched against rules and against those of the message. `first` marks what
    begins a turn. A chain of messages, a tool's call with its results, is one candidate, so that none is cut.
    """

    name: str
    part: PromptPart
    form: CandidateForm
    others: tuple[CandidateForm, ...] = ()
    score: float = 0.0
    priority: int = 0
    turn: int = 0
    order: int = 0
    pages: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    subject: str = ""
    session: str = ""
    at_us: int = 0
    first: bool = False

    @property
    def tokens(self) -> int:
        """The tokens of the form shown."""
        return self.form.tokens

    @property
    def level(self) -> int:
        """How much of it is shown; 0 is all."""
        return self.form.level

    def lower(self) -> PromptCandidate | None:
        """The same in its next form that takes fewer tokens; None where there is none."""
        for place, form in enumerate(self.others):
            if form.tokens < self.form.tokens:
                return msgspec.structs.replace(self, form=form, others=self.others[place + 1 :])
        return None
