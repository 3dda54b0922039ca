"""The command `sheaf`. Exit status: 0 done, 1 done with faults, 2 usage or configuration."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from importlib import metadata

from builder import context
from builder.commands import (
    demo,
    expire,
    export,
    fileset,
    gather,
    ingest,
    init,
    obi,
    publish,
    query,
    redif,
    serve,
    status,
    verify,
    withdraw,
)
from functions.snapshot.errors import SheafError

COMMANDS = (
    init,
    ingest,
    gather,
    fileset,
    publish,
    serve,
    status,
    query,
    withdraw,
    expire,
    verify,
    export,
    redif,
    obi,
    demo,
)


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM): workers and scratch files go first."""


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command and return its exit status."""
    try:
        arguments = _parser().parse_args(argv)
        signal.signal(signal.SIGTERM, _terminate)
        code: int = arguments.run(context.from_environment(arguments))
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


def _forget_output() -> None:
    """See that what is left of our output is not written when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sheaf", description="Publish an archive's metadata and answer OAI-PMH from it."
    )
    version = f"sheaf {metadata.version('sheaf')}"
    parser.add_argument("--version", action="version", version=version)
    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument(
        "--store", metavar="STORE", help="a folder or s3://bucket/prefix (default: store.uri)"
    )
    everywhere.add_argument("--config", metavar="FILE", help="configuration (default: sheaf.toml)")
    everywhere.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        text = (command.run.__doc__ or "").strip()
        sub = commands.add_parser(
            name, parents=[everywhere], help=text.partition("\n")[0], description=text
        )
        command.add(sub)
        sub.set_defaults(run=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
