"""Files of web archives and indexes: which the inputs have, and which are known already."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from builder.errors import UsageError
from builder.intake.paths import STDIN, is_folder, list_files
from builder.sources.readings import find_readings, is_file
from builder.sources.source import SourceInput
from builder.sources.webarchives import recognise, search
from builder.sources.webarchives.cdx.text import find_form, is_secondary
from builder.sources.webarchives.ingest.splits import ArchiveFile, reading_of
from builder.sources.webarchives.remote import files as remote_files
from builder.sources.webarchives.rules import DocumentRules
from builder.text import tally
from builder.threads import map_requests
from functions.config.configuration import Configuration
from functions.snapshot import oai_name
from functions.snapshot.store import Writer


def find_files(
    inputs: Sequence[SourceInput], settings: Configuration, environment: Mapping[str, str]
) -> tuple[tuple[ArchiveFile, ...], tuple[str, ...]]:
    """Return the files to read, each once, and the sources of these and standard input.

    Sources in buckets and on servers are looked up side by side. Raises UsageError if a source does
    not exist, and StoreError for a bucket out of reach.
    """
    files: list[ArchiveFile] = []
    names: list[str] = []
    remote = [source.name for source in inputs if remote_files.is_remote(source.name)]
    look_up = partial(remote_files.find, settings=settings, environment=environment)
    looked_up = dict(zip(remote, map_requests(look_up, remote), strict=True))
    for source in inputs:
        own: list[ArchiveFile] = []
        if source.name in looked_up:
            own = looked_up[source.name]
        elif source.files is None and source.name != STDIN:
            is_named = not is_folder(source.name)
            paths = list_files([source.name])
            own = [replace(ArchiveFile.of(path), named=is_named) for path in paths]
        elif source.files and (not source.is_rest or any(map(_is_archive, source.files))):
            own = list(map(ArchiveFile.of, source.files))
        if own or source.name == STDIN:
            names.append(remote_files.name_source(source.name))
            files += own
    named_files = {file for file in files if file.named}
    folders = {_folder(file) for file in files if search.names_archive(file.path.name)}
    # Each file once, with the facts that all sources and its neighbours give about it.
    distinct = (
        replace(file, named=file in named_files, among=_folder(file) in folders)
        for file in dict.fromkeys(files)
    )
    return tuple(distinct), tuple(names)


def _folder(file: ArchiveFile) -> str:
    return file.address.rpartition("/")[0] or str(file.path.parent)


def _is_archive(path: Path) -> bool:
    if search.names_archive(path.name):
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            head = recognise.read_head(stream)
    except OSError:
        return False
    return bool(recognise.recognise(head) or find_form(head)) or is_secondary(head)


def leave_known(
    store: Writer,
    files: Sequence[ArchiveFile],
    sets: Sequence[str],
    rules: DocumentRules,
    say: Callable[[str], None],
    home: Path,
) -> tuple[ArchiveFile, ...]:
    """Return the files that were not read before in this way (see reading_of).

    The number of the others is said. A file that the user names is read again if it gave no
    captures, so that the reason is said again. A file that was moved is read again, so that its
    content is found. Relative paths are relative to `home`. Raises DamagedStore and StoreError.
    """
    readings: dict[str, dict[str, int]] = {}
    for reading, path, captures in find_readings(store):
        readings.setdefault(reading, {})[path] = captures

    def is_known(file: ArchiveFile) -> bool:
        paths = readings.get(reading_of(file, sets, rules) or "", {})
        if not any(p == file.label or ("://" not in p and is_file(home / p)) for p in paths):
            return False
        return max(paths.values()) > 0 or not file.named

    left = tuple(file for file in files if not is_known(file))
    if many := len(files) - len(left):
        say(f"already ingested: {many:,} of {tally(len(files), 'file')} (--again reads them)")
    return left


def collection_sets(collections: Sequence[str]) -> tuple[str, ...]:
    """Return the sets of `--collection` values, whose levels are separated by colons."""
    specs = []
    for collection in collections:
        levels = collection.split(":")
        if not all(levels):
            raise UsageError(f"--collection {collection!r}: a level between colons is empty")
        try:
            specs.append(oai_name.join_set("collection", *levels))
        except UnicodeEncodeError as error:
            raise UsageError(f"--collection {collection!r}: expected UTF-8") from error
    return oai_name.most_specific_sets(specs)
