"""The compressed index: a member for some lines, and a second index that leads to it."""

import gzip
import hashlib
import json

from builder.exports.wacz import package


def test_the_second_index_leads_to_each_member() -> None:
    lines = [b'cz,a)/%03d 20080430204826 {"url": "http://a.cz/"}\n' % n for n in range(25)]
    blocks = list(package.zipnum_blocks(lines, 10))
    assert [gzip.decompress(block).count(b"\n") for _, block in blocks] == [10, 10, 5]
    index = b"".join(block for _, block in blocks)
    assert gzip.decompress(index) == b"".join(lines)
    at = 0
    for number, (key, block) in enumerate(blocks):
        line = package.zipnum_entry(key, at, block)
        surt, date, told = line.split(b" ", 2)
        assert (surt, date) == (b"cz,a)/%03d" % (10 * number), b"20080430204826")
        place = json.loads(told)
        assert index[place["offset"] :][: place["length"]] == block
        assert place["digest"] == f"sha256:{hashlib.sha256(block).hexdigest()}"
        at += len(block)


def test_an_empty_index_has_no_member() -> None:
    assert list(package.zipnum_blocks([])) == []


def test_the_heading_names_the_index() -> None:
    key, number, told = package.zipnum_heading("index.cdx.gz").split(b" ", 2)
    assert (key, number) == (b"!meta", b"0")
    assert json.loads(told) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
