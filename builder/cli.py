"""The command `sheaf`. Exit status: 0 done, 1 done with faults, 2 usage or configuration."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

from builder.context import Context, from_environment
from builder.errors import UsageError
from functions import distribution
from functions.snapshot.errors import SheafError

COMMANDS = {
    "init": "Write a configuration, sheaf.toml, that lists every key with its default.",
    "ingest": "Read web archives and harvests into the intake, ReDIF into the obi store; "
    "then publish.",
    "gather": "Fetch the files that templates refer to, where they are due; "
    "given again, it goes on.",
    "fileset": "Archive datasets: fetch their files, verify them, keep them, "
    "and print a result for each.",
    "harvest": "Harvest OAI-PMH repositories into a folder; given again, it goes on or brings up "
    "to date.",
    "publish": "Publish what was ingested as the next snapshot.",
    "serve": "Serve OAI-PMH at /oai and a page for people at /, until interrupted.",
    "status": "Say what is published and what waits to be published.",
    "query": "Ask the newest snapshot in DuckDB's SQL.",
    "withdraw": "Make items tombstones with a reason, or take that back.",
    "expire": "Retire old snapshots, and remove what no kept snapshot names.",
    "verify": "Check that the store is whole and true to itself.",
    "export": "Copy the store to another place, or put what it holds into the formats of archives.",
    "restore": "Restore a site out of the archive onto disk; given again, it goes on.",
    "redif": "Read ReDIF: a JSON line for each template, and a summary of what is wrong.",
    "obi": "Tell the history of a template or file in the obi store, or what the store holds.",
    "demo": "Show the whole way: a crawl (or your own files), ingest, publish, serve, harvest, "
    "restore.",
}
"""Each command, as the help has them, and what it does; its module is imported to carry it out."""


_VALUED = ("--store", "--config")
_ATTACHED = tuple(f"{option}=" for option in _VALUED)
"""Options before a command that have a value, and how they begin where it is attached."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM): workers and scratch files go first."""


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def main(
    argv: Sequence[str] | None = None,
    surround: Callable[[argparse.Namespace], Context] = from_environment,
) -> int:
    """Carry out one command, in what `surround` gives it, and return its exit status."""
    try:
        given = sys.argv[1:] if argv is None else argv
        if not given or given[0] == "help":
            given = [*given[1:2], "--help"]
        signal.signal(signal.SIGTERM, _terminate)
        code = carry_out(given, surround)
        sys.stdout.flush()
    except SheafError as error:
        print(f"sheaf: {error}", file=sys.stderr)
        return 2
    except Terminated:
        print("sheaf: asked to end; run it again to finish its work", file=sys.stderr)
        return 143
    except KeyboardInterrupt:
        print("sheaf: interrupted; run it again to finish its work", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        _forget_output()
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _forget_output()
        print(f"sheaf: {error.strerror}", file=sys.stderr)
        return 2
    return code


def carry_out(given: Sequence[str], surround: Callable[[argparse.Namespace], Context]) -> int:
    """Parse a command line, run its command in what `surround` gives it, return its exit status.

    Raises SheafError. The command finds this function among its arguments, to run others.
    """
    _check_command(_find_command(given))
    arguments = _parser().parse_args(given)
    code: int = arguments.run(surround(arguments))
    return code


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, as all of Sheaf does; the usage is printed by --help."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message} (`{self.prog} --help` tells how it is used)")


class _Command(_Parser):
    """A command's parser. It imports the command, and adds its arguments, once it is to parse.

    Arguments that have no type of their own are texts, none of which may be empty.
    """

    command = ""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse the arguments of the command. Raises UsageError for one that is not known."""
        module = import_module(f"builder.commands.{self.command}")
        self.register("type", None, given_text)
        self.description = (module.run.__doc__ or "").strip()
        module.add(self)
        self.set_defaults(run=module.run)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def given_text(text: str) -> str:
    """Return an argument as it is. Raises ArgumentTypeError where it is empty, blank or has NUL.

    An empty one is mostly a variable of a shell that is not set. As a path it would mean the
    working folder.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is empty")
    if "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} has a NUL character")
    return text


def _forget_output() -> None:
    """See that what is left of our output is not written when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def load(given: Sequence[str]) -> None:
    """Import the module of the command that these arguments ask for, if they ask for one."""
    if (name := _find_command(given)) in COMMANDS:
        import_module(f"builder.commands.{name}")


def _find_command(given: Sequence[str]) -> str | None:
    """Return the first argument behind options that stand before a command, None for none."""
    rest = iter(given)
    for argument in rest:
        if argument in _VALUED:
            next(rest, None)
        elif not argument.startswith("-"):
            return argument
        elif argument != "--json" and not argument.startswith(_ATTACHED):
            return None
    return None


def _check_command(name: str | None) -> None:
    """Raise UsageError for the name of a command that there is not."""
    if name is None or name in COMMANDS:
        return
    close = get_close_matches(name, COMMANDS, n=1)
    meant = f"; did you mean `sheaf {close[0]}`?" if close else ""
    raise UsageError(f"{name!r} is no command (`sheaf --help` lists them){meant}")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands. What --store and its like say last counts."""
    parser = _Parser(
        prog="sheaf", description="Publish an archive's metadata and answer OAI-PMH from it.",
        parents=[_everywhere(None)],
    )  # fmt: skip
    version = f"sheaf {distribution.version()}"
    parser.add_argument("--version", action="version", version=version)
    parser.set_defaults(json=False, carry_out=carry_out)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Command)
    for name, meaning in COMMANDS.items():
        # Suppressed, so that a command that lacks an option keeps what stands before it.
        again = [_everywhere(argparse.SUPPRESS)]
        commands.add_parser(name, parents=again, help=meaning).command = name
    return parser


def _everywhere(default: str | None) -> _Command:
    """Return a parser of the options that may stand before a command or behind it."""
    parser = _Command(add_help=False)
    parser.add_argument(
        "--store", metavar="STORE", type=given_text, default=default,
        help="a folder or s3://bucket/prefix (default: store.uri)",
    )  # fmt: skip
    parser.add_argument(
        "--config", metavar="FILE", type=given_text, default=default,
        help="configuration (default: sheaf.toml)",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS,
        help="print JSON alone, a document or lines of it",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
