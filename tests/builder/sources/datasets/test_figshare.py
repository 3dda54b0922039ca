"""Figshare, its portals and 4TU: which article is meant, what it says, and all of its files."""

import pytest

from builder.sources.datasets.item import Licence, Person, Related
from builder.sources.datasets.platforms.figshare import Figshare
from tests.builder.sources.datasets.pages import Pages, Site, cases, real
from tests.builder.sources.datasets.samples import FIGSHARE, MD5, figshare, figshare_file

PAGE = "https://brno.figshare.com/articles/dataset/Prices_of_honey/4711"
SITE = Site(Figshare(), PAGE, whole={FIGSHARE: figshare()})
matches, refused = SITE.matches, SITE.refused
FORMS = [
    ("https://figshare.com/articles/4711", None),
    ("https://kilthub.cmu.edu/articles/dataset/x/4711", None),
]
KNOWN = [
    ("https://smithsonian.figshare.com/articles/dataset/x/4711/1", None),
    ("https://data.4tu.nl/datasets/9f0c2b0e-5f0f-4b46-b5f2-0a8f3f2f6f11/1", None),
    ("https://data.example.edu/articles/dataset/Prices_of_honey/4711/2", None),
    ("https://doi.org/10.6084/m9.figshare.4711", "10.6084/m9.figshare.4711"),
]


def test_a_portal_that_is_not_known_is_told_by_its_page() -> None:
    url = "https://data.example.edu/articles/report/Prices/4711"
    assert not matches(url)
    assert not matches(url, body=b"<html>a newspaper</html>")
    assert matches(url, body=b'<script src="https://static.FIGSHARE.com/app.js"></script>')
    assert not matches("https://news.example.com/articles/local_news/Bees/4711")


@pytest.mark.parametrize(
    "url",
    [
        "https://papers.example.com/articles/journal_contribution/Bees/4711",
        "https://figshare.com.evil.example/articles/dataset/Prices/4711",
        "https://evil.example/articles/dataset/Prices/4711",
    ],
)
def test_a_number_at_another_site_is_no_article_of_figshare(url: str) -> None:
    """Figshare has an article of each number; it tells at which portals one lies."""
    assert refused(SITE.whole, url)[0] == "no-platform-match"
    assert refused(SITE.whole, url, "10.5072/other.4711")[0] == "no-platform-match"
    there = figshare() | {"url_public_html": url}
    assert SITE.item({FIGSHARE: there}, url).platform_id == "4711"
    named = figshare() | {"doi": "10.5072/bees.4711.v2"}
    assert SITE.item({FIGSHARE: named}, url, "10.5072/bees.4711").platform_id == "4711"


@pytest.mark.parametrize(
    ("url", "doi", "asked"),
    [
        ("https://figshare.com/articles/dataset/Prices/4711/2", None, "/versions/2"),
        ("https://figshare.com/articles/dataset/2020/4711", None, ""),
        ("https://figshare.com/articles/_/4711", None, ""),
        ("https://figshare.com/articles/4711/2", None, "/versions/2"),
        ("https://ndownloader.figshare.com/articles/4711/versions/2", None, "/versions/2"),
        (PAGE, "10.6084/m9.figshare.4711.v2", "/versions/2"),
        (PAGE, "10.1234/journal.pone.0039704", ""),
        (
            "https://doi.org/10.6084/m9.figshare.4711.v2",
            "10.6084/m9.figshare.4711.v2",
            "/versions/2",
        ),
        ("https://doi.org/10.6084/m9.figshare.4711", "10.6084/m9.figshare.4711", ""),
    ],
)
def test_the_version_that_is_named_is_asked_for_and_else_the_newest(
    url: str, doi: str | None, asked: str
) -> None:
    api = Pages({FIGSHARE + asked: figshare()})
    found = SITE.ask(api, url, doi)
    assert api.asked == [FIGSHARE + asked]
    assert (found.platform_id, found.version) == ("4711", "2")


def test_an_article_is_told_whole() -> None:
    found = SITE.item()
    assert found.platform_status == "success"
    assert (found.platform_name, found.platform_domain) == ("figshare", "brno.figshare.com")
    assert found.web_bundle_url == "https://ndownloader.figshare.com/articles/4711/versions/2"
    assert [(file.path, file.size, file.md5) for file in found.files] == [
        ("a.csv", 100, MD5),
        ("b.csv", 100, MD5),
    ]
    said = found.description
    assert (said.title, said.abstract) == ("Prices of honey", "What honey cost.\nIn Brno.")
    assert said.creators == (
        Person(name="Jana Medová", orcid="0000-0002-1825-0097"),
        Person(name="Včelař, Jan", given="Jan", family="Včelař"),
    )
    assert (said.publisher, said.published) == ("Beekeepers of Brno", "2021-05-04")
    assert (said.type, said.version, said.doi) == ("Dataset", "2", "10.6084/m9.figshare.4711.v2")
    assert said.subjects == ("honey", "Economics")
    url = "https://creativecommons.org/licenses/by/4.0/"
    assert said.licences == (Licence("CC BY 4.0", "CC-BY-4.0", url),)
    assert said.related == (
        Related("10.1234/journal.1", "DOI", "IsSupplementTo"),
        Related("10.1234/paper", "DOI", "References"),
        Related("https://example.org/bees", "URL", "References"),
        Related("10.1234/book", "DOI", "IsPartOf"),
    )


def test_an_md5_that_was_not_computed_yet_is_the_one_that_was_supplied_and_says_so() -> None:
    files = [
        figshare_file(1, "a.csv", computed_md5=""),
        figshare_file(2, "b.csv", computed_md5="-", supplied_md5=""),
    ]
    first, second = SITE.item({FIGSHARE: figshare(files=files)}).files
    assert (first.md5, first.extra["md5_from"]) == (MD5, "supplied_md5")
    assert second.md5 is None
    assert "md5_from" not in second.extra


def test_files_of_one_name_lie_in_folders_of_their_ids() -> None:
    files = [figshare_file(1, "a.csv"), figshare_file(2, "a.csv")]
    found = SITE.item({FIGSHARE: figshare(files=files)})
    assert [file.path for file in found.files] == ["1/a.csv", "2/a.csv"]


def test_a_list_that_is_short_is_asked_for_by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.sources.datasets.platforms.figshare._PAGE", 2)
    files = [figshare_file(number, f"{number}.csv") for number in range(3)]
    pages = {
        FIGSHARE: figshare(files=files[:1], size=300),
        f"{FIGSHARE}/files?page=1&page_size=2": files[:2],
        f"{FIGSHARE}/files?page=2&page_size=2": files[2:],
    }
    assert [file.path for file in SITE.item(pages).files] == ["0.csv", "1.csv", "2.csv"]
    pages[f"{FIGSHARE}/files?page=2&page_size=2"] = []
    assert refused(pages)[0] == "incomplete-manifest"


def test_an_article_that_does_not_tell_its_size_is_believed() -> None:
    files = [figshare_file(1, "a.csv", size=None)]
    assert len(SITE.item({FIGSHARE: figshare(files=files, size=7)}).files) == 1
    assert len(SITE.item({FIGSHARE: figshare(files=files, size=None)}).files) == 1


CLOSED = cases(
    "given status until",
    [
        (
            {"is_embargoed": True, "embargo_date": "2031-01-02T00:00:00Z", "files": None},
            "platform-embargoed",
            "2031-01-02",
        ),
        ({"is_embargoed": True, "embargo_date": None, "files": None}, "platform-embargoed", None),
        ({"is_confidential": True, "confidential_reason": "names"}, "platform-restricted", None),
        ({"is_public": False}, "platform-restricted", None),
        ({"download_disabled": True}, "platform-restricted", None),
        ({"is_metadata_record": True, "files": []}, "metadata-only", None),
    ],
    make=lambda given: {FIGSHARE: figshare(**given)},
)


def test_links_to_other_sites_are_withheld_and_nothing_but_links_is_no_dataset() -> None:
    link = figshare_file(2, "b.csv", is_link_only=True, size=0)
    found = SITE.item({FIGSHARE: figshare(files=[figshare_file(1, "a.csv"), link], size=100)})
    assert [file.path for file in found.files] == ["a.csv"]
    assert [file.path for file in found.withheld] == ["b.csv"]
    alone = refused({FIGSHARE: figshare(files=[link], size=0)})
    assert alone == ("platform-scope", "link-only")


REFUSED = cases(
    "url doi code",
    [
        ("https://figshare.com/collections/Bees/4711/1", None, "collection"),
        ("https://figshare.com/projects/Bees/4711", None, "collection"),
        (
            "https://doi.org/10.6084/m9.figshare.c.4711.v1",
            "10.6084/m9.figshare.c.4711.v1",
            "collection",
        ),
        ("https://ndownloader.figshare.com/files/15", None, "file-level"),
        ("https://figshare.com/about", None, "no-dataset"),
    ],
    status="platform-scope",
)


REFUSED += cases(
    "given status code",
    [
        # A list that is not there does not mean that the article is gone.
        (figshare(size=300), "incomplete-manifest", ""),
        (figshare(version=3), "platform-scope", "wrong-version"),
        (figshare(status="draft"), "platform-scope", "draft"),
        (figshare(id=4712), "platform-error", ""),
        (figshare(id=None), "platform-bad-response", ""),
        (figshare(files={"a": 1}), "platform-bad-response", ""),
        (figshare(files=[{"id": 1}], size=None), "platform-bad-response", ""),
        ([], "platform-bad-response", ""),
        (404, "platform-404", ""),
        (410, "platform-gone", ""),
    ],
    url=f"{PAGE}/2",
    make=lambda given: {f"{FIGSHARE}/versions/2": given},
)


def test_a_version_that_there_is_not_does_not_mean_that_the_article_is_gone() -> None:
    assert refused(SITE.whole, f"{PAGE}/9") == ("platform-scope", "wrong-version")
    assert refused({}, f"{PAGE}/9")[0] == "platform-404"
    assert refused({f"{FIGSHARE}/versions/9": 500}, f"{PAGE}/9")[0] == "platform-http-error"


def test_4tu_is_asked_itself() -> None:
    uuid = "9f0c2b0e-5f0f-4b46-b5f2-0a8f3f2f6f11"
    page = f"https://data.4tu.nl/datasets/{uuid}/2"
    api = f"https://data.4tu.nl/v2/articles/{uuid}/versions/2"
    given = figshare(id=None, uuid=uuid, url_public_html=page, doi=f"10.4121/{uuid}.v2")
    found = SITE.item({api: given}, page)
    assert (found.platform_domain, found.platform_id) == ("data.4tu.nl", uuid)
    assert found.web_bundle_url is None
    by_doi = SITE.item({api: given}, f"https://doi.org/10.4121/{uuid}.v2", f"10.4121/{uuid}.v2")
    assert by_doi.platform_id == uuid


@pytest.mark.parametrize(
    ("name", "id_", "sizes"),
    [
        ("article_123456.json", 123456, [470683]),
        ("article_11856180_smithsonian.json", 11856180, [400896]),
        ("article_22306426_griffith_trimmed.json", 22306426, [1260453055, 2685661]),
    ],
)
def test_real_articles_are_read(name: str, id_: int, sizes: list[int]) -> None:
    api = f"https://api.figshare.com/v2/articles/{id_}"
    documents = {api: real(f"figshare/{name}")}
    found = SITE.item(documents, f"https://figshare.com/articles/dataset/x/{id_}")
    assert [file.size for file in found.files] == sizes
    assert all(file.md5 for file in found.files)
    assert next(file.extra["md5_from"] for file in found.files) == (
        "supplied_md5" if id_ == 22306426 else "computed_md5"
    )
