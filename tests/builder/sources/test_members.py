"""What each source that `sheaf ingest` reads does, whatever it reads."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.commands.demo.samples import FILES
from builder.commands.make import ingest as command
from builder.sources import SOURCES
from builder.sources.source import Source, SourceInput
from builder.store.folder import FolderStore
from tests.builder.sources.harvest.provider import items
from tests.builder.sources.harvest.written import harvest, row
from tests.builder.sources.redif.trees import archive, papers, tree
from tests.clock import make_context
from tests.e2e.conftest import Home, make_home, warc
from tests.e2e.test_commands import PAGES

SAMPLES: dict[str, tuple[Callable[[Path], Path], str]] = {
    # package: what makes a sample in a folder, and the file of it that is damaged
    "builder.sources.webarchives": (lambda at: warc(at / "a.warc.gz", PAGES), "a.warc.gz"),
    "builder.sources.records": (lambda at: books(at / "books.mrc"), "books.mrc"),
    "builder.sources.redif": (
        lambda at: tree(at / "RePEc", {**archive(), "aaa/wpaper/p.rdf": papers(2)}),
        "RePEc/aaa/wpaper/p.rdf",
    ),
    "builder.sources.harvest": (
        lambda at: harvest(at / "harvests", map(row, items(3))).parent,
        "harvests/*/part-*",
    ),
}


def books(path: Path) -> Path:
    """Write a file with three records of MARC."""
    path.write_bytes((FILES / path.name).read_bytes())
    return path


READ = [source for source in SOURCES if source.inputs]
each = pytest.mark.parametrize("source", READ, ids=lambda source: source.package.split(".")[-1])


def published(home: Home) -> list[int]:
    """Publish; return how many items are new, changed and deleted."""
    done = home("publish", "--json")
    assert done.code == 0, done.err
    return [done.json[name] for name in ("new", "changed", "deleted")]


@each
def test_a_source_takes_its_own_and_leaves_others(
    source: Source, home: Home, tmp_path: Path
) -> None:
    parser = argparse.ArgumentParser()
    command.add(parser)
    arguments = parser.parse_args([], argparse.Namespace(config=str(home.config), store=None))
    inputs = [SourceInput(str(make(tmp_path))) for make, _ in SAMPLES.values()]
    own = inputs[list(SAMPLES).index(source.package)]
    claim = source.load().claim(make_context(arguments), inputs)
    assert claim.read
    if source.package != "builder.sources.webarchives":  # they take the rest
        others = [given.name for given in claim.rest if not given.is_rest]
        assert others == [given.name for given in inputs if given is not own]


@each
def test_what_is_read_again_is_not_new(source: Source, home: Home, tmp_path: Path) -> None:
    sample = SAMPLES[source.package][0](tmp_path)
    for arguments, is_new in (((), True), ((), False), (("--again",), False)):
        done = home("ingest", sample, "--jobs", "1", *arguments)
        assert (done.code, "Traceback" in done.err) == (0, False), done.err
        if is_new and source.noun:
            assert source.noun[0] in home("status").out
        assert any(published(home)) == is_new


@each
def test_damage_is_a_fault_or_a_failure(source: Source, home: Home, tmp_path: Path) -> None:
    make, pattern = SAMPLES[source.package]
    sample, (path,) = make(tmp_path), tmp_path.glob(pattern)
    path.write_bytes(path.read_bytes()[:40] + bytes(40))
    done = home("ingest", sample, "--jobs", "1", "--strict")
    assert (done.code, "Traceback" in done.err) == (1, False), done.err
    assert home("publish").code in (0, 2)  # 2: there is nothing else
    assert home("verify").code == 0


@each
def test_an_interrupted_ingest_goes_on(
    source: Source, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = SAMPLES[source.package][0](tmp_path)
    whole = make_home(tmp_path / "whole")
    whole("ingest", sample, "--jobs", "1")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "create", interrupt)
        assert home("ingest", sample, "--jobs", "1").code == 130
    assert home("ingest", sample, "--jobs", "1").code == 0
    assert published(home) == published(whole)
