"""Lists that lead astray: none is taken for complete that is not, and none goes on for ever."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from builder.sources.harvest import folder
from tests.builder.sources.harvest.kept import expected, kept
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import NOW, Answer, Call, Fault, Page, Provider, items
from tests.builder.sources.harvest.test_defects import harvested

AGO = NOW - timedelta(days=100)


def test_one_token_for_all_pages_is_no_loop(tmp_path: Path) -> None:
    """A list of the server's own (a scroll of OpenSearch) breaks off, and is begun again behind."""
    with serving(items(200, seconds=60), "no-size") as provider:
        at = {"page": 0, "died": 0}

        def scroll(given: Provider, call: Call, page: Page) -> Page:
            if "resumptionToken" not in call.arguments:
                at["page"], at["since"] = 0, len(given.items) - len(given.wanted(call.arguments))
            elif at["page"] == 6 and not at["died"]:
                at["died"] = 1
                raise Fault("badResumptionToken", "the scroll is gone")
            start = at["since"] + at["page"] * given.page_size
            some = sorted(given.items.values(), key=given.key)[start : start + given.page_size]
            at["page"] += 1
            token = "SCROLL" if start + given.page_size < len(given.items) else ""
            return replace(page, items=tuple(some), token=token)

        provider.pages.append(scroll)
        provider.arguments = lambda call: {  # type: ignore[method-assign]
            "metadataPrefix": "oai_dc",
            **{k: v for k, v in call.arguments.items() if k == "from"},
        }
        _, told, found = harvested(provider, tmp_path)
        assert told["status"] == "complete"
        assert "started again at" in told["notes"][0]
        assert found.state == expected(provider.state())


def test_a_token_that_an_earlier_process_used_up_says_nothing_of_the_list(tmp_path: Path) -> None:
    """However often one ends before it has come further, the next one begins the list again."""
    some = [replace(one, stamp=AGO) for one in items(60)]
    with serving(some, "single-use-tokens", page_size=10) as provider:
        left = [0]

        def busy(given: Provider, call: Call, answer: Answer) -> Answer:
            left[0] -= 1
            return answer if left[0] >= 0 else replace(answer, status=503, body=b"busy")

        provider.answers.append(busy)
        for requests in (7, *[3] * 9):
            left[0] = requests
            code, told, _ = harvested(provider, tmp_path)
            assert (code, told["run"], told["status"]) == (1, 1, "partial")
            assert "status 503" in told["error"]
        left[0] = 1000
        code, told, found = harvested(provider, tmp_path)
        assert (code, told["run"], told["status"], told["records"]) == (0, 1, "complete", 60)
        assert found.state == expected(provider.state())


def test_what_is_in_order_by_chance_is_begun_again_at_its_start(tmp_path: Path) -> None:
    """Nearly all datestamps are those of one day, and the first page has a later one at its end."""
    some = [
        replace(one, stamp=AGO + timedelta(days=number if number in (19, 50, 70) else 0))
        for number, one in enumerate(items(100))
    ]
    with serving(some, "no-size") as provider:
        places = {one.identifier: f"{number:06}" for number, one in enumerate(some)}
        provider.key = lambda item: places[item.identifier]  # type: ignore[method-assign]
        died: list[Call] = []

        def dying(given: Provider, call: Call) -> None:
            if "resumptionToken" in call.arguments and not died:
                died.append(call)
                raise Fault("badResumptionToken")

        provider.before.append(dying)
        _, told, found = harvested(provider, tmp_path)
        assert told["status"] == "complete"
        assert found.state == expected(provider.state())


def test_a_loop_is_seen_though_each_answer_is_another(tmp_path: Path) -> None:
    with serving(items(60), "token-cycle") as provider:

        def told_anew(given: Provider, call: Call, answer: Answer) -> Answer:
            session = b"<dc:source>session=%d</dc:source><dc:type>" % call.number
            return replace(answer, body=answer.body.replace(b"<dc:type>", session))

        provider.answers.append(told_anew)
        code, told, _ = harvested(provider, tmp_path)
        assert len(provider.calls) < 40
        assert (code, told["records"], told["status"]) == (0, 60, "complete")
        assert {row.identifier for row in kept(tmp_path).rows} == provider.items.keys()


def test_sets_without_an_end_are_left(tmp_path: Path) -> None:
    with serving(items(5)) as provider:

        def endless(given: Provider, call: Call, answer: Answer) -> Answer:
            token = b"<resumptionToken>%d</resumptionToken></ListSets>" % call.number
            return replace(answer, body=answer.body.replace(b"</ListSets>", token))

        provider.answers.append(endless)
        harvested(provider, tmp_path)
        assert len(provider.calls) < 10
    (file,) = tmp_path.glob(f"*/{folder.SETS}")
    assert len(json.loads(file.read_bytes())) == 3


def test_a_clock_that_is_ahead_hides_nothing(tmp_path: Path) -> None:
    """responseDate is of another zone, and datestamps are not."""
    with serving(items(30)) as provider:

        def ahead(given: Provider, call: Call, answer: Answer) -> Answer:
            date = b"<responseDate>2199-01-01T10:00:00Z"
            return replace(answer, body=re.sub(rb"<responseDate>[^<]*", date, answer.body))

        provider.answers.append(ahead)
        harvested(provider, tmp_path)
        provider.now += timedelta(days=3650)
        provider.change(provider.items["oai:a.cz:7"], title="Another")
        _, told, found = harvested(provider, tmp_path)
        assert told["changed"] == 1
        assert found.state == expected(provider.state())


@pytest.mark.parametrize("said", ["another", "none"])
def test_a_record_that_is_not_what_was_asked_for_is_missing(said: str, tmp_path: Path) -> None:
    """One is broken in its page, and GetRecord has another one, or knows nothing of it."""
    bad = b"<identifier>oai:a.cz:7</identifier>"
    with serving(items(20)) as provider:

        def broken(given: Provider, call: Call, answer: Answer) -> Answer:
            if call.verb == "GetRecord":
                other = answer.body.replace(bad, bad.replace(b"7", b"8"))
                return replace(answer, body=other if said == "another" else _unknown(answer.body))
            start = answer.body.find(bad)
            if start < 0:
                return answer
            body = answer.body[:start] + answer.body[start:].replace(b"</record>", b"", 1)
            return replace(answer, body=body)

        provider.answers.append(broken)
        code, told, found = harvested(provider, tmp_path)
    assert (code, told["status"], told["records"]) == (1, "partial", 19)
    assert [one["identifier"] for one in told["missing"]] == ["oai:a.cz:7"]
    assert "oai:a.cz:7" not in found.state


def _unknown(body: bytes) -> bytes:
    start, end = body.index(b"<GetRecord>"), body.index(b"</OAI-PMH>")
    return body[:start] + b'<error code="idDoesNotExist"/>' + body[end:]
