"""Pages of unknown platforms: FAIR Signposting, schema.org, both, and what is no dataset."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.sources.datasets import wiring
from builder.sources.datasets.ingest import Ingest
from builder.sources.datasets.item import (
    DatasetResource,
    FilesetPlatformItem,
    IngestRequest,
    Related,
)
from builder.sources.datasets.platforms.detect import detect
from builder.sources.datasets.platforms.pages.head import read_biblio
from builder.sources.datasets.platforms.pages.webpage import Webpage
from builder.sources.datasets.protocols import ApiAnswer, FilesetError
from builder.sources.datasets.result import result
from builder.sources.datasets.status import STATUSES
from builder.store.folder import FolderStore
from tests.builder.sources.datasets.body import digest
from tests.builder.sources.datasets.pages import NOW, Pages, item_of, page, real_bytes
from tests.builder.sources.datasets.server import html, served, text, then
from tests.builder.sources.datasets.test_detect import handle
from tests.builder.sources.datasets.test_formats import made
from tests.builder.sources.datasets.test_json_ld import script as ld
from tests.builder.sources.datasets.test_platforms import holds, spoil
from tests.builder.sources.datasets.world import World
from tests.extent import examples

HOST = "https://data.example.org/"
URL = f"{HOST}set/1"
ITEMS = '</f/a.csv>; rel="item"; type="text/csv", <https://s3.example.net/b.zip>; rel="item"'


def of(api: Any, name: str = URL) -> FilesetPlatformItem:
    return item_of(api, name)


def at(body: str = "", link: str = "", **documents: Any) -> Pages:
    given = {name.replace("_", "/"): value for name, value in documents.items()}
    others = {f"https://data.example.org/{name}": value for name, value in given.items()}
    return Pages({URL: page(body, URL, headers={"link": link}), **others})


def files(item: FilesetPlatformItem) -> list[tuple[str, str | None, Any]]:
    return [(f.path, f.platform_url, f.extra["listed_by"]) for f in item.files]


def refused(api: Any) -> tuple[str, str]:
    with pytest.raises(FilesetError) as caught:
        of(api)
    return caught.value.status, caught.value.code


def dataset(*urls: str, **more: Any) -> dict[str, Any]:
    listed = [{"@type": "DataDownload", "contentUrl": url} for url in urls]
    return {"@type": "Dataset", "name": "Hives", "distribution": listed, **more}


def test_links_of_a_page_list_its_files_and_describe_it() -> None:
    link = (
        f'{ITEMS}, <https://doi.org/10.5072/ABC>; rel="cite-as", </m.xml>; rel="describedby", '
        '<https://creativecommons.org/publicdomain/zero/1.0/>; rel="license", '
        '<https://schema.org/SoftwareSourceCode>; rel="type", '
        '<https://orcid.org/0000-0002-1825-0097>; rel="author", </x.csv>; rel="item"; anchor="/y"'
    )
    api = at('<meta name="citation_title" content="Hives">', link)
    item = of(api)
    assert files(item) == [
        ("a.csv", "https://data.example.org/f/a.csv", "signposting"),
        ("b.zip", "https://s3.example.net/b.zip", "signposting"),
    ]
    assert item.files[0].mimetype == "text/csv"
    assert (item.platform_name, item.platform_domain) == ("webpage", "data.example.org")
    assert (item.platform_id, item.web_base_url) == ("10.5072/abc", URL)
    assert "Signposting" in item.detail
    about = item.description
    assert (about.title, about.type, about.doi) == ("Hives", "Software", "10.5072/abc")
    assert [person.orcid for person in about.creators] == ["0000-0002-1825-0097"]
    assert [licence.spdx for licence in about.licences] == ["CC0-1.0"]
    assert about.related == (Related("https://data.example.org/m.xml", "URL", "HasMetadata"),)
    # The registry was asked where the cited DOI leads; the page itself was fetched once.
    assert api.asked.count(URL) == 1


def linkset(*hrefs: str, anchor: str = URL) -> dict[str, Any]:
    group = {"anchor": anchor, "item": [{"href": url, "type": "text/csv"} for url in hrefs]}
    return {"linkset": [group, {"anchor": f"{URL}/f/a.csv", "collection": [{"href": URL}]}]}


@pytest.mark.parametrize(
    ("link", "answer"),
    [
        (
            '</links>; rel="linkset"; type="application/linkset+json"',
            linkset("/f/a.csv", "/f/b.csv"),
        ),
        ('</links>; rel="linkset"', linkset("/f/a.csv", "/f/b.csv", anchor=f"{URL}/")),
        (
            '</links>; rel="linkset"; type="application/linkset"',
            ApiAnswer(
                url="https://data.example.org/links",
                status=200,
                media_type="application/linkset",
                body=f'</f/a.csv>\n ; rel="item"; anchor="{URL}",\n</f/b.csv>; rel="item"\n'
                f'; anchor="{URL}", </f/c.csv>; rel=item'.encode(),
            ),
        ),
        (
            '</no>; rel="linkset"; type="application/linkset", '
            '</links>; rel="linkset"; type="application/linkset+json"; anchor="../set/1"',
            linkset("/f/a.csv", "/f/b.csv"),
        ),
    ],
    ids=["json", "undeclared", "text", "the better of two"],
)
def test_a_set_of_links_lists_its_files(link: str, answer: Any) -> None:
    item = of(at("", f'{link}, </f/b.csv>; rel="item"', links=answer))
    assert [(path, way) for path, _, way in files(item)] == [
        ("a.csv", "linkset"),
        ("b.csv", "linkset"),
    ]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (404, "incomplete-manifest"),
        (429, "platform-rate-limited"),
        ({"linkset": 1}, "platform-bad-response"),
        (json.dumps(linkset("/f/a.csv")).encode() + b" " * (8 << 20), "platform-bad-response"),
        (linkset("/f/a.csv", anchor="https://data.example.org/other"), "no items"),
    ],
)
def test_a_set_of_links_that_is_not_had_is_no_short_list(answer: Any, status: str) -> None:
    api = at("", '</links>; rel="linkset"', links=answer)
    if status == "no items":
        assert of(api).manifest == ()
    else:
        assert refused(api)[0] == status


def test_json_ld_of_a_page_lists_its_files() -> None:
    body = ld("broken", dataset("/f/a.csv", "https://s3.example.net/x/a.csv", version="2"))
    item = of(at(body))
    assert files(item) == [
        ("1/a.csv", "https://data.example.org/f/a.csv", "schema.org"),
        ("2/a.csv", "https://s3.example.net/x/a.csv", "schema.org"),
    ]
    assert (item.version, item.platform_id) == ("2", "set/1")
    assert "schema.org" in item.detail


@pytest.mark.parametrize("said", [False, "False", "https://schema.org/False"])
def test_a_dataset_that_is_not_free_is_told_without_its_files(said: Any) -> None:
    item = of(at(ld(dataset("/f/a.csv", isAccessibleForFree=said))))
    assert (item.platform_status, item.files) == ("platform-restricted", ())
    assert [file.path for file in item.withheld] == ["a.csv"]
    assert of(at(ld(dataset("/f/a.csv", isAccessibleForFree=True)))).files


def test_links_decide_which_files_there_are_and_json_ld_adds_digests() -> None:
    about = dataset(version="1")
    about["distribution"] = [
        {"contentUrl": "https://s3.example.net/b.zip", "sha256": "ab" * 32, "contentSize": "9"},
        {"contentUrl": "/preview.png"},
    ]
    item = of(at(ld(about), ITEMS))
    assert [(f.path, f.size, f.sha256) for f in item.files] == [
        ("a.csv", None, None),
        ("b.zip", 9, "ab" * 32),
    ]


def test_of_several_datasets_the_one_that_the_page_is_about_is_taken() -> None:
    other = dataset("/f/other.csv", url="https://data.example.org/set/2")
    for own in ({"url": URL}, {"@id": f"{URL}/"}, {"identifier": "https://doi.org/10.5072/abc"}):
        body = ld([other, dataset("/f/a.csv", **own)])
        link = "" if "identifier" not in own else '<https://doi.org/10.5072/ABC>; rel="cite-as"'
        assert [path for path, _, _ in files(of(at(body, link)))] == ["a.csv"]


@pytest.mark.parametrize(
    ("body", "link"),
    [
        (ld([dataset("/a.csv", name="A"), dataset("/b.csv", name="B")]), ""),
        (
            ld(
                {
                    "@type": "DataCatalog",
                    "dataset": [
                        dataset("/a.csv", identifier="https://doi.org/10.5072/1"),
                        dataset("/b.csv", identifier="https://doi.org/10.5072/2"),
                    ],
                }
            ),
            "",
        ),
        ("", '</set/2>; rel="item"; type="text/html", </set/3>; rel="item"; type="text/html"'),
    ],
    ids=["two datasets", "a catalogue", "items that are pages"],
)
def test_a_list_of_datasets_is_no_dataset(body: str, link: str) -> None:
    assert refused(at(body, link)) == ("platform-scope", "collection")


@pytest.mark.parametrize("body", ["", ld({"@type": "Dataset", "name": "Hives"}), ld(dataset(URL))])
def test_a_page_that_lists_no_file_is_no_match(body: str) -> None:
    assert refused(at(body)) == ("no-platform-match", "")


def test_a_known_platform_is_taken_first() -> None:
    target = "https://dataverse.nl/dataset.xhtml?persistentId=doi:10.34894/ABC"
    cited = Pages(
        {
            URL: page("", URL, headers={"link": f'{ITEMS}, <{target}>; rel="cite-as"'}),
            "https://doi.org/api/handles/10.34894/ABC": handle(target),
        }
    )
    _, helper = detect(IngestRequest(URL), cited, lambda: NOW)
    assert helper.facts.name == "dataverse"
    url = "https://data.example.org/dataset/hives"
    generated = f'<meta name="generator" content="ckan 2.9">{ld(dataset("/a.csv"))}'
    api = Pages({url: page(generated, url)})
    assert detect(IngestRequest(url), api, lambda: NOW)[1].facts.name == "ckan"


def test_a_page_and_its_set_of_links_are_read_over_the_wire(there: World) -> None:
    about = dataset("/f/a.csv", sha256="ab" * 32)
    link = (
        '</links>; rel="linkset"; type="application/linkset+json", '
        '<http://10.0.0.1/secret.csv>; rel="item"'
    )
    there.server.add(URL, html(ld(about), Link=link))
    sets = json.dumps(linkset("/f/a.csv", "https://files.example.net/b.csv"))
    links = there.server.add(f"{HOST}links", text(sets, "application/linkset+json"))
    api = there.api()
    item = of(api)
    assert [file.path for file in item.files] == ["a.csv", "b.csv", "secret.csv"]
    assert len(api.heard) == 2  # the page and the set of links are kept
    assert there.server.asked(links)[0].headers["accept"].startswith("application/linkset+json")
    with pytest.raises(FilesetError, match="blocked-address"):
        there.downloader().download(item.files[2], 10**6, there.sink)


def test_a_doi_that_led_to_a_page_is_not_asked_for_again() -> None:
    registry = "https://doi.org/api/handles/10.5072/abc"
    api = at("", f'{ITEMS}, <https://doi.org/10.5072/ABC>; rel="cite-as"')
    api.documents[registry] = handle(URL)  # type: ignore[index]
    assert of(api, "10.5072/abc").platform_id == "10.5072/abc"
    assert [url for url in api.asked if "doi.org" in url] == [registry]


def ingest(there: World, store: FolderStore) -> Ingest:
    return wiring.ingest(there.materials(store, clock=lambda: NOW), there.stop, 60.0)


def test_a_page_that_changes_meanwhile_is_read_again(there: World, tmp_path: Path) -> None:
    bodies = (b"1,2\n", b"1,2,3\n")
    pages = []
    for body in bodies:
        about = dataset()
        about["distribution"] = [{"contentUrl": "/f/a.csv", "sha256": digest("sha256", body)}]
        pages.append(html(ld(about)))
    there.server.add(URL, then(*pages))
    there.server.add("https://data.example.org/f/a.csv", served(bodies[1], "text/csv"))
    run = ingest(there, FolderStore(tmp_path / "store"))
    assert run.process(IngestRequest(URL)).status == "changed-during-ingest"
    assert run.process(IngestRequest(URL)).status == "success-file"


def test_a_request_for_a_page_is_kept_with_its_evidence(there: World, tmp_path: Path) -> None:
    about = dataset(
        "/f/a.csv",
        creator=[{"name": "Jana Medová"}],
        datePublished="2024",
        license="https://creativecommons.org/licenses/by/4.0/",
    )
    there.server.add(URL, html(ld(about), Link='<https://doi.org/10.5072/HONEY>; rel="cite-as"'))
    there.server.add("https://data.example.org/f/a.csv", served(b"1,2\n", "text/csv"))
    store = FolderStore(tmp_path / "store")
    found = ingest(there, store).process(IngestRequest(URL))
    told = result(found)
    assert (told["status"], told["platform_name"]) == ("success-file", "webpage")
    assert told["detail"] == "JSON-LD of the page (schema.org) lists its files"
    assert told["manifest"][0]["extra"] == {"listed_by": "schema.org"}
    (kept,) = (key for key in store.keys("filesets/") if key.endswith("fileset.json"))
    described = json.loads(store.read(kept))["described"]
    assert described["title"] == {"value": "Hives", "source": URL}
    assert described["creators"] == [{"value": "Jana Medová", "source": URL}]
    assert described["doi"] == {"value": "10.5072/honey", "source": URL}
    assert len(made(found, "oai_datacite"))


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_page_with_junk_in_it_comes_to_an_item_or_to_a_status(data: st.DataObject) -> None:
    about = dataset("/f/a.csv", creator=[{"name": "Jana"}], license="x", identifier="10.5072/a")
    documents = {"about": about, "links": linkset("/f/a.csv"), "@graph": [{"@id": "#a"}]}
    documents = spoil(documents, data, above=1)
    api = at(ld(documents["about"]), '</links>; rel="linkset"', links=documents["links"])
    try:
        found = of(api)
    except FilesetError as error:
        assert error.status in STATUSES  # noqa: PT017 - both ends are right
    else:
        holds(found)


@pytest.mark.parametrize(
    ("path", "names", "doi", "title"),
    [
        (
            "dataverse/landing_NJ7XSO.html",
            [
                "Asian_Case_Control_Results.txt",
                "European_Asian_Case_Control_Results.txt",
                "European_Case_Control_Results.txt",
            ],
            "10.7910/dvn/nj7xso",
            "Summary data ankylosing",
        ),
        (
            "zenodo/landing_1196821.html",
            ["Data.zip", "README.txt", "excludes.txt"],
            "10.5281/zenodo.1196821",
            "PsPM-SC4B: SCR, ECG",
        ),
    ],
)
def test_real_pages_list_their_files_even_on_an_unknown_host(
    path: str, names: list[str], doi: str, title: str
) -> None:
    body = real_bytes(path)
    said = read_biblio(body, URL)
    assert (said["doi"], said["title"][: len(title)]) == (doi, title)
    assert said["contrib_names"]
    resource = DatasetResource(url=URL, body=body, html_biblio=said)
    assert Webpage().match_request(resource)
    item = Webpage().process_request(resource, Pages({}))
    assert sorted(one.path for one in item.files) == names
    assert (item.platform_id, bool(item.description.creators)) == (doi, True)
