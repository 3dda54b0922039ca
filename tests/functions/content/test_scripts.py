"""Replay with scripts: what its service worker asks, and where none of it is answered."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import quote

import pytest

from builder.store.folder import FolderStore
from functions.config import configuration
from functions.content import assembly
from functions.http.http_message import Call, HttpResponse
from functions.reading.duck_repository import DuckRepository
from tests.builder.serve.test_replay_package import WHOLE, WORKER, pack
from tests.clock import CLOCK
from tests.pages.archive import Capture, publish_captures

MAIN, OWN = "https://oai.example.org", "https://replay.example.org"
HOST = "http://www.a.cz/"
STAMP = "20090501000000"
SCRIPT = b"document.title = 'ran'"

Ask = Callable[..., HttpResponse]


def captures() -> Iterator[Capture]:
    for year in (2007, 2009):
        yield Capture(f"{HOST}p?a=b c", f"{year}-05-01T00:00:00Z", f"<p>{year}".encode())
    yield Capture(f"{HOST}s.js", "2009-05-01T00:00:00Z", SCRIPT, "text/javascript")
    yield Capture(f"{HOST}old", "2009-05-01T00:00:00Z", b"", "text/html", "302 Found", "/s.js")
    yield Capture(f"{HOST}gone", "2009-05-01T00:00:00Z", b"secret", "text/html")


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    address = {"repository.base_url": f"{MAIN}/oai"}
    folder, withdrawn = tmp_path_factory.mktemp("scripts"), (f"{HOST}gone",)
    home = publish_captures(folder, captures(), withdrawn, **address)
    store, later = home.folder / "store", CLOCK.now() + timedelta(minutes=5)
    repository = DuckRepository(FolderStore(store))

    def answer(
        path: str, base: str = OWN, own: str = OWN, serve: str = "true", **headers: str
    ) -> HttpResponse:
        variables = {"SHEAF_CONTENT_SERVE": serve, "SHEAF_CONTENT_REPLAY_ADDRESS": own}
        values = configuration.parse(home.config.read_text(), variables)
        parts = (repository, str(store), home.folder, values.relative_to(home.folder), {})
        largest = 6 << 20 if headers.pop("lambda_", "") else None
        application = assembly.application(*parts, lambda: later, largest=largest)
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        return application.answer(Call("GET", base, path, "", names))

    assert answer(f"/replay/{STAMP}/").status == 404  # not installed yet
    assert b"With scripts" not in body(answer(f"/web/{STAMP}/{HOST}s.js"))
    printed = home("replay", "install", pack(home.folder / "p.tgz", *WHOLE)).out
    assert printed == "installed ReplayWeb.page 2.5.3 (AGPL-3.0-or-later)\n"
    assert home("verify").code == 0  # what is installed is not stray
    yield answer
    repository.close()


def body(response: HttpResponse) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


def inside(url: str) -> str:
    return quote(url.partition("//")[2], safe="")


def test_the_frame_and_its_files_are_served(ask: Ask) -> None:
    for path in (f"/replay/{STAMP}/", "/replay/missing"):
        page = ask(path)
        policy = page.headers["Content-Security-Policy"]
        assert page.status == 200
        assert f"script-src {OWN}/replay/; worker-src {OWN}/replay/worker.js; " in policy
        assert f"frame-ancestors {MAIN};" in policy
        assert b"<script>" not in body(page)
    for path in ("/replay", "/replay/"):
        assert ask(path).status == 400
    assert ask("/replay/ui.js").status == 302  # a URL without scheme
    scripts = {name: body(ask(f"/replay/{name}.js")) for name in ("sw", "worker", "archived")}
    assert scripts["sw"] == WORKER
    assert b'importScripts("sw.js")' in scripts["worker"]
    for name in scripts:
        response = ask(f"/replay/{name}.js")
        assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert "connect-src 'self'" in response.headers["Content-Security-Policy"]
        assert ask(f"/replay/{name}.js", if_none_match=response.headers["ETag"]).status == 304
    # Only the worker that guards is registered.
    assert ask("/replay/worker.js", service_worker="script").status == 200
    assert ask("/replay/sw.js", service_worker="script").status == 403


@pytest.mark.parametrize("lambda_", ["", "yes"])
def test_the_worker_has_heads_and_payloads(ask: Ask, lambda_: str) -> None:
    url = inside(f"{HOST}p?a=b%20c")
    head = body(ask(f"/replay/{STAMP}/H/{url}", lambda_=lambda_)).decode()
    warc, http, _ = head.split("\r\n\r\n", 2)
    assert warc.startswith("WARC/1.1\r\nWARC-Type: response\r\n")
    assert "WARC-Date: 2009-05-01T00:00:00Z" in warc
    assert f"Content-Length: {len(http) + 4}" in warc
    assert http.startswith("HTTP/1.1 200 OK\r\n")
    assert "Content-Type: text/html" in http
    payload = ask(f"/replay/{STAMP}/A/{url}", lambda_=lambda_)
    assert (payload.status, body(payload)) == (200, b"<p>2009")
    assert payload.headers["Content-Security-Policy"].startswith("sandbox;")
    assert body(ask(f"/replay/2007/A/{url}", lambda_=lambda_)) == b"<p>2007"
    part = ask(f"/replay/{STAMP}/A/{inside(f'{HOST}s.js')}", lambda_=lambda_, range="bytes=0-7")
    assert (part.status, body(part)) == (206, SCRIPT[:8])
    moved = body(ask(f"/replay/{STAMP}/H/{inside(HOST + 'old')}")).decode()
    assert "HTTP/1.1 302 Found\r\n" in moved
    assert "Location: /s.js\r\n" in moved
    fresh = ask(f"/replay/{STAMP}/A/{inside(HOST + 's.js?_=1393844276741')}", lambda_=lambda_)
    assert (fresh.status, body(fresh)) == (200, SCRIPT)
    # Not even from a cache a browser takes it for a worker; the head says its type.
    assert fresh.headers["Content-Type"] == "application/octet-stream"
    head = body(
        ask(f"/replay/{STAMP}/H/{inside(HOST + 's.js')}", base=OWN.replace("https", "http"))
    )
    assert b"\r\nContent-Type: text/javascript\r\n" in head
    stored = ask(f"/web/{STAMP}id_/{HOST}s.js", lambda_=lambda_)
    assert stored.headers["Content-Type"] == "text/javascript"
    assert stored.headers["Vary"] == "Accept-Encoding, Service-Worker"
    assert ask(f"/replay/{STAMP}/A/{inside(HOST)}s.js", service_worker="script").status == 403


def test_withdrawn_and_unknown_urls_are_not_there(ask: Ask) -> None:
    for path in (f"{part}/{inside(HOST + name)}" for part in "HA" for name in ("gone", "none")):
        response = ask(f"/replay/{STAMP}/{path}")
        assert response.status in (404, 410)
        assert b"secret" not in body(response)


@pytest.mark.parametrize(
    "more",
    # With MAIN as the base, the same function answers at both hosts.
    [{"own": ""}, {"own": MAIN.replace("oai", "OAI")}, {"own": f"{MAIN}:443"}],
)
def test_scripts_run_only_on_an_origin_of_their_own(ask: Ask, more: dict[str, str]) -> None:
    for path in ("sw.js", "worker.js", f"{STAMP}/", f"{STAMP}/A/{inside(HOST + 's.js')}"):
        # Elsewhere, and where a proxy does not pass the host, it is an archived page of that name.
        for base in (MAIN, MAIN.replace("https", "http"), "http://127.0.0.1"):
            page = ask(f"/replay/{path}", base=base)
            assert (page.status, page.headers["Content-Type"][:9]) == (404, "text/html")
        response = ask(f"/replay/{path}", **more)
        assert response.status == 404
        assert b"replay_address" in body(response)
        assert ask(f"/replay/{path}", serve="false").status == 404


def test_the_page_has_the_banner_of_the_one_without_scripts(ask: Ask) -> None:
    url = f"{HOST}p?a=b%20c"
    first, calm = f"{MAIN}/replay/20070501000000/{url}", f"{MAIN}/web/{STAMP}/{url}"
    assert ask(f"/replay/2008/{url}", base=MAIN).headers["Location"] == first
    page = ask(f"/replay/{STAMP}/{url}", base=MAIN)
    text, policy = body(page).decode(), page.headers["Content-Security-Policy"]
    assert f'data-src="{OWN}/replay/{STAMP}/#{url}"' in text
    assert f'rel="prev" href="{first}"' in text
    assert f'href="{calm}">Without scripts</a>' in text
    assert f"frame-src {OWN}/replay/w/ {OWN}/replay/{STAMP}/; connect-src 'self'" in policy
    other = body(ask(f"/web/{STAMP}/{url}", base=MAIN)).decode()
    assert f'href="{MAIN}/replay/{STAMP}/{url}">With scripts</a>' in other
    assert "With scripts" not in body(ask(f"/web/{STAMP}/{url}", own="")).decode()
    for name, status in (("gone", 404), ("none", 404)):
        missing = ask(f"/replay/{STAMP}/{HOST}{name}", base=MAIN)
        assert missing.status == status
        assert b"not in the archive" in body(missing)
        assert b"secret" not in body(missing)
    assert ask(f"/replay/{STAMP}if_/{url}", base=MAIN).status == 400
    opened = ask(f"/replay/w/{STAMP}/{STAMP}mp_/{url}")
    assert (opened.status, opened.headers["Location"]) == (302, f"{MAIN}/replay/{STAMP}/{url}")
