"""What the store itself has, over HTTP: texts and files as they were, and large ones elsewhere."""

import http.client
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from builder.obi.content import Redirect
from builder.obi.run import Purpose, claim
from functions.content import assembly
from functions.content.handler import ContentApplication
from functions.reading.duck_repository import DuckRepository
from functions.snapshot.manifest import Manifest
from functions.store.slice import open_reader
from tests.bucket import administrator, environment, fresh
from tests.builder.obi.archive import PREFIX, Repec
from tests.builder.obi.holding import redirected
from tests.functions.content.test_holding import URL, gather, handle, named
from tests.functions.oai.client import answer, configured, event

OLD, NEW = b"%PDF one, and more of it", b"%PDF two, and more of it"
HANDLE = handle(1)
PAPER = f"/content/{PREFIX}{HANDLE}"


@pytest.fixture(scope="module")
def repec(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repec]:
    """Give a store with a template and two versions of its file; nothing is written to it."""
    folder = tmp_path_factory.mktemp("repec")
    world = Repec(folder / "store")
    world.take(a=named())
    gather(world, OLD)
    gather(world, NEW)
    world.publish()
    yield world
    world.close()


def over(uri: str, repec: Repec, keys: dict[str, str], **settings: Any) -> ContentApplication:
    """Return what answers over the store, there or in a bucket, long after it was published."""
    values = configured(
        content_serve=True, redif_identifier_prefix=PREFIX, repository_namespace="b.cz", **settings
    )
    repository = DuckRepository(open_reader(uri, Path("/"), values, keys))
    repec.opened.append(repository)
    later = repec.clock.now + timedelta(days=1)
    return assembly.application(repository, uri, Path("/"), values, keys, lambda: later)


def asked(application: ContentApplication, path: str, query: str = "") -> tuple[int, Any, bytes]:
    reply = answer(application, event(query, path=path))
    return reply["statusCode"], reply["headers"], reply["body"]


def test_a_template_and_its_file_are_had_by_several_names(repec: Repec) -> None:
    application = over(str(repec.root), repec, {})
    status, headers, body = asked(application, PAPER)
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert b"On Rugs" in body
    assert "Memento-Datetime" in headers
    assert headers["Cache-Control"] == "no-cache"  # the next version is another one
    coded = quote(URL, safe="")
    for path, query in (
        (PAPER, f"file={coded}"),
        (f"/content/{coded}", ""),
        (f"/content/{URL}", ""),
        ("/content", f"id={coded}"),
    ):
        status, headers, body = asked(application, path, query)
        assert (status, body) == (200, NEW), path
        assert headers["Content-Disposition"] == 'attachment; filename="one.pdf"'
        assert headers["Repr-Digest"].startswith("sha-256=:")
    assert asked(application, f"/content/{HANDLE}")[0] == 200


def test_what_is_large_is_had_at_the_bucket(repec: Repec, weed_server: str) -> None:
    bucket = fresh(weed_server)
    with closing(bucket):
        client = administrator(weed_server)
        for path in filter(Path.is_file, repec.root.rglob("*")):
            key = f"store/{path.relative_to(repec.root).as_posix()}"
            client.upload_file(str(path), bucket.bucket, key)
        keys = environment(weed_server)
        far = {"store_endpoint": weed_server, "content_redirect_bytes": len(NEW) - 1}
        application = over(bucket.uri, repec, keys, **far)
        status, headers, _ = asked(application, f"/content/{URL}")
        assert (status, headers["Cache-Control"]) == (302, "no-store")
        where = urlsplit(headers["Location"])
        connection = http.client.HTTPConnection(where.netloc, timeout=20)
        connection.request("GET", f"{where.path}?{where.query}", headers={"Range": "bytes=5-"})
        response = connection.getresponse()
        assert (response.status, response.read()) == (206, NEW[5:])
        assert response.headers["Content-Disposition"] == 'attachment; filename="one.pdf"'
        assert response.headers["Content-Type"] == "application/octet-stream"
        connection.close()
        near = {**far, "content_redirect_bytes": len(NEW)}
        assert asked(over(bucket.uri, repec, keys, **near), f"/content/{URL}")[2] == NEW


def test_redirects_are_followed_to_the_bytes(repec: Repec, tmp_path: Path) -> None:
    world = Repec(tmp_path / "store")
    world.take(a=named())
    hops = (URL, "http://b.org/two", "http://b.org/two/", "https://c.org/three.pdf")
    run = claim(world.store, Purpose("gather", "web", "web"), world.run_outside)
    run.turn()
    loop = [
        Redirect(origin=f"http://l.org/{a}", target=f"http://l.org/{b}", status=302, target_key="x")
        for a, b in ("12", "21")
    ]
    run.commit([*redirected(run, hops, NEW), *loop])
    first = world.clock.now
    world.publish()
    application = over(str(world.root), world, {})
    for url in hops:
        coded = quote(url, safe="")
        for path, query in ((PAPER, f"file={coded}"), ("/content", f"id={coded}")):
            status, headers, body = asked(application, path, query)
            assert (status, body) == (200, NEW), (path, url, headers.get("X-Archive-Error"))
    loops = asked(application, "/content", "id=http%3A%2F%2Fl.org%2F1")
    assert loops[1]["X-Archive-Error"] == "redirect-loop"
    assert asked(application, PAPER, "file=http%3A%2F%2Fd.org%2F")[0] == 404
    gather(world, b"%PDF its own")  # the URL itself has bytes later
    world.publish()
    application = over(str(world.root), world, {})
    then = f"at={first + timedelta(seconds=5):%Y%m%d%H%M%S}&file={quote(URL, safe='')}"
    assert asked(application, PAPER, then)[2] == NEW
    assert asked(application, PAPER, f"file={quote(URL, safe='')}")[2] == b"%PDF its own"
    world.close()


def test_a_bare_handle_names_a_template(repec: Repec, monkeypatch: pytest.MonkeyPatch) -> None:
    application = over(str(repec.root), repec, {})
    for name in (HANDLE, HANDLE.replace("RePEc:aaa", "repec:AAA"), f"oai:{HANDLE}"):
        assert b"On Rugs" in asked(application, f"/content/{name}")[2]
        assert asked(application, f"/content/{name}", f"file={quote(URL, safe='')}")[2] == NEW
    assert asked(application, f"/content/{HANDLE}x", f"file={quote(URL, safe='')}")[0] == 404
    sums, kinds = [], Manifest.kinds
    monkeypatch.setattr(Manifest, "kinds", lambda self: sums.append(self) or kinds(self))
    assert b"On Rugs" in asked(application, PAPER)[2]
    assert not sums  # where an identifier is found, no kind is asked about a name
