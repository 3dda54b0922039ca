"""A format of one's own, done as the documentation says."""

import re
from pathlib import Path
from urllib.request import urlopen

import pytest
from lxml import etree

from tests.e2e.conftest import ARCHIVES, Home, make_home
from tests.functions.oai.validity import valid

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "oai-pmh.md"
SECTION = DOCS.read_text("utf-8").partition("### A format of one's own\n")[2].partition("\n### ")[0]
FILES = dict(re.findall(r"^[^\n]*`(formats/[^`]+)`:\n```\w+\n(.*?)```$", SECTION, re.M | re.S))
SHOWN = re.findall(r"^```console\n\$ ([^\n]*)\n(.*?)```$", SECTION, re.M | re.S)
KEY = re.findall(r"under `\[formats\]`:\n```toml\n(.*?)\n```$", SECTION, re.M | re.S)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with a page and with what the documentation tells to put there, to copy."""
    folder = tmp_path_factory.mktemp("original")
    home = make_home(folder / "home")
    page = {"http://www.knihovna.cz/": b"<html lang=cs><title>Knihovna</title>"}
    home.publish_pages(folder / "one.warc.gz", page)
    (key,) = KEY
    text = home.config.read_text()
    assert text.count('# templates = ""') == 1
    home.config.write_text(text.replace('# templates = ""', key))
    assert len(FILES) == 3
    for name, content in FILES.items():
        path = home.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return home


def instants(text: str) -> str:
    return re.sub(r"[0-9-]{10}T[0-9:]{8}Z", "INSTANT", text)


def read(url: str) -> bytes:
    with urlopen(url) as answer:
        return bytes(answer.read())


def test_a_format_of_ones_own_as_documented(published: Home) -> None:
    (command, looked_over), _, (curl, answer) = SHOWN
    assert command == "sheaf publish"
    found = published("publish")
    assert found.code == 0, found.err
    assert instants(found.out) == instants(looked_over)
    assert published("publish").out.startswith("nothing new to publish")
    port, path = re.findall(r"http://127\.0\.0\.1:(\d+)(/[^']*)", curl)[0]
    with published.served() as url:
        body = read(url.removesuffix("/oai") + path).decode()
        schema = read(url.removesuffix("/oai") + "/schema/simple.xsd")
        expected = answer.replace(f":{port}/", f":{url.rpartition(':')[2].partition('/')[0]}/")
    before, shown, after = re.split(r"^\.\.\.\n", expected, flags=re.MULTILINE)
    assert (before, after) == ("", "")
    assert shown in body
    page = etree.fromstring(body.encode()).find(".//{urn:example:simple}page")
    assert page is not None
    assert etree.XMLSchema(etree.fromstring(schema)).validate(page)


def test_a_faulty_format_of_ones_own_as_documented(published: Home) -> None:
    command, told = SHOWN[1]
    crosswalk = published.folder / "formats" / "crosswalks" / "capture-simple.xml"
    crosswalk.write_text(crosswalk.read_text().replace("{{ title or url }}", "{{ titel or url }}"))
    for name in (command.removeprefix("sheaf "), "serve --port 0"):
        found = published(*name.split())
        assert (found.code, found.out) == (2, "")
        seen = found.err.replace(f"{published.folder}/", "")
        assert seen.startswith(told.partition(", ...")[0])
        assert "Traceback" not in found.err


def test_the_folder_is_seen_from_the_configuration_and_the_environment_may_name_it(
    published: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHEAF_FORMATS_TEMPLATES", "nowhere")
    found = published("publish")
    assert found.code == 2
    assert found.err == (
        f"sheaf: formats.templates is {published.folder}/nowhere, expected an existing folder\n"
    )


def test_a_changed_crosswalk_gives_its_records_new_datestamps(published: Home) -> None:
    assert published("publish").code == 0
    crosswalk = published.folder / "formats" / "crosswalks" / "capture-simple.xml"
    crosswalk.write_text(crosswalk.read_text().replace("<seen>", "<seen >"))
    built = published("publish", "--json")
    assert "the XML of simple has changed: all its records get a new datestamp" in built.err
    document = built.json
    assert (document["snapshot"], document["new"], document["changed"]) == (3, 0, 0)
    with published.served() as url:
        for prefix, same in (("simple", True), ("oai_dc", False)):
            body = read(f"{url}?verb=ListIdentifiers&metadataPrefix={prefix}")
            stamp = etree.fromstring(body).findtext(".//{*}datestamp")
            assert (stamp == document["effective"]) is same
    assert published("verify").code == 0
    assert published("publish").out.startswith("nothing new to publish")


@pytest.mark.thorough
@pytest.mark.skipif(not ARCHIVES.is_dir(), reason="the archives are not on this machine")
def test_real_captures_are_valid_in_every_format(home: Home) -> None:
    text = home.config.read_text()
    for key in ("redirects", "errors"):
        text = text.replace(f"# {key} = false", f"{key} = true")
    home.config.write_text(text)
    assert home("ingest", "--jobs", "1", ARCHIVES).code in (0, 1)
    records = home("publish", "--json").json["records"]
    assert records > 1000
    with home.served() as url:
        for prefix in ("oai_dc", "capture", "mods"):
            query, count = f"metadataPrefix={prefix}", 0
            while query:
                root = valid(read(f"{url}?verb=ListRecords&{query}"))
                count += len(root.findall(".//{*}metadata"))
                token = root.findtext(".//{*}resumptionToken")
                query = f"resumptionToken={token}" if token else ""
            assert count == records
