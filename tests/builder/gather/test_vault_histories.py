"""Random histories of files: an import of their export records what gathering recorded."""

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builder.export import obi_source, warc
from builder.gather.hold import hold_store
from builder.gather.vaults.archives import VaultArchives
from builder.gather.vaults.faults import FaultList
from builder.gather.vaults.import_report import ImportReport
from builder.gather.vaults.vault_import import ImportJob, VaultImport
from builder.ingest import splits
from builder.ingest.remote.access import SourceAccess
from builder.ingest.splits import ArchiveFile
from builder.obi import log
from builder.obi.content import Incidence, Redirect, Version, read_version
from builder.obi.run import history
from builder.store.folder import FolderStore
from tests.builder.gather.conftest import World
from tests.builder.http import site as web
from tests.builder.http.site import Answer, serving
from tests.extent import examples

PATHS = ("/a", "/b", "/a/", "/c")
NAMED = ("/a", "/b", "/c")
ANSWERS: Mapping[str, Answer] = {
    "one": web.text(b"%PDF 1"),
    "two": web.text(b"%PDF 2"),
    "page": web.text(b"<p>", "text/html"),
    **{path: web.redirect(path, 301) for path in PATHS[1:]},
}
FILES = ("one", "two", "page")
STATE = st.fixed_dictionaries(
    {path: st.sampled_from((*FILES, *PATHS[n + 1 :])) for n, path in enumerate(PATHS)}
)
"""What each path answers. All redirects lead to files: failures are not exported."""


def describe(world: World) -> dict[str, list[Any]]:
    """Return by URL what became of its file, and where it led to as this changed."""
    found: dict[str, list[Any]] = {}
    for run in history(world.store):
        for row in log.read_rows(world.store, run):
            if isinstance(row, Incidence | Version) and row.kind == "fobi":
                what = (
                    (row.what, row.again)
                    if isinstance(row, Incidence)
                    else (read_version(world.store, row), row.media_type, row.flags)
                )
                found.setdefault(row.id, []).append(what)
            elif isinstance(row, Redirect):
                led = (row.target, row.status, row.key is None, row.target_key is None)
                ways = found.setdefault(f"from {row.origin}", [])
                if ways[-1:] != [led]:
                    ways.append(led)
    return found


def import_folder(world: World, folder: Path, batch: int) -> ImportReport:
    files = [ArchiveFile.of(path) for path in splits.find([str(folder)])]
    with hold_store(world.folder / "work", world.store.address) as hold:
        archives = VaultArchives(SourceAccess(), {}, hold.scratch, FaultList())
        job = ImportJob(files, "a folder", batch, 512)
        return VaultImport(world.store, hold, world.runtime, archives, job).run()


@settings(max_examples=examples(6), deadline=None)
@given(states=st.lists(STATE, min_size=1, max_size=3), batch=st.sampled_from([1, 100]))
def test_an_export_gives_the_same_histories(
    states: Sequence[Mapping[str, str]], batch: int
) -> None:
    with serving() as site, tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / "gathered", Path(name) / "imported"]
        first, second = (World(FolderStore(f / "store"), site, f) for f in folders)
        urls = [site.url(path) for path in NAMED]
        for world in (first, second):
            world.folder.mkdir(exist_ok=True)
            world.refer(urls)
        for state in states:
            site.pages = {path: ANSWERS[state[path]] for path in PATHS}
            first.gather(again=True)
            first.days(1)
        target = Path(name) / "warc"
        with obi_source.open_obi(first.store, 512, 1) as (runs, connection):
            warc.export(
                first.store,
                [
                    warc.FetchedFile(
                        run.tist,
                        partial(obi_source.sightings, connection, run.tist),
                        partial(obi_source.list_exchanges, first.store, run),
                    )
                    for run in runs
                    if run.kind == "gather"
                ],
                target,
                lambda many: None,
            )
        import_folder(second, target, batch)
        assert describe(second) == describe(first)
        assert not import_folder(second, target, batch).gathered.runs
