"""The harvester against a server of canned pages."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from functions.snapshot.errors import SheafError
from tests.e2e.harvester import HarvestError, harvest, record

DELETED = ' status="deleted"'
Answer = Callable[[dict[str, str]], tuple[int, str]]


@contextmanager
def repository(answer: Answer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = answer(dict(parse_qsl(urlsplit(self.path).query)))
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/oai"
        finally:
            server.shutdown()
            thread.join()


def oai(content: str) -> str:
    return f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{content}</OAI-PMH>'


def listed(identifiers: list[str], token: str | None = None, deleted: str = "") -> str:
    records = "".join(
        f"<record><header{DELETED if i == deleted else ''}>"
        f"<identifier>{i}</identifier></header></record>"
        for i in identifiers
    )
    end = "" if token is None else f"<resumptionToken>{token}</resumptionToken>"
    return oai(f"<ListRecords>{records}{end}</ListRecords>")


def test_follows_tokens_to_the_empty_one() -> None:
    asked: list[dict[str, str]] = []
    pages = {
        None: listed(["oai:a.b:1", "oai:a.b:2"], "x y&amp;z=1"),
        "x y&z=1": listed(["oai:a.b:3"], "\n last "),
        "last": listed(["oai:a.b:4"], "", deleted="oai:a.b:4"),
    }

    def answer(arguments: dict[str, str]) -> tuple[int, str]:
        asked.append(arguments)
        return 200, pages[arguments.get("resumptionToken")]

    with repository(answer) as url:
        summary = harvest(url, prefix="oai_x", set="a:b")
    assert (summary.records, summary.deleted, summary.pages) == (4, 1, 3)
    assert summary.identifiers == {f"oai:a.b:{n}" for n in range(1, 5)}
    assert summary.seconds > 0
    assert asked == [
        {"verb": "ListRecords", "metadataPrefix": "oai_x", "set": "a:b"},
        {"verb": "ListRecords", "resumptionToken": "x y&z=1"},
        {"verb": "ListRecords", "resumptionToken": "last"},
    ]


def test_what_is_new_since_the_response_date_of_an_earlier_harvest() -> None:
    asked: list[dict[str, str]] = []
    dates = {None: "2026-01-01T00:00:00Z", "next": "2026-01-01T00:00:09Z"}

    def answer(arguments: dict[str, str]) -> tuple[int, str]:
        asked.append(arguments)
        token = arguments.get("resumptionToken")
        date = oai(f"<responseDate>{dates[token]}</responseDate>")
        page = listed(["oai:a.b:2"]) if token else listed(["oai:a.b:1"], "next")
        return 200, date.replace("</OAI-PMH>", "") + page.partition(">")[2]

    with repository(answer) as url:
        first = harvest(url)
        harvest(url, since=first.began)
    assert first.began == "2026-01-01T00:00:00Z"
    assert asked[2] == {
        "verb": "ListRecords",
        "metadataPrefix": "oai_dc",
        "from": "2026-01-01T00:00:00Z",
    }


def test_a_record_by_itself() -> None:
    def answer(arguments: dict[str, str]) -> tuple[int, str]:
        assert arguments["metadataPrefix"] == "amf"
        if arguments["identifier"] == "oai:a.b:1":
            return 200, listed(["oai:a.b:1"]).replace("ListRecords", "GetRecord")
        code = "idDoesNotExist"
        return 200, oai(f'<error code="{code}"/>' if arguments["identifier"] == "no" else "")

    with repository(answer) as url:
        (header,) = record(url, "oai:a.b:1", "amf")
        assert header[0].text == "oai:a.b:1"
        with pytest.raises(HarvestError, match="idDoesNotExist"):
            record(url, "no", "amf")
        with pytest.raises(HarvestError, match="no record of other"):
            record(url, "other", "amf")


def test_one_page_without_a_token() -> None:
    with repository(lambda _: (200, listed(["oai:a.b:1"]))) as url:
        assert harvest(url).pages == 1


def test_no_records_match_is_nothing() -> None:
    with repository(lambda _: (200, oai('<error code="noRecordsMatch"/>'))) as url:
        summary = harvest(url)
    assert (summary.records, summary.pages, summary.identifiers) == (0, 0, frozenset())


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (200, oai('<error code="badArgument">No\n such</error>'), "badArgument: No such"),
        (200, listed(["oai:a.b:1", "oai:a.b:1"]), "oai:a.b:1 twice"),
        (200, listed(["oai:a.b:1"], "same"), "oai:a.b:1 twice"),
        (200, listed([]), "without records"),
        (200, listed([""]), "without an identifier"),
        (200, "<html>", "no XML"),
        (200, "<html/>", "no OAI-PMH"),
        (503, "later", "HTTP 503"),
    ],
)
def test_what_is_wrong_is_one_line(status: int, text: str, said: str) -> None:
    with repository(lambda _: (status, text)) as url, pytest.raises(HarvestError) as caught:
        harvest(url)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_records_match_after_a_token_is_an_error() -> None:
    def answer(arguments: dict[str, str]) -> tuple[int, str]:
        if "resumptionToken" in arguments:
            return 200, oai('<error code="noRecordsMatch"/>')
        return 200, listed(["oai:a.b:1"], "next")

    with repository(answer) as url, pytest.raises(HarvestError, match="noRecordsMatch"):
        harvest(url)


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "http://127.0.0.1:1/", "http://[", "http://127.0.0.1:port/"]
)
def test_what_cannot_be_reached(url: str) -> None:
    with pytest.raises(SheafError):
        harvest(url)
