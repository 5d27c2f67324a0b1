"""The compressor of each level and modality, and the one function through which forms are made.

A page is compressed from its level 0 always, never from another form, so what a level is does not
depend on which others were made before.
"""

from __future__ import annotations

from collections.abc import Sequence

from vmstore.core.page import Level, Method, Modality, PageType
from vmstore.errors import InputError
from vmstore.vm.compressors import data, image, media, text
from vmstore.vm.compressors.form import NO_SHORTER, Compressor, Form, Material, NoForm, NoFormReason
from vmstore.vm.compressors.page_types import COMPRESSION

COMPRESSORS: dict[tuple[Modality, Level], Compressor] = {
    (Modality.TEXT, Level.REDUCED): Compressor(Method.SENTENCES, text.summary),
    (Modality.TEXT, Level.ABSTRACT): Compressor(Method.KEY_POINTS, text.key_points),
    (Modality.TEXT, Level.REFERENCE): Compressor(Method.TOPICS, text.tags),
    (Modality.STRUCTURED, Level.REDUCED): Compressor(Method.SAMPLES, data.samples),
    (Modality.STRUCTURED, Level.ABSTRACT): Compressor(Method.SCHEMA, data.schema),
    (Modality.STRUCTURED, Level.REFERENCE): Compressor(Method.REFERENCE, data.reference),
    (Modality.IMAGE, Level.REDUCED): Compressor(Method.THUMBNAIL, image.thumbnail),
    (Modality.IMAGE, Level.ABSTRACT): Compressor(Method.CAPTION, image.caption),
    (Modality.IMAGE, Level.REFERENCE): Compressor(Method.REFERENCE, image.line),
    (Modality.AUDIO, Level.REDUCED): Compressor(Method.TRANSCRIPT, media.transcript),
    (Modality.AUDIO, Level.ABSTRACT): Compressor(Method.KEY_POINTS, media.key_points),
    (Modality.AUDIO, Level.REFERENCE): Compressor(Method.REFERENCE, media.line),
    (Modality.VIDEO, Level.REDUCED): Compressor(Method.TRANSCRIPT, media.transcript),
    (Modality.VIDEO, Level.ABSTRACT): Compressor(Method.KEY_POINTS, media.key_points),
    (Modality.VIDEO, Level.REFERENCE): Compressor(Method.REFERENCE, media.line),
}
"""The newest compressor of each level above 0. What the forms are held to is in `compressed`."""


def compressor(modality: Modality, level: int) -> Compressor:
    """The compressor of a level; InputError for a level that is none or is the full content."""
    if level not in (Level.REDUCED, Level.ABSTRACT, Level.REFERENCE):
        raise InputError(
            f"no compressor makes level {level}; ask for 1 reduced, 2 abstract or 3 reference", code="no-level"
        )
    return COMPRESSORS[modality, Level(level)]


def compressed(
    material: Material, level: int, page_type: PageType = PageType.TRANSCRIPT, below: Sequence[Form] = ()
) -> Form | NoForm:
    """The form of a page at a level, or why there is none.

    It has fewer bytes than the page, than every form made here at a level below it (thumbnails apart),
    and than the forms `below` that the page has there by other hands, as by a callback; and no more
    estimated tokens. Structured data that is no JSON, or too much of it, is compressed as the text it is.
    """
    wanted = compressor(material.modality, level)
    rule = COMPRESSION[page_type]
    if level > rule.level_max:
        allowed = "never compressed" if rule.level_max == Level.FULL else f"shown at level {rule.level_max} at most"
        return NoForm(NoFormReason.NOT_ALLOWED, f"pages of type {page_type.word} are {allowed}")
    form = wanted.make(material)
    if isinstance(form, NoForm):
        if material.modality is Modality.STRUCTURED and form.reason in (NoFormReason.MISMATCH, NoFormReason.TOO_LARGE):
            plain = Material(content=material.content, name=material.name)
            return compressed(plain, level, page_type, below)
        return form
    return form if _shorter(form, material, level) and undercuts(form, below) else NO_SHORTER


def undercuts(form: Form, below: Sequence[Form]) -> bool:
    """Whether a form is shorter than others; an image and a text are not compared by their bytes."""
    alike = [other for other in below if (other.method is Method.THUMBNAIL) == (form.method is Method.THUMBNAIL)]
    return all(form.shorter_than(other.content, other.modality) for other in alike)


def _shorter(form: Form, material: Material, level: int) -> bool:
    """Whether a form is worth its place: shorter than the page and than each form below it."""
    if not form.shorter_than(material.content, material.modality):
        return False
    lower = [compressor(material.modality, below) for below in range(Level.REDUCED, level)]
    made = [one.make(material) for one in lower if one.method is not Method.THUMBNAIL]  # which is dear to make
    return undercuts(form, [one for one in made if isinstance(one, Form)])
