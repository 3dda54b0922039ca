"""Fetching over TLS, from a real server with certificates of the test's own."""

import ssl
import threading
import time
from pathlib import Path

import pytest

from builder.http import connections
from builder.http.addresses import PublicAddresses, networks
from builder.http.client import HttpClient
from builder.http.errors import FetchError
from builder.http.limits import Limits
from builder.http.politeness import HostPolicy, HostQueue
from builder.sources.fulltexts.fetch_file import FileFetcher, Validators
from builder.sources.fulltexts.results import FileContent, Result
from tests.builder.http import certificates
from tests.builder.http import site as web


def asked(
    folder: Path, served: ssl.SSLContext, trusted: ssl.SSLContext, path: str = "/a"
) -> Result:
    with web.serving(tls=served) as site:
        site.pages["/a"] = web.text(b"%PDF" * 100_000)
        site.pages["/slow"] = web.raw(b"x" * 50, 0.05, 50, b"HTTP/1.1 200 OK\r\n\r\n")
        stop = threading.Event()
        client = HttpClient(
            agent="Sheaf/test",
            addresses=PublicAddresses(frozenset({site.port}), networks(["127.0.0.0/8"])),
            hosts=HostQueue(HostPolicy(), stop),
            stop=stop,
            tls=trusted,
        )
        limits = Limits(10, 1.5 if path == "/slow" else 10, 20, 100, 10**6)
        fetcher = FileFetcher(client=client, limits=limits, scratch=folder, obey=False)
        url = site.url(path, "localhost").replace("http:", "https:")
        return fetcher.fetch(url, Validators(), time.monotonic() + 30)


def test_a_file_over_tls(tmp_path: Path) -> None:
    found = asked(tmp_path, certificates.of_host("localhost"), certificates.trusted())
    assert isinstance(found, FileContent)
    assert found.path.read_bytes() == b"%PDF" * 100_000


def test_one_that_trickles(tmp_path: Path) -> None:
    found = asked(tmp_path, certificates.of_host("localhost"), certificates.trusted(), "/slow")
    assert isinstance(found, FetchError)
    assert found.code == "too-slow"


@pytest.mark.parametrize("fault", ["of nobody we know", "of another host", "out of date"])
def test_certificates_that_are_not_good(tmp_path: Path, fault: str) -> None:
    host = "other.example.org" if fault == "of another host" else "localhost"
    served = certificates.of_host(host, -1 if fault == "out of date" else 1)
    is_foreign = fault == "of nobody we know"
    trusted = connections.tls_context() if is_foreign else certificates.trusted()
    found = asked(tmp_path, served, trusted)
    assert isinstance(found, FetchError)
    assert found.code == "tls"
    assert "certificate" in found.detail.lower()


def test_this_machines_certificates_are_checked() -> None:
    context = connections.tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
