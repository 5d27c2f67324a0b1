"""Checks the house rules that no other tool knows: `python tools/tidy.py [CHECKOUT] [--figures [--json]]`.

Each fault is one line, `path:line: what is wrong; the remedy`. Exit code 1 when there is any. With
`--figures` it prints instead how the house stands in numbers.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from figures import INFLECTED_ALLOWED, by_folder, inflected, public_classes, show

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
LINE_CHARS_MAX = 120
UNDOCUMENTED_LINES_MAX = 12
FOLDER_FILES_MAX = 20

# Names of public classes that stand for two things. It may only become shorter: what is taken off does not come back.
# The moment `vmstore.Turn` and what a projector is told; and the mutations, whose names are in every log's answers.
SHARED_CLASSES = frozenset(["Turn"])

# Names of a package that is replaced: its users write them, so they are not ours to choose.
THEIR_NAMES = ("vmstore/integrations/chuk/",)

# Words that point to papers which are not in the repository; in halves, as above.
PAPERS = re.compile(
    r"\b(?:[Ss]ee" r"ds? 0\d\d\b|[Tt]he see" r"ds?'|READIN" r"GS D\d|0\d\d:\d{2,}|DESI" r"GN sections?\b"
    r"|(?:FAUL" r"TS|USE" r"RS|GA" r"PS|HOU" r"SE|DESI" r"GN|READIN" r"GS)\.md\b)"
)  # fmt: skip
PAGES = ("ARCHITECTURE.md", "GLOSSARY.md", "CONTRIBUTING.md")
NAMED_PATH = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)+[\w-]+\.(?:py|lark|md|toml|txt|json))(?!\w)")

FOLDERS = ("vmstore", "tests", "tools", "specs", "grammar")
SUFFIXES = (".py", ".md", ".lark", ".toml")

# Imports inside functions, as (module file, package): what is loaded only when it is asked for.
LAZY: frozenset[tuple[str, str]] = frozenset(
    [
        ("vmstore/log/frame.py", "zstandard"),
        ("vmstore/vmql/scalars.py", "apsw"),  # its extensions load a third of the standard library
        ("vmstore/objects/address.py", "vmstore"),
        ("vmstore/vmql/scalars.py", "apsw"),
        # A tier is read where an address names one, numpy and the lake's libraries where somebody asks for them.
        ("vmstore/namespace/backends/outside_archives.py", "vmstore"),
        ("vmstore/namespace/backends/cold.py", "vmstore"),
        ("vmstore/maintenance/publish.py", "vmstore"),
        ("vmstore/store/parts/single_sessions.py", "vmstore"),
        ("vmstore/publication/lake.py", "deltalake"),
        ("vmstore/publication/lake.py", "pyiceberg"),
        ("vmstore/core/system/after_fork.py", "ctypes"),
        ("vmstore/workers/choice.py", "vmstore"),
        ("vmstore/workers/ray_cluster.py", "ray"),
        ("vmstore/cells/storekey.py", "cryptography"),
        ("vmstore/capture/importers/formats/decompress.py", "zstandard"),
        ("vmstore/proxy/bodies.py", "zstandard"),
        ("vmstore/transfer/imports.py", "vmstore"),
        ("vmstore/transfer/sqlite.py", "sqlite_utils"),
        ("vmstore/transfer/sqlite.py", "sqlite3"),
        ("vmstore/transfer/parquet.py", "duckdb"),
        ("vmstore/maintenance/columns.py", "vmstore"),
        ("vmstore/maintenance/verify.py", "vmstore"),
        # Asking, recording, importing and handing on: none waits for what only the others need.
        ("vmstore/store/store.py", "vmstore"),
        ("vmstore/store/recall/pen.py", "vmstore"),
        ("vmstore/aio/session.py", "vmstore"),
        ("vmstore/namespace/namespace.py", "vmstore"),
        ("vmstore/namespace/closeness.py", "vmstore"),
        ("vmstore/store/sessions.py", "vmstore"),
        ("vmstore/store/recall/memory.py", "vmstore"),
        ("vmstore/erasure/resume.py", "vmstore"),
        ("vmstore/maintenance/backup.py", "vmstore"),
        ("vmstore/aio/twin.py", "vmstore"),
        ("vmstore/aio/store.py", "vmstore"),
        ("vmstore/aio/twin.py", "vmstore"),
        ("vmstore/aio/store.py", "vmstore"),
        ("vmstore/aio/__init__.py", "vmstore"),
        ("vmstore/aio/admin.py", "vmstore"),
        ("vmstore/store/parts/admin.py", "vmstore"),
        ("vmstore/store/parts/search_index.py", "vmstore"),
        ("vmstore/store/debug.py", "vmstore"),
        ("vmstore/store/parts/regions.py", "vmstore"),
        ("vmstore/store/parts/trust.py", "vmstore"),
        ("vmstore/store/wire.py", "vmstore"),
        ("vmstore/store/session.py", "vmstore"),
        ("vmstore/store/work/session_work.py", "vmstore"),
        ("vmstore/store/work/digests.py", "vmstore"),
        ("vmstore/store/work/store_work.py", "vmstore"),
        ("vmstore/store/query_host.py", "vmstore"),
        ("vmstore/store/recall/fact_reads.py", "vmstore"),
        ("vmstore/store/reads/context.py", "vmstore"),
        ("vmstore/core/times.py", "zoneinfo"),
        ("vmstore/namespace/open.py", "vmstore"),
        ("vmstore/namespace/backends/folder.py", "vmstore"),
        ("vmstore/namespace/backends/address.py", "vmstore"),
        ("vmstore/views/reads/system_entries.py", "vmstore"),
        ("vmstore/vmql/execution/explain.py", "vmstore"),
        ("vmstore/vmql/execution/query.py", "vmstore"),
        ("vmstore/vmql/execution/statements.py", "vmstore"),
        ("vmstore/vmql/functions.py", "vmstore"),
        ("vmstore/vmql/parse.py", "vmstore"),
        ("vmstore/core/system/logger.py", "logging"),
        ("vmstore/namespace/signing_keys.py", "cryptography"),
        ("vmstore/engine/redaction.py", "vmstore"),
        ("vmstore/vmql/planner/times.py", "dateparser"),
        ("vmstore/vmql/execution/engine.py", "vmstore"),
        ("vmstore/vmql/execution/result.py", "pyarrow"),
        ("vmstore/search/rank.py", "numpy"),
        ("vmstore/search/rank.py", "vmstore"),
        ("vmstore/search/blend.py", "numpy"),
        ("vmstore/search/blend.py", "vmstore"),
        ("vmstore/namespace/namespace.py", "vmstore"),
        ("vmstore/vm/compressors/image.py", "PIL"),
        # A question of views that are whole waits for no fold, no archive and no mistake.
        ("vmstore/cells/schema.py", "shlex"),
        ("vmstore/cells/subject_keys.py", "hmac"),
        ("vmstore/core/text/suggest.py", "difflib"),
        ("vmstore/log/archive/folder.py", "shutil"),
        ("vmstore/log/archive/folder.py", "tempfile"),
        ("vmstore/log/archive/folder.py", "vmstore"),
        ("vmstore/log/sqlite.py", "vmstore"),
        ("vmstore/namespace/encryption.py", "vmstore"),
        ("vmstore/namespace/folder.py", "shutil"),
        ("vmstore/namespace/folder.py", "tempfile"),
        ("vmstore/views/erased_cells.py", "vmstore"),
        ("vmstore/views/projection.py", "vmstore"),
        ("vmstore/views/projectors/commits.py", "vmstore"),
        ("vmstore/views/projectors/sessions.py", "vmstore"),
        ("vmstore/views/projectors/tools.py", "vmstore"),
        ("vmstore/views/tool_cells.py", "vmstore"),
        # Every pytest run of a machine loads it.
        ("vmstore/testing/plugin.py", "vmstore"),
    ]
)
LAZY_DOORS = ("vmstore/__init__.py", "vmstore/shell/")

# Written in halves so that this file keeps its own rule.
MARKER = re.compile(r"\b(?:FIX" r"ME|TO" r"DO|XX" r"X|HA" r"CK)\b")
VAGUE = frozenset(
    f"{word}{plural}" for word in ("manager", "service", "helper", "util", "impl") for plural in ("", "s")
)
# Words that hide who does what, each with what to write. In halves, as above; lists of English words may hold them.
BANNED = {
    "an" "ew": "say again, or rewritten, rebuilt, reopened",
    "who" "ever": "name who it is: the caller, a reader, another process",
}  # fmt: skip
BANNED_WORD = re.compile(rf"(?<![\w-])({'|'.join(BANNED)})\b", re.IGNORECASE)
WORD_LISTS = ("vmstore/vm/recall/topics.py", "vmstore/vm/claims/cues.py", "tools/figures.py")
# Participles that name nothing: what was told may be a field, a setting or a mutation.
RIDDLES = frozenset(["told"])
# Names for whatever is at hand, in tests and tools. A constant has its value beside it, a field its class.
NAMELESS = frozenset(["told", "found", "held", "said", "one", "given", "got"])
RIDDLES_ALLOWED = ("vmstore/core/decision.py",)  # the field of a mutation, whose name is in every log's answers
# A docstring names its subject. A clause that begins so hides it, and the reader has to turn it round.
CLAUSE = re.compile(r"(What|Where|Whose|Who|Which|Why|Of|Nothing)(?![\w-])")
CLAUSES_ALLOWED = tuple(
    f"vmstore/{room}/" for room in ("vmql", "shell", "debug", "relevance", "search", "tags", "facts", "store/recall")
)  # not written again yet; a room that is comes off the list
CAMEL_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
SECOND_SENTENCE = re.compile(r"[.!?] +[A-Z]")

CLOCK_READS = ("time", "monotonic", "perf_counter", "process_time")
AMBIENT = frozenset(
    [f"time.{name}{unit}" for name in CLOCK_READS for unit in ("", "_ns")]
    + ["datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"]
    + ["uuid.uuid1", "uuid.uuid4", "os.urandom", "os.environ", "os.environb", "os.getenv"]
)
LOG_WRITERS = ("vmstore/engine/engine.py", "vmstore/engine/transfer/ingest.py", "vmstore/log/", "vmstore/testing/")
LOG_WRITES = frozenset(["append", "together"])
LOG_ARGUMENTS = 3  # commits, session and expected position, which `Log.append` cannot do without
AMBIENT_MODULES = ("random", "secrets")
AMBIENT_DOORS = ("vmstore/core/clock.py", "vmstore/shell/", "vmstore/workers/ray_cluster.py")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Fault(NamedTuple):
    """One broken rule and where."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Source(NamedTuple):
    """One Python file as read: its path from the checkout's root, its tree, and every node of that in one list.

    The rules go through the list: walking a tree costs ten times as much, and there are as many rules.
    """

    path: str
    tree: ast.Module
    nodes: list[ast.AST]
    functions: list[Function]

    @classmethod
    def of(cls, path: str, text: str) -> Source:
        """The file with its text read as Python; raises SyntaxError or ValueError where it is none."""
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        return cls(path, tree, nodes, [node for node in nodes if isinstance(node, Function)])

    @property
    def module(self) -> str:
        """The dotted name."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def faults(root: Path, lazy: frozenset[tuple[str, str]] = LAZY) -> list[Fault]:
    """Every fault of a checkout, in order of place."""
    all_faults: list[Fault] = []
    sources: list[Source] = []
    for path in files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_bytes().decode("utf-8", "replace")
        all_faults += text_faults(name, text)
        if path.suffix == ".py":
            try:
                sources.append(Source.of(name, text))
            except (SyntaxError, ValueError) as error:
                line = getattr(error, "lineno", None) or 1
                all_faults.append(Fault(name, line, f"is not Python: {error}; mend the syntax"))
    for source in sources:
        for rule in RULES:
            all_faults += rule(source)
        all_faults += hidden_imports(source, lazy)
    all_faults += [*house_names(sources), *dead_paths(root)]
    all_faults += dead_modules([s for s in sources if s.path.startswith("vmstore/")], entry_points(root))
    return sorted(set(all_faults))


def files(root: Path) -> Iterator[Path]:
    """The files the rules are about."""
    for path in root.iterdir():
        if path.is_file() and path.suffix in SUFFIXES:
            yield path
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.is_file() and path.suffix in SUFFIXES and "golden" not in path.parts:
                yield path


def text_faults(path: str, text: str) -> Iterator[Fault]:
    """Faults visible without reading the code: lengths, leftovers, characters nobody sees."""
    lines = text.split("\n")
    python = path.endswith(".py")
    length = len(lines) - text.endswith("\n")
    if python and length > FILE_LINES_MAX:
        yield Fault(path, 1, f"has {length} lines, over {FILE_LINES_MAX}; split it by noun")
    for number, line in enumerate(lines, 1):
        if python and len(line) > LINE_CHARS_MAX:
            yield Fault(path, number, f"is {len(line)} characters wide, over {LINE_CHARS_MAX}; break the line")
        if paper := PAPERS.search(line):
            yield Fault(
                path, number, f"refers to {paper.group().strip()}, which is not in the repository; say what is so"
            )
        if left := MARKER.search(line):
            yield Fault(path, number, f"{left.group()} left behind; do it now, or open an issue")
        if path not in WORD_LISTS and (banned := BANNED_WORD.search(line)):
            word = banned.group().lower()
            yield Fault(path, number, f"says {word}, which hides who does what; {BANNED[word]}")
        for sign in "" if line.isprintable() else line:
            if not sign.isprintable() and unicodedata.category(sign) in ("Cc", "Cf"):
                yield Fault(path, number, f"holds the unseen U+{ord(sign):04X}; write it as an escape")


def house_names(sources: Iterable[Source]) -> Iterator[Fault]:
    """Modules named by participles, folders too full to look through, one class name for several things."""
    names = {s.path.removeprefix("vmstore/"): s.tree for s in sources if s.path.startswith("vmstore/")}
    ours = {path: tree for path, tree in names.items() if not f"vmstore/{path}".startswith(THEIR_NAMES)}
    for path in inflected(list(ours)):
        allowed = ", ".join(sorted(INFLECTED_ALLOWED))
        yield Fault(f"vmstore/{path}", 1, f"is named in -ing or -ed; name it by a noun (allowed is {allowed})")
    for folder, count in by_folder(list(names)).items():
        if count > FOLDER_FILES_MAX:
            message = f"holds {count} modules, over {FOLDER_FILES_MAX}; make a room of some, or fold the small ones"
            yield Fault(f"vmstore/{folder}", 1, message)
    classes = public_classes(ours)
    for name, places in classes.items():
        if len(places) > 1 and name not in SHARED_CLASSES:
            yield Fault(f"vmstore/{places[1]}", 1, f"has a class {name} as {places[0]} has; name it by what it is")
    for name in SHARED_CLASSES:
        if name in classes and len(classes[name]) < 2:
            yield Fault("tools/tidy.py", 1, f"lists {name} as shared, which it is no more; take it off SHARED_CLASSES")


def dead_paths(root: Path) -> Iterator[Fault]:
    """Paths that the pages at the root name and that are not there."""
    for page in PAGES:
        text = (root / page).read_text(encoding="utf-8") if (root / page).is_file() else ""
        for number, line in enumerate(text.split("\n"), 1):
            for path in NAMED_PATH.findall(line):
                if "NAME" not in path and not (root / path).exists() and not (root / "vmstore" / path).exists():
                    yield Fault(page, number, f"names {path}, which is not there; name what took its place")


def oversized_functions(source: Source) -> Iterator[Fault]:
    """Functions nobody can hold in the head."""
    for node in source.functions:
        if (length := lines_of(node)) > FUNCTION_LINES_MAX:
            remedy = "push its ifs up and its loops down"
            message = f"{node.name} has {length} lines, over {FUNCTION_LINES_MAX}; {remedy}"
            yield Fault(source.path, node.lineno, message)


def vague_names(source: Source) -> Iterator[Fault]:
    """Classes and modules named after their administration."""
    if source.path.startswith(THEIR_NAMES):
        return
    stem = source.module.rpartition(".")[2]
    if vague := VAGUE.intersection(stem.lower().split("_")):
        yield Fault(source.path, 1, f'module {stem} says "{min(vague)}"; name it after the noun it serves')
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            words = CAMEL_WORD.findall(node.name)
            if vague := VAGUE.intersection(word.lower() for word in words):
                message = f'class {node.name} says "{min(vague)}"; name the thing, not its administration'
                yield Fault(source.path, node.lineno, message)


def riddles(source: Source) -> Iterator[Fault]:
    """Names of vmstore that say that something was done, and not what the thing is."""
    if not source.path.startswith("vmstore/") or source.path in RIDDLES_ALLOWED:
        return
    for node in source.nodes:
        for name in given_names(node):
            if riddle := RIDDLES.intersection(name.lower().split("_")):
                message = f'{name} says "{min(riddle)}", not what it is; name the thing: fields, settings, a mutation'
                yield Fault(source.path, getattr(node, "lineno", 1), message)


def nameless(source: Source) -> Iterator[Fault]:
    """Locals, arguments, functions and classes of tests and tools that say that something was done to a thing."""
    if not source.path.startswith(("tests/", "tools/")):
        return
    classes = [node for node in source.nodes if isinstance(node, ast.ClassDef)]
    fields = {id(line.target) for node in classes for line in node.body if isinstance(line, ast.AnnAssign)}
    for node in source.nodes:
        if isinstance(node, ast.Attribute) or id(node) in fields:
            continue
        for name in (*given_names(node), *caught_names(node)):
            if not name.isupper() and name.lower().strip("_") in NAMELESS:
                message = f"{name} may be whatever is at hand; name the thing: pages, a report, an expected text"
                yield Fault(source.path, getattr(node, "lineno", 1), message)


def caught_names(node: ast.AST) -> list[str]:
    """The names that a match or an except clause gives to something."""
    match node:
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
            return [name]
    return []


def clauses(source: Source) -> Iterator[Fault]:
    """Docstrings of vmstore that begin with a clause in place of a subject."""
    if not source.path.startswith("vmstore/") or source.path.startswith(CLAUSES_ALLOWED):
        return
    for node in (source.tree, *source.nodes):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and (
            first := CLAUSE.match(ast.get_docstring(node) or "")
        ):
            message = f'begins with "{first[0]}"; name the thing, or say what the function does'
            yield Fault(source.path, node.body[0].lineno, f"a docstring {message}")


def given_names(node: ast.AST) -> list[str]:
    """The names that a node gives to something."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(asname=str(name)):
            return [name]
    return []


def ambient_reads(source: Source) -> Iterator[Fault]:
    """Clock, randomness and environment taken from the air below the doors."""
    if not source.path.startswith("vmstore/") or source.path.startswith(AMBIENT_DOORS):
        return
    names = imported_names(source)
    seen: set[int] = set()
    for node in source.nodes:
        if not isinstance(node, ast.Attribute | ast.Name) or node.lineno in seen:
            continue
        read = dotted(node, names)
        if read in AMBIENT or read.partition(".")[0] in AMBIENT_MODULES:
            seen.add(node.lineno)
            message = f"{read} is ambient; use the Clock / IdSource handed in (core.clock)"
            yield Fault(source.path, node.lineno, message)


def log_writes(source: Source) -> Iterator[Fault]:
    """Writes to a log beside the gate: by the name of what is written to, or by as many arguments as a log takes."""
    if not source.path.startswith("vmstore/") or source.path.startswith(LOG_WRITERS):
        return
    names = imported_names(source)
    for node in source.nodes:
        if isinstance(node, ast.Call):
            target, arguments = node.func, [*node.args, *node.keywords]
            many = len(arguments) >= LOG_ARGUMENTS or any(isinstance(each, ast.Starred) for each in arguments)
            suspect = (
                many
                and isinstance(target, ast.Attribute)
                and target.attr == "append"
                and not dotted(target.value, names)  # a function of a module
            )
        else:
            target = node
            suspect = isinstance(node, ast.Attribute) and node.attr in LOG_WRITES and of_log(node.value)
        if suspect and isinstance(target, ast.Attribute):
            message = f"{target.attr} writes to a log beside the gate; go through Engine.append or Engine.ingest"
            yield Fault(source.path, target.lineno, message)


def of_log(node: ast.expr) -> bool:
    """Whether an expression is called a log."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.lower().split("_")[-1] == "log"


def imported_names(source: Source) -> dict[str, str]:
    """The dotted path that each imported name stands for."""
    names: dict[str, str] = {}
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The dotted path an expression reads, or nothing when it does not start at an import."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value, names)):
        return f"{owner}.{node.attr}"
    return ""


def unclaimed_tests(source: Source) -> Iterator[Fault]:
    """Tests that do not say in one sentence what they claim."""
    if not source.path.startswith(("tests/", "vmstore/testing/")):
        return
    for node in source.functions:
        if node.name.startswith("test_") and not one_sentence(ast.get_docstring(node) or ""):
            message = f"{node.name} has no docstring of one sentence; say what it claims, with a full stop"
            yield Fault(source.path, node.lineno, message)


def one_sentence(text: str) -> bool:
    """Tells whether a docstring is exactly one sentence."""
    flat = " ".join(text.split())
    return "\n\n" not in text and flat.endswith(".") and not SECOND_SENTENCE.search(flat)


def undocumented(source: Source) -> Iterator[Fault]:
    """Public functions too long to speak for themselves."""
    if not source.path.startswith("vmstore/"):
        return
    for node in public_functions(source.tree):
        if lines_of(node) > UNDOCUMENTED_LINES_MAX and not ast.get_docstring(node):
            message = f"{node.name} is public and has no docstring; say in one line what it does"
            yield Fault(source.path, node.lineno, message)


def public_functions(node: ast.Module | ast.ClassDef) -> Iterator[Function]:
    """Functions and methods a caller can name without an underscore."""
    for child in node.body:
        if isinstance(child, Function | ast.ClassDef) and not child.name.startswith("_"):
            if isinstance(child, ast.ClassDef):
                yield from public_functions(child)
            else:
                yield child


def hidden_imports(source: Source, lazy: frozenset[tuple[str, str]]) -> Iterator[Fault]:
    """Imports inside functions of vmstore, which hide what a module stands on."""
    if not source.path.startswith("vmstore/") or source.path.startswith(LAZY_DOORS):
        return
    for function in source.functions:
        for node in ast.walk(function):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = import_targets(node)
            if names and (source.path, names[0].partition(".")[0]) not in lazy:
                remedy = "import it at the top, or list the pair in LAZY of tools/tidy.py"
                yield Fault(source.path, node.lineno, f"imports {names[0]} inside a function; {remedy}")


def import_targets(node: ast.AST) -> list[str]:
    """The dotted names an import statement loads or may load."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def dead_modules(sources: Iterable[Source], entries: frozenset[str]) -> Iterator[Fault]:
    """Modules of vmstore that no other module imports or names."""
    sources = list(sources)
    used = set(entries)
    for source in sources:
        named = {name for node in source.nodes for name in uses(node)}
        used |= named - {source.module}
    for source in sources:
        door = source.path.endswith(("/__init__.py", "/__main__.py"))
        if not door and not source.path.startswith("vmstore/testing/") and source.module not in used:
            yield Fault(source.path, 1, "is imported by no module of vmstore; use it or remove it")


def uses(node: ast.AST) -> list[str]:
    """The modules a node may use: by import, or by a dotted name in a table of lazy modules."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("vmstore."):
        return [node.value]
    return import_targets(node)


def entry_points(root: Path) -> frozenset[str]:
    """The modules pyproject.toml names as commands."""
    project = root / "pyproject.toml"
    if not project.is_file():
        return frozenset()
    scripts = tomllib.loads(project.read_text()).get("project", {}).get("scripts", {})
    return frozenset(target.partition(":")[0] for target in scripts.values())


def lines_of(node: Function) -> int:
    """The lines a function takes, its decorators aside."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


RULES = (
    oversized_functions,
    vague_names,
    riddles,
    nameless,
    clauses,
    ambient_reads,
    log_writes,
    unclaimed_tests,
    undocumented,
)


def main(arguments: list[str]) -> int:
    """Prints the faults of a checkout, by default the one this file stands in, or its figures."""
    options = {argument for argument in arguments if argument.startswith("--")}
    input_arguments = [argument for argument in arguments if argument not in options]
    root = Path(input_arguments[0]).resolve() if input_arguments else Path(__file__).resolve().parent.parent
    gc.disable()  # a million nodes that all stay until the end: looking for dead ones takes half the time
    if "--figures" in options:
        show(root, as_json="--json" in options)
        return 0
    actual_faults = faults(root)
    for fault in actual_faults:
        print(fault)
    print(f"tidy: {len(actual_faults) or 'no'} fault{'' if len(actual_faults) == 1 else 's'}")
    return 1 if actual_faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
