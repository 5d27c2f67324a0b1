"""Why a text is refused: the parser's own words for it, or the habit of another language that it shows."""

from __future__ import annotations

from typing import Final

from vmstore.vmql.diagnostics.habits import CLAUSES, Edit, edits, made
from vmstore.vmql.diagnostics.lookahead import Continuations, following
from vmstore.vmql.syntax.errors import QueryError, near
from vmstore.vmql.syntax.grammar_tables import load
from vmstore.vmql.syntax.lalr import ParseFailure, Token, run
from vmstore.vmql.syntax.nodes import SourceSpan, Statement
from vmstore.vmql.syntax.printer import show

MENDED_CHARS_MAX: Final = 10_000  # of a statement that is read again for what was meant
SHOWN_MAX: Final = 40  # characters of a token that an error repeats
HINT_CHARS_MAX: Final = 300
INSERTED_MAX: Final = 12  # words tried, one after another, in the place where one is missing
EXPECTED_MAX: Final = 6  # words a message names; `expected` has them all


def explained(text: str, place: int, stuck: ParseFailure) -> QueryError:
    """What is wrong with the statement that begins at a place, given where the parser stopped."""
    token = stuck.token
    if stuck.before.start < 0 and (early := _no_statement(text, place, token)):
        return early
    if habit := _habit(text, place, stuck):
        return habit
    here = following(text, place, token.start)
    message, code = _said(token, here)
    hint, span = _near(text, place, stuck, here)
    return QueryError(message, code=code, text=text, span=span, expected=here.words, hint=hint)


def second(text: str, place: int) -> QueryError:
    """What is wrong with a text that has more after the `;` of its statement, which ends at `place`."""
    span = SourceSpan(place - 1, place)
    meant = _parsed(text[: place - 1] + " " + text[place:])
    if meant is not None and _parsed(text[place:]) is None:
        message = "this ; ends the statement before its last clause"
        return QueryError(message, code="stray-semicolon", text=text, span=span, hint=f"write {show(meant)}")
    message = "a second statement follows this ; where one statement is asked"
    return QueryError(message, code="second-statement", text=text, span=span, hint="ask one after the other")


def _no_statement(text: str, place: int, token: Token) -> QueryError | None:
    """Where not even the first word can be taken."""
    if token.kind != "$END":
        return _stray(text, place, token) or _unbegun(text, place, token)
    words = following(text, place, token.start).words
    if token.text == ";":
        message, code = "this ; ends no statement; take it out", "stray-semicolon"
    else:
        message, code = "there is no statement here", "empty"
    hint = "write for example PAGES LIMIT 5" if code == "empty" else None
    return QueryError(message, code=code, text=text, span=token.span, expected=words, hint=hint)


def _stray(text: str, place: int, token: Token) -> QueryError | None:
    """Where a `;` stands before a clause, which then begins a statement of its own."""
    before = text.rfind(";", 0, place)
    first = token.text.upper().split()[0]
    if before < 0 or first not in CLAUSES | {"ORDER", "AS", "IN", "AT", "RENDER", "MESSAGES", "DEPTH"}:
        return None
    message = f"the ; before {_quoted(token)} ends the statement; take it out"
    return QueryError(message, code="stray-semicolon", text=text, span=SourceSpan(before, before + 1))


def _unbegun(text: str, place: int, token: Token) -> QueryError | None:
    """Where a word begins nothing, and no habit of another language explains it."""
    if not token.text[:1].isalpha() or _mended(text, place):
        return None
    words = following(text, place, token.start).words
    message = f"no statement begins with {_quoted(token)}"
    word = near(token.text, words)
    hint = f"did you mean {word}?" if word else "PAGES, CONTEXT, MUTATIONS and SEARCH do; the reference has them all"
    return QueryError(message, code="no-statement", text=text, span=token.span, expected=words, hint=hint)


# ---- habits


def _habit(text: str, place: int, stuck: ParseFailure) -> QueryError | None:
    """The first habit in the statement, with all of them mended, where that is what was meant."""
    found = _mended(text, place)
    if not found:
        return None
    mended = made(text, place, found)
    meant = _parsed(mended)
    if meant is not None:
        written = show(meant)
        return _error(text, found[0], f"write {written}" if len(written) <= HINT_CHARS_MAX else _locally(found[0]))
    first, last = stuck.before.start, stuck.token.end
    here = [edit for edit in found if edit.span.start <= last and edit.span.end >= first]
    return _error(text, here[0], _locally(here[0])) if here else None


def _mended(text: str, place: int) -> list[Edit]:
    return edits(text, place) if len(text) - place <= MENDED_CHARS_MAX else []


def _error(text: str, edit: Edit, hint: str | None) -> QueryError:
    return QueryError(edit.message, code=edit.code, text=text, span=edit.span, hint=hint)


def _locally(edit: Edit) -> str | None:
    return edit.advice if edit.replacement is None else f"write {edit.replacement}"


def _parsed(text: str) -> Statement | None:
    try:
        statement, _, place = run(text)
        return statement if not text[place:].strip() else None
    except (ParseFailure, QueryError):
        return None


# ---- the parser's own words


def _said(token: Token, here: Continuations) -> tuple[str, str]:
    """The message and its code."""
    wanted = _listed(here.said)
    if token.kind == "$END":
        where = "the text ends" if not token.text else "the statement ends"
        return f"{where} where {wanted} is expected", "unfinished"
    if token.kind == "BAD" and token.text == "'":
        return "the quote opened here is never closed; a ' within a text is written ''", "open-quote"
    if token.kind == "BAD":
        return f"unexpected {_quoted(token)}; expected {wanted}", "bad-character"
    if here.words == ("the end",):
        return f"{_quoted(token)} follows a statement that is complete; end it with ;", "unexpected"
    return f"unexpected {_quoted(token)}; expected {wanted}", "unexpected"


def _listed(words: tuple[str, ...]) -> str:
    words = tuple("a comma" if word == "," else word for word in words)
    if len(words) > EXPECTED_MAX + 1:
        return f"{', '.join(words[:EXPECTED_MAX])} or one of {len(words) - EXPECTED_MAX} others"
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _quoted(token: Token) -> str:
    text = token.text if len(token.text) <= SHOWN_MAX else token.text[:SHOWN_MAX] + "…"
    return text if text.startswith("'") else f"`{text}`"


def _near(text: str, place: int, stuck: ParseFailure, here: Continuations) -> tuple[str | None, SourceSpan]:
    """A keyword that was probably meant, of the token or of the word before it, and where it belongs."""
    token, before = stuck.token, stuck.before
    if word := _keyword_near(token.text, here):
        return f"did you mean {word}?", token.span
    if before.start >= 0:
        earlier = following(text, place, before.start)
        written = text[before.start : before.end]
        word = _keyword_near(written, earlier)
        if word and _gets_past(text, place, before, word, token):
            return f"did you mean {word}?", before
    return _insertion(text, place, token, here), token.span


def _keyword_near(written: str, here: Continuations) -> str | None:
    """A keyword that a word was probably meant to be, or to begin where it is one of two words."""
    if written.upper() in here.keywords:
        return None
    keywords = {keyword.partition(" ")[0]: keyword for keyword in here.keywords}
    found = near(written, keywords)
    return None if found is None else keywords[found]


def _insertion(text: str, place: int, token: Token, here: Continuations) -> str | None:
    """The statement with the one word or sign that it lacks, where there is only one that makes it whole."""
    candidates = here.signs if token.kind == "$END" else (*here.keywords, *here.signs)
    meant_so = token.text.upper() in load().fixed  # a keyword is not the name of anything
    if meant_so or len(candidates) > INSERTED_MAX or len(text) - place > MENDED_CHARS_MAX:
        return None
    before, after = text[place : token.start], text[token.start :]
    mended = [found for word in candidates if (found := _parsed(f"{before} {word} {after}")) is not None]
    return f"write {show(mended[0])}" if len(mended) == 1 else None


def _gets_past(text: str, place: int, before: SourceSpan, word: str, token: Token) -> bool:
    """Whether a word in the place of another lets the parser take the token that stopped it."""
    mended = text[place : before.start] + word + text[before.end : token.end]
    try:
        run(mended)
    except ParseFailure as stuck:
        return stuck.token.kind == "$END"
    except QueryError:
        pass
    return True
