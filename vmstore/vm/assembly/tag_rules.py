"""Rules by tag: which topics come first in a prompt, how long they count, and what is said where they come up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from vmstore.errors import InputError

DAY_US = 86_400_000_000
PRIORITY = 5


class TagRule(msgspec.Struct, frozen=True):
    """A rule for tags that match `match`: higher priority first, nothing older than `ttl_days`, and a text."""

    match: str
    priority: int = PRIORITY
    ttl_days: int | None = None
    text: str = ""


TAG_RULES = (
    TagRule("architecture*", 10),
    TagRule("debug*", 7, 7),
    TagRule("*", PRIORITY, 30),
)
"""The rules that hold where none are given."""


def rule_of(tag: str, rules: Sequence[TagRule]) -> TagRule | None:
    """The first rule that a tag fits."""
    return next((rule for rule in rules if fnmatchcase(tag.lower(), rule.match.lower())), None)


def priority_of(tags: Iterable[str], rules: Sequence[TagRule]) -> int:
    """The highest priority of some tags; the plain one where there is no tag."""
    found = [rule.priority for tag in tags if (rule := rule_of(tag, rules)) is not None]
    return max(found, default=PRIORITY)


def is_over(tags: Sequence[str], at_us: int, now_us: int, rules: Sequence[TagRule]) -> bool:
    """Whether what was said at a time of some tags counts no more: the time of each tag is over."""
    fitting = [rule_of(tag, rules) for tag in tags]
    days = [None if rule is None else rule.ttl_days for rule in fitting]
    return bool(days) and all(one is not None and now_us - at_us > one * DAY_US for one in days)


def texts_of(tags: Iterable[str], rules: Sequence[TagRule]) -> list[str]:
    """The texts of rules that match tags, highest priority first, each once."""
    listed = sorted(set(tags))
    fitting = [rule for rule in rules if rule.text and any(rule_of(tag, rules) is rule for tag in listed)]
    return list(dict.fromkeys(rule.text for rule in sorted(fitting, key=lambda rule: -rule.priority)))


def checked(rules: Iterable[TagRule]) -> tuple[TagRule, ...]:
    """Rules as they can be used; InputError names one that cannot."""
    listed = tuple(rules)
    for rule in listed:
        if not isinstance(rule, TagRule) or not rule.match or type(rule.priority) is not int:
            raise InputError(f"{rule!r:.60} is no rule of tags; give TagRule('debug*', priority=7, ttl_days=7)")
        if rule.ttl_days is not None and (type(rule.ttl_days) is not int or rule.ttl_days < 1):
            raise InputError(
                f"ttl_days of {rule.match!r:.60} is {rule.ttl_days!r:.20}; give whole days, or None", code="not-a-limit"
            )
    return listed
