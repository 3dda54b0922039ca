"""The function for archived bytes: its built artefact over SeaweedFS, asked in every way."""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import boto3
import brotli
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.aws.archive import SETTINGS, Archive, pages
from tests.aws.build import function
from tests.aws.request import KINDS, Kind, Request
from tests.aws.runtime import Runtime, running
from tests.bucket import fresh

HANDLER = "functions.content.function.handler"
WORDS = b"the same words again and again, " * 4000
CODED = {
    "http://coded.example.cz/br": ("br", brotli.compress(WORDS)),
    "http://coded.example.cz/gzip": ("gzip", gzip.compress(WORDS)),
    "http://coded.example.cz/plain": ("identity", WORDS),
}


@pytest.fixture(scope="module")
def archive(weed_server: str, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Give an archive whose files lie in its own bucket, below `warcs/`."""
    bucket = fresh(weed_server, prefix="an archive/store")
    bucket.close()
    folder = tmp_path_factory.mktemp("archive")
    made = Archive(bucket.uri, {**bucket.environment, **SETTINGS}, folder)
    written(folder / "coded.warc.gz")
    made.sheaf("ingest", folder / "coded.warc.gz")
    made.ingest("one", pages(0, 30))
    made.sheaf("publish")
    keys = bucket.environment
    client = boto3.client(
        "s3",
        endpoint_url=weed_server,
        aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    )
    for name in ("coded.warc.gz", "one.warc.gz"):
        client.upload_file(str(folder / name), bucket.bucket, f"an archive/store/warcs/{name}")
    return made


def written(path: Path) -> None:
    """Write a WARC with the payloads of CODED."""
    with path.open("wb") as out:
        writer = WARCWriter(out, gzip=True)
        for url, (coding, payload) in CODED.items():
            fields = [("Content-Type", "text/plain"), ("Content-Encoding", coding)]
            head = StatusAndHeaders("200 OK", fields, protocol="HTTP/1.1")
            record = writer.create_warc_record(
                url,
                "response",
                io.BytesIO(payload),
                http_headers=head,
                warc_headers_dict={"WARC-Date": "2020-06-23T21:35:50Z"},
            )
            writer.write_record(record)


@pytest.fixture(scope="module")
def content(
    archive: Archive, artefacts: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runtime]:
    """Give the function over the archive."""
    environment = {
        **archive.environment,
        "SHEAF_STORE_URI": archive.store,
        "SHEAF_CONTENT_SERVE": "true",
    }
    folder = tmp_path_factory.mktemp("runtime")
    artefact = function(artefacts, "ContentFunction")
    with running(artefact, environment, folder, handler=HANDLER) as one:
        yield one


def identifier(archive: Archive, url: str) -> str:
    (row,) = archive.rows(f"SELECT identifier FROM captures WHERE url = '{url}'")
    return str(row["identifier"])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("url", CODED)
def test_codings_are_undone_and_bytes_come_as_they_were(
    url: str, kind: Kind, archive: Archive, content: Runtime
) -> None:
    name = identifier(archive, url)
    answer = content.ask(Request(path=f"/content/{name}"), kind)
    assert (answer.status, answer.body) == (200, WORDS)
    assert "content-encoding" not in answer.headers
    answer = content.ask(Request("coded=1", path=f"/content/{name}"), kind)
    assert (answer.status, answer.body) == (200, CODED[url][1])


def test_nothing_is_lacking_in_what_was_packed(content: Runtime) -> None:
    assert content.ask(Request(path="/content/nobody")).status == 404
    said = content.said()
    assert "No module named" not in said
    assert [json.loads(line)["path"] for line in said.splitlines() if line.startswith('{"time"')]
