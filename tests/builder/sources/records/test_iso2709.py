"""ISO 2709 is read as pymarc reads it, and beside a damaged record the others are read."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymarc import Field, Indicators, MARCReader, Record, Subfield
from pymarc.marc8 import marc8_to_unicode

from builder.sources.records.forms import recognise
from builder.sources.records.forms.charsets import decode_marc8
from builder.sources.records.forms.iso2709 import read
from builder.sources.records.forms.marcxml import NAMESPACE, write_marcxml
from builder.sources.records.record import (
    KnownRecord,
    MarcField,
    MarcRecord,
    ReadOptions,
    RecordFault,
    RecordsError,
    SourceRecord,
)


def marc(number: int, title: str = "A title", leader: str = "00000nam a2200000   4500") -> bytes:
    record = Record(leader=leader, force_utf8=leader[9] == "a")
    record.add_field(Field("001", data=f"n{number}"))
    subfields = [Subfield("a", title), Subfield("c", "by <one> & another")]
    record.add_field(Field("245", Indicators("1", "0"), subfields))
    return unmarked(record) if leader[9] == " " else record.as_marc()


def unmarked(record: Record) -> bytes:
    """Return a record that does not declare UTF-8, as pymarc always does."""
    data = record.as_marc()
    return data[:9] + b" " + data[10:]


def read_all(data: bytes, **options: str) -> tuple[list[SourceRecord], list[RecordFault]]:
    items = [*read(io.BytesIO(data), ReadOptions(**options))]  # type: ignore[arg-type]
    records = [item for item in items if isinstance(item, SourceRecord)]
    return records, [item for item in items if isinstance(item, RecordFault)]


def content(record: SourceRecord) -> MarcRecord:
    assert isinstance(record.content, MarcRecord)
    return record.content


def names(data: bytes, **options: str) -> list[str]:
    return [content(record).fields[0].data for record in read_all(data, **options)[0]]


def test_fields_and_marcxml_are_those_of_the_record() -> None:
    data = b"\xef\xbb\xbf" + marc(1, "Čapek") + b"\r\n" + marc(2) + b"\x1a"
    (first, second), faults = read_all(data)
    assert faults == []
    assert content(first).fields == (
        MarcField("001", "", "n1"),
        MarcField("245", "10", "", (("a", "Čapek"), ("c", "by <one> & another"))),
    )
    assert '<subfield code="c">by &lt;one&gt; &amp; another</subfield>' in first.xml
    # Both forms, with and without characters to escape, name their schema (OAI-PMH, section 2.5).
    plain = write_marcxml(MarcRecord(content(first).leader, content(first).fields[:1]))
    for xml in (first.xml, plain):
        assert (
            f'xsi:schemaLocation="{NAMESPACE} http://www.loc.gov/' in xml.partition("<leader>")[0]
        )
    assert (second.place, second.deleted) == (f"record 2, byte {len(marc(1, 'Čapek')) + 5}", False)
    assert recognise(data) is not None
    packed = gzip.compress(data)
    assert [record.digest for record in read_all(packed)[0]] == [first.digest, second.digest]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"])), max_size=4))
def test_fields_are_those_that_pymarc_reads(titles: list[str]) -> None:
    data = b"".join(marc(number, title) for number, title in enumerate(titles))
    records, _ = read_all(data)
    for record, theirs in zip(records, MARCReader(data), strict=True):
        assert theirs is not None
        assert [tuple(part) for part in theirs["245"].subfields] == [
            *content(record).fields[1].subfields
        ]


def test_what_is_known_is_not_parsed_and_what_is_deleted_is_told() -> None:
    deleted = marc(2, leader="00000dam a2200000   4500")
    (_, record), _ = read_all(marc(1) + deleted)
    assert record.deleted
    options = ReadOptions(is_known=lambda digest: digest == record.digest)
    assert [*read(io.BytesIO(deleted), options)] == [KnownRecord(record.digest)]


@pytest.mark.parametrize(
    "damaged",
    [
        marc(2).replace(b"00", b"xx", 1),  # its length
        marc(2).replace(b"A title", b"A ti\x1dle"),
        marc(2)[:-9],  # its end is lost
        marc(2)[:3],
        marc(2, "long" * 99)[:50],
        marc(2)[:30] + b"??" + marc(2)[32:],
        marc(2)[:20] + b"\x1d",
        marc(2).replace(b"A title", b"A ti\xfft\xe9"),
        b"not MARC at all\x1d",
    ],
)
def test_the_neighbours_of_a_damaged_record_are_read(damaged: bytes) -> None:
    data = marc(1) + damaged + marc(3)
    assert [name for name in names(data) if name != "n2"] == ["n1", "n3"]
    records, faults = read_all(data)
    assert len(records) == 3 or faults
    assert all(fault.place.startswith("record 2, ") for fault in faults)


def test_wrong_entries_of_a_directory_are_led_by_the_ends_of_fields() -> None:
    characters = marc(1, "Čapek").decode()  # as if characters were counted, not bytes
    at = characters.index("245")
    shorter = f"245{int(characters[at + 3 : at + 7]) - 1:04}"
    data = (characters[:at] + shorter + characters[at + 7 :]).encode()
    (record,), (fault,) = read_all(data)
    assert content(record).fields[1].subfields[0] == ("a", "Čapek")
    assert (fault.code, fault.field) == ("repaired-record", "245")


def test_an_encoding_is_declared_by_the_record_or_by_the_user() -> None:
    plain = "00000nam  2200000   4500"
    cyrillic = marc(1, "x" * 6, plain).replace(b"x" * 6, "Привет".encode("cp866"))
    (record,), _ = read_all(cyrillic, encoding="cp866")
    assert content(record).fields[1].subfields[0] == ("a", "Привет")
    silent = marc(1, "x" * 10, plain).replace(b"x" * 10, "čéěřš".encode())
    assert content(read_all(silent)[0][0]).fields[1].subfields[0] == ("a", "čéěřš")
    for code, data in (("50  ", "Éé".encode()), ("01", b"\xc2E\xc2e"), ("89", b"\xc9\xe9\xc9\xe9")):
        general = "19961119d1996    ||||0itac" + code.ljust(4) + "    ba"
        unimarc = Record(leader=plain, force_utf8=False)
        unimarc.add_field(Field("001", data="u"))
        unimarc.add_field(Field("100", Indicators(" ", " "), [Subfield("a", general)]))
        unimarc.add_field(Field("200", Indicators("1", " "), [Subfield("a", "----")]))
        (record,), _ = read_all(unmarked(unimarc).replace(b"----", data))
        expected = "ЙйЙй" if code == "89" else "Éé"
        assert content(record).fields[2].subfields == (("a", expected),)


def test_a_file_that_is_cut_off_is_not_read_to_its_end() -> None:
    items = read(io.BytesIO(marc(1) + marc(2)[:-5]), ReadOptions())
    assert isinstance(next(items), SourceRecord)
    with pytest.raises(RecordsError, match="cut off"):
        next(items)
    with pytest.raises(RecordsError, match="its gzip is cut off"):
        [*read(io.BytesIO(gzip.compress(marc(1) * 9)[:-9]), ReadOptions())]


@given(st.binary(max_size=20))
def test_each_text_is_what_pymarc_reads(data: bytes) -> None:
    try:
        expected = marc8_to_unicode(data, hide_utf8_warnings=True)
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            decode_marc8(data)
    else:
        assert decode_marc8(data) == expected


def test_letters_precede_their_accents() -> None:
    assert decode_marc8(b"g\xe8en\xe2eral \xe1\xe8a \xe8") == "g\xebn\xe9ral \xe0\u0308 "
    assert decode_marc8(b"\x1b(N\x6b\x4e\x1b(B!") == "\u041a\u043d!"
