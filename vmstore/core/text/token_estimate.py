"""The token estimator: cheap, offline, the same everywhere.

`chars4@1` counts a quarter of the characters of text, rounded up. It counted 130,519 tokens
where a provider counted 174,738, so every session also logs a factor corrected by what
providers report (law 6). `area750@1` counts an image as a provider does that charges by its area.
What a page was estimated at stands in the log, so a later estimator moves nothing.
"""

from __future__ import annotations

from vmstore.core.page import Modality
from vmstore.core.text.image_size import size_of

FACTOR_STEP_PPM = 20_000  # 2 %
ESTIMATORS = {1: "chars4@1", 2: "chars4@1+area750@1"}
"""What the number of an estimator in the log stands for; the first counted every image as 1,000 tokens."""
ESTIMATOR = 2
CHARACTERS_PER_TOKEN = 4
TOKENS_IMAGE = 1_000  # of one whose size is not known: it lies elsewhere, or is of a kind not read here
AREA_PER_TOKEN = 750  # pixels
SIDE_MAX = 1_568  # what is larger is made smaller by providers before it is read
TOKENS_IMAGE_MAX = 1_600
assert max(ESTIMATORS) == ESTIMATOR, "what is estimated now is logged under the number of the newest"
BYTES_PER_AUDIO_TOKEN = 1_600  # 16 kHz 16-bit mono at 20 tokens a second


def estimate(content: bytes, modality: Modality) -> int:
    """Estimated tokens of one page's content."""
    if modality in (Modality.TEXT, Modality.STRUCTURED):
        return -(-_characters(content) // CHARACTERS_PER_TOKEN)
    if modality is Modality.IMAGE:
        size = size_of(content)
        return TOKENS_IMAGE if size is None else area(*size)
    return -(-len(content) // BYTES_PER_AUDIO_TOKEN)


def _characters(content: bytes) -> int:
    """How many characters a text has: a lone surrogate is one, as JSON may hold it, and so is each byte of no text."""
    if content.isascii():
        return len(content)
    try:
        return len(content.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return len(content.decode("utf-8", "replace"))


def area(width: int, height: int) -> int:
    """Estimated tokens of an image of so many pixels: a token for 750 of them, 1,600 at most."""
    longer = max(width, height, SIDE_MAX)
    pixels = width * height * SIDE_MAX * SIDE_MAX // (longer * longer)
    return min(max(1, -(-pixels // AREA_PER_TOKEN)), TOKENS_IMAGE_MAX)


def factor_moved(factor_ppm: int, logged_ppm: int) -> bool:
    """Whether the factor that corrects the estimate moved far enough to be logged again."""
    return abs(factor_ppm - logged_ppm) > FACTOR_STEP_PPM
