"""How much of what is searched has vectors of the model in use: told by the doctor and by `vmstore embed`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vmstore
from tests.embedders.test_store import SAID, page
from vmstore.maintenance import vector_coverage as room
from vmstore.maintenance.vector_coverage import vector_coverage
from vmstore.shell.main import main


def embedder(name: str) -> vmstore.FunctionEmbedder:
    """An embedder of a name."""
    return vmstore.FunctionEmbedder(name, lambda texts: [[1.0, float(len(text) % 5)] for text in texts], 2)


def filled(path: Path) -> None:
    """A store whose texts are all embedded by one model."""
    with vmstore.open(path, embedder=embedder("first@1")) as store:
        for text in SAID:
            page(store, "s", text)
        store.index.embed()
        store.sessions()  # the doctor reads views as they are


def test_the_doctor_says_how_much_is_embedded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where all texts have vectors nothing is to do; a store that embeds nothing is told nothing of vectors."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        page(store, "s", SAID[0])
    assert vmstore.doctor(path).namespaces[0].vectors is None
    filled(path)
    health = vmstore.doctor(path)
    assert health.ok and health.namespaces[0].vectors is not None
    vectors = health.namespaces[0].vectors
    assert (vectors.model, vectors.dimension, vectors.embedded, vectors.texts, vectors.due) == (
        "first@1",
        2,
        5,
        5,
        None,
    )
    assert main(["doctor", str(path)]) == 0
    assert "vectors: 5 of 5 texts have a vector of first@1" in capsys.readouterr().out


def test_another_model_has_the_texts_embedded_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once another model was asked, what it has no vector of is to be embedded, with the command that does it."""
    path = tmp_path / "a.vms"
    filled(path)
    with vmstore.open(path, embedder=embedder("second@1")) as store:
        store.index.embed(limit=1)
        store.sessions()
    health = vmstore.doctor(path)
    (symptom,) = health.symptoms
    due = "3 of 4 texts have no vector of second@1; the model was first@1 before"
    assert (health.ok, symptom.kind, symptom.what) == (False, "vectors", due)
    assert symptom.remedy == f"vmstore embed {path} --url URL --model second@1"
    assert main(["embed", str(path), "--json"]) == 0
    coverage = json.loads(capsys.readouterr().out)["coverage"]
    assert (coverage["due"], coverage["others"]) == (due, {"first@1": 4})
    with vmstore.open(path, embedder=embedder("second@1")) as store:
        store.index.embed()
        store.sessions()
    assert vmstore.doctor(path).ok


@pytest.mark.parametrize(("share", "texts", "due"), [(0.5, 100, False), (0.2, 100, True), (0.5, 1, True)])
def test_few_texts_without_a_vector_are_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, share: float, texts: int, due: bool
) -> None:
    """One text of five without a vector is to be embedded from either threshold on: a share, or so many texts."""
    monkeypatch.setattr(room, "REEMBED_SHARE", share)
    monkeypatch.setattr(room, "REEMBED_TEXTS", texts)
    store = vmstore.memory_store(embedder=embedder("first@1"))
    for text in SAID:
        page(store, "s", text)
    store.index.embed()
    page(store, "s", "a fifth text")
    with store._ns.asking():
        coverage = vector_coverage(store.admin.views)
    assert coverage is not None and (coverage.embedded, coverage.texts) == (4, 5)
    assert (coverage.due is not None) == due
