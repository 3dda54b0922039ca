"""The limits of Lambda are kept: six megabytes of an answer, and the seconds of the timeout."""

import json
import re
import socket
from contextlib import closing
from pathlib import Path

import pytest

from tests.aws.archive import SETTINGS, Archive, pages
from tests.aws.request import Answer, Request, answer_of, asked, dumped, http_api
from tests.aws.runtime import FunctionError, running
from tests.aws.test_answers import DC, TOKEN
from tests.bucket import fresh

MOST = 6_291_556
"""Bytes that Lambda hands over of an answer (6 MB, and 100 bytes of its own)."""

LEAKS = re.compile(
    rb"Traceback|File \"|/var/task|/tmp/|s3://|127\.0\.0\.1|Signature|AccessDenied|Forbidden|obstore"
    rb"|duckdb|Error\b|sheaf-[0-9a-f]{12}|sheaf-tests"
)
"""What says something of the inside."""


def unavailable(answer: Answer) -> None:
    """Hold that an answer is a 503 as the protocol wants it, and says nothing of the inside."""
    assert answer.status == 503, answer
    assert int(answer.headers["retry-after"]) > 0
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert not LEAKS.search(answer.body), answer.body
    assert answer.headers["cache-control"] == "no-store"


def test_the_emulator_is_as_strict_as_lambda(tmp_path: Path) -> None:
    """Else nothing below would prove anything."""
    (tmp_path / "strict.py").write_text(
        "import time\n"
        "def handler(event, context):\n"
        "    time.sleep(event.get('seconds', 0))\n"
        "    return {'statusCode': 200, 'body': 'x' * event.get('bytes', 0)}\n"
    )
    with running(tmp_path, {}, tmp_path / "run", timeout=2, handler="strict.handler") as strict:
        assert strict.invoke(b'{"bytes": 6000000}')["statusCode"] == 200
        with pytest.raises(FunctionError, match=r"ResponseSizeTooLarge|HTTP 502"):
            strict.invoke(b'{"bytes": 6400000}')
        with pytest.raises(FunctionError, match=r"timed out after 2\.00 seconds"):
            strict.invoke(b'{"seconds": 10}')
        assert strict.invoke(b"{}")["statusCode"] == 200


@pytest.fixture(scope="module")
def heavy(weed_server: str, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Give an archive of records of some four kilobytes, of which a page would be 30 MB."""
    with closing(fresh(weed_server)) as bucket:
        folder = tmp_path_factory.mktemp("heavy")
        settings = {**SETTINGS, "SHEAF_PAGES_RECORDS": "10000", "SHEAF_PAGES_IDENTIFIERS": "20000"}
        made = Archive(bucket.uri, {**bucket.environment, **settings}, folder)
    long = "&".join(f"a{n}=<{n}>%C4%8D" for n in range(70))
    made.ingest("heavy", {f"{url}&{long}": body for url, body in pages(0, 7000).items()})
    made.sheaf("publish")
    return made


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_page_is_cut_before_six_megabytes(
    heavy: Archive, artefact: Path, tmp_path: Path, coding: str
) -> None:
    found: list[bytes] = []
    sizes: list[int] = []
    seconds: list[float] = []
    environment = {**heavy.environment, "SHEAF_STORE_URI": heavy.store}
    with running(artefact, environment, tmp_path) as runtime:
        query = asked("ListRecords", metadataPrefix=DC).query
        while True:
            event = http_api(Request(query, headers={"accept-encoding": coding}))
            reply = runtime.invoke(dumped(event))
            sizes.append(len(json.dumps(reply)))
            seconds.append(runtime.seconds)
            body = answer_of(reply).plain
            found += re.findall(rb"<header[^>]*>\s*<identifier>([^<]+)", body)
            token = TOKEN.search(body)
            if token is None:
                break
            query = asked("ListRecords", resumptionToken=token[1].decode()).query
    print(f"\n{len(sizes)} pages, largest {max(sizes):,} bytes, slowest {max(seconds):.2f} s")
    assert len(found) == len(set(found)) == 7000
    assert max(sizes) <= MOST
    assert 1 < len(sizes) < 30


def quick(archive: Archive, **changes: str) -> dict[str, str]:
    """Return the function's environment; `changes` are to it."""
    return {**archive.environment, "SHEAF_STORE_URI": archive.store, **changes}


def test_a_store_that_never_answers_is_503_in_time(
    archive: Archive, artefact: Path, tmp_path: Path
) -> None:
    """It takes connections, and says nothing at all."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as mute:
        endpoint = f"http://127.0.0.1:{mute.getsockname()[1]}"
        environment = quick(archive, SHEAF_STORE_ENDPOINT=endpoint)
        with running(artefact, environment, tmp_path, timeout=10) as runtime:
            for _ in range(2):
                unavailable(runtime.ask(asked("Identify")))
                assert runtime.seconds < 9.9
                # as long as the store is not there, this is all that can be said
                unavailable(runtime.ask(asked("ListRecords", "POST", metadataPrefix=DC)))
            assert "Traceback" not in runtime.said()
