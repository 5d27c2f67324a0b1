"""The errors as a caller sees them: a class to catch, a code to compare, a text to read."""

from __future__ import annotations

import pickle

import pytest

import vmstore
from vmstore import errors
from vmstore.core.decision import Cause
from vmstore.core.mutation import Evict
from vmstore.debug.http_errors import refused as refusal

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.VmstoreError)]


def test_every_class_has_a_code_of_its_own() -> None:
    """No two classes of errors share a code, and each states one itself."""
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)
    assert all("code" in vars(kind) for kind in CLASSES)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_code_that_is_given_stays_with_the_error(kind: type[errors.VmstoreError]) -> None:
    """An error keeps its text and its code on the way to another process."""
    error = pickle.loads(pickle.dumps(kind("it is so; do that", code="a_rule")))
    assert (type(error), str(error), error.code) == (kind, "it is so; do that", "a_rule")
    assert kind("it is so").code == kind.code


def test_the_gate_names_its_rule_as_the_code() -> None:
    """What a rule of the gate refuses has the rule's name as its code, in Python and in the debugger's answer."""
    store = vmstore.memory_store()
    session = store.session("trip", create=True)
    with pytest.raises(vmstore.RefusedError) as caught, session.batch() as batch:
        batch.add(Evict(7, Cause.ASKED, 1))
    assert f"(rule {caught.value.code})" in str(caught.value)
    assert refusal(caught.value)[1]["error"]["code"] == caught.value.code


def test_a_query_has_the_code_of_its_fault() -> None:
    """A query that names no column of its relation says so by code."""
    store = vmstore.memory_store()
    store.record("trip", {"model": "m-1", "messages": [{"role": "user", "content": "Hello."}]}, None)
    with pytest.raises(vmstore.QueryError) as caught:
        store.query("PAGES tokns IN SESSION trip")
    assert caught.value.code == "unknown-column"
