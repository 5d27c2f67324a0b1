"""Decides a recorded session again: the same stimuli to the same kernel, under settings of one's own.

The first commit is taken as it was, so that a run can be kept as a fork that begins where it ends;
the changed settings are written right after it, or with the first settings where it has none. What a
stimulus asks for that is so already, or that does not fit under a smaller budget, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from vmstore.core import mutation as m
from vmstore.core.address import page_name
from vmstore.core.decision import Holder
from vmstore.core.page import Fidelity
from vmstore.errors import InputError
from vmstore.replay.position_map import PositionMap
from vmstore.replay.sink import ReplayForm, Sink
from vmstore.replay.stimuli import RecordedForm, StimulusCommit
from vmstore.vm.kernel.eviction import Compression
from vmstore.vm.kernel.kernel import Kernel
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.settings import PPM, KernelSettings, decoded, encoded
from vmstore.vm.kernel.settings import changed as settings_with
from vmstore.vm.kernel.state import State
from vmstore.vm.kernel.window import membership
from vmstore.vm.metrics.metrics import Metrics

Shorten = Callable[[ManagedPage, int, int, int], ReplayForm]
"""Makes a form of a page nobody recorded: the page as it is held, where it was recorded, its content, and the level."""

Forms = Mapping[tuple[int, int], Mapping[int, RecordedForm]]
"""The forms that were recorded, by page and version, by level."""


class Redecision:
    """One run over a session, commit after commit.

    `changed` are settings that replace the recorded ones; `exact` runs tell every recorded mutation,
    the first commit's included, so that positions stay as long as decisions do. `fallbacks` counts the forms nobody
    had recorded, `refused` the pins that did not fit.
    """

    def __init__(
        self,
        paper: Sink,
        forms: Forms,
        shorten: Shorten,
        changed: Mapping[str, Any] | None = None,
        *,
        exact: bool = False,
        price: int | None = None,
    ) -> None:
        self.state = State(self._read)
        self.metrics = Metrics(lambda *_: self._topic, price)
        self._topic = b""  # of the page that is being written
        self.places = PositionMap()
        self.fallbacks = self.refused = 0
        self._paper = paper
        self._forms = forms
        self._shorten = shorten
        self._changed = dict(changed or {})
        if unknown := {
            name: value for name, value in self._changed.items() if name not in KernelSettings.__struct_fields__
        }:
            settings_with(KernelSettings(), unknown)  # says which there are
        if "policy" in self._changed:
            self._changed.setdefault("parameters", {})  # a policy's parameters are not another's
        self._exact = exact
        self._kernel = self._fresh()
        self._settings = b""  # the settings that are being written
        self._budget = 0  # that they were recorded with
        self._answers: list[RecordedForm] = []  # recorded with the commit under way
        self._begun = False

    def take(self, found: StimulusCommit) -> None:
        """Takes the next commit of the session."""
        self.metrics.overhead = None  # what would have been was never written
        if self._begun or self._exact:
            self._again(found)
        else:
            self.adopt(found)
            self._change(found.at)
        self._begun = True

    def adopt(self, found: StimulusCommit) -> None:
        """Takes a commit as it was recorded, decisions included."""
        self.metrics.begin(found.at)
        for position, mutation in found.mutations:
            self.places.put(position, position)
            self._settings = found.settings.get(position, b"")
            self._budget = _budget(self._settings) or self._budget
            self._topic = found.topics.get(position, b"")
            self.state.apply(position, mutation)
            self._note(position, mutation)
        self._paper.stand(found.last)

    def _change(self, at: int) -> None:
        """Writes the changed settings, where the first commit held settings already."""
        if self.state.settings is None or not self._changed:
            return
        self._kernel = self._fresh()
        self._settings = encoded(self._replaced({}))
        self._kernel.tell(m.Settings(self._paper.settings(self._settings)))
        self._react()
        self._paper.end(at)

    def _again(self, found: StimulusCommit) -> None:
        self.metrics.begin(found.at)
        self._kernel, self._answers = self._fresh(), found.answers
        for run in found.runs:
            for position, mutation in run:
                self._tell(position, mutation, found)
            if not found.past_the_kernel:
                self._react()
        if found.end is not None:
            position, end = found.end
            ending = self._paper.sealed(position, self.places.moved(end), self.places.own)
            if isinstance(ending, m.Pack):
                ending = self._packed(ending)
            self.places.put(position, self._kernel.tell(ending))
        self._paper.end(found.at)

    def _fresh(self) -> Kernel:
        """The kernel of one commit."""
        return Kernel(self.state, self._paper.write, self._perform, self._note)

    def _react(self) -> None:
        self._kernel.react()
        state = self.state
        if state.settings is not None and state.used > state.budget and not self._exact:
            pinned = [page_name(resident.page) for resident in state.here.values() if resident.pinned]
            beside = f", beside {_corrected(state, state.beside):,} of rules, labels and tools" if state.beside else ""
            raise InputError(
                f"a budget of {state.settings.l0_tokens_max:,} tokens cannot hold {', '.join(pinned[:3])}"
                f"{' and more' if len(pinned) > 3 else ''}, {_corrected(state, state.pinned):,} tokens that are pinned"
                f"{beside}; give a larger one",
                code="pins-over-budget",
            )

    def _packed(self, pack: m.Pack) -> m.Pack:
        """A pack of what the call is sent here."""
        now = membership(self.state)
        packed = msgspec.structs.replace(
            pack, leaves=now.leaves, tokens=now.tokens, entered=tuple(now.entered), left=tuple(now.left)
        )
        if not self._exact:  # nobody sent it
            packed = msgspec.structs.replace(packed, fidelity=Fidelity.DERIVED, sent=None, sent_tokens=0, voided=None)
        return self._paper.packed(packed)

    # ---- stimuli

    def _tell(self, position: int, mutation: m.AnyMutation, found: StimulusCommit) -> None:
        if not self._exact and (isinstance(mutation, m.Open | m.Unknown | m.Erase) or self._moot(mutation)):
            return
        moved: m.AnyMutation | None = self._paper.sealed(position, self.places.moved(mutation), self.places.own)
        if isinstance(moved, m.Evict):
            moved = self._asked(moved)
        elif isinstance(moved, m.Settings):
            self._settings = found.settings[position]
            self._budget = _budget(self._settings) or self._budget
            if not self._exact:
                self._settings = encoded(self._replaced(msgspec.json.decode(self._settings)))
                moved = m.Settings(self._paper.settings(self._settings))
        elif isinstance(moved, m.Configure) and not self._exact:
            moved = msgspec.structs.replace(moved, beside=self._beside(moved.beside))
        if moved is not None:
            self._topic = found.topics.get(position, b"")
            self.places.put(position, self._kernel.tell(moved))

    def _beside(self, tokens: int) -> int:
        """An estimate of the tokens beside the pages of a smaller prompt: labels and JSON shrink with it."""
        settings = self.state.settings
        most = self._budget if settings is None else min(settings.l0_tokens_max, self._budget)
        return tokens * most // self._budget if self._budget else tokens

    def _moot(self, mutation: m.AnyMutation) -> bool:
        """Whether a stimulus has nothing to say here: a form that is there, or a pin there is no room for."""
        if isinstance(mutation, m.Compress):
            return self.state.pages[self.places.own(mutation.page)].forms[mutation.level] is not None
        if isinstance(mutation, m.Pin) and mutation.holder == Holder.HAND:
            resident = self.state.here.get(self.places.own(mutation.page))
            if resident is None or (not resident.pinned and self.state.pinned + resident.tokens > self.state.room):
                self.refused += 1
                return True
        return False

    def _asked(self, evict: m.Evict) -> m.Evict | None:
        """An eviction somebody asked for, as far as it is one here."""
        resident = self.state.here.get(evict.page)
        if resident is None or (evict.level is not None and resident.level >= evict.level and not self._exact):
            return None
        if evict.level is not None and resident.forms[evict.level] is None:
            self._kernel.tell(self._perform(Compression(evict.page, evict.level)))
        if self._exact:
            return evict
        if evict.level is None:
            return msgspec.structs.replace(evict, tokens=resident.tokens)
        level = resident.made(evict.level)
        form = None if level is None else resident.forms[level]
        if form is None:
            return None
        return msgspec.structs.replace(evict, level=level, content=form.position, tokens=resident.tokens - form.tokens)

    def _replaced(self, values: dict[str, Any]) -> dict[str, Any]:
        """Recorded settings with what is changed; InputError where no session could have it."""
        kept = {name: value for name, value in values.items() if name not in self._changed}
        if self._begun and self.state.settings is not None:
            return kept
        settings_with(decoded(self.state.settings, encoded(kept)), self._changed)
        return kept | self._changed

    def _read(self, position: int, ref: m.CellRef) -> bytes:
        return self._settings

    def _note(self, position: int, mutation: m.AnyMutation) -> None:
        self.metrics.note(self.state, position, mutation)

    # ---- forms

    def _perform(self, request: Compression) -> m.Compress:
        """A form of a page: the one recorded here, or at another place, or one of the run's own."""
        managed = self.state.pages[request.page]
        page = self.places.recorded(request.page)
        for nth, answer in enumerate(self._answers):
            made = answer.made
            if made.page == page and made.version == managed.version and made.level >= request.level:
                del self._answers[nth]
                return self._copied(managed, answer)
        recorded = self._forms.get((page, managed.version), {}).get(request.level)
        if recorded is not None:
            return self._copied(managed, recorded)
        self.fallbacks += 1
        full = managed.forms[0]
        assert full is not None, "a page has its full content"
        own = self._shorten(managed, page, self.places.recorded(full.position), request.level)
        content = self._paper.made(own)
        return m.Compress(
            managed.page, managed.version, own.level, own.method, own.lossy, content, len(own.content), own.tokens
        )

    def _copied(self, page: ManagedPage, form: RecordedForm) -> m.Compress:
        return msgspec.structs.replace(form.made, page=page.page, content=self._paper.copied(form))


def _budget(settings: bytes) -> int:
    """The budget that settings state; 0 where they state none."""
    return int(msgspec.json.decode(settings).get("l0_tokens_max") or 0) if settings else 0


def _corrected(state: State, tokens: int) -> int:
    """Estimated tokens as the provider counts them."""
    return -(-tokens * state.factor_ppm // PPM)
