"""The rules that apply to each kind, and the shorter list for mutations whose field types were checked already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args

from vmstore.core.mutation import AnyMutation, Known, Mutation, Open, Unknown
from vmstore.engine.head import FOLDS, GateHead
from vmstore.engine.rules.field_types import sound_writers
from vmstore.engine.rules.rules import (
    ENDS,
    RULES,
    Check,
    MutationPlace,
    Rule,
    cells_are_formed,
    charter_stands_apart,
    contents_are_as_stated,
    fields_are_typed,
    holes_are_fitted,
    importance_is_a_share,
    level_is_reduced,
    link_kind_is_listed,
    messages_are_whole,
    nothing_follows_an_end,
    numbers_fit,
    open_comes_first,
    sizes_count_up,
    words_are_listed,
)
from vmstore.engine.system_session import OF_CHARTER
from vmstore.errors import InputError

OF_FIELDS: frozenset[Rule] = frozenset(
    (
        fields_are_typed,
        numbers_fit,
        words_are_listed,
        level_is_reduced,
        link_kind_is_listed,
        sizes_count_up,
        importance_is_a_share,
    )
)
"""The rules about fields alone, which hold wherever the fields are sound (see `vmstore.engine.rules.field_types`)."""

OF_CONTENTS: frozenset[Rule] = frozenset(
    (cells_are_formed, contents_are_as_stated, holes_are_fitted, messages_are_whole)
)
"""The rules that look at what cells hold."""

assert {*RULES} >= OF_FIELDS | OF_CONTENTS, "every rule that is classed is in the list"
assert OF_FIELDS.isdisjoint(OF_CONTENTS), "sound fields say nothing of what cells hold"
assert len({rule.__name__ for rule in RULES}) == len(RULES), "an error tells a rule by its name"

Asked = tuple[tuple[str, Check], ...]
"""What a mutation is asked in order: the names of rules, each with its check of the kind."""


@cache
def asked(kind: type, before: type, sound: bool, charter: bool, looks: bool) -> Asked:
    """The rules that can refuse a kind of mutation after another, in order; fewer where its fields are sound,
    and where nobody `looks` at contents.
    """
    if not issubclass(kind, Mutation | Unknown):
        raise InputError(
            f"a {kind.__name__} is no mutation; see specs/mutations.md for the kinds there are", code="not-a-mutation"
        )

    def can_refuse(rule: Rule) -> bool:
        """Whether a rule can say no where the mutation stands."""
        if rule is open_comes_first:
            return kind is Open or before is NoneType
        if rule is nothing_follows_an_end:
            return issubclass(before, ENDS)
        if rule is charter_stands_apart:
            return charter or kind in OF_CHARTER
        return (looks or rule not in OF_CONTENTS) and not (sound and rule in OF_FIELDS)

    refusing = ((rule.__name__, rule.of(kind)) for rule in RULES if can_refuse(rule))
    return tuple((name, check) for name, check in refusing if check is not None)


def broken(head: GateHead, mutation: AnyMutation, place: MutationPlace, *, sound: bool) -> tuple[str, str] | None:
    """The first rule a mutation breaks, by name, and why; None when all hold. `sound` says its fields are."""
    kind: Any = type(mutation)
    before: Any = type(place.before)
    for name, check in asked(kind, before, sound, head.charter, place.contents is not None):
        reason = check(head, mutation, place)
        if reason is not None:
            return name, reason
    return None


class KindPlan(NamedTuple):
    """The handling of one kind: its encoder when its fields are sound, its rules, and its effect on the head."""

    sound: Callable[[Any], bytes | None]
    checks: tuple[Check, ...]
    fold: Callable[[GateHead, Any], None] | None
    ends: bool  # its commit, so that nothing follows


class PlansByKind(dict[type, KindPlan | None]):
    """The plans of an open session: for the first mutation of a commit, and for those after one that does not end it.

    None of what opens one or is unknown, of which every rule is asked. A plan is made when it is first wanted.
    """

    def __init__(self, charter: bool, looks: bool) -> None:
        self._charter, self._looks = charter, looks

    def __missing__(self, kind: type) -> KindPlan | None:
        """The plan of a kind that was not wanted yet."""
        plan = None
        if kind is not Open and kind in get_args(Known):
            checks = tuple(check for _, check in asked(kind, Mutation, True, self._charter, self._looks))
            plan = KindPlan(sound_writers[kind], checks, FOLDS.get(kind), issubclass(kind, ENDS))
        self[kind] = plan
        return plan


plans_within = cache(PlansByKind)
"""The plans of the namespace's own session or another, with contents looked at or not."""
NO_PLANS: Mapping[type, KindPlan | None] = defaultdict(NoneType)
"""Of no kind: every rule that can refuse a mutation is asked."""
