"""Plays random sessions on the kernel alone: no store, no words, forms of made-up sizes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.vm.slow import LoggedMutation
from vmstore.core import mutation as m
from vmstore.core.decision import Holder, Use
from vmstore.core.page import Modality, PageType, Role
from vmstore.vm.kernel.eviction import Compression
from vmstore.vm.kernel.kernel import Kernel
from vmstore.vm.kernel.settings import encoded
from vmstore.vm.kernel.state import State

Step = tuple[str, int, int, int]
BUDGET = 4_000
TYPES = (PageType.TRANSCRIPT, PageType.TRANSCRIPT, PageType.ARTIFACT, PageType.CLAIM, PageType.RAW)

SIZES = st.one_of(st.integers(1, 300), st.sampled_from([64, 65, 500, 900, 2_000, 4_000, 60_000]))
WORDS = st.sampled_from(
    "turn user model tool tool fault fault use wish pin unpin pack settings factor evict".split()  # noqa: SIM905
)
STEPS = st.lists(st.tuples(WORDS, SIZES, st.integers(0, 1_000), st.integers(0, 3)), min_size=1, max_size=60)


class Played:
    """A session that is played; `log` is all that was written, `ends` the positions after each reaction."""

    def __init__(self, **settings: Any) -> None:
        self.log: list[LoggedMutation] = []
        self.ends: list[int] = []
        self.cells: dict[int, bytes] = {}
        self.state = State(lambda position, _: self.cells[position])
        self.kernel = Kernel(self.state, self._write, self._perform)
        fields = {"l0_tokens_max": BUDGET, "policy": "lru", "reserve_faults_tokens": 400, **settings}
        self.settings(fields)
        self.say(Role.SYSTEM, 200, 0)
        self.pin(self.pages[0], Holder.SYSTEM)

    @property
    def pages(self) -> list[int]:
        """Every page there is."""
        return list(self.state.pages)

    def _write(self, mutation: m.AnyMutation) -> int:
        self.log.append((len(self.log) + 1, mutation))
        return len(self.log)

    def _perform(self, request: Compression) -> m.Compress:
        page = self.state.pages[request.page]
        full = page.forms[0]
        assert full is not None
        # Some compressors skip a level, some forms are hardly shorter than the page.
        level = min(3, request.level + (request.page % 3 == 0))
        tokens = max(1, full.tokens // (1, 4, 8, 50)[level]) if request.page % 5 else full.tokens - 1
        return m.Compress(request.page, page.version, level, 1, 1, 0, 10, tokens)

    def react(self) -> None:
        """Lets the kernel decide."""
        self.kernel.react()
        self.ends.append(len(self.log))

    def settings(self, fields: dict[str, Any]) -> None:
        """Settings are told."""
        self.cells[len(self.log) + 1] = encoded(fields)
        self.kernel.tell(m.Settings(0))
        self.react()

    def say(self, role: Role, tokens: int, kind: int) -> None:
        """A message of one page, or of two."""
        message = self.kernel.tell(m.Message(role, 1, 0, int(role is Role.USER)))
        for part in range(1 + (kind == 3)):
            type_ = TYPES[tokens % len(TYPES)] if role is Role.TOOL else PageType.TRANSCRIPT
            modality = Modality.STRUCTURED if role is Role.ASSISTANT and part else Modality.TEXT
            self.kernel.tell(m.Create(type_, modality, role, message, 0, 0, tokens * 4, tokens))
        self.react()

    def pin(self, page: int, holder: Holder = Holder.HAND) -> None:
        """A page that is here is pinned, where that can fit."""
        actual_page = self.state.pages[page]
        if (
            page in self.state.here
            and not actual_page.holders
            and self.state.pinned + actual_page.tokens <= self.state.room // 2
        ):
            self.kernel.tell(m.Pin(page, holder))
            self.react()

    def play(self, step: Step) -> None:
        """Does one thing and lets the kernel react."""
        word, size, which, kind = step
        page = self.pages[which % len(self.pages)]
        match word:
            case "turn":
                self.kernel.tell(m.Turn(self.state.turn + 1))
                self.say(Role.USER, size, kind)
            case "user" | "model" | "tool":
                self.say({"user": Role.USER, "model": Role.ASSISTANT, "tool": Role.TOOL}[word], size, kind)
            case "fault" | "use":
                other = self.pages[size % len(self.pages)]
                use = (Use.FAULT, Use.FAULT, Use.ASKED, Use.QUOTE)[kind] if word == "fault" else Use.REUSE
                for number in (page, other) if word == "use" else (page,):
                    self.kernel.tell(m.Reference(number, use, level=size % 4, reason=which % 4))
                self.react()
            case "wish":
                for number in range(4):
                    wished = self.pages[(which + number * size) % len(self.pages)]
                    self.kernel.tell(m.Reference(wished, Use.SIGNAL, signal=1))
                self.react()
            case "pin":
                self.pin(page)
            case "unpin" if self.state.pages[page].holders == 1 << Holder.HAND:
                self.kernel.tell(m.Unpin(page, Holder.HAND))
                self.react()
            case "pack":
                entered, left = self.state.residences()
                self.kernel.tell(
                    m.Pack(
                        self.state.call + 1, 1, len(self.state.here), self.state.used, b"", tuple(entered), tuple(left)
                    )
                )
            case "settings":
                budget = BUDGET + 500 * (kind - 1)
                if self.state.pinned <= (budget - 400) * 1_000_000 // self.state.factor_ppm:
                    self.settings({"l0_tokens_max": budget, "compress": bool(which % 2)})
            case "factor":
                factor = 1_000_000 + 100_000 * kind
                if self.state.pinned <= (self.state.settings.room if self.state.settings else 0) * 1_000_000 // factor:
                    self.kernel.tell(m.Configure(1, factor))
                    self.react()
            case "evict" if page in self.state.here and not self.state.pages[page].pinned:
                self.kernel.tell(m.Evict(page, 5, self.state.pages[page].tokens))
                self.react()
