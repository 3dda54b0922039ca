"""Repositories with one defect each: the right check names it, and no other."""

import pytest

from builder.check.checks import load_checks
from builder.http.limits import Limits
from tests.builder.check.visiting import failures, visiting
from tests.builder.sources.harvest.defects import DEFECTS
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import items

NAMED = {
    # check: the defects that it names; "" for what harms nobody, or one visit cannot show
    "": "no-size day offset-tokens no-order padded-token odd-token 503 503-date 503-plain "
    "503-nonsense 429 reset gzip deflate raw-deflate bom trailing-comment prefixed chunked close",
    "H02": "html",
    "H01": "empty",
    "H03": "errors-400 errors-404 errors-500 no-identify",
    "H03 L04": "tokens-die-401 tokens-die-404 tokens-die-422 tokens-die-500 bad-record-500",
    "H03 D04 D05 D07 D08": "no-dates",
    "H04": "html-type no-type wrong-charset",
    "H08": "cut-gzip gzip-unasked gzip-untold says-gzip",
    "H10": "hang",
    "H15": "500 502 504 cut cut-chunked",
    "E01": "bad-record-cut cut-unseen latin1 control-characters non-characters surrogates "
    "bad-bytes control-references entities bare-ampersand leading-lines leading-warning "
    "trailing-html",
    "E02": "latin1-told cp1252 utf-16",
    "E04": "no-namespace",
    "E06": "no-date odd-date",
    "E09 H16": "moved",
    "E09": "redirect redirect-host",  # which echo what the redirect adds
    "E01 E09": "echoed-from",  # beside a `from` of the request, it stands there twice
    "L01": "same-token token-cycle fresh-tokens",
    "L01 L05": "empty-pages",
    "L03": "wrong-size",
    "L04": "tokens-die extra-page-error",
    "L05": "extra-empty-page",
    "L07": "no-last-token",
    "L08": "wrong-cursor",
    "L09": "single-use-tokens",
    "L10": "overlapping-pages",
    "D01": "day-stamps odd-stamps",
    "D06": "ignores-dates tokens-lose-dates",
    "D07": "empty-list",
    "D08": "from-earliest until-future",
}
CASES = [(defect, checks) for checks, defects in NAMED.items() for defect in defects.split()]
IMPATIENT = Limits(connect=5, first_byte=0.3, total=20, rate=100, bytes=64_000_000)


def test_a_repository_in_order_is_clean() -> None:
    with serving(items(50)) as provider:
        card, result = visiting(provider.url)
    assert failures(card) == {}
    assert result.walk is not None
    assert (result.walk.count, result.walk.ended, len(result.sample)) == (50, True, 100)


def test_each_defect_has_its_check() -> None:
    assert {defect for defect, _ in CASES} == {*DEFECTS}
    assert {check for _, checks in CASES for check in checks.split()} <= {*load_checks()}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("defect", "checks"), CASES)
def test_the_right_check_names_a_defect(defect: str, checks: str) -> None:
    limits = IMPATIENT if defect == "hang" else Limits(connect=5, first_byte=5, total=20, rate=0)
    poison = frozenset({"oai:a.cz:30"})
    with serving(items(70), defect, hang=0.5, poison=poison) as provider:
        card, _ = visiting(provider.url, limits=limits)
    shown = failures(card)
    assert {*shown} == {*checks.split()}, shown
