"""Faults of repositories as issues report them, each named by its checks: one visit, or two."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from builder.check.checks import load_checks
from builder.check.comparison import join
from builder.check.report import make_report
from tests.builder.check.visiting import visiting
from tests.e2e.conftest import SHARED
from tests.listening import free_port

FOLDER = SHARED / "reports" / "harvest"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="shared/data/reports is not here")


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-W", "ignore", "fake.py", str(port), "scen1.py"]
    with subprocess.Popen(command, cwd=FOLDER, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        for _ in range(100):
            try:
                urlopen(f"{url}/log/none", timeout=5).close()
                break
            except OSError:
                time.sleep(0.05)
        yield url
        process.terminate()


def ask_set(base: str, scenario: str) -> None:
    """Ask for a list of a set, as one scenario answers nothing before."""
    query = "verb=ListRecords&metadataPrefix=oai_dc&set=A"
    with suppress(HTTPError):
        urlopen(f"{base}/s/{scenario}/oai?{query}", timeout=5).close()


def report(base: str, scenario: str, previous: Any = None) -> dict[str, Any]:
    """Visit a scenario, and compare it with an earlier visit."""
    url = f"{base}/s/{scenario}/oai{'?mode=oaipmh' if scenario == 'geonode' else ''}"
    options = {"set": "A"} if scenario == "dvsets2" else {}
    card, result = visiting(url, clock=lambda: datetime.now(UTC), previous=previous, **options)
    document = make_report(result, card, load_checks())
    return document if previous is None else join(previous, document)


def failed(document: Any) -> set[str]:
    return {row["number"] for row in document["checks"] if row["state"] == "failed"}


NAMED = {
    # checks: the scenarios whose fault one visit shows; "" has those that behave, then
    "": "dvsets restricted vanish header_a header_b geonode tokenodd move_old move_new wafnight2 "
    "wafnight2b badtls hugepage about id_case stalecache backdated renamed schemachange mv_old "
    "mv_new lag modsa",
    "H01": "nosets_404",
    "H02": "waf202 waf_all waf200",
    "H05": "farwait",
    "H06": "redirect_dropquery",
    "H09": "cookie cookie_unordered",
    "H14": "bigtext",
    "E01": "nested badcomment ents bad_cdata_end bad_dup_attr bad_undeclared_mods "
    "bad_undeclared_thesis bad_html_br bad_stray_p bad_comment bad_attr_lt bad_attr_amp "
    "bad_unquoted bad_bare_name bad_entity_unknown bad_pi_xml bad_colon bad_num_tag",
    "E02": "xml11 utf8name",
    "E06": "badresp",
    "E07": "futuredate localtime",
    "E10 R03 R04 R05 R07": "wrongns",
    "E11": "unknown_error",
    "E12": "firstpage_error",
    "F02": "noschema",
    "L01": "samepenult",
    "L02": "midlist_emptypage",
    "L02 L07": "midlist_end",  # a list of a day ends there, and has no last token
    "L03": "sized",
    "L04": "midlist_norecords",
    "L05": "emptypages emptyfirst",
    "L10": "ojs_twice_dead_last ojs_twice_dead_first dupcontent",
    "D01": "stamps",
    "D02": "slowclock",
    "S01 S02": "setspecs",  # and it lists all records for any set
    "S02": "setgone",
    "S05 L13": "dvsets2",  # GetRecord, too, names the set that was asked for last
    "R01 R02": "ids",
    # Records of other formats without schemaLocation; in the second, bare MARC of oai_dc.
    "R05": "recordns fmtdel modsb didl ese uketd dcite marcb",
    "R04 R05": "marc",
}
SCENARIOS = [(name, checks) for checks, names in NAMED.items() for name in names.split()]
SIDE = {"R05", "R07", "R08", "R09", "R17", "R04"}
"""Checks of records that follow from what a repair makes of them."""
SECOND = (
    # scenario, what is switched after the first visit, and the checks that its comparison fails
    ("midlist_norecords", "ok=1", ""),
    ("midlist_end", "ok=1", ""),
    ("farwait", "ok=1", ""),
    ("waf202", "ok=1", ""),
    ("dvsets", "left=1", "S05 X02"),
    ("dvsets2", "left=1", "S05 X02 L13"),
    ("futuredate", "fixed=1", "C09"),
    ("localtime", "fixed=1", "C09"),
    ("fmtdel", "later=1", "C03"),
    ("vanish", "later=1", "C02"),
    ("renamed", "later=1", "C07"),
    ("schemachange", "later=1", "C12"),
    ("lag", "indexed=1", "C04"),
    ("restricted", "later=1", "C14 R03"),
    ("backdated", "later=1", "C08"),
    ("wafnight2", "waf=403", "H02"),
    ("wafnight2b", "waf=200", "H02"),
    ("marc", "bad=1", "C13 E01"),
)


@pytest.fixture(scope="module")
def orderly(base: str) -> set[str]:
    """Return what every scenario does wrong, as the fake judges no arguments."""
    return failed(report(base, "header_a"))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("scenario", "checks"), SCENARIOS)
def test_one_visit_names_the_fault(
    base: str, orderly: set[str], scenario: str, checks: str
) -> None:
    ask_set(base, scenario)
    expected = {*checks.split()}
    assert failed(report(base, scenario)) - orderly - (SIDE - expected) == expected


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("scenario", "switch", "checks"), SECOND)
def test_a_second_visit_names_the_fault(
    base: str, orderly: set[str], scenario: str, switch: str, checks: str
) -> None:
    ask_set(base, scenario)
    previous = report(base, scenario)
    urlopen(f"{base}/ctl/{scenario}?{switch}", timeout=5).close()
    ask_set(base, scenario)
    time.sleep(1.1)  # what changed may not be as late as the visit
    document = report(base, scenario, previous)
    assert failed(document) - orderly - SIDE == {*checks.split()}


def test_a_moved_repository_is_named(base: str, orderly: set[str]) -> None:
    document = join(report(base, "mv_old"), report(base, "mv_new"))
    assert failed(document) - orderly == {"C06"}


def test_each_scenario_has_its_checks() -> None:
    text = (FOLDER / "scen1.py").read_text("utf-8")
    names = {
        *re.findall(r"@scen\ndef (\w+)\(", text),
        *re.findall(r"^other.*,'(\w+)'\)$", text, re.M),
    }
    names |= {f"bad_{name}" for name in re.findall(r"'(\w+)':'<", text)}
    # The other one has no fault, but 200,000 records: see test_visit.
    assert names == {scenario for scenario, _ in SCENARIOS} | {"big"}
    assert len(names) == 85
