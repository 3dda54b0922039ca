"""`sheaf prove`."""

import argparse
import re
from datetime import timedelta
from pathlib import Path

from builder.arguments import declare
from builder.errors import UsageError, explaining
from builder.outputs.log import signer
from builder.outputs.log.bundle import describe_verdict, verdict_document, verify_bundle
from builder.outputs.log.prove import Prover
from builder.store.context import Context
from builder.text import tally
from functions.kinds import IN_FORMATS
from functions.snapshot import instant, oai_name
from functions.store.catalog import Catalogue


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "identifier [ID]": "an OAI identifier",
            "--as-of DATE": "in the snapshot in effect then: a day (its end) or an instant, such "
            "as 2026-11-26T12:00:00Z (default: the newest snapshot)",
            "--to FILE": "file of the bundle (default: proof.json)",
            "--new-key FILE": "instead, write a new private key for sign.key, and print its "
            "verifier key",
        },
        to={"default": "proof.json"},
    )


def run(context: Context) -> int:
    """Prove that a record was in a snapshot, or was not.

    The bundle needs no store: `sheaf verify --bundle` and other programs check it.
    """
    arguments = context.arguments
    if (arguments.identifier is None) == (arguments.new_key is None):
        raise UsageError("give an ID, or --new-key FILE")
    if arguments.new_key is not None:
        path = Path(arguments.new_key)
        with explaining(path, "written"):
            try:
                key = signer.create_key(path, signer.name_log(context.defaults)).to_text()
            except FileExistsError as error:
                raise UsageError(f"{path} exists: keys are never overwritten") from error
        context.result(key, {"key_file": str(path), "verifier_key": key})
        return 0
    if arguments.identifier.encode(errors="replace").decode() != arguments.identifier:
        raise UsageError(f"{arguments.identifier!a} is not an identifier: it is not UTF-8")
    as_of = None
    if arguments.as_of is not None:
        as_of = instant.from_datestamp(arguments.as_of)
        if as_of is None:
            raise UsageError(
                f"--as-of {arguments.as_of}: expected a day or an instant such as "
                "2026-11-26T12:00:00Z"
            )
        if "T" not in arguments.as_of:
            as_of += timedelta(days=1, seconds=-1)
    prover = Prover(context.store)
    try:
        bundle = prover.prove(arguments.identifier, as_of)
    finally:
        prover.close()
    data, verdict = bundle.to_json(), verify_bundle(bundle, None)
    if not verdict.present:
        _check_form(context, arguments.identifier)
    with explaining(arguments.to, "written"):
        Path(arguments.to).write_bytes(data)
    context.result(
        f"{describe_verdict(verdict)}\n{arguments.to} proves it ({tally(len(data), 'byte')})",
        {"bundle": arguments.to, "bytes": len(data), **verdict_document(verdict)},
    )
    return 0


def _check_form(context: Context, identifier: str) -> None:
    """Raise UsageError if no item of the store can have the identifier.

    Its absence would be true and mislead: the item may be there under its own identifier.
    """
    catalogue = Catalogue(context.store)
    newest = catalogue.pointer().newest()
    assert newest is not None  # the log has a snapshot
    manifest = catalogue.manifest(newest.snapshot)
    namespace = manifest.namespace
    foreign = IN_FORMATS & manifest.kinds().keys() and re.match(r"oai:[^:]+:.", identifier)
    if not foreign and not oai_name.is_own(identifier, namespace, manifest.prefix):
        raise UsageError(
            f"{identifier} is not an identifier of this store, so that its absence proves nothing: "
            f"give an OAI identifier, such as {oai_name.to_oai(namespace, 'dataset,...')} "
            "(`sheaf query` lists them)"
        )
