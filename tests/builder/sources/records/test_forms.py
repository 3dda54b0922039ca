"""Whatever bytes a file has: it is read, with faults, or refused by one error."""

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from builder.sources.records.forms import FORMS, recognise
from builder.sources.records.forms.form import FileForm
from builder.sources.records.record import ReadOptions, RecordsError, SourceRecord
from tests.builder.sources.records import test_iso2709, test_xml

READ = [form for form in FORMS if form.name != "parquet"]
SAMPLES = {
    "marc": test_iso2709.marc(1) * 3,
    "xml": test_xml.collection(*map(test_xml.marc, range(3))),
    "json": b'[{"leader": "'
    + b"0" * 24
    + b'", "fields": [{"001": "n"}]}, {"a": {"b": [1.0, null]}}]',
    "csv": b'id;name\n1;"a"\n2;\xc5\xa1\n',
}
PIECES = [
    b"<",
    b"<?xml encoding='zlib'?>",
    b"<a:b/>",
    b"<![CDATA[",
    b"\x1d",
    b"\x1f",
    b'"',
    b"\xff",
]


@pytest.mark.parametrize("form", READ, ids=lambda form: form.name)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(form: FileForm, data: st.DataObject) -> None:
    sample = SAMPLES[form.name]
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(sample)))
        piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=3))
        sample = sample[:at] + piece + sample[at + data.draw(st.integers(0, 40)) :]
    for every in {form, recognise(sample), recognise(sample, is_declared=True)}:
        if every is None or every not in READ:
            continue
        with suppress(RecordsError):
            for item in every.read(io.BytesIO(sample), ReadOptions()):
                if isinstance(item, SourceRecord) and item.xml:
                    etree.fromstring(item.xml.encode())
