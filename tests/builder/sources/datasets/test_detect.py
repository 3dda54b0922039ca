"""Detection: registries, hosts, probes, and landing pages last; as few questions as will do."""

from datetime import UTC, datetime
from typing import Any

import pytest

from builder.sources.datasets.item import DatasetResource, IngestRequest
from builder.sources.datasets.platforms.detect import Detected, detect
from builder.sources.datasets.protocols import FilesetError
from tests.builder.sources.datasets.pages import Pages, gone, page, real

NOW = datetime(2026, 11, 22, 10, 11, 12, tzinfo=UTC)
DATAVERSE_OWN = {"status": "OK", "data": {"version": "6.2"}}
INVENIO_OWN = {"id": "ab", "metadata": {}, "links": {"self": "x"}}


def handle(url: str, *more: dict[str, Any]) -> dict[str, Any]:
    value = {"index": 1, "type": "URL", "data": {"format": "string", "value": url}}
    return {"responseCode": 1, "values": [*more, value]}


def found(text: str, api: Pages, block: tuple[str, ...] = ()) -> Detected:
    return detect(IngestRequest(text), api, lambda: NOW, block)


def failed(text: str, api: Pages, block: tuple[str, ...] = ()) -> FilesetError:
    with pytest.raises(FilesetError) as raised:
        found(text, api, block)
    return raised.value


@pytest.mark.parametrize(
    ("doi", "url", "platform"),
    [
        ("10.6078/d14h5k", "https://zenodo.org/records/21", "zenodo"),
        ("10.34894/abc", "https://dataverse.nl/abc", "dataverse"),
    ],
)
def test_the_registry_of_a_doi_is_enough(doi: str, url: str, platform: str) -> None:
    api = Pages({f"https://doi.org/api/handles/{doi}": handle(url, {"index": 100, "type": "HS_X"})})
    resource, helper = found(f"https://doi.org/{doi}", api)
    assert helper.facts.name == platform
    assert (resource.url, resource.doi) == (url, doi)
    assert resource.hops == (f"https://doi.org/{doi}",)
    assert (resource.status, resource.body, resource.at) == (None, None, None)
    assert api.asked == [f"https://doi.org/api/handles/{doi}"]


def test_datacite_is_asked_where_the_registry_does_not_tell() -> None:
    url = "https://dataverse.nl/abc"
    for answer in (503, {"values": []}, {"values": [{"type": "EMAIL"}]}, b"<html>"):
        api = Pages(
            {
                "https://doi.org/api/handles/10.34894/ABC": answer,
                "https://api.datacite.org/dois/10.34894/ABC": {
                    "data": {"attributes": {"url": url}}
                },
            }
        )
        assert found("10.34894/ABC", api)[0].url == url


@pytest.mark.parametrize("name", ["doc_00", "doc_04", "doc_07"])
def test_real_answers_of_datacite_are_read(name: str) -> None:
    document = real(f"datacite/{name}.json")
    doi = document["attributes"]["doi"]
    api = Pages({f"https://api.datacite.org/dois/{doi}": document})
    error = failed(doi, api)
    url = document["attributes"].get("url")
    assert error.status == ("platform-404" if url else "no-platform-match")
    assert (url in api.asked) == bool(url)  # it was followed, and is not in this test


def test_a_doi_that_tells_its_platform_needs_no_registry() -> None:
    api = Pages(
        {
            "https://doi.org/api/handles/10.5281/zenodo.21": 503,
            "https://api.datacite.org/dois/10.5281/zenodo.21": 503,
        }
    )
    resource, helper = found("10.5281/zenodo.21", api)
    assert (helper.facts.name, resource.url) == ("zenodo", "https://doi.org/10.5281/zenodo.21")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (404, "no-platform-match"),
        (503, "platform-http-error"),
        (429, "platform-rate-limited"),
        ([], "no-platform-match"),
    ],
)
def test_a_doi_that_no_registry_tells_is_no_page(answer: Any, status: str) -> None:
    api = Pages({"https://doi.org/api/handles/10.5072/x": answer})
    assert failed("10.5072/x", api).status == status
    assert len(api.asked) == 2


def test_handles_have_a_registry_too() -> None:
    url = "https://dataverse.no/dataset.xhtml?persistentId=hdl:20.500.1/ABC"
    api = Pages({"https://hdl.handle.net/api/handles/20.500.1/ABC": handle(url)})
    resource, helper = found("hdl:20.500.1/ABC", api)
    assert (helper.facts.name, resource.url, resource.doi) == ("dataverse", url, None)


def test_a_url_that_is_known_is_asked_for_by_nobody() -> None:
    api = Pages({})
    resource, helper = found("https://www.zenodo.org/record/21", api)
    assert (helper.facts.name, api.asked) == ("zenodo", [])
    assert resource == DatasetResource(url="https://www.zenodo.org/record/21")


@pytest.mark.parametrize("path", ["/records/ab?q=1", "/record/ab", "/api/records/ab"])
def test_a_probe_shows_invenio(path: str) -> None:
    api = Pages({"https://new.example.org/api/records/ab": INVENIO_OWN})
    resource, helper = found(f"https://new.example.org{path}", api)
    assert (helper.facts.name, len(api.asked), resource.body) == ("inveniordm", 1, None)


@pytest.mark.parametrize(
    "stone",
    [
        {"status": 410, "message": "The record has been deleted.", "tombstone": {"note": "spam"}},
        {"status": 410, "message": "The record has been deleted."},
    ],
)
def test_what_was_deleted_shows_invenio_too(stone: dict[str, Any]) -> None:
    api = Pages({"https://new.example.org/api/records/ab": gone(stone)})
    _, helper = found("https://new.example.org/records/ab", api)
    assert helper.facts.name == "inveniordm"


@pytest.mark.parametrize("said", [[], "gone", {"message": "gone"}, {"status": 410}])
def test_other_words_about_what_was_deleted_show_nothing(said: Any) -> None:
    url = "https://new.example.org/records/ab"
    api = Pages({"https://new.example.org/api/records/ab": gone(said), url: page("<html>", url)})
    assert failed(url, api).status == "no-platform-match"


def test_a_probe_shows_dataverse() -> None:
    api = Pages(
        {
            "https://doi.org/api/handles/10.5072/FK2/ABC": handle("https://new.example.org/abc"),
            "https://new.example.org/api/info/version": DATAVERSE_OWN,
        }
    )
    _, helper = found("10.5072/FK2/ABC", api)
    assert (helper.facts.name, len(api.asked)) == ("dataverse", 2)


@pytest.mark.parametrize("answer", [404, 503, [], {"id": 1}, b"<html>"])
def test_a_probe_that_shows_nothing_is_passed_over(answer: Any) -> None:
    url = "https://new.example.org/records/ab"
    api = Pages({"https://new.example.org/api/records/ab": answer, url: page("<html>", url)})
    assert failed(url, api).status == "no-platform-match"
    assert api.asked[:2] == ["https://new.example.org/api/records/ab", url]


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        ("platform-rate-limited", "too-many-requests", "platform-rate-limited"),
        ("platform-timeout", "no-answer", "platform-timeout"),
        ("platform-http-error", "server-error", "platform-http-error"),
        ("platform-http-error", "http-status", "no-platform-match"),
        ("platform-404", "not-found", "no-platform-match"),
    ],
)
def test_a_probe_that_fails_for_now_tells_of_no_platform_either(
    status: str, code: str, told: str
) -> None:
    """Nobody would ask again for what is known to be at no platform."""
    url = "https://new.example.org/records/ab"

    class Failing(Pages):
        def document(self, url: str, *, hosts: Any = ()) -> Any:
            raise FilesetError(status, code=code)

    assert failed(url, Failing({url: page("<html>", url)})).status == told
    gone = "platform-404" if told == "no-platform-match" else told
    assert failed(url, Failing({})).status == gone


@pytest.mark.parametrize("status", ["cancelled", "deadline-exceeded"])
@pytest.mark.parametrize("text", ["10.5072/x", "https://new.example.org/records/ab"])
def test_the_end_of_a_run_is_no_answer(status: str, text: str) -> None:
    class Ending(Pages):
        def document(self, url: str, *, hosts: Any = ()) -> Any:
            raise FilesetError(status)

    api = Ending({})
    assert failed(text, api).status == status
    assert api.asked == []


def test_a_landing_page_leads_to_the_platform() -> None:
    url = "https://dataverse.nl/dataset.xhtml?persistentId=doi:10.34894/ABC"
    first = "https://short.example.org/a"
    api = Pages({first: page("<html>", url, hops=(first, "https://short.example.org/b"))})
    resource, helper = found(first, api)
    assert (helper.facts.name, resource.url) == ("dataverse", url)
    assert resource.hops == (first, "https://short.example.org/b")
    assert resource.status == 200
    assert (resource.media_type, resource.at) == ("text/html", "20261122101112")


def test_what_a_landing_page_cites_is_probed_and_followed() -> None:
    url = "https://new.example.org/view/7"
    body = '<html><head><meta name="citation_doi" content="10.5072/FK2/ABC"></head></html>'
    api = Pages({url: page(body, url), "https://new.example.org/api/info/version": DATAVERSE_OWN})
    resource, helper = found(url, api)
    assert (helper.facts.name, resource.doi) == ("dataverse", "10.5072/fk2/abc")
    assert resource.html_biblio["doi"] == "10.5072/fk2/abc"
    assert resource.body == body.encode()


@pytest.mark.parametrize("relation", ["cite-as", "canonical"])
def test_a_page_about_a_dataset_elsewhere_leads_there(relation: str) -> None:
    url = "https://catalogue.example.org/7"
    target = "https://dataverse.nl/dataset.xhtml?persistentId=doi:10.34894/ABC"
    cited = "https://doi.org/10.34894/ABC" if relation == "cite-as" else target
    api = Pages(
        {
            url: page(f'<link rel="{relation}" href="{cited}">', url),
            "https://doi.org/api/handles/10.34894/ABC": handle(target),
        }
    )
    resource, helper = found(url, api)
    assert (helper.facts.name, resource.url, resource.hops[0]) == ("dataverse", target, url)


@pytest.mark.parametrize("status", [404, 410, 403])
def test_a_landing_page_that_is_not_had_says_so(status: int) -> None:
    named = {404: "platform-404", 410: "platform-gone", 403: "platform-restricted"}
    url = "https://example.org/x"
    assert failed(url, Pages({url: status})).status == named[status]


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("https://example.org/bad/1", "http://example.org/bad/"),
        ("10.5072/fk2/abc", "https://doi.org/10.5072/"),
        ("10.5072/fk2/abc", "https://dataverse.nl/"),
        ("https://short.example.org/a", "https://dataverse.nl/"),
        ("https://short.example.org/c", "https://dataverse.nl/"),
    ],
)
def test_what_is_blocked_is_not_asked_for(text: str, block: str) -> None:
    target = "https://dataverse.nl/dataset.xhtml?persistentId=doi:10.34894/ABC"
    api = Pages(
        {
            "https://doi.org/api/handles/10.5072/fk2/abc": handle(target),
            "https://short.example.org/a": page("", target, hops=("https://short.example.org/a",)),
            "https://short.example.org/c": page(
                '<link rel=canonical href="http://dataverse.nl/x">', "https://short.example.org/c"
            ),
        }
    )
    assert failed(text, api, (block,)).status == "skip-url-blocklist"
    assert not [url for url in api.asked if url.startswith(block)]
