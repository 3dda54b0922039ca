"""openICPSR: projects by their page, in a version, with files that need a login."""

from builder.sources.datasets.platforms.repositories.openicpsr import OpenIcpsr
from builder.sources.datasets.protocols import ApiAnswer
from tests.builder.sources.datasets.pages import Site, cases, page, real_bytes

ROOT = "https://www.openicpsr.org/openicpsr/project/4711"
V2 = f"{ROOT}/version/V2/view"
PAGE = """<html><head><meta name="DC.identifier" content="10.3886/E4711V2">
<meta name="DC.title" content="Honey"><meta name="DC.creator" content="Medová, Jana">
<meta name="DC.date" content="2024-03-04"><script type="application/ld+json">
{"@type": "Dataset", "identifier": "https://doi.org/null", "description": "Prices.",
"keywords": ["honey"], "license": "https://creativecommons.org/licenses/by/4.0/",
"version": "V2", "distribution": []}</script></head></html>"""
WHOLE = {V2: page(PAGE, V2), ROOT: page(PAGE, V2)}
SITE = Site(OpenIcpsr(), V2, whole=WHOLE, status="platform-restricted")
FORMS = [
    (f"{V2};jsessionid=ABC", None),
    (f"{ROOT}/version/V2", None),
    (ROOT, None),
    ("https://doi.org/10.3886/E4711V2", "10.3886/e4711v2"),
    ("https://doi.org/10.3886/E4711", "10.3886/e4711"),
]


def test_a_project_lists_what_needs_a_login() -> None:
    found = SITE.item()
    assert (found.platform_id, found.version, found.index) == ("4711", "2", 2)
    assert (found.platform_domain, found.web_base_url) == ("www.openicpsr.org", V2)
    assert found.platform_status == "platform-restricted"
    assert [file.path for file in found.withheld] == ["4711-V2.zip"]
    assert found.files == ()


def test_a_project_is_described_by_its_page() -> None:
    said = SITE.item().description
    assert (said.title, said.doi, said.version) == ("Honey", "10.3886/e4711v2", "V2")
    assert [person.name for person in said.creators] == ["Medová, Jana"]
    assert (said.published, said.abstract, said.subjects) == ("2024-03-04", "Prices.", ("honey",))
    assert [licence.spdx for licence in said.licences] == ["CC-BY-4.0"]


def test_an_archive_beside_it_has_its_own_pages() -> None:
    url = "https://www.datalumos.org/datalumos/project/7/version/V1/view"
    found = SITE.item({url: page(PAGE, url)}, url)
    assert (found.platform_domain, found.platform_id) == ("www.datalumos.org", "7")


REFUSED = cases(
    "url doi status code",
    [
        (f"{ROOT}/version/V2/download/file?filePath=x", None, "platform-scope", "file-level"),
        ("https://doi.org/x", "10.3886/e4711v2-99", "platform-scope", "file-level"),
        ("https://www.openicpsr.org/openicpsr/about", None, "platform-scope", "no-dataset"),
        (f"{ROOT}/version/V1/view", None, "platform-scope", "wrong-version"),
        (f"{ROOT}/version/V9/view", None, "platform-404", ""),
        (f"{ROOT}0", None, "platform-bad-response", ""),
    ],
    documents=WHOLE | {f"{ROOT}/version/V1/view": page(PAGE, V2), f"{ROOT}0": page("", f"{ROOT}0")},
)


def test_a_real_page_is_read() -> None:
    url = "https://www.openicpsr.org/openicpsr/project/132081/version/V1/view"
    body = real_bytes("openicpsr/landing_132081_V1.html")
    found = SITE.item({url: ApiAnswer(url=url, status=200, body=body)}, url)
    assert (found.version, found.description.doi) == ("1", "10.3886/e132081v1")
    assert (found.description.title or "").startswith("Data and Code for: Intra")
    assert len(found.description.creators) == 4
    assert found.description.publisher == "American Economic Association"
