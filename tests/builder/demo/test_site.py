"""The demo's site answers over real HTTP as its table says."""

import socket
from http.client import HTTPConnection, HTTPResponse

import pytest

from builder.demo.site import HOSTS, SEEDS, Site, serve


def get(address: tuple[str, int], host: str, target: str, **headers: str) -> HTTPResponse:
    connection = HTTPConnection(*address, timeout=10)
    try:
        connection.request("GET", target, headers={"Host": host, **headers})
        response = connection.getresponse()
        response.body = response.read()  # type: ignore[attr-defined]
        return response
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("host", "target", "kind", "starts"),
    [
        ("www.example.org", "/", "text/html; charset=utf-8", b"<!DOCTYPE"),
        ("WWW.example.org:80", "/en/", "text/html; charset=utf-8", b"<!DOCTYPE"),
        ("www.example.org", "/historie.html", "text/html", b"<!DOCTYPE"),
        ("www.example.org", "/styl.css", "text/css", b"body"),
        ("www.example.org", "/hodiny.js", "text/javascript", b"addEvent"),
        ("www.example.org", "/logo.svg", "image/svg+xml", b"<svg"),
        ("www.example.org", "/razitko.png", "image/png", b"\x89PNG"),
        ("www.example.org", "/lipa.gif", "image/gif", b"GIF89a"),
        ("www.example.org", "/vypujcni-rad.pdf", "application/pdf", b"%PDF-"),
        ("blog.example.org", "/novinky.rss", "application/rss+xml", b"<?xml"),
        ("data.example.com", "/vypujcky.json", "application/json", b"{"),
        ("data.example.com", "/pobocky.xml", "application/xml", b"<?xml"),
        ("data.example.com", "/cti-mne.txt", "text/plain; charset=utf-8", b"Otev"),
    ],
)
def test_content_types(host: str, target: str, kind: str, starts: bytes) -> None:
    with serve() as address:
        response = get(address, host, target)
    assert response.status == 200
    assert response.headers["Content-Type"] == kind
    assert response.body.startswith(starts)  # type: ignore[attr-defined]


def test_seeds_are_reserved_names_on_the_loopback_interface() -> None:
    assert all(host.endswith((".example.org", ".example.com")) for host in HOSTS)
    assert len(SEEDS) == len(HOSTS)
    with serve() as (host, port):
        assert host == "127.0.0.1"
        assert port > 0
    with pytest.raises(OSError):
        socket.create_connection((host, port), timeout=1)


def test_redirect_missing_page_and_unknown_host() -> None:
    site = Site()
    moved = site.answer("www.example.org", "/oteviraci-doba")
    assert moved.status == 301
    assert dict(moved.headers)["Location"] == "http://www.example.org/kontakt.html"
    assert site.answer("www.example.org", "/neni").status == 404
    assert site.answer("www.example.net", "/").status == 404
    assert site.answer("www.example.org", "/../site.py").status == 404
    assert site.answer("[", "//[").status == 404


def test_gzip_only_when_accepted() -> None:
    with serve() as address:
        packed = get(address, "blog.example.org", "/", **{"Accept-Encoding": "gzip"})
        plain = get(address, "blog.example.org", "/", **{"Accept-Encoding": "identity"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.body.startswith(b"\x1f\x8b")  # type: ignore[attr-defined]
    assert "Content-Encoding" not in plain.headers
    assert plain.body.startswith(b"<!DOCTYPE")  # type: ignore[attr-defined]


def test_counter_query_and_path_outside_ascii() -> None:
    site = Site()
    first, second = (site.answer("www.example.org", "/aktuality.html").body for _ in range(2))
    assert "otevřel: 1×" in first.decode()
    assert "otevřel: 2×" in second.decode()
    found = site.answer("www.example.org", "/katalog?dotaz=l%C3%ADpa+%3C").body.decode()
    assert "Hledáno: dotaz=lípa &lt;" in found
    night = site.answer("www.example.org", "/akce/%C4%8Dten%C3%A1%C5%99sk%C3%A1-noc.html")
    assert night.status == 200
