"""Where a fact is held: a subject, an attribute, and whether it has one value of it at a time."""

from __future__ import annotations

import re

_ONE = """
name nickname age birthday birthplace hometown home country job employer role workplace school diagnosis
relationship_status spouse height weight income budget language timezone phone email address pronouns
database framework editor operating_system license deadline version port timeout indentation test_framework
deployment hosting branch package_manager color_scheme wake_time bedtime commute
email_address phone_number user_id zip_code time_zone first_language
"""
ONE = frozenset(_ONE.split())
"""Attributes of which a subject has one value at a time; of every other it may have many."""
_NO_NAME = re.compile(r"[^\w]+")


def attribute_name(text: str) -> str:
    """An attribute as addresses have it: `Test framework` is `test_framework`."""
    return _NO_NAME.sub("_", text.strip().casefold()).strip("_")


def has_one(attribute: str | None) -> bool:
    """Whether a subject has one value of an attribute at a time; of an attribute nobody listed it may have many."""
    return attribute in ONE
