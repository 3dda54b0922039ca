"""The command `sheaf`. Exit status: 0 done, 1 done with faults, 2 usage or configuration."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from typing import NoReturn

from builder.context import Context, from_environment
from builder.errors import UsageError
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
        arguments = _parser(given).parse_args(given)
        signal.signal(signal.SIGTERM, _terminate)
        code: int = arguments.run(surround(arguments))
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


class _Parser(argparse.ArgumentParser):
    """Tells of a mistake in one line, as all of Sheaf does; the usage is for who asks for help."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message} (`{self.prog} --help` tells how it is used)")


def _forget_output() -> None:
    """See that what is left of our output is not written when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def load(given: Sequence[str]) -> None:
    """Import the module of the command that these arguments ask for, if they ask for one."""
    if (name := _asked(given)) in COMMANDS:
        import_module(f"builder.commands.{name}")


def _asked(given: Sequence[str]) -> str | None:
    """Return the first argument that is no option: a command, if it is anything."""
    return next((argument for argument in given if not argument.startswith("-")), None)


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """Return what reads these arguments; it knows one command alone where they begin with it."""
    asked = _asked(given)
    parser = _Parser(
        prog="sheaf", description="Publish an archive's metadata and answer OAI-PMH from it."
    )
    version = f"sheaf {metadata.version('sheaf')}"
    parser.add_argument("--version", action="version", version=version)
    everywhere = _Parser(add_help=False)
    everywhere.add_argument(
        "--store", metavar="STORE", help="a folder or s3://bucket/prefix (default: store.uri)"
    )
    everywhere.add_argument("--config", metavar="FILE", help="configuration (default: sheaf.toml)")
    everywhere.add_argument(
        "--json", action="store_true", help="print JSON alone, a document or lines of it"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in [asked] if asked in COMMANDS and asked == given[0] else COMMANDS:
        sub = commands.add_parser(name, parents=[everywhere], help=COMMANDS[name])
        if name == asked:
            command = import_module(f"builder.commands.{name}")
            sub.description = (command.run.__doc__ or "").strip()
            command.add(sub)
            sub.set_defaults(run=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
