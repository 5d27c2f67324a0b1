"""Errors in a VMQL text, reported with their place in it and with the words that were meant."""

from __future__ import annotations

from collections.abc import Iterable

from vmstore.core.text.suggest import suggest
from vmstore.errors import InputError
from vmstore.vmql.syntax.nodes import NOWHERE, SourceSpan

NEAR_MIN = 0.7  # of difflib's ratio: `lmit` finds LIMIT, `banana` finds nothing
NEAR_CHARS_MAX = 40  # what is longer is no slip of the finger, and costs the square of its length
EXPECTED_MAX = 60  # words that an error lists
LINE_CHARS_MAX = 100  # of the line that is shown over the caret


class QueryError(InputError):
    """A query that cannot be answered; nothing was written.

    `code` is stable ("unknown-column"), `span` the place in `text`, `expected` the words that can
    stand there, `hint` the VMQL for what was meant, or a near word.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        text: str = "",
        span: SourceSpan = NOWHERE,
        expected: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.text = text
        self.span = span
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        """The message and the hint; a control character in them is shown as one visible sign, as `pointed` does."""
        said = self.message if self.hint is None else f"{self.message}; {self.hint}"
        return said if said.isprintable() else "".join(sign if sign == "\n" else _visible(sign) for sign in said)

    def pointed(self) -> str:
        """The line of the text that is wrong and a caret under the place; "" where there is no text.

        A control character is shown as one visible sign, so that a log or a terminal obeys none.
        """
        if not self.text:
            return ""
        start = min(self.span.start, len(self.text))
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", start)
        line = self.text[first : len(self.text) if last < 0 else last]
        number = self.text.count("\n", 0, start) + 1
        before = start - first
        if cut := max(0, before - LINE_CHARS_MAX // 2):
            line, before = "…" + line[cut + 1 :], before - cut
        if len(line) > LINE_CHARS_MAX:
            line = line[: LINE_CHARS_MAX - 1] + "…"
        width = max(1, min(self.span.end - start, len(line) - before))
        # Tabs stay tabs, so that the caret stands where the eye sees the place.
        indent = "".join("\t" if sign == "\t" else " " for sign in line[:before])
        head = f"line {number}: "
        return f"{head}{''.join(map(_visible, line))}\n{' ' * len(head)}{indent}{'^' * width}"


def _visible(sign: str) -> str:
    """A character as it is shown: Unicode's picture of a control character, a tab as it is."""
    if sign.isprintable() or sign == "\t":
        return sign
    return chr(0x2400 + ord(sign)) if sign < " " else "\ufffd"


def fault(
    message: str, code: str, span: SourceSpan = NOWHERE, hint: str | None = None, expected: tuple[str, ...] = ()
) -> QueryError:
    """What is wrong at a place of the text that is being answered."""
    return QueryError(message, code=code, span=span, hint=hint, expected=expected)


def unknown(
    message: str,
    code: str,
    span: SourceSpan,
    word: object,
    known: Iterable[str],
    otherwise: str | None = None,
    meant: str = "did you mean {}?",
) -> QueryError:
    """What to say of a word that is none of those known: the nearest of them, or something else to do."""
    names = tuple(known)
    nearest = near(word, names) if isinstance(word, str) else None
    hint = meant.format(nearest) if nearest else otherwise
    return fault(message, code, span, hint, names[:EXPECTED_MAX])


def near(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, whatever its case; None where none is near enough."""
    if not word or len(word) > NEAR_CHARS_MAX:
        return None
    folded = {each.casefold(): each for each in known}
    close = suggest(word.casefold(), folded, NEAR_MIN)
    return None if close is None else folded[close]
