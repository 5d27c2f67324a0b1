"""A page's content as people read it on one line: a tool call, a tool's result, words, an image.

Every list of pages shows this line: those of the commands, of VMQL, of the debugger and of the exports of text.
A structured part stands without its ids, a result behind the name of its tool and what that was asked.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from vmstore.core.page import MIME_TYPES, Mime, Modality
from vmstore.core.text.json_text import loads
from vmstore.core.text.tool_call import asked_in
from vmstore.core.text.visible import visible

LINE_CHARS = 160
ABOUT_CHARS = 32
CALLED = "→ "
MEDIA = (Modality.IMAGE, Modality.AUDIO, Modality.VIDEO)

# What names a request best, where one of these is among its arguments.
_TELLING = ("path", "file_path", "filepath", "filename", "file_name", "command", "cmd", "query", "pattern", "url", "q")
_TEXTS = ("text", "thinking", "reasoning", "refusal", "summary", "output", "response", "content", "parts")
_UNREAD = frozenset(("id", "type", "signature", "call_id", "tool_call_id", "tool_use_id", "toolCallId", "status"))
_SEALED = ("encrypted_content", "data", "thoughtSignature")
_CHANGED_FOLDER = re.compile(r"\s*cd \S+ *(?:&&|;) *")
_LOOKS_LIKE_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\"{\[])")
_LONG_PATH = re.compile(r"(?<![\w.…])/(?:[\w.@+-]+/){2,}([\w.@+-]+)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\Z)')


class ToolRequest(NamedTuple):
    """A tool call of a model: the tool's name, and the arguments as a value where they are JSON."""

    tool: str
    arguments: Any


def page_line(
    content: bytes,
    modality: int = Modality.TEXT,
    mime: int = Mime.TEXT,
    asked: ToolRequest | None = None,
    chars: int | None = LINE_CHARS,
) -> str:
    """A content on one line of at most `chars` characters; that of a tool's result begins with what was `asked`."""
    line = " ".join(_line(content, modality, mime, chars).split())
    if line.startswith(CALLED):
        line = _LONG_PATH.sub(r"…/\1", line)
    if asked is not None:
        line = f"{about(asked)} → {line}"
    line = visible(line)
    if chars is not None and len(line) > chars:
        line = line[: chars - 1].rstrip() + "…"
    assert chars is None or len(line) <= chars, "a line has at most the characters that were asked for"
    return line


def about(asked: ToolRequest) -> str:
    """A tool and what it was asked in few words: `read …/theme.md`."""
    what = " ".join(_telling(asked.arguments).split()).removeprefix(f"{asked.tool} ")
    return f"{asked.tool} {_shortened(what)}" if what else asked.tool


def tool_request(content: bytes) -> ToolRequest | None:
    """The request for a tool that a content holds, in any provider's form; None where it holds none."""
    if not content.startswith(b"{"):
        return None
    try:
        return _request(loads(content))
    except ValueError:
        return None


def shown_request(asked: ToolRequest) -> str:
    """A request for a tool as a line: `→ read({"path": "theme.md"})`."""
    arguments = asked.arguments
    if isinstance(arguments, str):
        return f"{CALLED}{asked.tool}({arguments})"
    return f"{CALLED}{asked.tool}({json.dumps(arguments, ensure_ascii=False) if arguments else ''})"


def shown_part(part: Any) -> str:
    """A structured value as words: a part of a message, a list of parts, the schemas of tools."""
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        tools = [name for item in part for name in _schemas(item)]
        return f"tools: {', '.join(tools)}" if tools else " ".join(filter(None, map(shown_part, part)))
    return _shown_object(part) if isinstance(part, dict) else _plain(part)


def _line(content: bytes, modality: int, mime: int, chars: int | None) -> str:
    if modality in MEDIA:
        return _media(content, modality, mime)
    if modality == Modality.STRUCTURED:
        try:
            return shown_part(loads(content))
        except ValueError:
            pass  # a shorter form of it, which is text
    whole = chars is None or len(content) <= 8 * chars
    head = content if whole else content[: 8 * chars] if chars is not None else content
    try:
        text = head.decode("utf-8", "strict" if whole else "ignore")
    except UnicodeDecodeError:
        text = head.decode("utf-8", "replace")
        if text.count("\ufffd") * 8 > len(text):
            return f"[{_size(len(content))}, no text]"
    return _unquoted(text) if _LOOKS_LIKE_JSON.match(text) else text


def _media(content: bytes, modality: int, mime: int) -> str:
    word = Modality(modality).word
    if content.startswith(b"data:"):
        return f"[{content[5:].partition(b';')[0][:40].decode('ascii', 'replace')}, {_size(len(content))}]"
    if content.startswith((b"http:", b"https:")):
        return f"[{word} {content[:LINE_CHARS].decode('utf-8', 'ignore')}]"
    if content.startswith(b"{"):
        try:
            return f"[{word}] {shown_part(loads(content))}".rstrip()
        except ValueError:
            pass
    try:
        return f"[{word}] {content[: 8 * LINE_CHARS].decode()}"  # words in its place
    except UnicodeDecodeError:
        return f"[{word if mime == Mime.OTHER else MIME_TYPES[Mime(mime)]}, {_size(len(content))}]"


def _request(value: Any) -> ToolRequest | None:
    found = asked_in(value)
    return None if found is None else ToolRequest(*found)


def _telling(arguments: Any) -> str:
    """The argument that says best what was asked for."""
    if isinstance(arguments, str):
        return arguments.strip().partition("\n")[0]
    if not isinstance(arguments, dict):
        return " ".join(item for item in arguments or () if isinstance(item, str))
    named = next((value for key in _TELLING if isinstance(value := arguments.get(key), str | list) and value), None)
    if named is None:
        return " ".join(str(value) for value in arguments.values() if isinstance(value, str | int))
    return _telling(_CHANGED_FOLDER.sub("", named) if isinstance(named, str) else named)


def _shortened(what: str) -> str:
    if len(what) <= ABOUT_CHARS:
        return what
    last = what.rpartition("/")[2]
    if "/" in what and " " not in what and last and len(last) < ABOUT_CHARS - 2:
        return f"…/{last}"
    short = what[: ABOUT_CHARS - 1].rstrip() + "…"
    assert len(short) <= ABOUT_CHARS, "a line has a width of its own"
    return short


def _schemas(item: Any) -> list[str]:
    """The names of the tools that a schema declares; none where it is no schema."""
    if not isinstance(item, dict):
        return []
    for key in ("functionDeclarations", "function_declarations"):
        if isinstance(item.get(key), list):
            return [name for inner in item[key] for name in _schemas({**inner, "parameters": {}})]
    inner = item["function"] if isinstance(item.get("function"), dict) else item
    declares = any(key in inner for key in ("parameters", "input_schema", "description"))
    return [inner["name"]] if declares and isinstance(inner.get("name"), str) else []


def _shown_object(part: dict[str, Any]) -> str:
    asked = _request(part)
    if asked is not None:
        return shown_request(asked)
    answered = part.get("functionResponse")
    if isinstance(answered, dict):
        return f"{answered.get('name', 'tool')} → {shown_part(answered.get('response'))}"
    kind = part.get("type")
    if isinstance(kind, str) and any(word in kind for word in ("image", "audio", "video", "screenshot", "document")):
        return f"[{kind.removeprefix('input_').removesuffix('_url')}]"
    texts = [shown_part(part[key]) for key in _TEXTS if part.get(key)]
    texts += [shown_part(part[key]) for key in ("tool_calls", "toolCalls") if part.get(key)]
    if texts:
        return " ".join(texts)
    if any(key in part for key in _SEALED):
        sealed = sum(len(value) for key in _SEALED if isinstance(value := part.get(key), str))
        return f"[{str(kind or 'content').replace('_', ' ')}, sealed, {_size(sealed)}]"
    rest = {key: value for key, value in part.items() if key not in _UNREAD}
    words = ", ".join(f"{key}: {_plain(value)}" for key, value in rest.items())
    return f"{kind}: {words}" if isinstance(kind, str) and words else words or str(kind or "{}")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _unquoted(json.dumps(value, ensure_ascii=False))


def _unquoted(text: str) -> str:
    """The beginning of some JSON without its quotes and outermost braces, whether it is whole or cut."""
    bare = _QUOTED.sub(lambda found: _unescaped(found[1]), text.strip())
    if bare.startswith("{"):
        bare = bare[1:].removesuffix("}") if bare.count("{") == bare.count("}") else bare[1:]
    return bare.strip()


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(loads(f'"{text}"'))
    except ValueError:
        return text


def _size(count: int) -> str:
    return f"{count:,} bytes" if count < 10_000 else f"{count / 1000:,.0f} kB"
