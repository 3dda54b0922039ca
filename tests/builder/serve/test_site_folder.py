"""`sheaf serve --site`: a folder answers as the server does, and gives nothing else away."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from builder.errors import UsageError
from builder.serve.site_folder import SiteFolder
from functions.http.http_message import Call
from tests.builder.conftest import World
from tests.builder.serve.site_requests import (
    FORM,
    HANDLES,
    Ask,
    application_of,
    ask_application,
    differences,
    make_requests,
    see,
)
from tests.builder.serve.site_world import make_site_world
from tests.extent import examples

BASE = "http://archive.example.org/oai"
SECRETS = (
    *("/state.json", "/router.json", "/../state.json", "/%2e%2e/state.json", "/..%2fstate.json"),
    *("/index/recent.json", "//state.json", "/www/../state.json", "/x%00y", "/oai/../state.json"),
    "/oai/oai_dc/r/all.json",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = make_site_world(tmp_path_factory.mktemp("world"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def site(world: World) -> SiteFolder:
    return SiteFolder(world.root / "site")


@pytest.fixture(scope="module")
def ask(site: SiteFolder) -> Ask:
    return ask_application(site, BASE)


def test_random_requests_give_what_the_server_gives(world: World, ask: Ask) -> None:
    maker = make_requests(world, 46)
    assert differences(application_of(world), ask, maker, examples(300)) == []


def test_sets_share_pages_unless_they_are_scattered_or_were_left(world: World) -> None:
    folder = world.root / "site/oai/oai_dc/r/set"

    def forms(spec: str) -> list[bool]:
        return [bool(shared) for _, _, *shared in json.loads((folder / f"{spec}.json").read_text())]

    assert {*forms("domain"), *forms("domain:cz:example:h3")} == {True}
    assert forms("mime:image:png")[0] is False
    assert forms("mime:text:html")[0] is True
    assert False in forms("mime:text:html")


@pytest.mark.parametrize("name", HANDLES)
def test_an_item_has_its_other_name(world: World, ask: Ask, name: str) -> None:
    for query in (f"verb=GetRecord&metadataPrefix=oai_dc&identifier={name}",):
        expected = see(application_of(world), "GET", query, {}, b"")
        assert see(ask, "GET", query, {}, b"") == expected
        assert bool(expected.items) == ("none" not in name)


def test_a_request_by_post_is_one_by_get(world: World, ask: Ask) -> None:
    ours = application_of(world)
    for kind, body in ((FORM, b"verb=ListSets"), ("text/plain", b"x"), (FORM, b"x" * 65_537)):
        request = ("POST", "", {"content-type": kind}, body)
        assert see(ask, *request) == see(ours, *request)


def test_a_document_is_told_by_its_tag_and_its_head_alone(ask: Ask) -> None:
    query = "verb=ListRecords&metadataPrefix=oai_dc"
    whole = ask("GET", query, {}, b"")
    head = ask("HEAD", query, {}, b"")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.body))
    held = ask("GET", query, {"if-none-match": whole.headers["etag"]}, b"")
    assert (held.status, held.body) == (304, b"")


@pytest.mark.parametrize(
    ("path", "allow"), [("/oai", "GET, HEAD, POST, OPTIONS"), ("/", "GET, HEAD")]
)
def test_other_methods_are_refused(site: SiteFolder, path: str, allow: str) -> None:
    answer = site.answer(Call("PUT", "http://a.cz", path))
    assert answer.status == 405
    assert answer.headers["Allow"].startswith(allow)


@pytest.mark.parametrize("path", SECRETS)
def test_nothing_is_given_away_but_answers_and_pages(site: SiteFolder, path: str) -> None:
    assert site.answer(Call("GET", "http://a.cz", path)).status == 404


def test_a_page_for_people_lies_in_its_own_folder(site: SiteFolder, world: World) -> None:
    pages = world.root / "site" / "www"
    (pages / "sets").mkdir(parents=True, exist_ok=True)
    (pages / "sets" / "index.html").write_text("<p>č</p>")
    (pages / "a b.xml").write_text("<a/>")
    (pages / "out").symlink_to(world.root / "site" / "state.json")
    for path, kind in (("/sets", "text/html"), ("/sets/", "text/html"), ("/a%20b.xml", "text/xml")):
        answer = site.answer(Call("GET", "http://a.cz", path))
        assert answer.status == 200
        assert answer.headers["Content-Type"] in (
            f"{kind}; charset=utf-8",
            "application/xml; charset=utf-8",
        )
    assert site.answer(Call("GET", "http://a.cz", "/out")).status == 404


def test_the_address_of_the_request_is_the_base_url(site: SiteFolder) -> None:
    body = site.answer(Call("GET", "http://b.cz:1", "/oai", "verb=Identify")).body
    assert isinstance(body, bytes)
    assert b"<baseURL>http://b.cz:1/oai</baseURL>" in body
    assert BASE.encode() not in body


def test_a_token_goes_on_where_its_position_is(world: World, ask: Ask) -> None:
    """Whatever pages there were when it was issued: nothing behind it is left out."""
    for spec in make_requests(world, 1).sets:
        for number in range(1, world.newest().last_position + 1, 2):
            token = f"r,oai_dc,{number},{spec}"
            query = f"verb=ListRecords&resumptionToken={quote(token)}"
            listed = world.listed(spec)
            seen = see(ask, "GET", query, {}, b"")
            assert bool(seen.codes) == (not listed)
            text = b"".join(seen.items)
            for record in listed:
                if record.position >= number:
                    assert f">{record.identifier}<".encode() in text


def test_a_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no router\.json"):
        SiteFolder(tmp_path)


def test_the_command_serves_a_folder(world: World, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "builder", "serve", "--site", world.root / "site"]
    with subprocess.Popen(
        [*map(str, command), "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            lines = "".join(process.stdout.readline() for _ in range(3))
            address = re.findall(r"http://\S+", lines)[0]
            with urlopen(address, timeout=20) as answer:
                assert address.partition("?")[0].encode() in answer.read()
        finally:
            process.terminate()
