"""Fetching over TLS, from a real server with certificates of the test's own."""

import ssl
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from builder.http import connections
from builder.http.addresses import PublicAddresses, networks
from builder.http.client import HttpClient
from builder.http.errors import FetchError
from builder.http.limits import Limits
from builder.http.politeness import HostPolicy, HostQueue
from builder.sources.fulltexts.fetch_file import FileFetcher, Validators
from builder.sources.fulltexts.results import FileContent, Result
from tests.builder.http import site as web


@dataclass
class Certificate:
    """A certificate that vouches for itself, and its key."""

    file: Path

    @staticmethod
    def made(folder: Path, host: str, days: int = 1) -> "Certificate":
        secret = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        end = datetime.now(UTC) + timedelta(days=days)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(secret.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - timedelta(days=10))
            .not_valid_after(end)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(secret, hashes.SHA256())
        )
        file = folder / f"{host}-{days}.pem"
        private = secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
        return Certificate(file)

    def server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file)
        return context


def asked(
    folder: Path, served: Certificate, trusted: Certificate | None, path: str = "/a"
) -> Result:
    with web.serving(tls=served.server()) as site:
        site.pages["/a"] = web.text(b"%PDF" * 100_000)
        site.pages["/slow"] = web.raw(b"x" * 50, 0.05, 50, b"HTTP/1.1 200 OK\r\n\r\n")
        stop = threading.Event()
        tls = connections.tls_context()
        if trusted is not None:
            tls = ssl.create_default_context(cafile=trusted.file)
        client = HttpClient(
            agent="Sheaf/test",
            addresses=PublicAddresses(frozenset({site.port}), networks(["127.0.0.0/8"])),
            hosts=HostQueue(HostPolicy(), stop),
            stop=stop,
            tls=tls,
        )
        limits = Limits(10, 1.5 if path == "/slow" else 10, 20, 100, 10**6)
        fetcher = FileFetcher(client=client, limits=limits, scratch=folder, obey=False)
        url = site.url(path, "localhost").replace("http:", "https:")
        return fetcher.fetch(url, Validators(), time.monotonic() + 30)


def test_a_file_over_tls(tmp_path: Path) -> None:
    certificate = Certificate.made(tmp_path, "localhost")
    found = asked(tmp_path, certificate, certificate)
    assert isinstance(found, FileContent)
    assert found.path.read_bytes() == b"%PDF" * 100_000


def test_one_that_trickles(tmp_path: Path) -> None:
    certificate = Certificate.made(tmp_path, "localhost")
    found = asked(tmp_path, certificate, certificate, "/slow")
    assert isinstance(found, FetchError)
    assert found.code == "too-slow"


@pytest.mark.parametrize("fault", ["of nobody we know", "of another host", "out of date"])
def test_certificates_that_are_not_good(tmp_path: Path, fault: str) -> None:
    certificate = Certificate.made(
        tmp_path,
        "other.example.org" if fault == "of another host" else "localhost",
        -1 if fault == "out of date" else 1,
    )
    trusted = None if fault == "of nobody we know" else certificate
    found = asked(tmp_path, certificate, trusted)
    assert isinstance(found, FetchError)
    assert found.code == "tls"
    assert "certificate" in found.detail.lower()


def test_this_machines_certificates_are_checked() -> None:
    context = connections.tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
