"""Shorter forms of sound and film: the transcript that was handed in, its key points, one line.

Nothing here listens or looks. The caller makes keyframes and transcripts, and passes them in.
"""

from __future__ import annotations

from vmstore.core.page import Method, Modality
from vmstore.vm.compressors import text
from vmstore.vm.compressors.form import Form, Material, NoForm, NoFormReason, text_form
from vmstore.vm.compressors.reference_line import reference
from vmstore.vm.recall.text_pieces import without_controls
from vmstore.vm.recall.topics import topics

TOPICS_MAX = 5


def transcript(material: Material) -> Form | NoForm:
    """Level 1: the words spoken, as handed in, times included where they stand in it."""
    if not material.content:
        return NoForm(NoFormReason.EMPTY, "the page has no content")
    spoken = without_controls(material.transcript).strip()
    return (
        text_form(spoken, Method.TRANSCRIPT)
        if spoken
        else NoForm(NoFormReason.NOT_GIVEN, "nobody handed in a transcript")
    )


def key_points(material: Material) -> Form | NoForm:
    """Level 2: the key points of the transcript."""
    spoken = transcript(material)
    if isinstance(spoken, NoForm):
        return spoken
    return text.key_points(Material(content=spoken.content, modality=Modality.TEXT))


def line(material: Material) -> Form | NoForm:
    """Level 3: type, size, length, and the topics of the transcript."""
    if not material.content:
        return NoForm(NoFormReason.EMPTY, "the page has no content")
    return reference(material, ", ".join(topics(material.transcript, TOPICS_MAX)))
