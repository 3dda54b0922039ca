"""Records that are rendered by columns are those that a parser reads from a page."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from builder.harvest import page
from builder.harvest.data_files import file_rows
from builder.harvest.version import HarvestedRow
from builder.parquet.pieces import NoColumnsError
from functions.config import configuration
from functions.oai.answer import Answer, RecordList
from functions.oai.render import check
from functions.oai.repository_duckdb.record_rows import HEADER, Page
from functions.snapshot import schema
from tests.extent import examples

BASE = "http://a.cz/oai"
DATES = (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
_ODD = "\r\x01\ufffe"
_LETTERS = "a<>&\"' \n\u00a0\u017e:;=\U0001f600]-!?"
_TEXTS = ("", " ", "http://a.cz/?a=1&b='", "sha256:9f", "text/html", "cs, en", "<!--", "]]>")
_SETS = ("domain:cz:a", "mime:text:html", "x")
_VALUES: dict[str, Callable[[random.Random], Any]] = {
    "VARCHAR": lambda rng: (
        rng.choice(_TEXTS) if rng.random() < 0.6 else "".join(rng.choices(_LETTERS, k=4))
    ),
    "BIGINT": lambda rng: rng.choice((0, 5, 2**40)),
    "SMALLINT": lambda rng: rng.choice((0, 200)),
    "TIMESTAMP": lambda rng: datetime(rng.choice((1, 2007, 9999)), 1, 2, 3, 4, 5),
    "BLOB": lambda rng: rng.randbytes(2),
    "VARCHAR[]": lambda rng: rng.sample(("title", "url"), rng.randrange(3)),
}


def captures(rng: random.Random) -> Page:
    """Return random captures, some of them deleted, in which values come again and again."""
    count, share = rng.randrange(1, 50), rng.choice((0, 0.3, 1))
    deleted = [rng.random() < rng.choice((0, 0.3)) for _ in range(count)]
    columns = {
        column.name: [
            None if gone or rng.random() < share else _VALUES[column.type](rng) for gone in deleted
        ]
        for column in schema.CAPTURE
    }
    header = (
        range(count),
        [f"oai:a.cz:{n}&'" for n in range(count)],
        ["capture"] * count,
        rng.choices(DATES, k=count),
        deleted,
        [tuple(rng.sample(_SETS, rng.randrange(3))) for _ in range(count)],
    )
    return Page({**dict(zip(HEADER, header, strict=True)), **columns})


def both(
    prefix: str, copies: Sequence[str], records: Page
) -> tuple[list[HarvestedRow], list[HarvestedRow]]:
    """Return rows that are rendered by columns, and those that a parser finds in a page."""
    own = configuration.parse(f"[content]\naddress = {list(copies)!r}\n", {})
    formats, renderer = check.open_formats(own)
    row = formats.get(prefix)
    assert row is not None
    pieces = file_rows.split(renderer, row, "capture", BASE)
    assert pieces is not None
    since = DATES[0]
    sheet = renderer.sheet(BASE)
    assert sheet.take(RecordList(records, row, None, since=since)) == len(records)
    assert sheet.missed == 0
    answer = Answer(DATES[1], BASE, (), RecordList((), row, None, made=(b"".join(sheet.finish()),)))
    document = renderer.document(answer)
    found = [
        HarvestedRow(e.identifier, e.datestamp, e.deleted, e.sets, e.dc, e.text, "d", 1)
        for e in page.read(document).entries
    ]
    head = document[: document.index(b"<record>")]
    columns = file_rows.render(pieces, head, file_rows.page_arrays(records, since))
    return [*columns.rows("d", 1)], found


@pytest.mark.parametrize("prefix", ["oai_dc", "capture", "mods"])
@pytest.mark.parametrize("copies", [(), ("http://replay.a.cz/{timestamp}/{url}",)])
def test_columns_give_what_a_page_gives(prefix: str, copies: Sequence[str]) -> None:
    for seed in range(examples(20)):
        by_columns, by_page = both(prefix, copies, captures(random.Random(f"{prefix} {seed}")))
        assert by_columns == by_page


@pytest.mark.parametrize("character", _ODD)
def test_characters_that_xml_changes_are_left_to_a_parser(character: str) -> None:
    columns: dict[str, Any] = {column.name: [None] for column in schema.CAPTURE}
    header = ([1], ["oai:a.cz:1"], ["capture"], [DATES[0]], [False], [()])
    given_ = {**columns, **dict(zip(HEADER, header, strict=True)), "title": [f"a{character}b"]}
    with pytest.raises(NoColumnsError):
        both("oai_dc", (), Page(given_))
