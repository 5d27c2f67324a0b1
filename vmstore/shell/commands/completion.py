"""Tab completion: the scripts that shells load, and the answers they ask for.

A script calls `vmstore _complete INDEX WORD…` with the words of the line, `vmstore` or `vmql` first, and
the index of the one the cursor is in; each line of the answer is a candidate. No answer lets the shell
offer files.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.shell.commands import registry
from vmstore.shell.commands.arguments import TAKING, Command, Parser
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.results import Page

CANDIDATES_MAX = 500
SESSIONS = ("--session", "--in-session", "--of SESSION")  # options that name sessions

SCRIPTS = {
    "bash": """\
_vmstore() {
    local found
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <(vmstore _complete "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null)
}
complete -o default -F _vmstore vmstore vmql
""",
    "zsh": """\
#compdef vmstore vmql
_vmstore() {
    local -a found
    found=("${(@f)$(vmstore _complete $((CURRENT - 1)) "${words[@]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -- "${found[@]}"
    else
        _files
    fi
}
compdef _vmstore vmstore vmql
""",
    "fish": """\
function __vmstore_complete
    set -l words (commandline -opc) (commandline -ct)
    vmstore _complete (math (count $words) - 1) $words 2>/dev/null
end
complete -c vmstore -a '(__vmstore_complete)'
complete -c vmql -a '(__vmstore_complete)'
""",
}


def completion(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the script for a shell."""
    script = SCRIPTS[arguments.shell]
    if arguments.json:
        screen.json({"shell": arguments.shell, "script": script})
    else:
        screen.raw(script.encode())
    return 0


def complete(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answers a shell; whatever goes wrong, it stays silent and has no candidate."""
    try:
        index, words = int(arguments.words[0]), arguments.words[1:]
        complete_word = _of_vmql if Path(words[0]).name == "vmql" else candidates
        names = complete_word(words[1:index], words[index] if index < len(words) else "")
    except Exception:  # a traceback between two key strokes serves nobody
        return 0
    for candidate in names[:CANDIDATES_MAX]:
        screen.raw(candidate.encode("utf-8", "backslashreplace") + b"\n")
    return 0


def _of_vmql(before: list[str], word: str) -> list[str]:
    from vmstore.shell.vmql.completions import candidates as of_vmql

    return of_vmql(before, word)


def candidates(before: list[str], word: str) -> list[str]:
    """Returns the completions of the word under the cursor, given the words before it."""
    before = [name for name in before if name not in ("--json", "--quiet")]
    if before[:1] and before[0] in TAKING:  # before the command it means the same as after it
        before = [*before[2:], *before[:2]] if len(before) > 2 else before[2:]
    if not before:
        return _starting_with(word, [*registry.COMMANDS, "--help", "--version"])
    command = registry.COMMANDS.get(before[0])
    if command is None:
        return []
    parser = command.parser()
    options = _options(parser)
    valued = next((options[name] for name in before[-1:] if name in options), None)
    if valued is not None and valued.nargs != 0:
        given, common = _given(options, before[1:-1])
        if valued.choices is not None:
            return _starting_with(word, map(str, valued.choices))
        if given and {before[-1], f"{before[-1]} {valued.metavar}"} & set(SESSIONS):
            return _starting_with(word, _from_store(given[:1], common, []))
        return _starting_with(word, _values(valued.dest))
    if word.startswith("-"):
        return _starting_with(word, options)
    return _starting_with(word, _positional(parser, options, before[1:]))


def _options(parser: Parser) -> dict[str, argparse.Action]:
    return {name: action for action in parser._actions for name in action.option_strings if name.startswith("--")}


def _values(option: str) -> Iterable[str]:
    """The values of an option, where they are few."""
    if option == "format":
        from vmstore.capture.importers.formats import FORMATS
        from vmstore.transfer.sessions import BUNDLE

        return (*FORMATS, BUNDLE)
    if option == "view":
        from vmstore.maintenance.columns import VIEW
        from vmstore.views.projection import PROJECTORS

        return [*(projector.name for projector in PROJECTORS), VIEW]
    if option == "policy":
        from vmstore.vm.policies.registry import names

        return names()
    from vmstore.core.page import LinkKind, Modality, PageType, Role, Standing, Tier

    words = {"kinds": LinkKind, "type": PageType, "role": Role, "modality": Modality, "status": Standing}
    if option == "tier":
        return [tier.name for tier in Tier]
    return [word.word for word in words.get(option, ())]


def _positional(parser: Parser, options: dict[str, argparse.Action], words: list[str]) -> list[str]:
    """Candidates for the next argument that is no option."""
    given, common = _given(options, words)
    wanted = [action.dest for action in parser._actions if not action.option_strings]
    if "sessions" in wanted and given:
        return [name for name in _from_store(given[:1], common, wanted) if name not in given]
    if wanted[-1:] == ["artifacts"] and given:
        from vmstore.core.redaction import Artifact

        return [artifact.word for artifact in Artifact if artifact.word not in given]
    if len(given) >= len(wanted):
        return []
    if wanted[len(given)] == "shell":
        return list(SCRIPTS)
    if "session" in wanted and given:
        return _from_store(given, common, wanted)
    return []


def _given(options: dict[str, argparse.Action], words: list[str]) -> tuple[list[str], dict[str, str]]:
    """The arguments among some words that are no options, and the namespace and the key that were given."""
    given: list[str] = []
    common: dict[str, str] = {}
    skip = 0
    for index, word in enumerate(words):
        if skip:
            skip -= 1
        elif word in options:
            nargs = options[word].nargs
            skip = nargs if isinstance(nargs, int) else 1
            if word in TAKING and index + 1 < len(words):
                common[word] = words[index + 1]
        elif not word.startswith("-"):
            given.append(word)
    return given, common


def _from_store(given: list[str], options: dict[str, str], wanted: list[str]) -> list[str]:
    """Sessions of the store, or pages of the session, that come next."""
    from vmstore.shell.open_store import open_to_ask

    common = {"namespace": options.get("--namespace"), "store_key": options.get("--store-key")}
    with open_to_ask(argparse.Namespace(store=given[0], **common)) as store:
        names = [info.session for info in store.sessions()]
        if len(given) == 1:
            pages = _page_names(store.session(names[0]).pages()) if "page" in wanted and len(names) == 1 else []
            return [*names, *pages]
        return _page_names(store.session(given[1]).pages()) if "page" in wanted else []


def _page_names(pages: Sequence[Page]) -> list[str]:
    """The names people know pages by: a hint that only one page has, else the page's own."""
    hints = Counter(page.hint for page in pages)
    return [page.hint if page.hint and hints[page.hint] == 1 else page.page for page in pages]


def _starting_with(word: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(word)]


def _add_shell(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


COMMANDS = (
    Command(
        "completion",
        "more",
        "tab completion for bash, zsh or fish",
        "Prints a script that completes commands, options, sessions and pages on tab, of `vmstore` and of `vmql`.\n"
        "Where bash or fish load it by the name of a command, link it to that of `vmql` too.",
        (
            "vmstore completion bash > ~/.local/share/bash-completion/completions/vmstore",
            'vmstore completion zsh > "${fpath[1]}/_vmstore"',
            "vmstore completion fish > ~/.config/fish/completions/vmstore.fish",
        ),
        completion,
        (_add_shell,),
    ),
)
