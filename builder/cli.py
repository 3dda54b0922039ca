"""The command `sheaf`. Exit status: 0 done, 1 done with faults, 2 usage or configuration."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from builder import context
from builder.commands import demo, ingest, init, publish, query, serve, status
from functions.snapshot.errors import SheafError

COMMANDS = (init, ingest, publish, serve, status, query, demo)


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command and return its exit status."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(context.from_environment(arguments))
        sys.stdout.flush()
    except SheafError as error:
        print(f"sheaf: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sheaf: interrupted; what was not finished is not kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sheaf", description="Publish an archive's metadata and answer OAI-PMH from it."
    )
    version = f"sheaf {metadata.version('sheaf')}"
    parser.add_argument("--version", action="version", version=version)
    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument("--store", metavar="FOLDER", help="the store (default: store.uri)")
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
