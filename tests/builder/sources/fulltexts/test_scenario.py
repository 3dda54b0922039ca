"""What gathering makes of a web server's doings: rows, incidences and objects of the store."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from builder.http.politeness import HostPolicy
from builder.obi import content, key, log
from builder.obi.content import ExchangeRow, FailureRow, Incidence, Redirect, SeenRow, Version
from builder.obi.history import is_open, standing
from builder.obi.run import Purpose, claim, history
from functions.snapshot.errors import MissingObject, StoreError
from tests.builder.http import site as web
from tests.builder.sources.fulltexts.conftest import World
from tests.secret_urls import SECRET, WAYS

pytestmark = pytest.mark.shared(3)

A, B = b"%PDF-1.4 A", b"%PDF-1.4 B"


def incidences(world: World, url: str) -> list[Any]:
    return world.ask(
        f"SELECT tist, what, again, key FROM incidence WHERE id = '{url}' ORDER BY tist"
    )


def test_scenario_9(world: World) -> None:
    """A, B, A, three times 404, A: two changes, one loss, and back at the place of the last A.

    That a bucket comes to the same is shown by test_gather_verify.py.
    """
    url = world.site.url("/a.pdf")
    world.refer([url])
    tists: list[int] = []
    for answer in (A, B, A, None, None, None, A):
        world.site.pages["/a.pdf"] = web.status(404) if answer is None else web.text(answer)
        tists += world.gather(again=True).runs
        world.days(31)
    assert len(tists) == 7
    keys = [key.key(tist, url) for tist in tists]
    assert incidences(world, url) == [
        (tists[0], "appearance", False, keys[0]),
        (tists[1], "change", False, keys[1]),
        (tists[2], "change", False, keys[2]),
        (tists[3], "deletion", False, keys[2]),
        (tists[6], "appearance", True, keys[2]),
    ]
    assert world.ask("SELECT tist, key FROM version WHERE kind = 'fobi' ORDER BY tist") == [
        (tist, where) for tist, where in zip(tists[:3], keys, strict=False)
    ]
    assert world.ask(
        "SELECT found, noted, lost, seen, versions, key FROM obi WHERE kind = 'fobi'"
    ) == [(tists[0], tists[2], None, tists[6], 3, keys[2])]
    assert world.ask("SELECT tist, code, status FROM failure ORDER BY tist") == [
        (tists[4], "not-found", 404),
        (tists[5], "not-found", 404),
    ]
    stored = [world.store.read(where) for where in keys[:3]]
    assert stored == [A, B, A]
    for where in keys[3:]:
        with pytest.raises(MissingObject):
            world.store.read(where)
    for run in history(world.store):
        for row in world.rows(history(world.store).index(run)):
            if isinstance(row, Version):
                content.read_version(world.store, row)


def test_the_first_time(world: World) -> None:
    """The same bytes at two URLs are stored twice."""
    urls = [world.site.url("/a.pdf"), world.site.url("/b.pdf")]
    world.site.pages |= dict.fromkeys(
        ("/a.pdf", "/b.pdf"),
        web.text(A, ETag='"1"', Last_Modified="Fri, 09 Nov 2012 17:13:50 GMT"),
    )
    world.refer(urls)
    account = world.gather()
    (run,) = account.runs
    versions = [row for row in world.rows() if isinstance(row, Version)]
    for url, version in zip(urls, sorted(versions, key=lambda row: row.id), strict=True):
        assert (version.id, version.kind, version.bytes) == (url, "fobi", len(A))
        assert (version.media_type, version.etag) == ("application/pdf", '"1"')
        assert version.modified == 1352481230
        assert world.store.read(key.key(run, url)) == A
    incidences_ = [row for row in world.rows() if isinstance(row, Incidence)]
    assert [(row.what, row.again) for row in incidences_] == [("appearance", False)] * 2
    assert account.counts == {"appearances": 2}
    assert account.left == 0


def test_what_is_as_before_is_asked_for_conditionally_and_what_is_lost_whole(world: World) -> None:
    """The last word of the server counts: the same bytes under another ETag are no version."""
    url = world.site.url("/a")
    world.refer([url])
    for answer, asked, counts in (
        (web.conditional(A, '"1"'), None, {"appearances": 1}),
        (web.conditional(A, '"1"'), '"1"', {"seen": 1}),
        (web.conditional(A, '"2"'), '"1"', {"seen": 1}),
        (web.conditional(A, '"2"'), '"2"', {"seen": 1}),
        (web.status(410), '"2"', {"deletions": 1}),
        (web.conditional(A, '"1"'), None, {"reappearances": 1, "seen": 1}),
    ):
        world.site.pages["/a"] = answer
        world.days(31)
        assert world.gather(again=True).counts == counts
        assert world.site.asked("/a")[-1].headers.get("if-none-match") == asked
        if asked == '"2"' and counts == {"seen": 1}:
            assert world.rows() == [SeenRow(id=url, kind="fobi", status=304, etag='"2"')]
    assert world.ask("SELECT versions FROM obi WHERE kind = 'fobi'") == [(1,)]
    # Back with other bytes is one event with a version.
    for answer in (web.status(404), web.text(B)):
        world.site.pages["/a"] = answer
        run = world.gather(again=True).runs[0]
    incidence, version = world.rows()
    assert isinstance(version, Version)
    assert incidence == Incidence(
        id=url, kind="fobi", what="appearance", key=key.key(run, url), again=True
    )


def test_a_failure_is_no_loss(world: World) -> None:
    answers = {
        "forbidden": web.status(403),
        "server-error": web.status(500),
        "cut-short": web.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
        "unsupported-scheme": web.redirect("mailto:a@example.org"),
    }
    world.refer([world.site.url(f"/{code}") for code in answers])
    world.site.pages |= {f"/{code}": web.text(A) for code in answers}
    world.gather()
    world.site.pages |= {f"/{code}": answer for code, answer in answers.items()}
    for _ in range(4):
        world.days(31)
        world.gather()
        assert sorted(
            (row.id, row.code) for row in world.rows() if isinstance(row, FailureRow)
        ) == [(world.site.url(f"/{code}"), code) for code in sorted(answers)]
        assert {type(row) for row in world.rows()} == {FailureRow}
    assert world.ask("SELECT lost FROM obi WHERE kind = 'fobi'") == [(None,)] * 4
    world.refer(["ftp://ftp.example.org/a.pdf"], handle="RePEc:aaa:wpaper:2")
    assert world.gather().failures == {"unsupported-scheme": 1}


def unreachable(world: World) -> str:
    """Refer to a file that was had once, and whose server is not there any more."""
    with web.serving() as gone:
        url = gone.url("/a")
        gone.pages["/a"] = web.text(A)
        world.ports.add(gone.port)
        world.refer([url])
        world.gather()
    return url


def deletions(world: World) -> int:
    """Gather from the server that is not there; return how many losses that tells of."""
    assert world.gather(again=True).failures == {"connect": 1}
    return sum(row.what == "deletion" for row in world.rows() if isinstance(row, Incidence))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "tries",
    [
        ((300, 0), (300, 0), (1, 1)),
        ((3, 0), (3, 0), (4, 0), (6, 0), (1, 1), (31, 0)),
    ],
    ids=["three-times", "two-weeks"],
)
def test_a_server_that_is_not_there_is_a_loss_after_three_tries_and_two_weeks(
    world: World, tries: tuple[tuple[int, int], ...]
) -> None:
    """However often it was asked before, or however long it takes; and once only."""
    url = unreachable(world)
    for days, events in tries:
        world.days(days)
        assert deletions(world) == events
    assert len(incidences(world, url)) == 2


def test_what_was_heard_of_between_counts_anew(world: World) -> None:
    with web.serving("127.0.0.2") as other:
        port = other.port
        url = other.url("/a", "127.0.0.2")
        other.pages["/a"] = web.text(A)
        world.ports.add(port)
        world.refer([url])
        world.gather()
    for _ in range(2):
        world.days(31)
        world.gather()
    with web.serving("127.0.0.2", port) as other:
        other.pages["/a"] = web.status(503)
        world.days(31)
        assert world.gather().failures == {"server-error": 1}
    for _ in range(2):
        world.days(31)
        assert world.gather().counts == {}
    world.days(31)
    assert world.gather().counts == {"deletions": 1}


def test_redirects_are_written_down(world: World) -> None:
    first, last = world.site.url("/a"), world.site.url("/c")
    world.site.pages |= {"/a": web.redirect("/b", 301), "/b": web.redirect("/c"), "/c": web.text(A)}
    world.refer([first])
    (run,) = world.gather().runs
    where = key.key(run, last)
    found = [row for row in world.rows() if isinstance(row, Redirect)]
    middle = world.site.url("/b")
    assert found == [
        Redirect(
            origin=origin,
            target=target,
            status=status,
            key=key.redirect(run, origin),
            target_key=where,
        )
        for origin, target, status in ((first, middle, 301), (middle, last, 302))
    ]
    assert world.store.read(where) == A
    with pytest.raises(MissingObject):
        world.store.read(key.key(run, first))
    assert b'"to": "%s"' % middle.encode() in world.store.read(key.redirect(run, first))
    world.days(31)
    world.gather()
    again = [row for row in world.rows() if isinstance(row, Redirect)]
    assert again == found  # nothing new is written, only that it is so still


def test_secrets_of_where_a_redirect_leads_are_not_stored(world: World) -> None:
    """Each target is a file of its own, also that page with a session to which a page leads.

    It stays the same file when its secrets change.
    """
    for secret in (SECRET, SECRET[::-1]):
        for number, way in enumerate(one.replace(SECRET, secret) for one in WAYS):
            world.site.pages |= {
                f"/{secret[0]}{number}": web.redirect(f"/{number}{way}", 302),
                f"/{number}{way}": web.text(b"%%PDF %d" % number, **{"Set-Cookie": SECRET}),
            }
    for number in range(len(WAYS)):
        world.site.pages[f"/{number}"] = world.site.pages[f"/{SECRET[0]}{number}"]
    world.refer([world.site.url(f"/{number}") for number in range(len(WAYS))])
    world.gather()
    logged = [*log.read_rows(world.store, history(world.store)[-1])]
    assert len({row.id for row in logged if isinstance(row, Version)}) == len(WAYS)
    redirects = [row for row in logged if isinstance(row, Redirect)]
    assert [row for row in redirects if row.origin == row.target] == []
    targets = {row.target for row in redirects}
    assert {row.id for row in logged if isinstance(row, ExchangeRow)} >= targets
    objects = [world.store.read(where) for where in world.store.keys("obi/")]
    assert SECRET not in repr((logged, objects, [*world.store.keys("")]))
    for number in range(len(WAYS)):
        world.site.pages[f"/{number}"] = world.site.pages[f"/{SECRET[-1]}{number}"]
    world.days(31)
    assert world.gather().counts == {"seen": len(WAYS), "redirects": len(WAYS)}
    again = [row.target for row in world.rows() if isinstance(row, Redirect)]
    assert {*again} == targets


def test_a_redirect_leads_to_the_id_that_a_template_gave(world: World) -> None:
    first, last = world.site.url("/a"), world.site.url("/b?key=1")
    world.site.pages |= {"/a": web.redirect("/b?key=1"), "/b?key=1": web.text(A)}
    world.refer([last])
    world.gather()
    world.refer([first], handle="RePEc:aaa:wpaper:2")  # the other file is not due
    world.gather()
    assert [row.target for row in world.rows() if isinstance(row, Redirect)] == [last]


def test_a_slash_at_the_end_is_no_redirect_object(world: World) -> None:
    url = world.site.url("/a")
    world.site.pages |= {"/a": web.redirect("/a/", 301), "/a/": web.text(A)}
    world.refer([url])
    (run,) = world.gather().runs
    (row,) = [row for row in world.rows() if isinstance(row, Redirect)]
    assert (row.key, row.target_key) == (None, key.key(run, url + "/"))


def test_a_redirect_to_what_is_lost(world: World) -> None:
    """The file that moved, and then vanished, is lost under both URLs."""
    first, last = world.site.url("/a"), world.site.url("/b")
    world.site.pages["/a"] = web.text(A)
    world.refer([first])
    world.gather()
    world.site.pages |= {"/a": web.redirect("/b"), "/b": web.text(B)}
    world.gather(again=True)
    assert world.ask("SELECT id, lost FROM obi WHERE kind = 'fobi' ORDER BY id") == [
        (first, None),
        (last, None),
    ]
    world.site.pages["/b"] = web.status(404)
    (run,) = world.gather(again=True).runs
    assert world.ask("SELECT id, lost FROM obi WHERE kind = 'fobi' ORDER BY id") == [
        (first, run),
        (last, run),
    ]


def test_many_ways_to_one_file(world: World) -> None:
    urls = [world.site.url(f"/{n}") for n in range(20)]
    world.site.pages |= {f"/{n}": web.redirect("/end") for n in range(20)}
    world.site.pages["/end"] = web.text(A)
    world.refer([*urls, world.site.url("/end")])
    account = world.gather()
    assert account.counts == {"appearances": 1, "redirects": 20}
    assert len(world.site.asked("/end")) == 1


PAGE = web.text("<html>Not found</html>", "text/html")


def test_flags(world: World) -> None:
    marked = web.text("\ufeff\n<!DOCTYPE html>x", "application/pdf")
    xml = web.text('<?xml version="1.0"?><!-- a --> <!--b-->\n<!DOCTYPE\thtml>', "text/plain")
    in_place = ("landing-page", "soft-404")
    told = [
        # path, answer, format that is promised, flags
        ("/a.pdf", PAGE, None, in_place),
        ("/A.PDF", marked, None, in_place),
        ("/a", xml, None, ("landing-page",)),
        ("/a", web.text("<!--" * 200 + "<html>", "text/plain"), None, ()),
        ("/a", PAGE, "Application/PDF", in_place),
        ("/a", PAGE, "text/html", ("landing-page",)),
        ("/a.pdf", web.text(A, "text/html"), None, ()),
        ("/a.txt", web.text("plain", "text/plain"), None, ()),
    ]
    expected = {}
    for number, (name, answer, format_, flags) in enumerate(told):
        path = f"/{number}{name}"
        world.site.pages[path] = answer
        world.refer([world.site.url(path)], format_, f"RePEc:aaa:wpaper:{number}")
        expected[world.site.url(path)] = flags
    assert world.gather().counts["soft_404"] == 3
    assert {r.id: r.flags for r in world.rows() if isinstance(r, Version)} == expected


def test_when_files_are_due(world: World) -> None:
    world.site.pages |= {"/good": web.text(A), "/bad": web.status(500), "/none": web.status(404)}
    world.refer([world.site.url(f"/{n}") for n in ("good", "bad", "none")])
    assert world.gather().runs
    assert world.gather().runs == []  # nothing is due, and no run is opened
    tried: dict[str, list[int]] = {"/good": [], "/bad": [], "/none": []}
    days = (1, 2, 3, 6, 7, 15, 29, 30, 31, 60, 61)
    for before, day in pairwise((0, *days)):
        world.days(day - before)
        world.site.requests.clear()
        world.gather()
        for path in world.site.paths():
            if path in tried:
                tried[path].append(day)
    assert tried["/good"] == tried["/none"] == [30, 60]
    assert tried["/bad"] == [1, 3, 7, 15, 31, 61]


def test_what_templates_ever_referred_to(world: World) -> None:
    """Files of an earlier version and of a removed template are fetched, rechecked, and lost."""
    urls = {path: world.site.url(path) for path in ("/a", "/b", "/c")}
    world.site.pages |= {path: web.text(path) for path in urls}
    world.refer([urls["/a"]])
    world.refer([urls["/b"]])
    world.refer([urls["/c"]], handle="RePEc:aaa:wpaper:2")
    world.remove("RePEc:aaa:wpaper:2")
    assert world.ask("SELECT handle, id FROM refipo") == [("RePEc:aaa:wpaper:1", urls["/b"])]
    assert world.gather().counts == {"appearances": 3}
    world.days(31)
    assert world.gather().counts == {"seen": 3}
    world.site.pages["/a"] = world.site.pages["/c"] = web.status(404)
    assert world.gather(again=True).counts == {"deletions": 2, "seen": 1}
    assert world.ask("SELECT id FROM obi WHERE kind = 'fobi' AND lost IS NOT NULL ORDER BY id") == [
        (urls["/a"],),
        (urls["/c"],),
    ]


def test_an_empty_answer_is_a_failure(world: World) -> None:
    """Stored bytes stay as they are; a later good answer is a change."""
    url = world.site.url("/a")
    world.refer([url])
    world.site.pages["/a"] = web.text("")
    assert world.gather().failures == {"empty": 1}
    for answer, counts in (
        (A, {"appearances": 1}),
        (b"", {}),
        (A, {"seen": 1}),
        (b"", {}),
        (B, {"changes": 1}),
    ):
        world.site.pages["/a"] = web.text(answer)
        assert world.gather(again=True).counts == counts
    assert world.ask("SELECT versions, lost FROM obi WHERE kind = 'fobi'") == [(2, None)]


def test_what_came_while_a_batch_waited_for_its_turn_counts(world: World) -> None:
    world.refer([world.site.url("/a")])
    earlier = claim(world.store, Purpose("ingest", "test", "later"), world.runtime)
    world.clock.sleep(1)
    wait = world.clock.sleep

    def sleep(seconds: float) -> None:
        wait(seconds)
        if len(history(world.store)) == 1:
            earlier.commit(world.referring(earlier, [world.site.url("/b")]))

    world.clock.sleep = sleep  # type: ignore[method-assign]
    world.gather()
    assert world.site.paths() == ["/robots.txt", "/a", "/b"]


def test_a_choice(world: World) -> None:
    world.refer([world.site.url("/a")], handle="RePEc:aaa:wpaper:1")
    world.refer([world.site.url("/b")], handle="RePEc:bbb:wpaper:1")
    world.refer([world.site.url("/bb")], handle="RePEc:bbb:wpapes:1")
    world.gather(choice={"handle": "RePEc:bbb:wpaper"})
    assert world.site.paths() == ["/robots.txt", "/b"]
    world.gather(choice={"pattern": "*/a"})
    assert world.site.paths()[2:] == ["/robots.txt", "/a"]


def test_batches(world: World) -> None:
    for n in range(10):
        world.site.pages[f"/{n}"] = web.text(f"{n}")
    world.refer([world.site.url(f"/{n}") for n in range(10)])
    assert len(world.gather(files=3, limit=7).runs) == 3
    assert world.ask("SELECT count(*) FROM version WHERE kind = 'fobi'") == [(7,)]
    assert len(world.gather(files=3).runs) == 1
    assert sorted(world.site.paths()).count("/robots.txt") == 2
    assert len(set(world.site.paths())) == 11
    world.site.requests.clear()
    world.gather(again=True, files=3)  # each is tried once
    assert len(world.site.paths()) == 11


def test_a_batch_ends_by_the_clock(world: World) -> None:
    """And the next one goes on; a host that is slow keeps none of the others waiting."""
    world.policy = HostPolicy(0.2)
    for n in range(12):
        world.site.pages[f"/{n}"] = web.text(f"{n}")
    world.refer([world.site.url(f"/{n}") for n in range(12)])
    account = world.gather(seconds=0.9)
    assert account.counts == {"appearances": 12}
    assert len(account.runs) > 1
    assert len(set(world.site.paths())) == len(world.site.paths())


def test_a_batch_that_fails_holds_nobody_up(world: World) -> None:
    world.site.pages["/a"] = web.text(A)
    world.refer([world.site.url("/a")])

    def broken(many: int) -> None:
        raise StoreError("the disk is gone")

    session = world.session()
    try:
        session.due()
        session.advance = broken
        with pytest.raises(StoreError):
            session.gather()
    finally:
        world.end()
    assert len(history(world.store)) == 2  # with what had come
    assert not any(is_open(members) for members in standing(world.store).values())
    assert world.gather().counts == {}


def test_logs_do_not_depend_on_the_order_of_answers(site: web.Site, tmp_path: Path) -> None:
    from builder.store.folder import FolderStore

    for n in range(20):
        site.pages[f"/{n}"] = web.text(f"{n}") if n % 3 else web.redirect(f"/{n + 1}")
    logs = []
    for threads in (1, 8):
        world = World(FolderStore(tmp_path / f"s{threads}"), site, tmp_path / f"f{threads}")
        world.folder.mkdir()
        world.refer([site.url(f"/{n}") for n in range(20)])
        world.gather(threads=threads)
        logs.append(world.rows())
    assert logs[0] == logs[1]


def test_a_url_that_leads_to_a_host_that_wants_peace_is_told_of(world: World) -> None:
    """The one that is put off is the last of the way; the first must not wait for ever for it."""
    first, last = world.site.url("/a"), world.site.url("/b")
    world.site.pages["/a"] = web.redirect(last)
    world.site.pages["/b"] = web.status(503, Retry_After="0")
    world.refer([first])
    account = world.gather()
    assert account.left == 0
    assert world.ask("SELECT id, code FROM failure ORDER BY id") == [
        (first, "server-error"),
        (last, "server-error"),
    ]
    assert len(world.site.asked("/b")) == 4


def test_of_a_way_that_is_too_long_its_end_is_not(world: World) -> None:
    """Who begins at its middle gets the file, though who began before had to give up on it."""
    names = [f"/h{number:02}" for number in range(12)]
    for one, after in pairwise(names):
        world.site.pages[one] = web.redirect(world.site.url(after))
    world.site.pages[names[-1]] = web.text(A)
    first, middle = world.site.url(names[0]), world.site.url(names[5])
    world.refer([first, middle])
    run = world.gather().runs[-1]
    ends = dict(world.ask("SELECT origin, target_key FROM redirect"))
    assert ends[first] is None
    assert ends[middle] == key.key(run, world.site.url(names[-1]))
    assert world.ask("SELECT id, code FROM failure") == [(first, "too-many-hops")]
