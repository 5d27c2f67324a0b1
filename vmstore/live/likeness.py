"""Similarity of the pages in the prompt to the start of a turn, where the policy weighs it; logged.

A replay reads it there: the measure may change, what was weighed does not.
"""

from __future__ import annotations

from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import Turn
from vmstore.core.page import Modality
from vmstore.live.runtime import Act
from vmstore.vm.policies.recency import Recency2
from vmstore.vm.recall.topics import closeness, profile

_READ = (Modality.TEXT, Modality.STRUCTURED)


def turn(act: Act, text: str) -> Turn:
    """The next turn, which begins with a text, and the pages in the prompt that are like it, in parts per million."""
    number = act.state.turn + 1
    if not isinstance(act.state.policy, Recency2):
        return Turn(number)
    asked = profile(text)
    fit = {
        full.position: page
        for page, resident in sorted(act.state.here.items())
        if resident.modality in _READ and not resident.opaque and (full := resident.forms[0]) is not None
    }
    alike = []
    for position, content in act.forms.all(fit).items():
        if not isinstance(content, ErasedContent):
            _, similarity = closeness(asked, profile(content.decode("utf-8", "replace")))
            if similarity:
                alike.append((fit[position], similarity))
    return Turn(number, tuple(sorted(alike)))
