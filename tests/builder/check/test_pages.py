"""Reports for people: the text of a terminal and the HTML page, also of a hostile repository."""

import re
import tomllib
from typing import Any

import pytest
from lxml import etree

from builder.check.checks import FOLDER, SEVERITIES, load_checks
from builder.check.page import find_section, write_page
from builder.check.text import rank_failures, write_text
from tests.builder.check.cards import HOSTILE, make_card, make_check

COMPARISON = {
    "begun": "2026-10-01T00:00:00Z",
    "worse": [{"number": "L104", "title": "The rule L104 holds"}],
    "better": [],
    "counts": [{"name": "records", "old": 5, "new": 3}],
}
SECRET = "http://user:hunter2@a/oai?verb=Identify&api_key=hunter2"


def parse(page: str) -> Any:
    return etree.fromstring(page.encode(), etree.HTMLParser(encoding="utf-8", recover=False))


def poison(value: Any) -> Any:
    """Return a report in which each text of the repository is hostile."""
    if isinstance(value, dict):
        fixed = ("number", "severity", "state", "verdict", "section")
        return {k: v if k in fixed else poison(v) for k, v in value.items()}
    if isinstance(value, list):
        return [poison(content) for content in value]
    return f"{HOSTILE} {SECRET}" if isinstance(value, str) else value


def test_the_text_has_the_worst_first_and_what_was_not_checked() -> None:
    text = write_text(make_card(comparison=COMPARISON))
    order = ["fail here", "SINCE 2026-10-01", "worse  L104", "records: 5 → 3", "BREAKS HARVESTERS"]
    order += ["L104  The rule", "(section 3.5.1)", "seen   L104 was seen [oai:a:1]"]
    order += ["asked  http://a/oai?verb=Identify", "and 11 more", "DSpace: Update the index."]
    order += ["BREAKS THE SPECIFICATION", "ADVICE", "NOT CHECKED", "there are no sets: S101"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "EPrints" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_remedies_of_each_software_are_shown_if_it_is_unknown() -> None:
    card = make_card(software=None)
    assert "EPrints: Edit the script." in write_text(card)
    assert "In EPrints:" in write_page(card)


@pytest.mark.parametrize("write", [write_text, write_page])
def test_nothing_of_a_hostile_repository_is_obeyed_and_no_secret_is_shown(write: Any) -> None:
    output = write(poison(make_card(comparison=COMPARISON)))
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert "hunter2" not in output
    if write is write_page:
        assert "<script" not in output
        assert not parse(output).xpath("//script | //@onclick | //a[starts-with(@href, 'java')]")


def test_the_page_asks_for_nothing_and_its_links_lead_somewhere() -> None:
    page = parse(write_page(make_card(comparison=COMPARISON)))
    assert not page.xpath("//script | //link | //img | //iframe | //@src")
    assert "url(" not in page.findtext(".//style")
    ids = page.xpath("//@id")
    assert len(ids) == len({*ids})
    inner = {href[1:] for href in page.xpath("//a/@href") if href.startswith("#")}
    assert inner
    assert inner <= {*ids}


def test_an_address_that_is_no_web_address_is_no_link() -> None:
    page = parse(write_page(make_card(url="javascript:alert(1)", name="")))
    assert not page.xpath("//a[contains(@href, 'alert')]")
    assert page.findtext(".//h1") == "javascript:alert(1)"


def test_a_page_of_a_clean_repository_and_of_one_that_did_not_answer() -> None:
    summary = dict.fromkeys((*SEVERITIES, "passed", "not_checked"), 0)
    for verdict, word in (("clean", "No fault was seen."), ("unasked", "Nothing could be asked.")):
        card = make_card(checks=[], requests=[], name=None, software=None)
        card["summary"] = summary | {"verdict": verdict}
        card["facts"] |= {"records": None, "formats": [], "sets": None, "deleted_record": None}
        card["facts"] |= {"granularity": None, "first_page_seconds": None, "page_seconds": None}
        assert word in write_page(card)
        assert word in write_text(card)


def test_sections_of_the_table_are_links_to_the_specification() -> None:
    assert find_section("3.5.1").endswith("openarchivesprotocol.html#FlowControl")
    assert find_section("2.5.1").endswith("#DeletedRecords")
    assert find_section("OpenAIRE 4") == ""
    assert find_section("9").endswith(".html")


def test_each_check_has_words_for_all_readers() -> None:
    words = tomllib.loads((FOLDER / "words.toml").read_text("utf-8"))
    for number, check in load_checks().items():
        assert check.severity in words["severities"], number
        assert check.title[-1:] not in ("", "."), number
        assert check.consequence.endswith("."), number
        assert check.mend.endswith("."), number
        assert not re.fullmatch(r"[A-Z]\d+", number) or number[0] in words["groups"], number


def test_failures_are_ranked_by_severity_and_number() -> None:
    checks = [make_check("A1", "advice", count=99), make_check("B1"), make_check("B2", count=5)]
    assert [c["number"] for c in rank_failures({"checks": checks})] == ["B2", "B1", "A1"]
