"""`sheaf export oai`."""

import argparse

from builder.arguments import declare
from builder.errors import UsageError
from builder.exports import record_parts
from builder.outputs.dumps import json_lines
from builder.store.context import Context
from functions.snapshot.oai_name import MANDATORY


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    record_parts.add_options(parser)
    meanings = {"--format PREFIX": f"metadata format (default: {MANDATORY})"}
    declare(parser, meanings, format={"default": MANDATORY})


def run(context: Context) -> int:
    """Write records as OAI-PMH documents: all, or what changed since a snapshot.

    Each part is a response to ListRecords, compressed, and manifest.json has their digests.
    """
    if context.arguments.format == json_lines.NAME:
        raise UsageError("--format jsonl: run `sheaf export jsonl`")
    return record_parts.export(context, context.arguments.format)
