"""The closed vocabularies of a page: what it is, where it is, how much of it is shown.

Numbers are the wire form and never change; names are what people read and write.
"""

from __future__ import annotations

from enum import IntEnum


class WordEnum(IntEnum):
    """An enumeration whose members print as lower-case words."""

    @property
    def word(self) -> str:
        """The member's name as people write it."""
        return self.name.lower()

    @classmethod
    def of(cls, word: str, default: WordEnum | None = None) -> WordEnum | None:
        """The member called `word`, or `default`."""
        return cls.__members__.get(word.upper(), default)


class PageType(WordEnum):
    """The purpose of a page, by which policies decide how long to keep it."""

    TRANSCRIPT = 0
    SUMMARY = 1
    ARTIFACT = 2
    CLAIM = 3
    PROCEDURE = 4
    INDEX = 5
    RAW = 6  # a source line nobody could read, kept as it stood
    VALUE = 7  # what a program keeps beside the conversation; never in a prompt


class Modality(WordEnum):
    """The kind of content of a page."""

    TEXT = 0
    IMAGE = 1
    AUDIO = 2
    VIDEO = 3
    STRUCTURED = 4


class Tier(WordEnum):
    """The tier of a page: L0 the prompt, L1 cache, L2 event store, L3 artifacts, L4 archive."""

    L0 = 0
    L1 = 1
    L2 = 2
    L3 = 3
    L4 = 4


class Level(WordEnum):
    """How much of a page is shown."""

    FULL = 0
    REDUCED = 1
    ABSTRACT = 2
    REFERENCE = 3


class Role(WordEnum):
    """The author's role; the envelope of an OTHER message has the provider's own word."""

    SYSTEM = 0
    USER = 1
    ASSISTANT = 2
    TOOL = 3
    DEVELOPER = 4
    OTHER = 5


class Slot(WordEnum):
    """The part of a request that holds a message; slots are in the order of the prompt."""

    TOOLS = 0
    SYSTEM = 1
    MESSAGES = 2


class LinkKind(WordEnum):
    """The closed list of how one page relates to another."""

    DERIVES = 0
    REPRESENTS = 1
    HAS_CAPTION = 2
    REFERENCES = 3
    SUPERSEDES = 4
    CONTRADICTS = 5
    CAUSED_BY = 6
    PART_OF = 7
    SAME_AS = 8
    RELATED_TO = 9


class Origin(WordEnum):
    """The origin of a session."""

    NEW = 0
    FORK = 1
    SPAWN = 2
    CONTINUE = 3


class Fidelity(WordEnum):
    """Whether a call's request was in the source, equal in every field, or rebuilt by a rule."""

    RECORDED = 0
    DERIVED = 1


class Status(WordEnum):
    """The status of a call; OPEN until its reply is known, GAP when we could not record it."""

    OPEN = 0
    OK = 1
    ABORTED = 2
    FAILED = 3
    GAP = 4


class Standing(WordEnum):
    """The status of what a page says: of a plan whether it is under way, of a fact whether it still holds."""

    ACTIVE = 0
    PLANNED = 1
    COMPLETED = 2
    ABANDONED = 3
    RECURRING = 4
    SUPERSEDED = 5  # it was retracted: no kernel brings it back by itself


class Method(WordEnum):
    """The method that made a shorter form: as far as a source shows, or by which compressor.

    A number is one version of one method: a method that changes gets a number and a name of its own.
    """

    CLIPPED = 0  # beginning and end kept, the middle cut
    SHORTENED = 1  # other, shorter words
    REPLACED = 2  # a short note in its place
    SENTENCES = 3  # its most central sentences, word for word, in order
    KEY_POINTS = 4  # the few most central ones, as a list
    TOPICS = 5  # what it is about, in one line
    SAMPLES = 6  # the shape of structured data, with values from it
    SCHEMA = 7  # the shape of structured data alone
    REFERENCE = 8  # what kind of thing it is and how large, in one line
    THUMBNAIL = 9  # a small image
    CAPTION = 10  # words about it that were handed in
    TRANSCRIPT = 11  # the words spoken in it, handed in
    WRITTEN = 12  # what a callback wrote
    LINES = 13  # whole lines of a program, or of what a program printed


METHODS: dict[Method, str] = {
    Method.CLIPPED: "clipped@1",
    Method.SHORTENED: "shortened@1",
    Method.REPLACED: "replaced@1",
    Method.SENTENCES: "sentences@1",
    Method.KEY_POINTS: "key_points@1",
    Method.TOPICS: "topics@1",
    Method.SAMPLES: "samples@1",
    Method.SCHEMA: "schema@1",
    Method.REFERENCE: "reference@1",
    Method.THUMBNAIL: "thumbnail@1",
    Method.CAPTION: "caption@1",
    Method.TRANSCRIPT: "transcript@1",
    Method.WRITTEN: "written@1",
    Method.LINES: "lines@1",
}
"""Each method as people name it, with its version."""

assert METHODS.keys() == {*Method}, "whatever the log names is shown by name"
assert len(set(METHODS.values())) == len(METHODS), "a name and version is of one method"


IMPORTANCE = 500_000
"""The importance, in parts per million, of a page that nobody weighed."""


class Mime(WordEnum):
    """Content types that need no cell of their own; OTHER has its name beside the content."""

    TEXT = 0
    JSON = 1
    PNG = 2
    JPEG = 3
    GIF = 4
    WEBP = 5
    PDF = 6
    WAV = 7
    MP3 = 8
    OTHER = 9

    @property
    def type(self) -> str:
        """The content type as HTTP writes it."""
        return MIME_TYPES[self]


MIME_TYPES = {
    Mime.TEXT: "text/plain",
    Mime.JSON: "application/json",
    Mime.PNG: "image/png",
    Mime.JPEG: "image/jpeg",
    Mime.GIF: "image/gif",
    Mime.WEBP: "image/webp",
    Mime.PDF: "application/pdf",
    Mime.WAV: "audio/wav",
    Mime.MP3: "audio/mpeg",
    Mime.OTHER: "application/octet-stream",
}
MIMES = {name: mime for mime, name in MIME_TYPES.items()}
assert MIME_TYPES.keys() == {*Mime}, "every number has a content type"
assert len(MIMES) == len(MIME_TYPES), "a content type leads back to its number"
