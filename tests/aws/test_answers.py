"""The built function answers as `sheaf serve` does, byte for byte, however it is asked."""

import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from tests.aws.archive import Archive
from tests.aws.request import (
    HOST,
    KINDS,
    Answer,
    Kind,
    Request,
    asked,
    http_api,
    over_http,
    rest_api,
)
from tests.aws.runtime import Runtime

TOKEN = re.compile(rb"<resumptionToken[^>]*>([^<]+)</resumptionToken>")
_DATE = re.compile(rb"<responseDate>[^<]+</responseDate>")
_OWN = {"date", "server", "via", "connection", "content-length", "content-encoding"}
"""Headers that are the HTTP server's, or follow from how well it compresses."""

DC = "oai_dc"
FORMATS = ("oai_dc", "mods", "capture", "harvest")
SETS = (
    "domain:cz",
    "mime:text:html",
    "collection:serials",
    "collection:topics:water",
    "no:such",
    "b\u00e4d",
)
DATES: tuple[dict[str, str], ...] = (
    {"from_": "2020-01-01"},
    {"until": "2020-01-01"},
    {"from_": "2020-01-01T00:00:00Z"},
    {"from_": "yesterday"},
    {"from_": "2030-01-01", "until": "2020-01-01"},
    {"from_": "2020-01-01", "until": "2090-01-01T00:00:00Z"},
)
QUERIES = (
    "",
    "verb=",
    "verb=identify",
    "verb=Identify&verb=Identify",
    "verb=Identify&x=1",
    "%",
    "verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=mods",
    "verb=%FF%00",
    "verb=Identify&=",
    "verb=Identify;x=1",
    "verb=ListSets&resumptionToken=",
    "verb=GetRecord&identifier=%22%3E%3Cx%3E&metadataPrefix=oai_dc",
    "verb=+Identify",
    "verb=Identify%0D%0AX: y",
    "verb=Identify&\u010d=%C4%8D",
)
"""What is no request, or hardly one."""


def undated(body: bytes) -> bytes:
    """Return a document without the one thing that may differ: when it was made."""
    return _DATE.sub(b"<responseDate/>", body, count=1)


@pytest.fixture(scope="session")
def same(runtime: Runtime, served: str) -> Callable[..., Answer]:
    """Give what asks the function and the server, and holds their answers against each other."""

    def compare(request: Request, kind: Kind = http_api, encoded: bool = True) -> Answer:
        ours = runtime.ask(request, kind, encoded=encoded)
        theirs = over_http(served, request)
        assert ours.status == theirs.status, request
        assert undated(ours.plain) == undated(theirs.plain), request
        assert _kept(ours) == _kept(theirs), request
        coding = [answer.headers.get("content-encoding") for answer in (ours, theirs)]
        assert coding[0] == coding[1], request
        if request.method != "HEAD" and ours.body:
            assert ours.headers["content-length"] == str(len(ours.body))
        return ours

    return compare


def _kept(answer: Answer) -> dict[str, str]:
    return {k: v for k, v in answer.headers.items() if k not in _OWN}


@pytest.fixture(scope="session")
def names(archive: Archive) -> dict[str, str]:
    """Give an identifier of each sort."""
    rows = archive.rows("SELECT kind, deleted, min(identifier) AS name FROM records GROUP BY ALL")
    return {f"{r['kind']}{'-deleted' * r['deleted']}": r["name"] for r in rows}


def requests(names: dict[str, str]) -> Iterator[Request]:
    """Yield what covers the protocol: verbs, formats, sets, dates, and each of its errors."""
    capture, gone = names["capture"], names["capture-deleted"]
    yield asked("Identify")
    yield asked("ListMetadataFormats")
    yield from (asked("ListMetadataFormats", identifier=name) for name in names.values())
    yield asked("ListSets")
    for prefix in FORMATS:
        yield asked("ListRecords", metadataPrefix=prefix)
        yield asked("ListIdentifiers", metadataPrefix=prefix)
        yield from (
            asked("GetRecord", metadataPrefix=prefix, identifier=name) for name in names.values()
        )
    for name in SETS:
        yield asked("ListRecords", metadataPrefix=DC, set=name)
    for dates in DATES:
        yield asked("ListIdentifiers", metadataPrefix=DC, **dates)
    yield asked("GetRecord", metadataPrefix=DC, identifier="oai:archive.example.org:none")
    yield asked("GetRecord", metadataPrefix="marc21", identifier=capture)
    yield asked("GetRecord", metadataPrefix=DC)
    yield asked("GetRecord", metadataPrefix=DC, identifier=gone, until="2020-01-01")
    yield asked("ListRecords", resumptionToken="made up")
    yield asked("ListRecords", metadataPrefix=DC, resumptionToken="x")
    for query in QUERIES:
        yield Request(quote(query, safe="=&%;+: ").replace(" ", "%20"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_is_answered_as_by_the_server(
    kind: str, same: Callable[..., Answer], names: dict[str, str]
) -> None:
    answers = [same(request, KINDS[kind]) for request in requests(names)]
    assert {answer.status for answer in answers} == {200}
    codes = {code for a in answers for code in re.findall(rb'<error code="(\w+)"', a.plain)}
    assert codes == {
        b"badVerb",
        b"badArgument",
        b"badResumptionToken",
        b"cannotDisseminateFormat",
        b"idDoesNotExist",
        b"noRecordsMatch",
    }
    assert sum(b"<record>" in a.plain for a in answers) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_harvest_is_page_for_page_the_same(
    kind: str, same: Callable[..., Answer], archive: Archive
) -> None:
    (known,) = archive.rows("SELECT count(*) AS n, count(*) FILTER (deleted) AS gone FROM records")
    for verb in ("ListRecords", "ListIdentifiers"):
        found: list[bytes] = []
        gone = 0
        request = asked(verb, metadataPrefix=DC, gzipped=True)
        while True:
            body = same(request, KINDS[kind]).plain
            found += re.findall(rb"<header[^>]*>\s*<identifier>([^<]+)", body)
            gone += body.count(b'<header status="deleted"')
            token = TOKEN.search(body)
            if token is None:
                break
            request = asked(verb, gzipped=True, resumptionToken=token[1].decode())
        assert len(found) == len(set(found)) == known["n"] > 300
        assert gone == known["gone"] > 10


def test_a_stage_is_a_part_of_the_base_url(runtime: Runtime, served: str) -> None:
    """What a document says of its own address is all that differs, and it is the address asked."""
    request = asked("ListRecords", metadataPrefix=DC)
    theirs = undated(over_http(served, request).plain)
    base = f"http://{HOST}".encode()
    for kind in (http_api, rest_api):
        event = kind(request, stage="prod")
        if kind is rest_api:
            event["requestContext"]["path"] = "/prod/oai"  # not so under a domain of one's own
        ours = undated(runtime.ask(request, lambda r, e=event: e).plain)
        assert ours.replace(base + b"/prod/oai", base + b"/oai") == theirs
        assert base + b"/prod/oai</request>" in ours


def test_each_request_is_a_line_of_the_log(runtime: Runtime) -> None:
    before = len(_lines(runtime))
    runtime.ask(asked("GetRecord", metadataPrefix=DC, identifier='oai:x:logged\n"}'))
    added = _lines(runtime)[before:]
    assert len(added) == 1
    entry = json.loads(added[0])
    assert (entry["status"], entry["verb"], entry["path"]) == (200, "GetRecord", "/oai")


def _lines(runtime: Runtime) -> list[str]:
    return [line for line in runtime.said().splitlines() if line.startswith('{"time"')]
