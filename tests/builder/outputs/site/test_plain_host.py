"""Pages on a host without a router: each link leads to a file, below any path."""

import re
import subprocess
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import urlopen

import pytest
from lxml import etree

from builder.outputs.site import documents
from builder.outputs.site.people import SiteLinks, StaticAddress
from tests.builder.conftest import World, capture
from tests.builder.outputs.dumps.history import identify
from tests.builder.outputs.site.harvest import OAI, Folder, read_records
from tests.builder.outputs.site.test_site import SITE, make_page
from tests.e2e.conftest import make_home
from tests.hosts.hosts import follow
from tests.listening import QuietHandler, listening

ROOT = "https://a.github.io/x"
PLAIN = {
    **SITE,
    "SHEAF_SITE_PAGES": "200",
    "SHEAF_SITE_ENDPOINT": "false",
    "SHEAF_REPOSITORY_BASE_URL": f"{ROOT}/oai",
    "SHEAF_SITE_GATEWAY": "http://gateway.org/oai/",
}
SCHEMA = Path(__file__).parents[3] / "schemas/static-repository.rng"
EXAMPLE = Path(__file__).parents[5] / "shared" / "data" / "records" / "static-repository"
_LINK = re.compile(rb"""(?:\s(?:href|src|srcset|action)=|url\()["']?([^"'\s>)]*)""")
_OWN = re.compile(rb"https://a\.github\.io[^\"'\s<>&]*")
_ID = re.compile(rb"<id>[^<]*</id>")
"""Names in a feed, which need not be addresses (RFC 4287, section 4.2.6)."""


class PrefixHandler(QuietHandler, SimpleHTTPRequestHandler):
    """Serves a folder below a path, as GitHub Pages does, and nothing else."""

    def translate_path(self, path: str) -> str:
        below = path.removeprefix("/x") if path.startswith("/x/") else "/outside"
        return super().translate_path(below)


def crawl(folder: Path) -> set[str]:
    """Follow all links, and all mentions of the own address; return the names of files."""
    with listening(partial(PrefixHandler, directory=str(folder))) as port:
        host = f"http://127.0.0.1:{port}"
        queue = [f"{host}/x/", f"{host}/x/robots.txt"]
        seen, missing, sources = {*queue}, [], dict[str, str]()
        while queue:
            url = queue.pop()
            try:
                with urlopen(url, timeout=20) as answer:
                    data, kind = answer.read(), answer.headers["Content-Type"]
            except HTTPError:
                missing.append((url, sources.get(url)))
                continue
            is_page = kind.startswith(("text/html", "text/css"))
            links = _LINK.findall(data) if is_page else []
            data = _ID.sub(b"", data)
            if kind.startswith("text/csv"):
                data = data.replace(b",", b"\n")  # which ends an address there
            for link in (*links, *_OWN.findall(data)):
                text = unescape(link.decode()).rstrip(".,").replace("https://a.github.io", host)
                target = urldefrag(urljoin(url, text))[0]
                if f"{host}/x/oai" in target:
                    continue  # which a router answers, if there is one
                if target.startswith(host) and target not in seen:
                    seen.add(target)
                    sources[target] = url
                    queue.append(target)
        assert not missing
        return {unquote(target.removeprefix(f"{host}/x/")) or "index.html" for target in seen}


def test_all_pages_are_found_by_links_below_a_path(world: World) -> None:
    world.add([make_page(number) for number in range(30)], ("collection:a",), **PLAIN)
    world.clock.sleep(60)
    world.withdraw(identify(4), **PLAIN)
    www = world.root / "site/www"
    names = {path.relative_to(www).as_posix() for path in www.rglob("*") if path.is_file()}
    found = crawl(www)
    assert {"charts.html", "months.csv", "months.json", "sets.csv"} <= found <= names
    assert not [name for name in found if b"<form" in (www / name).read_bytes()]
    left = {name for name in names - found if not name.endswith(".gz")}
    assert left <= {n for n in names if n.startswith("schema/")}
    assert b"/x/oai" not in b"".join(
        (www / name).read_bytes() for name in names if ".gz" not in name
    )


def test_github_gets_the_pages_by_the_steps_of_the_guide(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add([make_page(number) for number in range(3)], **PLAIN)
    folder, remote = tmp_path / "here", tmp_path / "remote.git"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    for number, (key, value) in enumerate(
        {
            f"url.{remote}.insteadOf": "https://github.com/USER/REPO",
            "user.name": "A",
            "user.email": "a@b.cz",
        }.items()
    ):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "3")
    for _ in range(2):  # a later publish has no history
        follow("GitHub Pages and plain buckets", world.root / "site", folder)
    branch = ["git", "clone", "--quiet", "--branch", "gh-pages", remote, tmp_path / "pushed"]
    subprocess.run(branch, check=True)
    assert (tmp_path / "pushed/.nojekyll").exists()
    assert "static-repository.xml" in crawl(tmp_path / "pushed")
    count = ["git", "-C", tmp_path / "pushed", "rev-list", "--count", "HEAD"]
    assert subprocess.check_output(count).strip() == b"1"


def test_a_large_site_has_overviews_alone(world: World) -> None:
    values = {**PLAIN, "SHEAF_SITE_PAGES": "20"}
    world.add([make_page(number) for number in range(30)], ("collection:a",), **values)
    www = world.root / "site/www"
    assert "sets.html" in crawl(www)
    assert len([*www.rglob("*.html")]) <= 20
    assert "Sitemap" not in (www / "robots.txt").read_text()


def test_a_name_that_no_file_can_have_is_replaced() -> None:
    links = SiteLinks(None, frozenset())
    address = StaticAddress(ROOT, f"{ROOT}/oai", links=links)
    names = (
        "a/../b",
        "a/./b",
        "x" * 300,
        "č?#%",
        "a//b",
        "a//b?",
        "č" * 150,
        "a\tb",
        "a.html",
        "a.html/b",
        "a",
    )
    targets = [unquote(urlsplit(address.page("/record", id=name)).path) for name in names]
    assert len({*targets}) == len(names)
    for target in targets:
        assert target.startswith("/x/record/")
        assert target.endswith(".html")
        assert not {"", ".", ".."} & {*target[1:].split("/")}
        assert all(len(part.encode()) < 256 for part in target.split("/"))
    assert not any(other.startswith(f"{name}/") for name in targets for other in targets)
    assert address.page("/search", q="x") == ""


def normalise(xml: bytes) -> bytes:
    """Return an element without the namespaces that are only in scope."""
    return bytes(etree.tostring(etree.fromstring(xml), method="c14n", exclusive=True))


def read_static(path: Path) -> dict[str, dict[str, bytes]]:
    """Return the metadata of a static repository by format and identifier."""
    root = etree.fromstring(path.read_bytes())
    return {
        part.get("metadataPrefix") or "": {r[0]: normalise(r[4]) for r in read_records(part)}
        for part in root.iter("{*}ListRecords")
    }


def test_a_static_repository_is_that_of_the_specification(world: World) -> None:
    world.add([make_page(number) for number in range(9)], **PLAIN)
    world.clock.sleep(60)
    path = world.root / "site/www/static-repository.xml"
    before, time = path.read_bytes(), path.stat().st_mtime_ns
    world.publish(**PLAIN)
    assert path.stat().st_mtime_ns == time  # nothing has changed in it
    world.withdraw(identify(4), **PLAIN)
    assert identify(4).encode() in before
    assert identify(4).encode() not in path.read_bytes()
    root = etree.fromstring(path.read_bytes())
    schema = etree.RelaxNG(etree.parse(SCHEMA))
    schema.assertValid(root)
    base = f"http://gateway.org/oai/a.github.io/x{documents.REPOSITORY}"
    assert root.findtext(f".//{OAI}baseURL") == base
    folder = Folder(world.root / "site")
    expected = {
        prefix: {r[0]: normalise(r[4]) for r in folder.harvest("r", prefix) if not r[2]}
        for prefix in folder.router["formats"]
    }
    assert read_static(path) == expected


def test_the_example_of_the_specification_fits_the_schema() -> None:
    if not EXAMPLE.exists():
        pytest.skip("the example of the specification is not here")
    schema = etree.RelaxNG(etree.parse(SCHEMA))
    (path,) = EXAMPLE.glob("*StaticRepositoryExample.xml")
    schema.assertValid(etree.parse(path))


def test_an_outgrown_static_repository_goes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LIVE", 3)
    path = world.root / "site/www/static-repository.xml"
    world.add([make_page(number) for number in range(3)], **PLAIN)
    assert path.exists()
    for title in ("a", "b"):
        world.clock.sleep(90_000)
        world.add([capture(number, title=title) for number in range(4)], **PLAIN)
    assert not path.exists()
    assert "static-repository" not in (world.root / "site/www/harvest.html").read_text()
    assert world.verify().findings == ()


def test_a_static_repository_is_ingested_as_it_was_published(world: World, tmp_path: Path) -> None:
    world.add([make_page(number) for number in range(9)], **PLAIN)
    path = world.root / "site/www/static-repository.xml"
    other = make_home(tmp_path / "other")
    done = other("ingest", path)
    assert done.code == 0, done.err
    assert other("publish").code == 0
    done = other("export", "site", tmp_path / "public")
    assert done.code == 0, done.err
    copied = read_static(tmp_path / "public/www/static-repository.xml")
    assert copied == read_static(path)
