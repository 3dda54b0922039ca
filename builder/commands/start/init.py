"""`sheaf init`."""

import argparse
import os
from pathlib import Path

from builder.arguments import declare
from builder.errors import UsageError, explaining
from builder.snapshot import recovery
from builder.store.context import Context
from builder.store.s3 import open_store
from functions.config import configuration
from functions.snapshot.errors import SheafError
from functions.store.store_reader import remote_of

_OPTIONS = (
    ("name", "repository.name", "the repository's name"),
    ("email", "repository.admin_emails", "the administrator's e-mail address"),
    ("namespace", "repository.namespace", "your domain name, part of every identifier"),
    ("publisher", "repository.publisher", "who publishes the metadata"),
    ("licence", "rights.statement", "the licence of the metadata: a URL or a text"),
    ("base-url", "repository.base_url", "the public address of the OAI endpoint"),
)

_PATIENCE = 5
"""Seconds of retries if a bucket does not answer: its id can wait."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    options = {f"--{option} TEXT as {key}": text for option, key, text in _OPTIONS}
    declare(parser, {"folder [folder]": "folder for sheaf.toml (default: here)", **options})


def run(context: Context) -> int:
    """Write a configuration that lists every key with its default.

    The file is sheaf.toml. An empty store gets its id.
    """
    arguments = vars(context.arguments)
    path = Path(arguments["config"] or Path(arguments["folder"] or ".") / configuration.FILE)
    settings = {key: arguments[key] for _, key, _ in _OPTIONS if arguments[key] is not None}
    if "repository.admin_emails" in settings:
        settings["repository.admin_emails"] = [settings["repository.admin_emails"]]
    if arguments["store"]:
        uri, here, folder = arguments["store"], Path.cwd(), path.parent.resolve()
        if remote_of(uri) is None and not Path(uri).is_absolute() and folder != here:
            uri = os.path.relpath(here / uri, folder)  # in the file, it is relative to that
        settings["store.uri"] = uri
    text = configuration.template(settings)
    configuration.parse(text, {}, "sheaf init")  # rejects invalid values of the options
    with explaining(path.parent, "created"):
        path.parent.mkdir(parents=True, exist_ok=True)
    with explaining(path, "written"):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise UsageError(f"{path} already exists: edit it, or remove it first") from None
    _identify(context, path)
    context.result(
        f"wrote {path}\n"
        f"next{_place(path)}: sheaf ingest FILES... or sheaf fileset DOI..., sheaf publish, "
        "sheaf serve",
        {"configuration": str(path)},
    )
    return 0


def _place(path: Path) -> str:
    """Return where the next commands find the configuration, "" if that is here."""
    if path.name != configuration.FILE:
        return f", with --config {path}"
    return "" if path.parent.resolve() == Path.cwd() else f", in {path.parent}"


def _identify(context: Context, path: Path) -> None:
    """Give the store its id if it is empty and reachable; otherwise its first publish does."""
    try:
        settings = configuration.load(path, context.environment)
        patient = min(settings["store.retry_seconds"], _PATIENCE)
        settings = settings.having("store.retry_seconds", patient)
        store = open_store(settings["store.uri"], path.parent, settings, context.environment)
        recovery.begin_identity(store, context.identity)
    except SheafError as error:
        context.say(f"the store has no id yet, and its first publish gives it one: {error}")
