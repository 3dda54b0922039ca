"""CSV, JSON, Parquet and queries give the texts of columns; MARC-in-JSON gives records of MARC."""

import gzip
import io
import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.sources.records.forms import FORMS, recognise
from builder.sources.records.forms import form as form_module
from builder.sources.records.forms.columns import read_query
from builder.sources.records.record import (
    KnownRecord,
    MarcField,
    MarcRecord,
    ReadOptions,
    RecordFault,
    RecordsError,
    SourceRecord,
)

MARC = {
    "leader": "00000dam a2200000   4500",
    "fields": [
        {"001": "n1"},
        {"245": {"ind1": "1", "ind2": " ", "subfields": [{"a": "A \x01&"}, {"a": "B"}]}},
    ],
}


def read(data: bytes, form: str, **options: str) -> list[tuple[str, object]]:
    """Return the place of each record and its content, of each fault its code."""
    file_form = recognise(data[: 1 << 16], is_declared=True)
    assert file_form is not None
    assert file_form.name == form
    items = file_form.read(io.BytesIO(data), ReadOptions(**options))  # type: ignore[arg-type]
    return [
        (item.place, item.content if isinstance(item, SourceRecord) else item.code)
        for item in items
        if not isinstance(item, KnownRecord)
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "windows-1250", "utf-16", "gzip"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv_is_read_in_any_encoding_and_with_any_separator(encoding: str, separator: str) -> None:
    rows = ["id,jméno,rok", '007,"Žižka, ""Jan""",', "", "8,a", "9,Příliš žluťoučký\nkůň,1420"]
    rows[4] = rows[4].replace("Příliš", '"Příliš').replace("kůň", 'kůň"')
    text = "\r\n".join(rows).replace(",", separator)
    data = gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding)
    if encoding == "gzip":
        form = next(form for form in FORMS if form.name == "csv")
        assert len([*form.read(io.BytesIO(data), ReadOptions())]) == 3
        return
    title = 'Žižka, "Jan"'.replace(",", separator)
    assert read(data, "csv") == [
        ("row 2", {"id": ("007",), "jméno": (title,)}),
        ("row 4", "bad-record"),
        ("row 5", {"id": ("9",), "jméno": ("Příliš žluťoučký\nkůň",), "rok": ("1420",)}),
    ]


def test_csv_may_have_doubled_columns_none_at_the_end_and_any_line_ends() -> None:
    for end in ("\n", "\r\n", "\r"):
        rows = ["id,title,subject,subject,", '1,T,a,"b\nc",', "2,U,,d", "3,V", ""]
        assert read(end.join(rows).encode(), "csv") == [
            ("row 2", {"id": ("1",), "title": ("T",), "subject": ("a", "b\nc")}),
            ("row 3", {"id": ("2",), "title": ("U",), "subject": ("d",)}),
            ("row 4", "bad-record"),
        ]
    assert recognise(b"id,t,\n1,a,\n2,b,\n") == next(form for form in FORMS if form.name == "csv")


def test_a_row_that_cannot_be_read_harms_no_other() -> None:
    data = b'id,b\n1,\xff\n2,"x"y\n3,z\x01\n4,w\n'
    places = read(data, "csv", encoding="utf-8")
    assert [place for place, content in places if content == "bad-record"] == ["row 2", "row 3"]
    assert places[2:] == [
        ("row 4", "repaired-record"),
        ("row 4", {"id": ("3",), "b": ("z",)}),
        ("row 5", {"id": ("4",), "b": ("w",)}),
    ]
    mostly = "id,b\n1,čéěřšžýáí\n".encode() + b"2,\xff\n"
    assert [content for _, content in read(mostly, "csv")][1:] == ["bad-record"]
    with pytest.raises(RecordsError, match="quote"):
        read(b'id,b\n1,"x\n2,y\n', "csv")
    with pytest.raises(RecordsError, match="encoding"):
        read(data, "csv", encoding="nope")


@pytest.mark.parametrize(
    "data",
    [
        b"https://a.org/\nhttps://b.org/\n",
        b"https://a.org/,1\nhttps://b.org/,2\n",
        b'org,a)/ 20200101000000 {"url": "http://a.org/", "mime": "text/html"}\n' * 3,
        b" CDX N b a m s k r M S V g\norg,a)/ 2020 http://a.org/ text/html 200 X - - 1 2 f\n",
        b"Template-Type: ReDIF-Paper 1.0\nAuthor-Name: A, B\nHandle: RePEc:a:b:1\n",
        b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n",
        b'[["urlkey","timestamp"],["a","b"]]',
        b"id\n1\n2\n",
        b"",
    ],
)
def test_what_other_sources_read_is_not_taken(data: bytes) -> None:
    assert recognise(data) is None
    assert recognise(b"PK\3\4" + data, is_declared=True) is None


def test_json_is_read_from_arrays_lines_and_single_objects() -> None:
    book, essay = {"a": 1.50, "b": {"c": ["x", {"d": True}]}}, {"a": "ž", "n": None}
    columns = [{"a": ("1.5",), "b.c": ("x",), "b.c.d": ("true",)}, {"a": ("ž",)}]
    lines = f"{json.dumps(book)}\n\n{{bad\n{json.dumps(essay)}\n".encode()
    assert read(lines, "json") == [
        *(("line 1", columns[0]), ("line 3", "bad-record"), ("line 4", columns[1]))
    ]
    expected = [("record 1", columns[0]), ("record 2", columns[1])]
    for text in (
        json.dumps([book, essay], indent=1),
        json.dumps(book, indent=1) + json.dumps(essay),
    ):
        assert read(text.encode("utf-8-sig"), "json") == expected
    assert read(json.dumps({"x": {"y": [book, essay]}}).encode(), "json", element="x.y") == expected
    for indent in (1, None):
        text = json.dumps({"meta": 2, "data": [book, essay]}, indent=indent)
        assert read(f"{text}\n".encode(), "json") == expected
    long = json.dumps({"a": "x" * 200_000})
    text = f'{long}\n{{bad\n{{"a": "ž"}}\n'
    assert read(text.encode(), "json")[1:] == [("line 2", "bad-record"), ("line 3", {"a": ("ž",)})]
    for cut in (b'[{"a": 1},', b'[{"a": "x', b'{\n"a": 1'):
        with pytest.raises(RecordsError, match="JSON"):
            read(cut, "json")


def test_a_record_of_json_with_members_of_its_own_is_no_envelope() -> None:
    own = {"id": "x1", "title": "T", "items": [{"barcode": "1", "id": "i1"}]}
    columns = {"id": ("x1",), "title": ("T",), "items.barcode": ("1",), "items.id": ("i1",)}
    assert read(json.dumps(own, indent=1).encode(), "json") == [("record 1", columns)]
    two = json.dumps({"data": [{"a": "1"}]}, indent=1) * 2
    expected = [(f"record {n}", {"data.a": ("1",)}) for n in (1, 2)]
    assert read(two.encode(), "json") == expected
    answer = json.dumps({"data": [{"a": "1"}]}, indent=1) + " " * 100_000
    assert read(answer.encode(), "json") == [("record 1", {"a": ("1",)})]


def test_json_that_is_nested_too_deep_harms_no_other() -> None:
    deep = '{"a": ' + "[" * 30_000 + '"]\\"["' + "]" * 30_000 + "}"
    for shape in ("{}\n{}\n", "[{},{}]", "[\n{},\n{}]"):
        data = shape.replace("{}", "%s") % (deep, '{"b": "1"}')
        place = "line" if shape[0] == "{" else "record"
        expected = [(f"{place} 1", "bad-record"), (f"{place} 2", {"b": ("1",)})]
        assert read(data.encode(), "json") == expected
    with pytest.raises(RecordsError, match="no JSON"):
        read(deep.encode(), "json", element="a")


def test_a_line_that_is_too_long_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_module, "LONGEST", 100_000)
    data = '{"a": "1"}\n{"a": "%s"}\n{"a": "3"}' % ("x" * 3_000_000)
    expected = [*(("line 1", {"a": ("1",)}), ("line 2", "bad-record"), ("line 3", {"a": ("3",)}))]
    assert read(data.encode(), "json") == expected
    data = "id,b\n1,x\n2" + ",x" * 2_000_000 + "\n3,y\n"
    assert read(data.encode(), "csv") == [
        *(("row 2", {"id": ("1",), "b": ("x",)}), ("row 3", "bad-record")),
        ("row 4", {"id": ("3",), "b": ("y",)}),
    ]


def test_marc_in_json_is_marc() -> None:
    fields = (MarcField("001", "", "n1"), MarcField("245", "1 ", "", (("a", "A &"), ("a", "B"))))
    record = MarcRecord(str(MARC["leader"]), fields)
    for text in (json.dumps(MARC), json.dumps([MARC], indent=1)):
        (_, fault), (_, content) = read(text.encode(), "json")
        assert (fault, content) == ("repaired-record", record)
    damaged = json.dumps([{"leader": "", "fields": [{"245": {}}]}, {**MARC, "leader": "short"}])
    faults = [content for _, content in read(damaged.encode(), "json")][:3]
    assert faults == ["bad-record", "repaired-record", "repaired-record"]


def test_parquet_and_queries_are_read(tmp_path: Path) -> None:
    table = {
        "id": [1, 2],
        "l": [["a", "b"], []],
        "d": [date(2026, 1, 2), None],
        "s": [{"x": 1}] * 2,
    }
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    form = recognise((tmp_path / "t.parquet").read_bytes())
    assert form is not None
    first, second = form.read(tmp_path / "t.parquet", ReadOptions())
    assert isinstance(first, SourceRecord)
    assert first.content == {"id": ("1",), "l": ("a", "b"), "d": ("2026-01-02",), "s.x": ("1",)}
    with pytest.raises(RecordsError, match="file"):
        next(form.read(io.BytesIO(b"PAR1"), ReadOptions()))
    query = "SELECT * FROM 't.parquet' ORDER BY id"
    assert [*read_query(query, tmp_path)] == [first, second]
    options = ReadOptions(is_known=lambda digest: digest == first.digest)
    assert [*read_query(query, tmp_path, options)] == [KnownRecord(first.digest), second]
    assert isinstance(next(read_query("SELECT NULL", tmp_path)), RecordFault)
    for wrong in ("DROP TABLE a", "SELECT nothing", "SELECT * FROM 'none.csv'"):
        with pytest.raises(RecordsError, match="query"):
            next(read_query(wrong, tmp_path))
