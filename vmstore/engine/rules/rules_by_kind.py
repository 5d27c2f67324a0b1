"""Which rules a mutation is asked: those about its kind, and fewer where its fields are known to be sound."""

from __future__ import annotations

from types import NoneType

from vmstore.core.mutation import (
    CELL_FIELDS,
    Annotate,
    AnyMutation,
    Compress,
    Create,
    Erase,
    FaultDenied,
    FaultIn,
    Link,
    Message,
    Mutation,
    Open,
    Pack,
    Prefetch,
    Reply,
    Revoke,
    Turn,
    Unknown,
    Unlink,
    Update,
)
from vmstore.engine.head import GateHead
from vmstore.engine.rules.cell_contents import FORMS
from vmstore.engine.rules.field_types import COUNTS, PAGES, WORDS
from vmstore.engine.rules.rules import (
    ENDS,
    RULES,
    SHOWING,
    SIZED,
    WEIGHED,
    MutationPlace,
    Rule,
    annotation_says_something,
    call_is_next,
    cells_are_formed,
    cells_exist,
    content_is_its_own,
    contents_are_as_stated,
    erased_cells_are_its_own,
    fields_are_typed,
    holes_are_fitted,
    importance_is_a_share,
    kind_is_known,
    level_is_reduced,
    link_kind_is_listed,
    links_lead_elsewhere,
    membership_changes,
    message_exists,
    messages_are_whole,
    name_is_free,
    nothing_follows_an_end,
    numbers_fit,
    open_comes_first,
    page_exists,
    ranks_are_distinct,
    reference_came_before,
    reply_answers_last_call,
    results_keep_their_call,
    sizes_count_up,
    totals_match,
    turn_is_next,
    turn_opens_its_commit,
    version_is_next,
    words_are_listed,
)
from vmstore.engine.system_session import OF_CHARTER, charter_stands_apart
from vmstore.errors import InputError

ABOUT: dict[Rule, tuple[type, ...]] = {
    kind_is_known: (Unknown,),
    name_is_free: (Open,),
    turn_is_next: (Turn,),
    turn_opens_its_commit: (Turn,),
    words_are_listed: tuple(WORDS),
    cells_exist: tuple(CELL_FIELDS),
    erased_cells_are_its_own: (Erase,),
    message_exists: (Create, Pack),
    page_exists: tuple(PAGES),
    version_is_next: (Update, Compress),
    level_is_reduced: (Compress,),
    link_kind_is_listed: (Link, Unlink, Create),
    links_lead_elsewhere: (Link, Unlink),
    results_keep_their_call: (Unlink,),
    sizes_count_up: tuple(COUNTS),
    importance_is_a_share: WEIGHED,
    annotation_says_something: (Annotate,),
    call_is_next: (Pack,),
    reply_answers_last_call: (Reply, Message),
    membership_changes: (Pack,),
    content_is_its_own: SHOWING,
    reference_came_before: (FaultIn, FaultDenied, Prefetch, Revoke),
    ranks_are_distinct: (Pack,),
    totals_match: (Pack,),
    cells_are_formed: tuple(FORMS),
    contents_are_as_stated: SIZED,
    holes_are_fitted: (*SIZED, Pack),
    messages_are_whole: (Pack,),
}
"""The kinds a rule can refuse; one that is not listed is asked of every kind."""

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

assert {*RULES} >= ABOUT.keys() | OF_FIELDS | OF_CONTENTS, "what is said of a rule is said of one that is asked"
assert OF_FIELDS.isdisjoint(OF_CONTENTS), "sound fields say nothing of what cells hold"
assert len({rule.__name__ for rule in RULES}) == len(RULES), "an error tells a rule by its name"

_ASKED: dict[tuple[type, type, bool, bool, bool], tuple[Rule, ...]] = {}


def rules_of(kind: type, before: type, sound: bool, charter: bool, looks: bool) -> tuple[Rule, ...]:
    """The rules that can refuse a kind of mutation after another, in order; fewer where its fields are sound,
    and where nobody `looks` at contents.
    """
    if not issubclass(kind, Mutation | Unknown):
        raise InputError(f"a {kind.__name__} is no mutation; see specs/mutations.md for the kinds there are")

    def asked(rule: Rule) -> bool:
        if rule is open_comes_first:
            return kind is Open or before is NoneType
        if rule is nothing_follows_an_end:
            return issubclass(before, ENDS)
        if rule is charter_stands_apart:
            return charter or kind in OF_CHARTER
        if rule in OF_CONTENTS and not looks:
            return False
        return kind in ABOUT.get(rule, (kind,)) and not (sound and rule in OF_FIELDS)

    rules = _ASKED[kind, before, sound, charter, looks] = tuple(filter(asked, RULES))
    return rules


def broken(head: GateHead, mutation: AnyMutation, place: MutationPlace, *, sound: bool) -> tuple[str, str] | None:
    """The first rule a mutation breaks, by name, and why; None when all hold. `sound` says its fields are."""
    key = type(mutation), type(place.before), sound, head.charter, place.contents is not None
    for rule in _ASKED.get(key) or rules_of(*key):
        reason = rule(head, mutation, place)
        if reason is not None:
            return rule.__name__, reason
    return None
