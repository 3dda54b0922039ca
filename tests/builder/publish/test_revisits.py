"""Revisits get their original by three rules, whatever is published in which order and parts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.intake.captures import Capture
from builder.kinds.captures.revisit_search import RevisitSearch
from builder.publish.selection import Selection
from builder.snapshot import tables
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from functions.snapshot import oai_name
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import NAMESPACE, World, capture
from tests.builder.sources.webarchives.containers import http, warc
from tests.extent import examples

pytestmark = pytest.mark.shared(2)

INHERITED = (
    "content_charset",
    "content_charset_source",
    "content_languages",
    "content_mime_detected",
    "content_mime_type",
    "title",
)
SHA256 = "sha256:" + "ab" * 32


def at(second: int) -> dict[str, Any]:
    """Return the columns of a capture's date, which is exact to the second."""
    date = f"2010-01-01T00:00:{second:02}"
    return {"fetch_date": f"{date}Z", "fetch_time": datetime.fromisoformat(date)}


def made(number: int, url: str, digest: str | None, **changes: Any) -> Capture:
    """Return a capture of its own identity, an original unless `changes` make it a revisit."""
    host = "domain:cz:a"
    values: dict[str, Any] = {
        "identity": oai_name.capture_identity(url.encode(), str(number), None, digest),
        "url": url,
        "url_surtkey": f"cz,a)/{url[-1]}",
        "sets": (host, "mime:text:html"),
        "content_digest": digest,
        "content_mime_type": "text/html",
        "content_length": 7,
        "title": f"Title {number}",
    }
    return capture(number, **{**values, **at(number % 60), **changes})


def revisit(number: int, url: str, digest: str | None, **changes: Any) -> Capture:
    values: dict[str, Any] = {
        "warc_record_type": "revisit",
        "sets": ("domain:cz:a",),
        "content_mime_type": None,
        "content_length": 0,
        "title": None,
    }
    return made(number, url, digest, **{**values, **changes})


def referring(digest: str | None, url: str, date: str) -> Capture:
    """Return a revisit that says whose it is."""
    return revisit(7, "http://a.cz/1", digest, refers_to_url=url, refers_to_date=date)


def name(one: Capture) -> str:
    return oai_name.to_oai(NAMESPACE, one.identity)


def rows(world: World, columns: str = "*") -> list[dict[str, Any]]:
    """Return the live captures of the newest snapshot, with their columns, by identifier."""
    with world.views() as connection:
        result = connection.execute(
            f"SELECT {columns} FROM records WHERE kind = 'capture' AND NOT deleted "
            "ORDER BY identifier"
        )
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def links(world: World) -> dict[str, str | None]:
    """Return the original of each live revisit."""
    return {
        row["identifier"]: row["refers_to"]
        for row in rows(world)
        if row["warc_record_type"] == "revisit"
    }


def second(one: Capture) -> float:
    """Return where a capture is in the order of dates; what has no date is last."""
    if one.fetch_time is not None:
        return float(one.fetch_time.second)
    return 99.0 if one.fetch_date is None else 0.0  # 2010 alone is its beginning


def original(one: Capture, all_of_them: Sequence[Capture]) -> Capture | None:
    """The rules, as they are told: the oracle."""
    others = [o for o in all_of_them if o.warc_record_type != "revisit"]

    def same(o: Capture) -> bool:
        digests = {o.content_digest, o.content_digest_declared} - {None}
        return one.content_digest in digests

    by_reference = [
        o
        for o in others
        if o.fetch_time is not None
        and (o.url, o.fetch_date) == (one.refers_to_url, one.refers_to_date)
    ]
    if by_reference:
        return min(by_reference, key=lambda o: (not same(o), bool(o.content_damaged), name(o)))
    by_digest = [o for o in others if same(o) and not o.content_damaged]
    by_both = [o for o in by_digest if o.url == one.url]
    for found in (by_both, by_digest, [o for o in others if same(o)]):
        if found:
            before = [o for o in found if second(o) <= second(one)]
            if before:
                return min(before, key=lambda o: (-second(o), name(o)))
            return min(found, key=lambda o: (second(o), name(o)))
    return None


def check(world: World, there: Sequence[Capture]) -> None:
    """Hold what is published against the oracle, columns and sets included."""
    found = {row["identifier"]: row for row in rows(world)}
    assert found.keys() == {name(one) for one in there}
    unresolved = 0
    for one in there:
        row = found[name(one)]
        if one.warc_record_type != "revisit":
            assert (row["refers_to"], row["inherited"]) == (None, [])
            continue
        its = original(one, there)
        unresolved += its is None
        assert row["refers_to"] == (name(its) if its else None), one
        taken = [c for c in INHERITED if its and getattr(one, c) is None and getattr(its, c)]
        for column in INHERITED:
            assert row[column] == getattr(its if column in taken else one, column), column
        mime = [s for s in (its.sets if its else ()) if s.startswith("mime:")]
        if any(s.startswith("mime:") for s in one.sets):
            mime = []
        assert row["sets"] == sorted({*one.sets, *mime})
        assert row["inherited"] == sorted(taken + (["sets"] if mime else []))
    manifest = world.newest()
    revisits = [one for one in there if one.warc_record_type == "revisit"]
    assert (manifest.revisits, manifest.unresolved) == (len(revisits), unresolved)


O1 = made(1, "http://a.cz/1", "D1")
O5 = made(5, "http://a.cz/1", "D1")
O9 = made(9, "http://a.cz/1", "D1")
O1_DAMAGED = replace(O1, content_damaged="checksum")
ELSEWHERE = made(3, "http://a.cz/2", "D1")


# What refers, what is there, and what the original is.
RULES: dict[str, tuple[Capture, list[Capture], Capture | None]] = {
    "latest-before": (revisit(7, "http://a.cz/1", "D1"), [O1, O5, O9], O5),
    "earliest-after": (revisit(0, "http://a.cz/1", "D1"), [O9, O5, O1], O1),
    "url-first": (revisit(7, "http://a.cz/1", "D1"), [O9, ELSEWHERE], O9),
    "digest-alone": (revisit(7, "http://a.cz/3", "D1"), [O1, O9, ELSEWHERE], ELSEWHERE),
    "none": (revisit(7, "http://a.cz/3", "D2"), [O1], None),
    "reference": (referring("D1", "http://a.cz/1", "2010-01-01T00:00:01Z"), [O1, O5], O1),
    "no-digest": (
        referring(None, "http://a.cz/2", "2010-01-01T00:00:03Z"),
        [O1, ELSEWHERE],
        ELSEWHERE,
    ),
    "vague": (
        referring("D1", "http://a.cz/1", "2010-01-01"),
        [replace(O1, fetch_date="2010-01-01", fetch_time=None)],
        O1,
    ),
    "declared": (
        revisit(7, "http://a.cz/3", SHA256),
        [O1, made(2, "http://a.cz/2", "D2", content_digest_declared=SHA256)],
        made(2, "http://a.cz/2", "D2"),
    ),
    "whole-first": (revisit(7, "http://a.cz/1", "D1"), [O1_DAMAGED, ELSEWHERE], ELSEWHERE),
    "damaged-alone": (revisit(7, "http://a.cz/3", "D1"), [O1_DAMAGED], O1),
    "no-revisit": (revisit(7, "http://a.cz/1", "D1"), [revisit(1, "http://a.cz/1", "D1")], None),
}


def apart(one: Capture, number: int) -> Capture:
    """Return the capture with URLs and digests that no other number's captures have."""

    def url(text: str) -> str:
        return text.replace("a.cz", f"a{number}.cz")

    def digest(text: str | None) -> str | None:
        if text and text.startswith("sha256:"):
            return f"sha256:{number:02x}{text[9:]}"
        return text and f"{text}-{number}"

    identity = oai_name.capture_identity(
        url(one.url).encode(), one.identity + str(number), None, None
    )
    return replace(
        one,
        identity=identity,
        url=url(one.url),
        url_surtkey=f"cz,a{number})/{one.url[-1]}",
        refers_to_url=one.refers_to_url and url(one.refers_to_url),
        content_digest=digest(one.content_digest),
        content_digest_declared=digest(one.content_digest_declared),
    )


# Of rows as earlier versions of Sheaf wrote them, with longer keys and hashes of URLs.
LONG_TIES = {
    table: (sql.replace(f"{1 << 41} + (", "(").replace(") >> 8)", "))"), *rest)
    for table, (sql, *rest) in tables._OWN_TIES.items()
    for sql in [sql.replace("& 65535)", "& 16777215)")]
}


@pytest.mark.parametrize("earlier", ["", "response", "revisit"])
def test_the_rules(world: World, monkeypatch: pytest.MonkeyPatch, earlier: str) -> None:
    """All at once: what a rule is shown by has nothing to do with what the others are.

    An earlier version may have published the originals, or the revisits.
    """
    there: list[Capture] = []
    expected: dict[str, tuple[str, str | None]] = {}
    for number, (rule, (one, others, its)) in enumerate(RULES.items()):
        there += (apart(other, number) for other in (one, *others))
        link = its and name(apart(its, number))
        expected[name(apart(one, number))] = (rule, link)
    if earlier:
        with monkeypatch.context() as patch:
            patch.setattr(tables, "_OWN_TIES", LONG_TIES)
            world.add([item for item in there if item.warc_record_type == earlier])
    world.add(there)
    found = links(world)
    assert {one: (rule, found[one]) for one, (rule, _) in expected.items()} == expected
    check(world, there)


RECORD_ID = b"<urn:uuid:00000000-0000-4000-8000-%012d>"
PAGE, OTHER, LATER = b"http://a.cz/1", b"http://a.cz/2", b"http://a.cz/3"
UNCHANGED = b"WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified"
SAME = b"WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOTHING = b"WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
REFERS = b"WARC-Refers-To: "
# A revisit's URL and fields, and the second of its original.
REFERENCES: list[tuple[bytes, list[bytes], int | None]] = [
    (PAGE, [UNCHANGED], 5),
    (PAGE, [UNCHANGED, NOTHING], 5),
    (PAGE, [UNCHANGED, b"WARC-Refers-To-Target-URI: " + PAGE], 5),
    (PAGE, [UNCHANGED, REFERS + RECORD_ID % 1], 1),
    (PAGE, [SAME, REFERS + (RECORD_ID % 3).strip(b"<>")], 3),
    (PAGE, [UNCHANGED, REFERS + RECORD_ID % 99], 5),
    (PAGE, [SAME, REFERS + RECORD_ID % 99], None),
    (LATER, [UNCHANGED], None),
]


@pytest.mark.parametrize("apart", [False, True], ids=["together", "later"])
def test_a_revisit_without_date_or_digest_is_resolved(world: World, *, apart: bool) -> None:
    """By its original's record id, in one publish, or as the last capture of its URL before it."""
    pages = [(1, PAGE), (3, OTHER), (5, PAGE), (7, PAGE), (50, PAGE), (51, LATER)]

    def record(second: int, *fields: bytes, **values: Any) -> bytes:
        status = b"HTTP/1.1 206 OK" if second == 7 else b"HTTP/1.1 200 OK"
        block = http(b"<title>%d" % second, status=status)
        named = b"WARC-Record-ID: " + RECORD_ID % second
        return warc(block, named, *fields, date=b"2010-01-01T00:00:%02dZ" % second, **values)

    data = [record(second, url=url) for second, url in pages]
    expected = {}
    for number, (url, fields, second) in enumerate(REFERENCES, 10):
        data.append(record(number, *fields, kind=b"revisit", url=url))
        expected[number] = {1: 5, 3: None}.get(second or 0, second) if apart else second
    for part in (data[:6], data[6:]) if apart else (data,):
        stream = BytesIO(b"".join(part))
        events = ArchiveReader(stream, f"{len(part)}.warc", DocumentRules())
        world.add([event for event in events if isinstance(event, Capture)])
    there = rows(world)
    seconds = {row["identifier"]: row["fetch_time"].second for row in there}
    revisits = [row for row in there if row["warc_record_type"] == "revisit"]
    assert {row["fetch_time"].second: seconds.get(row["refers_to"]) for row in revisits} == expected
    assert all(row["refers_to_date"] is None for row in there if row not in revisits)
    assert world.publish().manifest is None


def test_declared_originals_are_joined_only_if_there_are_any(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute, statements = engine.Connection.execute, list[str]()

    def noting(self: engine.Connection, sql: str, values: Any = None) -> Any:
        statements.append(sql)
        return execute(self, sql, values)

    monkeypatch.setattr(engine.Connection, "execute", noting)
    world.add([O1, revisit(2, "http://a.cz/1", "D1")])
    assert statements
    assert not [sql for sql in statements if "declared_originals" in sql]


def test_an_original_that_comes_later_heals_and_what_cannot_be_better_restamps_nothing(
    world: World,
) -> None:
    """As a further original of a digest that others have been found by already."""
    some = [revisit(n, f"http://a.cz/{n}", "D1") for n in range(10, 20)]
    assert world.add(some).manifest.unresolved == 10  # type: ignore[union-attr]
    built = world.add([O1])
    assert (built.new, built.changed, built.moved) == (1, 0, 10)
    healed = [r for r in rows(world) if r["warc_record_type"] == "revisit"]
    inherited = ["content_mime_type", "sets", "title"]
    assert {(r["title"], r["sequence"]) for r in healed} == {("Title 1", 2)}
    assert [r["inherited"] for r in healed] == [inherited] * 10
    assert world.add([O1, *some]).manifest is None
    built = world.add([made(30, "http://a.cz/other", "D1"), made(0, "http://a.cz/first", "D1")])
    assert (built.new, built.changed, built.moved) == (2, 0, 0)
    assert world.add([made(15, "http://a.cz/between", "D1")]).moved == 5


def test_a_title_that_is_corrected_reaches_its_revisits(world: World) -> None:
    one = revisit(7, "http://a.cz/1", "D1")
    world.add([O1, one])
    other = replace(
        O1,
        title="Corrected",
        content_mime_type="text/plain",
        sets=("domain:cz:a", "mime:text:plain"),
    )
    built = world.add([other])
    assert (built.changed, built.moved) == (1, 1)
    check(world, [other, one])
    (row,) = [r for r in rows(world) if r["warc_record_type"] == "revisit"]
    assert row["left_sets"] == ["mime:text:html"]


def test_a_withdrawn_original_leaves_nothing_in_its_revisits(world: World) -> None:
    """Not even in versions of before, nor in those that had it before another came."""
    secret = replace(O1, title="A secret")
    some = [revisit(7, "http://a.cz/1", "D1"), revisit(8, "http://a.cz/4", "D1")]
    world.add([secret, *some])
    assert world.add([O5]).moved == 2
    world.withdraw(name(secret), "law", purge=True)
    check(world, [O5, *some])
    assert "A secret" not in everything(world)
    world.expire()
    # One comes back to its revisits.
    assert world.withdraw(name(O5)).built.moved == 2
    check(world, some)
    assert world.reinstate(name(O5)).built.moved == 2
    check(world, [O5, *some])


def count_rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the rule of each round of a search for originals."""
    rounds: list[int] = []
    apply = RevisitSearch._apply
    monkeypatch.setattr(
        RevisitSearch, "_apply", lambda self, rule: rounds.append(rule) or apply(self, rule)
    )
    return rounds


def test_many_withdrawn_originals_are_passed_over_together(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rows in the table of originals stay, and each took a round of the search."""
    url = "http://a.cz/robots.txt"
    gone = [made(number, url, "D1") for number in range(59)]
    others = [made(60 + number, f"http://a.cz/{number}", f"X{number}") for number in range(10)]
    world.add([*gone, *others])
    selection = Selection(identifiers=tuple(map(name, gone)))
    world.withdraw(selection, "law")
    rounds = count_rounds(monkeypatch)
    live = made(72, "http://a.cz/x", "D1", **at(0))
    later = revisit(71, url, "D1", **at(59))
    world.add([live, later])
    assert links(world) == {name(later): name(live)}
    assert len(rounds) < 12


@pytest.mark.parametrize("apart", [True, False])
def test_originals_whose_urls_share_a_hash_are_passed_over_together(
    world: World, monkeypatch: pytest.MonkeyPatch, *, apart: bool
) -> None:
    """As many captures of one digest have, such as those without a payload."""
    alike = (140720, 171570, 342422, 570727, 574654, 619286, 651420, 671883, 718389, 801722)
    there = [made(n, f"http://a.cz/{page}", "D1") for n, page in enumerate(alike)]
    if apart:
        world.add(there)
    rounds = count_rounds(monkeypatch)
    later = revisit(59, "http://a.cz/0", "D1")
    world.add([later] if apart else [*there, later])
    assert links(world) == {name(later): name(there[-1])}
    assert len(rounds) < 6


@pytest.mark.thorough
def test_what_a_withdrawn_original_gave_under_another_digest_goes_as_well(world: World) -> None:
    """The revisit's superseded version has the key of a digest that the original has no more."""
    first, second = (f"sha256:{pair * 32}" for pair in ("ab", "cd"))
    place = {"warc_filename": "o.gz", "warc_record_offset": 0}
    one = made(1, "http://a.cz/1", "D1", title="SECRET", content_digest_declared=first, **place)
    others = [made(20 + n, f"http://a.cz/{n}", "D9") for n in range(200)]
    world.add([one, revisit(7, "http://a.cz/9", first), *others])
    assert world.add([replace(one, content_digest_declared=second)]).moved == 1
    world.withdraw(name(one), "law", purge=True)
    assert "SECRET" not in everything(world)


@pytest.mark.thorough
def test_a_revisit_that_comes_back_tells_of_the_set_that_it_left(world: World) -> None:
    one, again = made(1, "http://a.cz/1", "D1"), revisit(7, "http://a.cz/1", "D1")
    world.add([one, again])
    world.withdraw(Selection(identifiers=(name(one), name(again))))
    world.reinstate(name(again))
    (row,) = rows(world)
    assert (row["sets"], row["left_sets"]) == (["domain:cz:a"], ["mime:text:html"])


@pytest.mark.thorough
def test_a_revisit_that_is_ingested_again_has_no_set_of_its_dead_original(world: World) -> None:
    """A tombstone does not say whose its sets were."""
    place = {"warc_filename": "o.gz", "warc_record_offset": 0}
    one, again = made(1, "http://a.cz/1", "D1", **place), revisit(7, "http://a.cz/1", "D1")
    world.add([one, again])
    world.withdraw(name(again), purge=True)
    world.reinstate(name(again))
    world.add([again])
    plain = {"content_mime_type": "text/plain", "sets": ("domain:cz:a", "mime:text:plain")}
    world.add([replace(one, **plain)])
    sets = {row["warc_record_type"]: row["sets"] for row in rows(world)}
    assert sets["revisit"] == ["domain:cz:a", "mime:text:plain"]


def everything(world: World) -> str:
    """Return all text in the current data files of records and copies, superseded rows too."""
    paths = [
        str(world.root / file.key)
        for table in ("records", "copies")
        for file in Catalogue(world.store).files(world.newest(), table)
    ]
    with engine.connect() as connection:
        found = connection.execute(
            f"SELECT title FROM {engine.table('$files')}", {"files": paths}
        ).fetchall()
    return repr(found)


URLS = ("http://a.cz/1", "http://a.cz/2", "http://a.cz/3")
DIGESTS = ("D1", "D2", SHA256, None)


@st.composite
def captures(draw: st.DrawFn) -> list[Capture]:
    """Draw some captures that have much to do with each other."""
    found = []
    for number in range(draw(st.integers(2, 9))):
        url, digest = draw(st.sampled_from(URLS)), draw(st.sampled_from(DIGESTS))
        date: dict[str, Any] = at(draw(st.integers(0, 4)))
        vague = draw(st.integers(0, 9))
        if vague < 2:
            date = {"fetch_date": "2010" if vague else None, "fetch_time": None}
        if draw(st.booleans()):
            declared = draw(st.sampled_from((None, SHA256)))
            more: dict[str, Any] = {"content_digest_declared": declared}
            if draw(st.integers(0, 3)) == 0:
                more = {"content_damaged": "checksum"}
            found.append(
                made(100 + number, url, digest if digest != SHA256 else "D3", **date, **more)
            )
        else:
            more = {}
            if draw(st.booleans()):
                more = {
                    "refers_to_url": draw(st.sampled_from(URLS)),
                    "refers_to_date": at(draw(st.integers(0, 4)))["fetch_date"],
                }
            if draw(st.booleans()):
                more |= {"content_mime_type": "image/gif", "sets": ("mime:image:gif",)}
            found.append(revisit(100 + number, url, digest, **date, **more))
    return found


NUMBERS = count()
"""Of worlds: a test has the same folder for all its cases."""
FEW = settings(
    max_examples=examples(4),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.thorough
@FEW
@given(st.data())
def test_the_order_of_publishes_makes_no_difference(
    make_world: Callable[[str], World], data: st.DataObject
) -> None:
    some = data.draw(captures())
    shuffled = data.draw(st.permutations(some))
    cut = data.draw(st.integers(0, len(some)))
    states = []
    for parts in ([some], [shuffled[:cut], shuffled[cut:]]):
        world = make_world(f"world-{next(NUMBERS)}")
        for part in parts:
            if part:
                world.add(list(part))
        check(world, some)
        states.append(rows(world, "* EXCLUDE (position, sequence, datestamp, left_sets)"))
    assert world.add(some).manifest is None
    assert states[0] == states[1]


@FEW
@given(st.data())
def test_whatever_is_done_revisits_have_the_original_that_the_rules_say(
    make_world: Callable[[str], World], data: st.DataObject
) -> None:
    some = data.draw(captures())
    world = make_world(f"world-{next(NUMBERS)}")
    there: dict[str, Capture] = {}
    gone: dict[str, Capture] = {}
    world.add(some[:1])
    there[name(some[0])] = some[0]
    for _ in range(data.draw(st.integers(2, 5))):
        action = data.draw(st.sampled_from(["publish", "withdraw", "restore", "correct"]))
        if action == "publish":
            part = [
                c
                for c in data.draw(st.lists(st.sampled_from(some), min_size=1, unique=True))
                if name(c) not in gone and name(c) not in there
            ]
            if part:
                world.add(part)
                there |= {name(c): c for c in part}
        elif action == "correct" and there:
            key = data.draw(st.sampled_from(sorted(there)))
            there[key] = replace(there[key], title=f"Corrected {data.draw(st.integers(0, 3))}")
            world.add([there[key]])
        elif action == "withdraw" and there:
            key = data.draw(st.sampled_from(sorted(there)))
            world.withdraw(key)
            gone[key] = there.pop(key)
        elif action == "restore" and gone:
            key = data.draw(st.sampled_from(sorted(gone)))
            world.reinstate(key)
            there[key] = gone.pop(key)
        check(world, list(there.values()))
