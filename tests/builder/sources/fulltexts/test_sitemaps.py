"""Sitemaps: files that did not change are not requested, the others are."""

import gzip
from datetime import timedelta

import pytest

from builder.obi.content import SeenRow
from builder.sources.fulltexts.sitemaps import parse
from functions.snapshot import instant
from tests.builder.http import site as web
from tests.builder.sources.fulltexts.conftest import World

FILES = 24


def sitemap(world: World, changes: dict[str, str]) -> bytes:
    rows = "".join(
        f"<url><loc>{world.site.url(path)}</loc><lastmod>{when}</lastmod></url>"
        for path, when in changes.items()
    )
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0"?><urlset xmlns="{space}">{rows}</urlset>'.encode()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("named", [False, True])
def test_only_files_that_changed_are_requested(world: World, named: bool) -> None:
    paths = [f"/{n}.pdf" for n in range(FILES)]
    world.site.pages |= {path: web.text(path, ETag='"1"') for path in paths}
    world.refer([world.site.url(path) for path in paths])
    world.gather()
    then = instant.to_text(world.clock.now - timedelta(days=9))
    changes = dict.fromkeys(paths[:-1], then) | {paths[0]: f"{world.clock.now:%Y-%m-%d}"}
    data = sitemap(world, changes)
    if named:
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        index = (
            f'<s:sitemapindex xmlns:s="{space}"><s:sitemap><s:loc>{world.site.url("/b.gz")}</s:loc>'
        )
        world.site.pages["/robots.txt"] = web.text(f"Sitemap: {world.site.url('/a.xml')}")
        world.site.pages["/a.xml"] = web.text(index + "</s:sitemap></s:sitemapindex>")
        world.site.pages["/b.gz"] = web.text(gzip.compress(data))
    else:
        world.site.pages["/sitemap.xml"] = web.text(data)
    world.site.requests.clear()
    assert world.gather().runs == []
    assert world.site.requests == []  # nothing is due
    world.days(31)
    assert world.gather().counts == {"seen": FILES}
    asked = [path for path in world.site.paths() if path.endswith(".pdf")]
    assert sorted(asked) == sorted([paths[0], paths[-1]])  # one changed, and one is not listed
    rows = [row for row in world.rows() if isinstance(row, SeenRow)]
    source = world.site.url("/b.gz" if named else "/sitemap.xml")
    assert sum(row.source == source and row.status is None for row in rows) == FILES - 2
    for _ in range(5):  # and now and then each is requested
        world.days(31)
        world.site.requests.clear()
        world.gather()
    assert set(paths) <= set(world.site.paths())


def test_lost_and_failing_files_are_requested(world: World) -> None:
    paths = [f"/{n}.pdf" for n in range(FILES)]
    world.site.pages |= {path: web.text(path) for path in paths}
    world.refer([world.site.url(path) for path in paths])
    world.gather()
    world.site.pages["/0.pdf"], world.site.pages["/1.pdf"] = web.status(404), web.status(500)
    world.days(31)
    world.gather()
    then = instant.to_text(world.clock.now - timedelta(days=99))
    world.site.pages["/sitemap.xml"] = web.text(sitemap(world, dict.fromkeys(paths, then)))
    world.days(31)
    world.site.requests.clear()
    world.gather()
    asked = {path for path in world.site.paths() if path.endswith(".pdf")}
    assert asked == {"/0.pdf", "/1.pdf"}


def test_dates_and_faults() -> None:
    def changed(lastmod: str) -> list[int]:
        text = f"<urlset><url><loc>http://a.org/x</loc><lastmod>{lastmod}</lastmod></url></urlset>"
        return list(parse("http://a.org/s", text.encode()).changed.values())

    assert changed("1970-01-02T00:00:00Z") == changed(" 1970-01-02T02:00:00+02:00 ") == [86_400]
    assert changed("1970-01-02") == [86_400 + 36 * 3600]
    assert changed("1970") == changed("yesterday") == changed("") == []
    assert changed("9999-12-31") == changed("9999-12-31T23:00:00") == []
    coded = b'<?xml version="1.0" encoding="base64"?><urlset/>'
    for data in (coded, b"<urlset>", b"no", b"<!DOCTYPE a [<!ENTITY b 'c'>]><urlset/>"):
        with pytest.raises(ValueError, match=r"XML|document type"):
            parse("http://a.org/s", data)
