"""Plans: which capture of a URL counts, and that each file has a place of its own."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.exports.restore import captures, names
from builder.exports.restore.captures import ListedCapture, RebuildError
from builder.exports.restore.plan import Plan
from tests.builder.exports.restore.holding import Holding, held
from tests.extent import examples

LAST = captures.LAST_SECOND


@contextmanager
def settled(
    found: Iterable[ListedCapture],
    accepts: Callable[[ListedCapture], bool] | None = None,
    *,
    extended: bool = False,
    source: Holding | None = None,
) -> Iterator[Plan]:
    """Give the plan of captures; with a source, redirects are followed."""
    accepts = accepts or captures.accept_statuses(captures.USUAL_STATUSES)
    with TemporaryDirectory() as folder, closing(Plan(Path(folder), accepts)) as plan:
        plan.add(found)
        if source is not None:
            plan.follow(lambda url: source.of_url(url, LAST))
        plan.settle(extended=extended)
        yield plan


def planned(
    found: Iterable[ListedCapture], *, extended: bool = False
) -> dict[str, tuple[str, str]]:
    """Return what is planned of captures: by URL the path, and why it is that."""
    with settled(found, extended=extended) as plan:
        files = {file.url: (file.path, file.why) for file in plan.files()}
        assert plan.count()[0] == len(files)
    return files


def stamps(found: Iterable[ListedCapture], text: str = captures.USUAL_STATUSES) -> dict[str, str]:
    with settled(found, captures.accept_statuses(text)) as plan:
        return {file.url: file.stamp for file in plan.files()}


def test_the_last_capture_counts() -> None:
    found = [
        held("http://a.cz/", "2008"),
        held("http://a.cz/", "2010"),
        held("https://a.cz/", "2009"),
    ]
    assert stamps(found) == {"http://a.cz/": "2010"}
    assert stamps([*found, held("https://a.cz/", "2011")]) == {"https://a.cz/": "2011"}
    # Plans with other files have other fingerprints.
    prints = []
    for some in (found, found[::-1], found[:1]):
        with settled(some) as plan:
            prints.append(plan.fingerprint())
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("given_", "stamp"),
    [
        ({"status": 404}, "2008"),
        ({"status": 503}, "2008"),
        ({"status": 206}, "2008"),
        ({"status": 304}, "2008"),
        ({"status": 304, "revisit": True}, "2010"),
        ({"status": None}, "2010"),
        ({"status": 203}, "2010"),
    ],
)
def test_what_is_no_whole_answer_is_passed_over(given_: dict[str, object], stamp: str) -> None:
    found = [held("http://a.cz/", "2008"), held("http://a.cz/", "2010", **given_)]
    assert stamps(found) == {"http://a.cz/": stamp}
    assert stamps(found, "200-299, 206, 304, 404, 503") == {"http://a.cz/": "2010"}


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("2009", "20091231235959"),
        ("2009-11", "20091131235959"),
        ("20091105", "20091105235959"),
        ("2009-11-05T12:00:00Z", "20091105120000"),
        ("2009-11-05 12:30", "20091105123059"),
        *((text, None) for text in ("", "yesterday", "200", "2009-13", "2009-02-30")),
        ("20091105250000", None),
    ],
)
def test_a_date_stands_for_its_last_second(text: str, until: str | None) -> None:
    if until is not None:
        assert captures.until_date(text) == until
        return
    with pytest.raises(RebuildError, match="--as-of"):
        captures.until_date(text)


def test_what_is_no_list_of_statuses_is_refused() -> None:
    for text in ("", "2", "200-", "abc", "200,,300", "1000"):
        with pytest.raises(RebuildError, match="--status"):
            captures.accept_statuses(text)


def test_twins_on_a_disk_that_knows_no_case_part() -> None:
    files = planned([held("http://a.cz/x.gif", "2010"), held("http://a.cz/X.gif", "2009")])
    assert files["http://a.cz/x.gif"] == ("a.cz/x.gif", "")
    path, why = files["http://a.cz/X.gif"]
    assert (path, why) == (names.mark("a.cz/X.gif", "http://a.cz/X.gif"), "twin")


def test_what_is_a_file_and_a_folder_becomes_the_folders_index() -> None:
    files = planned([held("http://a.cz/blog"), held("http://a.cz/blog/1")])
    assert files["http://a.cz/blog"] == ("a.cz/blog/index.html", "folder")
    files = planned([held("http://a.cz/blog"), held("http://a.cz/blog/")])
    assert files["http://a.cz/blog/"] == ("a.cz/blog/index.html", "")
    assert files["http://a.cz/blog"] == (
        names.mark("a.cz/blog/index.html", "http://a.cz/blog"),
        "folder",
    )
    files = planned([held("http://a.cz/Blog"), held("http://a.cz/blog/index.html/x")])
    assert files["http://a.cz/Blog"][0] == names.mark("a.cz/Blog/index.html", "http://a.cz/Blog")


HOSTS = st.sampled_from(["a.cz", "A.cz", "www.a.cz", "a.cz:8080"])
PARTS = st.lists(
    st.sampled_from(
        ["x", "X", "", "index.html", "Index.HTML", "..", "a" * 300, "%C3%A9", "e%CC%81"]
    ),
    max_size=4,
).map("/".join)
CAPTURES = st.builds(
    lambda scheme, host, path, query, stamp: held(f"{scheme}://{host}/{path}{query}", stamp),
    st.sampled_from(["http", "https"]),
    HOSTS,
    PARTS,
    st.sampled_from(["", "?", "?q", "?Q"]),
    st.sampled_from(["", "20071105120000", "20081105120000"]),
)


@settings(max_examples=examples(60))
@given(st.lists(CAPTURES, max_size=25), st.randoms(), st.booleans())
def test_places_are_apart_whatever_the_order(
    found: list[ListedCapture], dice: object, extended: bool
) -> None:
    files = planned(found, extended=extended)
    folds = [names.fold(path) for path, _ in files.values()]
    assert len(set(folds)) == len(folds)
    above = {names.fold(a) for path, _ in files.values() for a in names.above(path)}
    assert not above & set(folds)
    assert {names.identity(url) for url in files} == {names.identity(one.url) for one in found}
    for url, (path, why) in files.items():
        assert bool(why) or path == names.natural(url, "text/html" if extended else "").path
    mixed = list(found) + found[:5]
    dice.shuffle(mixed)  # type: ignore[attr-defined]
    assert planned(mixed, extended=extended) == files


def leading(url: str, to: str, stamp: str = "2009", status_: int = 301) -> ListedCapture:
    return held(url, stamp, status=status_, redirect=to)


def test_redirects_are_followed_out_of_the_choice() -> None:
    source = Holding()
    source.add(leading("http://b.cz/two", "/three", status_=302))
    source.add(held("https://b.cz/three"))
    with settled([leading("http://a.cz/one", "//b.cz/two#top")], source=source) as plan:
        assert [file.url for file in plan.files()] == ["https://b.cz/three"]
        assert [(led.url, led.goal, led.path) for led in plan.redirects()] == [
            ("http://a.cz/one", "http://b.cz/two", "b.cz/three"),
            ("http://b.cz/two", "http://b.cz/three", "b.cz/three"),
        ]
        assert plan.path("http://a.cz/one") == "b.cz/three"
    # One to the same but for its scheme hides nothing; a link is led by its SURT where nothing
    # has its very URL.
    found = [
        held("https://a.cz/", "2008"),
        leading("http://a.cz/", "https://a.cz/", "2010"),
        held("http://www.a.cz/Page?b=2&a=1", "2008"),
    ]
    with settled(found, source=Holding()) as plan:
        assert [(file.url, file.path) for file in plan.files()] == [
            ("https://a.cz/", "a.cz/index.html"),
            ("http://www.a.cz/Page?b=2&a=1", "www.a.cz/Page@b=2&a=1"),
        ]
        assert list(plan.redirects()) == []
        assert plan.path("https://a.cz/page?a=1&b=2") == "www.a.cz/Page@b=2&a=1"
        assert plan.path("http://a.cz/none") is None


def test_redirects_that_lead_nowhere_or_in_circles_end() -> None:
    source = Holding()
    for number in range(40):
        source.add(leading(f"http://a.cz/{number}", f"/{number + 1}"))
    first = [
        source.found[0],
        leading("http://a.cz/circle", "/circle2"),
        leading("http://a.cz/circle2", "/circle"),
        leading("http://a.cz/out", "http://[x/"),
        leading("http://a.cz/mail", "mailto:a@b.cz"),
    ]
    with settled(first, source=source) as plan:
        assert list(plan.files()) == []
        led = list(plan.redirects())
    assert all(one.path is None for one in led)
    assert len([one for one in led if one.url.rpartition("/")[2].isdigit()]) == 11
