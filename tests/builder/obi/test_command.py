"""The command line over a store with runs: verify and export, on a folder and on a bucket."""

import json
import shutil
from pathlib import Path

import pytest

from builder.obi import key
from builder.obi.content import Redirect
from builder.obi.run import claim
from builder.store.folder import FolderStore
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import GATHER, HANDLE, redirected, replaced
from tests.builder.sources.redif.samples import PAPER
from tests.builder.sources.redif.trees import archive, tree
from tests.e2e.conftest import Home, make_home

pytestmark = pytest.mark.shared(2)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Give a store with one run, published, which is only read."""
    tmp_path = tmp_path_factory.mktemp("published")
    home = make_home(tmp_path / "home")
    files = {**archive(), "aaa/wpaper/1998.rdf": PAPER}
    assert home("ingest", tree(tmp_path / "RePEc", files)).code == 0
    assert home("publish").code == 0
    return home


@pytest.fixture
def home(published: Home, tmp_path: Path) -> Home:
    """Give a copy of that store for one test alone."""
    return Home(Path(shutil.copytree(published.folder, tmp_path / "home")))


@pytest.mark.thorough
def test_verify_tells_of_runs_and_what_is_wrong_with_them(home: Home) -> None:
    store = FolderStore(home.folder / "store")
    told = home("verify")
    assert told.code == 0
    assert "1 run of the obi store checked, 1 of 1 object read\nno problems found" in told.out
    (pack,) = store.keys(key.PACKS)
    replaced(store, pack, store.read(pack).replace(b"Title", b"Tidle", 1))
    told = home("verify")
    assert told.code == 1
    assert f"damage: {pack}: its bytes differ from its name" in told.out
    document = json.loads(home("verify", "--json").out)
    assert (document["runs"], document["objects"], document["objects_read"]) == (1, 1, 1)
    assert [(f["code"], f["object"]) for f in document["findings"]] == [("obi-altered", pack)]


def test_a_run_that_nobody_goes_on_with_is_named(home: Home) -> None:
    time = Time()
    time.clock.now = time.clock.now.replace(year=2099)
    run = claim(FolderStore(home.folder / "store"), GATHER, time.runtime)
    told = home("verify")
    assert told.code == 0
    assert "(obi-run-unfinished)" in told.out
    assert home("obi", "--abandon", run.tist).code == 0
    assert "no problems found" in home("verify").out


def test_a_template_is_named_by_handle_or_identifier_alike(published: Home) -> None:
    home = published
    name = home("query", "--json", "SELECT identifier FROM templates WHERE title = 'On Rugs'")
    identifier = name.json["identifier"]
    found = home("withdraw", "--dry-run", "--json", "--identifier", HANDLE.lower()).json
    assert [item["identifier"] for item in found["items"]] == [identifier]
    for given in (identifier, f"oai:{HANDLE}", f"oai:other.example.org:{HANDLE.lower()}"):
        assert home("obi", given, "--json").json["id"] == HANDLE
    assert home("obi", "oai:archive.example.org:none").code == 2


def test_the_bytes_of_a_url_are_those_that_its_redirects_led_to(home: Home) -> None:
    target = home.folder / "found"
    store, time = FolderStore(home.folder / "store"), Time()
    time.clock.now = time.clock.now.replace(year=2098)
    urls = [f"http://a.org/{number}" for number in range(3)]
    run = claim(store, GATHER, time.runtime)
    rows = redirected(run, [*urls, f"{urls[-1]}/"], b"%PDF")
    loop = [
        Redirect(origin=f"http://l.org/{a}", target=f"http://l.org/{b}", status=302)
        for a, b in ("12", "21")
    ]
    long = [
        Redirect(origin=f"http://m.org/{n}", target=f"http://m.org/{n + 1}", status=302)
        for n in range(12)
    ]
    run.commit([*rows, *loop, *long])
    for url in urls:
        told = home("obi", url, "--bytes", target, "--json")  # as of the last run, in the future
        assert told.code == 0, told.err
        assert target.read_bytes() == b"%PDF"
        assert told.json["redirected"][-1] == f"{urls[-1]}/"
        assert told.json["target"]["bytes"] == 4
    assert (
        f"redirected to {urls[1]}: redirected" in home("obi", urls[0], "--as-of", "2099-01-01").out
    )
    for url, problem in (("http://l.org/1", "loop"), ("http://m.org/0", "more than 10 redirects")):
        told = home("obi", url, "--as-of", "2099-01-01", "--bytes", target)
        assert (told.code, problem in told.err) == (2, True), told.err
        assert home("obi", url, "--as-of", "2099-01-01").code == 0
    told = home("obi", "http://m.org/5", "--as-of", "2099-01-01", "--bytes", target)
    assert (told.code, "has no bytes" in told.err) == (2, True), told.err


def test_a_dry_run_tells_templates_by_title_and_identifier(published: Home) -> None:
    home = published
    told = home("withdraw", "--dry-run", "--set", "RePEc")
    assert told.code == 0, told.err
    assert "not known" not in told.out
    assert "no date" not in told.out
    assert told.out.startswith("3 items\n          3  templates of RePEc\n")
    for title in ("Rugs", "Working Papers", "On Rugs"):
        assert f"    {title}\n    oai:" in told.out
    found = home("withdraw", "--dry-run", "--json", "--set", "RePEc").json
    assert (found["count"], found["templates"], found["hosts"]) == (3, 3, [])
    assert {item["kind"] for item in found["items"]} == {"template"}
