"""Command line of `sheaf`. Exit status: 0 done, 1 done with faults, 2 usage or configuration."""

import argparse
import errno
import inspect
import os
import platform
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from builder.commands.command_table import COMMANDS, FAMILIES, Command, ending, overview
from builder.errors import UsageError
from builder.http.secrets import clean_text
from functions.snapshot.errors import SheafError

if TYPE_CHECKING:
    from builder.store.context import Context

_VALUED = ("--store", "--config")
_ATTACHED = tuple(f"{option}=" for option in _VALUED)
"""Options before a command that take a value, and their prefixes for an attached value."""


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: workers are stopped and scratch files removed first."""


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def _from_environment(arguments: argparse.Namespace) -> "Context":
    from builder.store import context  # it loads the store, which the version does without

    return context.from_environment(arguments)


def main(
    argv: Sequence[str] | None = None,
    surround: Callable[[argparse.Namespace], "Context"] = _from_environment,
) -> int:
    """Run one command in the context from `surround`, and return its exit status."""
    try:
        words = sys.argv[1:] if argv is None else argv
        if not words or words[0] == "help":
            words = [*words[1:3], "--help"]
        signal.signal(signal.SIGTERM, _terminate)
        code = carry_out(words, surround)
        sys.stdout.flush()
    except SheafError as error:
        print(f"sheaf: {clean_text(str(error))}", file=sys.stderr)
        return 2
    except Terminated:
        print("sheaf: terminated; run the command again to finish its work", file=sys.stderr)
        return 143
    except KeyboardInterrupt:
        print("sheaf: interrupted; run the command again to finish its work", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has closed it
        _forget_output()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        _forget_output()
        print(f"sheaf: {error.strerror}", file=sys.stderr)
        return 2
    return code


def carry_out(words: Sequence[str], surround: Callable[[argparse.Namespace], "Context"]) -> int:
    """Parse a command line, run its command in the context from `surround`, return its status.

    Raises SheafError. The command's arguments contain this function, so that it can run others.
    """
    name = _find_command(words)
    names = sorted({command.partition(" ")[0] for command in COMMANDS})
    if name is not None and (first := name.partition(" ")[0]) not in names:
        close = get_close_matches(first, names, n=1)
        meant = f"; did you mean `sheaf {close[0]}`?" if close else ""
        raise UsageError(f"{first!r} is not a command (`sheaf --help` lists them){meant}")
    arguments = make_parser(name).parse_args(words)
    code: int = arguments.run(surround(arguments))
    return code


class _Parser(argparse.ArgumentParser):
    """Reports a usage error in one line, like other errors; --help prints the usage."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        named.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*arguments, **named)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")


class _Command(_Parser):
    """A command's parser. It imports the command, and adds its arguments, only when it parses.

    Arguments without a type are texts that must not be empty.
    """

    command: Command
    many: str = ""
    """The argument that takes any number of texts, if there is one."""

    def add_argument(self, *names: str, **named: Any) -> argparse.Action:
        """Declare an argument."""
        if named.get("nargs") == "*" and not names[0].startswith("-"):
            self.many = names[0]
        return super().add_argument(*names, **named)

    def complete(self) -> None:
        """Import the command, and add its arguments, description and examples."""
        body = self.command.load()
        self.register("type", None, require_text)
        self.description = _fill(inspect.getdoc(body.run) or "")
        body.add(self)
        self.epilog = "\n\n".join(filter(None, (_fill(self.epilog or ""), ending(self.command))))
        self.set_defaults(run=body.run, writes=self.command.writes)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse the arguments of the command. Raises UsageError for an unknown one."""
        self.complete()
        parsed, unknown = super().parse_known_args(args, namespace)
        if self.many and not any(text[:1] == "-" and text != "-" for text in unknown):
            try:  # argparse takes texts before an option only
                getattr(parsed, self.many).extend(map(require_text, unknown))
                unknown = []
            except argparse.ArgumentTypeError as error:
                self.error(str(error))
        elif unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown


def _fill(text: str) -> str:
    """Return paragraphs in lines that fit the terminal."""
    width = max(shutil.get_terminal_size().columns - 2, 20)
    return "\n\n".join(textwrap.fill(" ".join(p.split()), width) for p in text.split("\n\n"))


def require_text(text: str) -> str:
    """Return an argument unchanged. Raises ArgumentTypeError if it is empty, blank or has NUL.

    An empty argument is mostly an unset shell variable. As a path it would mean the working folder.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is empty")
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} has a NUL character")
    return text


def _forget_output() -> None:
    """Prevent the interpreter from writing the rest of our output when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def load(words: Sequence[str]) -> None:
    """Import the module of the command that these words of a command line name, if any."""
    if (command := COMMANDS.get(_find_command(words) or "")) is not None:
        command.load()


def _find_command(words: Sequence[str]) -> str | None:
    """Return the first argument after the options before a command, or None.

    For a command with subcommands, return the first two.
    """
    rest, name = iter(words), None
    for argument in rest:
        if argument in _VALUED:
            next(rest, None)
        elif not argument.startswith("-"):
            name = argument if name is None else f"{name} {argument}"
            if name not in FAMILIES:
                return name
        elif argument != "--json" and not argument.startswith(_ATTACHED):
            return name
    return name


def make_parser(name: str | None) -> argparse.ArgumentParser:
    """Return the parser of one command, or of all. Of repeated options, the last counts.

    To make the parsers of all commands takes longer than most other things at a command's start.
    """
    parser = _Parser(
        prog="sheaf",
        description="Publish an archive's metadata and serve it over OAI-PMH.",
        usage="%(prog)s [-h] [--version] [--store STORE] [--config FILE] [--json] COMMAND ...",
        parents=[_make_common_options(None)],
        epilog=overview(),
    )
    parser.add_argument("--version", action=_VersionAction)
    parser.set_defaults(json=False, carry_out=carry_out)
    commands = parser.add_subparsers(
        prog="sheaf",
        required=True,
        metavar="COMMAND",
        parser_class=_Command,
        help=argparse.SUPPRESS,
    )
    families = {}
    first = name and name.partition(" ")[0]
    for command in COMMANDS.values():
        family, _, part = command.name.partition(" ")
        if first not in (None, family):
            continue
        if part and family not in families:
            families[family] = _family(commands, family)
        # Without defaults, so that the value of an option before the command is not overwritten.
        common: list[Any] = [_make_common_options(argparse.SUPPRESS)]
        holder = families[family] if part else commands
        subparser = holder.add_parser(part or family, parents=common, help=command.summary)
        subparser.command = command
    return parser


def _family(commands: Any, name: str) -> Any:
    """Return the object to which the subcommands of a command are added."""
    metavar, summary = FAMILIES[name]
    parser = _Parser(
        prog=f"sheaf {name}",
        description=summary,
        parents=[_make_common_options(argparse.SUPPRESS)],
        epilog=f"`sheaf {name} {metavar} --help` describes one.",
    )
    commands.choices[name] = parser
    return parser.add_subparsers(
        title=f"{metavar.lower()}s", required=True, metavar=metavar, parser_class=_Command
    )


def _make_common_options(default: str | None) -> _Parser:
    """Return a parser of the options that may come before or after a command."""
    parser = _Parser(add_help=False)
    parser.add_argument(
        "--store",
        metavar="STORE",
        type=require_text,
        default=default,
        help="the store: a folder or s3://bucket/prefix; https://... to read only (default: "
        "store.uri)",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=require_text,
        default=default,
        help="configuration (default: sheaf.toml)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,
        help="print JSON only: a document, or one object per line",
    )
    return parser


class _VersionAction(argparse.Action):
    """Print the versions and exit with 0; nothing is looked up for other commands."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        help = "show the versions of Sheaf and its libraries, and exit"
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(describe_version(), end="")
        parser.exit()


def describe_version() -> str:
    """Return the lines of `sheaf --version`, each with its line end."""
    from builder import distribution  # it loads importlib.metadata

    lines = [
        f"sheaf {distribution.version() or 'of a copied folder'}",
        f"commit {distribution.commit() or _find_commit() or 'unknown'}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        *(f"{name} {version or 'missing'}" for name, version in distribution.libraries().items()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _find_commit() -> str:
    """Return the commit of the checkout that runs, with + if files differ; "" if it is none."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists() or shutil.which("git") is None:
        return ""
    import subprocess

    command = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--dirty=+"]
    done = subprocess.run([*command, "--exclude=*"], capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
