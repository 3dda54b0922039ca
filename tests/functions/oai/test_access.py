"""The access log: a line a request, whatever was sent, and no answer less where it fails."""

import json
from datetime import timedelta
from urllib.parse import quote, urlencode

import pytest

from functions.oai.application import Application
from functions.site.site import make_site
from functions.snapshot.errors import StoreError
from tests.functions.oai.client import START, Client, Clock, configured, event, respond


class Log:
    """An application that logs into a list, by a timer that goes on 12.34 ms at each look."""

    def __init__(self, repository, clock: Clock, **settings) -> None:
        self.lines: list[str] = []
        self.seconds = 0.0
        self.application = Application(
            repository,
            configured(**settings),
            clock,
            self.lines.append,
            self.timer,
            pages=make_site,
        )

    def timer(self) -> float:
        self.seconds += 0.01234
        return self.seconds

    def __call__(self, *args, **kwargs):
        """Ask; return the answer and its entry."""
        before = len(self.lines)
        reply = respond(self.application, event(*args, **kwargs))
        (line,) = self.lines[before:]
        assert line.isascii()
        assert line.isprintable()
        return reply, json.loads(line)


@pytest.fixture
def log(repository, clock) -> Log:
    return Log(repository, clock, pages_records=3)


def test_a_list_s_page(log, clock):
    query = "verb=ListRecords&metadataPrefix=oai_dc&set=mime:text:html&from=2026-01-01"
    reply, entry = log(query)
    assert entry == {
        "time": "2026-03-01T12:00:00.000Z",
        "method": "GET",
        "path": "/oai",
        "status": 200,
        "verb": "ListRecords",
        "metadataPrefix": "oai_dc",
        "set": "mime:text:html",
        "from": "2026-01-01",
        "snapshot": 2,
        "rows": 3,
        "cursor": 0,
        "errors": [],
        "bytes": len(reply["body"].encode()),
        "milliseconds": 12.3,
        "cached": False,
        "store_requests": 0,
        "store_bytes": 0,
    }


def test_a_resumed_page_tells_how_far_it_is_and_no_token(log, repository, clock):
    client = Client(repository, clock, pages_records=3)
    token = client.get("ListRecords", metadataPrefix="oai_dc").next
    repository.publish({"oai:example.org:01": None}, clock.move(60))
    clock.move(60)
    _, entry = log(urlencode({"verb": "ListRecords", "resumptionToken": token}))
    assert (entry["snapshot"], entry["cursor"], entry["rows"]) == (2, 3, 3)
    assert entry["metadataPrefix"] == "oai_dc"
    assert not {"set", "from", "until"} & entry.keys()
    assert token[:20] not in log.lines[-1]
    _, entry = log(f"verb=ListRecords&resumptionToken={token}x")
    assert (entry["snapshot"], entry["rows"]) == (3, 0)
    assert entry["errors"] == ["badResumptionToken"]
    assert token[:20] not in log.lines[-1]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("verb=Identify", {"rows": 0, "errors": []}),
        ("verb=ListSets", {"rows": 27}),
        ("verb=ListMetadataFormats", {"rows": 3}),
        (
            "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:example.org:01",
            {"rows": 1, "identifier": "oai:example.org:01", "metadataPrefix": "oai_dc"},
        ),
        (
            "verb=GetRecord&metadataPrefix=marc&identifier=a:b",
            {"rows": 0, "errors": ["idDoesNotExist", "cannotDisseminateFormat"]},
        ),
        ("verb=Nope&set=a", {"verb": "Nope", "set": "a", "errors": ["badVerb"]}),
        ("verb=Identify&a=b&c=d", {"errors": ["badArgument"]}),
        ("verb=a&verb=b", {"verb": "a"}),
    ],
)
def test_what_was_asked_and_found(log, query, told):
    _, entry = log(query)
    assert {name: entry[name] for name in told} == told
    assert entry["snapshot"] == 2
    absent = {"verb", "set", "identifier", "metadataPrefix", "from", "until"} - entry.keys()
    assert all(f"{name}=" not in query for name in absent)


def test_bytes_are_those_that_are_sent(log):
    plain, entry = log("verb=Identify")
    assert entry["bytes"] == len(plain["body"])
    zipped, entry = log("verb=Identify", headers={"accept-encoding": "gzip"})
    assert entry["bytes"] == int(zipped["headers"]["Content-Length"]) < len(plain["body"])
    assert log("verb=Identify", "HEAD")[1]["bytes"] == 0
    held, entry = log("verb=Identify", headers={"if-none-match": plain["headers"]["ETag"]})
    assert (held["statusCode"], entry["status"]) == (304, 304)
    assert (entry["cached"], entry["bytes"], entry["verb"]) == (True, 0, "Identify")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("OPTIONS", "/oai", 204), ("PUT", "/oai", 405), ("GET", "/nowhere", 404), ("GET", "/", 200)],
)
def test_what_is_no_harvest(log, method, path, status):
    reply, entry = log("", method, path)
    assert (entry["method"], entry["path"], entry["status"]) == (method, path, status)
    assert entry["bytes"] == len(reply["body"].encode())
    assert "verb" not in entry


def test_a_form_s_arguments_count(log):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    _, entry = log("", "POST", headers=headers, body="verb=ListIdentifiers&metadataPrefix=oai_dc")
    assert (entry["method"], entry["verb"], entry["rows"]) == ("POST", "ListIdentifiers", 10)
    _, entry = log("", "POST", body="verb=Identify")
    assert entry["errors"] == ["badArgument"]
    assert "verb" not in entry


def test_what_fails_is_logged_with_what_was_asked(log, repository):
    def fail(*args, **kwargs):
        raise StoreError("gone")

    repository.pointer = fail
    log.application._present._cached = None
    reply, entry = log("verb=ListSets")
    assert (entry["status"], entry["verb"]) == (503, "ListSets")
    assert entry["bytes"] == len(reply["body"])


HOSTILE = ['"}\n{"status":200', "\r\n\x00\x1b[31m", "\u2028\u2029\x85", "\ufffe\ud800", "ě" * 9999]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", ["verb", "set", "metadataPrefix", "identifier", "from", "x"])
def test_hostile_values_stay_within_their_line(log, name, value):
    given = quote(value.encode("utf-8", "surrogatepass"))
    for query in (f"{name}={given}", f"verb=ListRecords&{name}={given}"):
        _, entry = log(query)
        assert len(log.lines[-1]) < 3000
        assert entry["errors"]


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_paths_and_methods_stay_within_their_line(log, value):
    _, entry = log("", value, f"/{value}")
    assert entry["path"] == f"/{value}"[:300]
    assert entry["status"] == 404
    assert log("", value)[1]["status"] == 405


def test_no_client_is_named(log):
    headers = {"x-forwarded-for": "203.0.113.9", "user-agent": "a person", "cookie": "c=1"}
    log("verb=Identify", headers=headers)
    assert not any(text in log.lines[0] for text in ("203.0", "person", "c=1"))


def test_a_full_disk_stops_no_answer_and_is_told_of_once(repository, clock, caplog):
    lines: list[str] = []
    full = True

    def write(line: str) -> None:
        if full:
            raise OSError(28, "No space left on device")
        lines.append(line)

    application = Application(repository, configured(), clock, write)
    for _ in range(5):
        assert respond(application, event("verb=Identify"))["statusCode"] == 200
    assert caplog.text.count("No space left") == 1
    full = False
    respond(application, event("verb=Identify"))
    assert len(lines) == 1
    full = True
    respond(application, event("verb=Identify"))
    assert caplog.text.count("No space left") == 2


@pytest.mark.parametrize("error", [ValueError, AttributeError, UnicodeError, MemoryError])
def test_a_line_that_cannot_be_written_is_lost_and_nothing_else(repository, clock, caplog, error):
    def write(line: str) -> None:
        raise error("I/O operation on closed file")

    application = Application(repository, configured(), clock, write)
    for _ in range(3):
        assert respond(application, event("verb=Identify"))["statusCode"] == 200
    assert caplog.text.count("the access log cannot be written") == 1


def test_without_a_log_nothing_is_written(repository, clock, capsys):
    respond(Application(repository, configured(), clock), event("verb=Identify"))
    assert capsys.readouterr() == ("", "")


def test_the_time_is_utc(repository, clock):
    log = Log(repository, clock)
    clock.now = START + timedelta(microseconds=123456)
    assert log("verb=Identify")[1]["time"] == "2026-03-01T12:00:00.123Z"


def test_a_resumed_page_tells_what_list_it_is_of(log, repository, clock):
    client = Client(repository, clock, pages_records=1)
    asked = {"metadataPrefix": "oai_dc", "set": "mime", "from_": "2026-03-01"}
    token = client.get("ListRecords", **asked).next
    _, entry = log(urlencode({"verb": "ListRecords", "resumptionToken": token}))
    told = {name: entry[name] for name in ("metadataPrefix", "set", "from")}
    assert told == {"metadataPrefix": "oai_dc", "set": "mime", "from": "2026-03-01T00:00:00Z"}
    assert "until" not in entry
