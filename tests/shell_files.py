"""Completions and the manual page, made from the parsers; `python -m tests.doc_tables` writes them.

The wheel installs `infra/share` as `share` of its environment, where `man` and shells look. shtab
makes the completions. argparse-manpage was tried for the page: it repeats each summary, breaks
usages by the width of the terminal, and has no place for exit codes and examples.
"""

import argparse
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import shtab

from builder.commands.cli import make_parser
from builder.commands.command_table import FAMILIES

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference" / "cli.md"
SHARE = ROOT / "infra" / "share"
COMPLETIONS = {
    "bash": "bash-completion/completions/sheaf",
    "zsh": "zsh/site-functions/_sheaf",
    "fish": "fish/vendor_completions.d/sheaf.fish",
}
"""Where each shell looks below `share`."""
FOLDERS = ("DIR", "FOLDER", "folder")
PATHS = ("FILE", "FILE|DIR", "ARCHIVE", "SOURCE", "TARBALL", "STORE")
CONFIGURATION = """`sheaf.toml` in the working folder has the settings, and `sheaf init` writes it.
A variable of the environment gives a setting too: SHEAF_SERVE_PORT is `serve.port`."""


def files() -> Mapping[Path, str]:
    """Return the text of each file by its path."""
    texts = {name: shtab.complete(whole_parser(), shell) for shell, name in COMPLETIONS.items()}
    texts["man/man1/sheaf.1"] = "\n".join(manual(REFERENCE.read_text("utf-8"))) + "\n"
    return {SHARE / name: text for name, text in texts.items()}


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of all commands, and what completes their values."""
    parser = make_parser(None)
    prepare(parser)
    return parser


def prepare(parser: Any) -> None:
    if hasattr(parser, "command"):
        parser.complete()
        parser.description = parser.command.summary  # the width of the terminal breaks the other
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            action.help = "command"
            for name in set(FAMILIES) & set(action.choices):  # they are added without a summary
                row = action._ChoicesPseudoAction(name, (), FAMILIES[name][1])
                action._choices_actions.append(row)
            for child in action.choices.values():
                prepare(child)
        elif not action.choices and action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY
        elif not action.choices and action.metavar in PATHS:
            action.complete = shtab.FILE


def manual(document: str) -> Iterator[str]:
    """Yield the lines of the manual page, in man(7), of the reference of the commands."""
    name = r"sheaf \- publish an archive's metadata and serve it over OAI\-PMH"
    releases = re.findall(r"^## \[([\d.]+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    yield '.TH SHEAF 1 "{1}" "sheaf {0}" Sheaf'.format(*releases[0])
    yield from (".SH NAME", name, ".SH SYNOPSIS", ".B sheaf", "[options] COMMAND ...")
    intro, _, commands = document.partition("<!-- commands -->")
    yield from (".SH DESCRIPTION", *wrap(intro.split("\n\n")[1]))
    yield from (".SH CONFIGURATION", *wrap(CONFIGURATION))
    yield ".SH COMMANDS"
    for block in commands.partition("<!-- end -->")[0].strip().split("\n\n"):
        if block.startswith("## "):
            yield f".SS {roff(block[3:])}"
        elif block.startswith("`sheaf"):
            yield f".B {roff(block)}"
        elif block.startswith("|"):
            for row in block.splitlines()[2:]:
                _, usage, meaning, _ = re.split(r" *(?<!\\)\| *", row)
                yield from (".TP", f".B {roff(usage)}", *wrap(meaning))
        elif block.startswith("```"):
            yield from (".PP", ".EX", *map(roff, block.splitlines()[1:-1]), ".EE")
        else:
            yield from (".PP", *wrap(block))
    yield from (".SH SEE ALSO", *wrap("`sheaf COMMAND --help`, and the documentation of Sheaf."))


def wrap(text: str) -> list[str]:
    """Return a paragraph in lines, each sentence beginning its own."""
    sentences = re.split(r"(?<=[.?!]) (?=[A-Z])", " ".join(text.split()))
    return [roff(line) for sentence in sentences for line in textwrap.wrap(sentence, 76)]


def roff(text: str) -> str:
    """Return a text without marks of Markdown, and escaped for man(7)."""
    plain = text.replace("`", "").replace("\\|", "|").replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{plain}" if plain[:1] in (".", "'") else plain
