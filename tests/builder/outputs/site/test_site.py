"""`publish.site`: all answers as files, whatever was published."""

import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings

from builder.outputs.site.site_files import SiteFiles
from builder.outputs.site.site_lists import SiteSnapshot
from builder.outputs.site.update import SiteUpdate
from builder.store.folder import FolderStore
from tests.builder.conftest import World
from tests.builder.outputs.dumps.history import Operation, apply, histories
from tests.builder.outputs.site.harvest import Folder, compare
from tests.extent import examples

SITE = {
    "SHEAF_PUBLISH_SITE": "true",
    "SHEAF_PAGES_RECORDS": "3",
    "SHEAF_PAGES_IDENTIFIERS": "4",
    "SHEAF_PAGES_SETS": "3",
}
FORMATS = {"SHEAF_FORMATS_OFFERED": '["oai_dc", "mods"]'}


def folder_of(world: World) -> Folder:
    return Folder(world.root / "site")


def write_fresh(world: World, root: Path, **settings: str) -> Folder:
    """Return a whole export of the newest snapshot to a new folder."""
    with closing(world.repository()) as repository:
        snapshot = SiteSnapshot.of(repository, world.newest(), world.configuration(**settings))
        SiteUpdate(snapshot, SiteFiles(FolderStore(root), ""), world.runtime()).run()
    world.opened.clear()
    return Folder(root)


def contents(folder: Folder) -> dict[str, list[object]]:
    """Return the records of each list of a folder, and the sets."""
    specs = folder.sets()
    return {
        f"{letter} {prefix} {spec}": [*folder.harvest(letter, prefix, spec)]
        for letter in "ri"
        for prefix in folder.router["formats"]
        for spec in ("", *specs)
    } | {"sets": [*specs]}


def names(folder: Folder) -> set[str]:
    return {path.relative_to(folder.root).as_posix() for path in folder.root.rglob("*.*")}


def written(folder: Folder, since: dict[str, bytes]) -> set[str]:
    """Return the files besides gzip that are new or differ."""
    return {n for n, data in read_all(folder).items() if since.get(n) != data and n[-3:] != ".gz"}


def read_all(folder: Folder) -> dict[str, bytes]:
    return {n: (folder.root / n).read_bytes() for n in names(folder) if (folder.root / n).is_file()}


@given(histories)
@settings(max_examples=examples(20), deadline=None)
def test_it_is_what_a_whole_export_and_the_server_are(history: list[Operation]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        world = World(Path(scratch) / "store")
        try:
            for number, operation in enumerate(history):
                apply(world, operation, **SITE, **FORMATS)
                world.clock.sleep(60)
                if (world.root / "site/router.json").exists() and number % 2:
                    compare(world, folder_of(world), {**SITE, **FORMATS})
            if not (world.root / "site/router.json").exists():
                return
            compare(world, folder_of(world), {**SITE, **FORMATS})
            fresh = write_fresh(world, Path(scratch) / "fresh", **SITE, **FORMATS)
            assert contents(folder_of(world)) == contents(fresh)
            assert world.verify().findings == ()
        finally:
            world.close()
