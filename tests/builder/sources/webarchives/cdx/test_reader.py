"""Indexes as they come: compressed, concatenated, damaged, endless, in every form."""

import gzip
import hashlib
import io
import json
import random
import time
import zlib
from itertools import accumulate

import pytest

from builder.intake.captures import FAULT_CODES
from builder.sources.webarchives.cdx import block as index_block
from builder.sources.webarchives.cdx import notation, reader
from builder.sources.webarchives.cdx.lines_sql import LONGEST
from builder.sources.webarchives.cdx.text import find_form, is_secondary
from builder.sources.webarchives.rules import DocumentRules
from functions.snapshot.oai_name import capture_identity
from tests.builder.indexes import ALL, NOTHING, SHA1, Read, line

pytestmark = pytest.mark.shared(2)

LINES = [line(f"http://www.a.cz/{n}", offset=str(n * 100)) for n in range(50)]
PLAIN = b"\n".join(LINES) + b"\n"
CDX = b"cz,a)/x 20080430204826 http://www.a.cz/x text/html 200 %s - - 1043 333 a.warc.gz" % (
    SHA1.encode()
)
HEADER = b" CDX N b a m s k r M S V g"


def test_codes_are_in_the_table(tmp_path):
    data = b"\n".join(
        [line(), b"x", line(status="x"), line(date="20080431204826"), line(digest="x")]
    )
    read = Read(data, tmp_path)
    assert read.codes() == [
        "date-invalid",
        "digest-unreadable",
        "index-digest",
        "index-line-invalid",
        "index-value-invalid",
    ]
    assert set(read.codes()) <= set(FAULT_CODES)
    assert dict(read.given.skips) == {"damaged": 1}
    assert read.given.captures == 4
    starts = {fault["code"]: fault["place"] for fault in read.faults}
    assert data[starts["index-line-invalid"] :].startswith(b"x\n")
    assert b'"status": "x"' in data[starts["index-value-invalid"] :].partition(b"\n")[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [400, 1500, 1 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_and_threads_are_not_to_be_seen(tmp_path, size, threads):
    some = b"\n".join(LINES[:10]) + b"\n"
    data = some + b"junk\n" + some.replace(b"/page", b"/other")
    whole = Read(data, tmp_path / "whole")
    read = Read(data, tmp_path / "cut", size=size, threads=threads)
    assert read.identities() == whole.identities()
    assert read.faults == whole.faults
    assert read.given.skips == whole.given.skips


def test_the_same_bytes_come_out(tmp_path):
    first, second = (
        Read(PLAIN, tmp_path / name, size=4000, threads=n) for name, n in (("a", 1), ("b", 2))
    )
    for path in first.folder.iterdir():
        assert path.read_bytes() == (second.folder / path.name).read_bytes()
    assert len(list(first.folder.iterdir())) > 3


def test_progress_adds_up(tmp_path):
    packed = b"".join(gzip.compress(PLAIN) for _ in range(3))
    read = Read(packed, tmp_path, size=4000)
    assert sum(seen for seen, _ in read.told) == len(packed)
    assert sum(captures for _, captures in read.told) == read.given.captures


def zipnum(lines, block=7):
    return b"".join(
        gzip.compress(b"\n".join(lines[at : at + block]) + b"\n")
        for at in range(0, len(lines), block)
    )


def test_zipnum_and_gzip(tmp_path):
    plain = Read(PLAIN, tmp_path / "plain")
    for name, data in {
        "gzip": gzip.compress(PLAIN),
        "zipnum": zipnum(LINES),
        "padded": zipnum(LINES) + b"\0" * 700,
        "empty": gzip.compress(b"") + zipnum(LINES),
    }.items():
        read = Read(data, tmp_path / name)
        assert read.form == "cdxj.gz"
        assert read.identities() == plain.identities()
        assert not read.faults


def test_much_text_of_little_gzip(tmp_path):
    data = b"\n".join((LINES[0], b" " * 5_000_000, LINES[1]))
    read = Read(gzip.compress(data), tmp_path, size=1 << 20)
    assert read.given.captures == 2
    assert read.codes() == ["index-line-invalid"]


def test_gzip_truncated_by_some_bytes(tmp_path):
    read = Read(zipnum(LINES)[:-30], tmp_path)
    assert 43 <= read.given.captures < 50
    assert "gzip-truncated" in read.codes()


def test_gzip_with_a_damaged_member(tmp_path):
    data = bytearray(zipnum(LINES))
    first = len(gzip.compress(b"\n".join(LINES[:7]) + b"\n"))
    data[first + 40 : first + 60] = b"\xff" * 20
    read = Read(bytes(data), tmp_path)
    assert "gzip-corrupt" in read.codes()
    assert 43 <= read.given.captures < 50


def test_a_line_too_long(tmp_path):
    long = line("http://www.a.cz/" + "x" * LONGEST)
    for size in (1 << 18, 1 << 24):
        read = Read(b"\n".join([LINES[0], long, LINES[1]]), tmp_path / str(size), size=size)
        assert read.given.captures == 2
        (fault,) = read.faults
        assert (fault["code"], fault["place"]) == ("index-line-invalid", len(LINES[0]) + 1)


def test_faults_are_bounded(tmp_path):
    many = index_block.MOST + 500
    data = PLAIN + b"junk\n" * many + line(status="x")
    for size in (3000, 1 << 20):
        read = Read(data, tmp_path / str(size), size=size)
        assert read.given.codes["index-line-invalid"] == many
        assert len(read.faults) == read.given.faults == index_block.MOST + 2
        (cut,) = [fault for fault in read.faults if fault["code"] == "faults-cut"]
        assert cut["detail"] == "500 more of index-line-invalid"


# Captures of one archive file that are alike: ordinals along the file, whatever the index's order.


def alike(*offsets, **values):
    return [line("http://www.a.cz/", offset=str(at), **values) for at in offsets]


def identity(ordinal):
    return capture_identity(b"http://www.a.cz/", "2008-04-30T20:48:26Z", 200, SHA1, ordinal)


def test_alike_captures_get_ordinals_by_offset(tmp_path):
    data = b"\n".join([*alike(900, 5), *LINES, *alike(70, 5, 900)])
    read = Read(data, tmp_path, size=2000)
    found = {
        c["warc_record_offset"]: c["identity"]
        for c in read.captures
        if c["url"] == "http://www.a.cz/"
    }
    assert found == {5: identity(0), 70: identity(1), 900: identity(2)}
    assert read.given.captures == len(read.captures) == 53
    assert dict(read.given.skips) == {"repeated": 2}
    assert not list(tmp_path.glob("twins*"))
    assert not list(tmp_path.glob("*.odd"))


def test_alike_captures_of_several_files_are_one_item(tmp_path):
    data = b"\n".join(alike(5) + alike(5, filename="b.warc.gz") + alike(6, filename=None))
    assert Read(data, tmp_path).identities() == [identity(0)] * 3


def test_alike_revisits_of_odd_urls(tmp_path):
    url = "http://www.a.cz/caf\udce9 x"
    values = {"mime": "warc/revisit", "date": "20080430204826123"}
    data = b"\n".join(line(url, offset=str(at), **values) for at in (9, 4))
    raw = b"http://www.a.cz/caf\xe9 x"
    expected = [capture_identity(raw, "2008-04-30T20:48:26Z", None, SHA1, n) for n in (0, 1)]
    assert Read(data, tmp_path).identities() == sorted(expected)


# Forms


def test_header_in_the_middle(tmp_path):
    other = b" CDX b a g V k m s N"
    moved = b"20080430204827 http://www.b.cz/x b.warc.gz 7 %s text/css 200 cz,b)/x" % SHA1.encode()
    data = b"\n".join([HEADER, CDX, other, moved, b"", HEADER, CDX.replace(b"/x", b"/y"), HEADER])
    for size in (150, 1 << 20):
        read = Read(data, tmp_path / str(size), size=size)
        assert read.form == "cdx"
        assert sorted(c["url"] for c in read.captures) == [
            "http://www.a.cz/x",
            "http://www.a.cz/y",
            "http://www.b.cz/x",
        ]
        assert not read.faults


def test_cdx_in_an_url_is_no_header(tmp_path):
    data = b"\n".join([HEADER, CDX.replace(b"/x", b"/CDX"), CDX.replace(b"cz,a)/x", b"CDX")])
    assert Read(data, tmp_path).given.captures == 2


def test_unix_dates_are_those_of_the_archive(tmp_path):
    """As of wpull and grab-site, whose other fields are those of the archive."""
    unix = b" CDX a b m s k S V g u\nhttp://www.a.cz/x 1209588506 text/html 200 %s 9 3 a.warc.gz u"
    read = Read(unix % SHA1.encode(), tmp_path / "unix")
    usual = Read(b"\n".join([HEADER, CDX]), tmp_path / "usual")
    assert [c["fetch_date"] for c in read.captures] == ["2008-04-30T20:48:26Z"]
    assert read.identities() == usual.identities()
    assert read.codes() == ["date-unix", "index-header-invalid"]


def test_a_cdxj_file_that_begins_with_a_message(tmp_path):
    read = Read(b"<urlopen error [Errno -3]>\n" + line() + b"\n", tmp_path)
    assert (read.form, read.given.captures) == ("cdxj", 1)
    assert [(fault["code"], fault["place"]) for fault in read.faults] == [("index-line-invalid", 0)]
    assert find_form(b"One line of three is no index:\n" * 2 + line()) is None


def test_a_body_without_a_method_is_of_a_post(tmp_path):
    key = "cz,a)/page?%s=eyJhIjoxfQ=="
    lines = [
        line(key=key % "__wb_post_data"),
        line(key=key % "__warc_post_data", offset="4"),
        line("http://www.a.cz/page?__wb_post_data=own", key="cz,a)/page?__wb_post_data=own"),
    ]
    read = Read(b"\n".join(lines), tmp_path)
    assert [(c["fetch_method"], c["url_surtkey"]) for c in read.captures] == [
        ("POST", "cz,a)/page?__wb_method=post&__wb_post_data=eyjhijoxfq=="),
        ("POST", "cz,a)/page?__warc_post_data=eyjhijoxfq==&__wb_method=post"),
        (None, "cz,a)/page?__wb_post_data=own"),
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("separator", [b" ", b"\t"])
def test_forms_without_a_header(tmp_path, separator):
    values = {
        "N": "cz,a)/x",
        "A": "a.cz/x",
        "b": "20080430204826",
        "a": "http://www.a.cz/x",
        "m": "text/html",
        "s": "200",
        "k": SHA1,
        "r": "-",
        "M": "-",
        "S": "1043",
        "V": "333",
        "g": "a.warc.gz",
        "e": "192.0.2.1",
        "c": SHA1,
        "v": "333",
        "n": "1043",
    }
    for form in notation.FORMS:
        data = separator.join(values[letter].encode() for letter in form.split())
        read = Read(data, tmp_path / form.replace(" ", ""))
        assert read.form == "cdx"
        assert [f["done"] for f in read.faults] == [f"read as {form}"]
        (found,) = read.captures
        assert (found["url"], found["content_digest"]) == ("http://www.a.cz/x", SHA1)
        if "g" in form:
            assert (found["warc_filename"], found["warc_record_offset"]) == ("a.warc.gz", 333)


def test_outbackcdx_lines_with_what_the_original_is(tmp_path):
    data = CDX + b" 500 600 original.warc.gz\n" + CDX.replace(b"/x", b"/y")
    read = Read(data, tmp_path)
    assert [c["warc_filename"] for c in read.captures] == ["a.warc.gz"] * 2


def test_a_url_with_raw_spaces(tmp_path):
    data = b"\n".join([HEADER, CDX.replace(b"a.cz/x", b"a.cz/x y  z"), CDX + b" what is this now"])
    read = Read(data, tmp_path)
    assert [c["url_bytes"] for c in read.captures] == [b"http://www.a.cz/x y  z"]
    assert read.codes() == ["index-line-invalid"]


@pytest.mark.parametrize("header", [b" CDX N b m s k", b" CDX N a m"])
def test_a_header_that_lacks_what_is_needed(tmp_path, header):
    read = Read(b"\n".join([header, CDX, CDX, HEADER, CDX]), tmp_path)
    assert read.codes() == ["index-header-invalid"]
    assert dict(read.given.skips) == {"damaged": 2}
    assert read.given.captures == 1


def test_letters_that_mean_nothing(tmp_path):
    read = Read(b"\n".join([b" CDX N b a W", b"k 20080430204826 http://a.cz/ ?"]), tmp_path)
    assert read.codes() == ["index-digest", "index-header-invalid"]
    assert read.given.captures == 1


DIALECTS = {
    "pywb": line(),
    "numbers": line(status=200, length=1043, offset=333),
    "www in the key": line(key="cz,a,www)/page"),
    "meta lines": b'!meta 0 {"format": "cdxj"}\n!x\n' + line(),
    "windows": line() + b"\r",
    "webrecorder": line(
        date="20080430204826000",
        status=200,
        recordDigest="sha256:" + "0" * 64,
        digest="sha1:" + SHA1,
    ),
    "commoncrawl": line(
        status="200",
        languages="ces",
        charset="UTF-8",
        **{"mime-detected": "text/plain"},
        filename="a/b/a.warc.gz",
    ),
    "openwayback": b"!OpenWayback-CDXJ 1.0\n(cz,a,)/page 2008-04-30T20:48:26Z "
    + SHA1.encode()
    + b' response {"uri":"http://www.a.cz/page","hsc":200,"mct":"text/html","rle":1043,"ref":"warcfile:a.warc.gz#333"}',
    "openwayback, other order": b"(cz,a,)/page 2008-04-30T20:48:26Z response "
    b'{"uri":"http://www.a.cz/page","hsc":"200","mct":"text/html","rle":1043,"sha":"%s",'
    b'"ref":"warcfile:a.warc.gz#333"}' % SHA1.encode(),
    "escapes": line().replace(b"http:", b"http\\u003a"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DIALECTS)
def test_dialects(tmp_path, name):
    read = Read(DIALECTS[name] + b"\n", tmp_path)
    assert read.form == "cdxj"
    assert not read.faults
    (found,) = read.captures
    assert found["identity"] == capture_identity(
        b"http://www.a.cz/page", "2008-04-30T20:48:26Z", 200, SHA1
    )
    expected = {
        "url": "http://www.a.cz/page",
        "url_surtkey": "cz,a)/page",
        "content_mime_type": "text/html",
        "warc_filename": "a.warc.gz",
        "warc_record_offset": 333,
        "warc_record_length": 1043,
        "content_length": None,
        "content_languages": None,
        "content_charset": None,
        "content_charset_source": None,
        "content_mime_detected": None,
        "title": None,
    }
    assert {key: found[key] for key in expected} == expected


_OTHER = [True, {"a": 1}, ["x"], [], {}, 1.5, "\ud800", 10**40, [[[[]]]]]


def test_values_of_other_forms(tmp_path):
    keys = ["url", "mime", "status", "digest", "length", "offset", "filename"]
    some = [(key, value) for key in keys for value in _OTHER]
    lines = [line(**{"offset": str(n), key: value}) for n, (key, value) in enumerate(some)]
    lines = [line("http://www.a.cz/good"), *lines]
    read = Read(b"\n".join(lines), tmp_path)
    assert read.given.captures == 1 + len(some) - len(_OTHER)  # without a URL there is none
    starts = [0, *accumulate(len(one) + 1 for one in lines)]
    places = {fault["place"] for fault in read.faults if fault["place"] is not None}
    assert places == set(starts[1:-1])


def test_endless_nesting_is_a_fault(tmp_path):
    deep = line().replace(b'"text/html"', b"[" * 100_000)
    read = Read(b"\n".join([line(), deep]), tmp_path)
    assert read.codes() == ["index-line-invalid"]


def test_what_is_no_capture_is_counted(tmp_path):
    lines = [
        line("dns:www.a.cz", mime="text/dns"),
        line("whois:a.cz"),
        line("filedesc://a.arc", mime="text/plain"),
        line("warcinfo:/a.warc.gz/x", mime="warc-info"),
        line(mime="warc/request"),
        line(mime="warc/metadata"),
        line("urn:pageinfo:http://a.cz/"),
        line("metadata://a/b"),
        line(mime="warc/revisit", status=None),
        line(status="302"),
        line(status="404"),
        line("http://a.cz/..//x", status="404"),
        line(mime="warc/conversion"),
    ]
    read = Read(b"\n".join(lines), tmp_path, DocumentRules())
    assert dict(read.given.skips) == {
        "dns": 1,
        "whois": 1,
        "filedesc": 1,
        "warcinfo": 1,
        "request": 1,
        "metadata": 1,
        "pageinfo": 1,
        "crawl-log": 1,
        "redirect": 1,
        "error": 2,
        "conversion": 1,
    }
    assert [c["warc_record_type"] for c in read.captures] == ["revisit"]


def test_what_cdxj_indexer_lists_of_records_that_are_no_documents(tmp_path):
    """It gives the media type of a record's block, and names neither type nor status."""
    lines = [
        line(mime="text/anvl", status=None),  # metadata of Heritrix, before WARC 1.0
        line(mime="application/warc-fields", status=None),
        line(mime="Text/ANVL; charset=x", status="-"),
        line(mime="application/x-www-form-urlencoded", status=None),
        line(mime="multipart/form-data", status=None),
        line(mime=None, status=None, digest="sha1:" + NOTHING),
        line(mime="-", status="-", digest="sha256:" + hashlib.sha256(b"").hexdigest()),
    ]
    left_out = Read(b"\n".join(lines), tmp_path / "left-out")
    assert left_out.captures == []
    assert dict(left_out.given.skips) == {"metadata": 3, "request": 4}
    documents = [
        line(mime="text/anvl", status="200"),
        line(mime="text/plain", status=None),
        line(mime=None, status=None),
        line(mime=None, status="204", digest=NOTHING),
        line(mime="unk", status=None, digest=NOTHING),
        line(mime="warc/revisit", status=None, digest=NOTHING),
    ]
    documents = [one.replace(b"333", b"%d" % n) for n, one in enumerate(documents)]
    published = Read(b"\n".join(documents), tmp_path / "published")
    assert len(published.captures) == len(documents)


def test_digests_that_are_no_sha1_are_told_of_once(tmp_path):
    lines = [line(digest="sha-256:" + "0A" * 32), line(digest=None), line(digest="0a" * 16), line()]
    lines += [line(digest="sha256:" + "0b" * 32, mime="warc/revisit")]
    read = Read(b"\n".join(lines), tmp_path, size=600)
    (fault,) = read.faults
    assert (fault["code"], fault["detail"], fault["place"]) == ("index-digest", "3 captures", None)
    assert {c["content_digest"] for c in read.captures} == {
        "sha256:" + "0a" * 32,
        None,
        "md5:" + "0a" * 16,
        SHA1,
        "sha256:" + "0b" * 32,
    }


def test_sets_of_the_run_and_of_rules(tmp_path):
    sets = ("collection:a", "collection:b:c")
    lines = [line(), line("http://www.a.cz/a/../b")]
    read = Read(b"\n".join(lines), tmp_path, sets=sets)
    assert [c["sets"] for c in read.captures] == [[*sets, "domain:cz:a:www", "mime:text:html"]] * 2


NOT_INDEXES = [
    b"",
    b"WARC/1.0\r\nWARC-Type: response\r\n",
    b"filedesc://a.arc 192.0.2.1 20080430204826 text/plain 5\n1 0 A\n",
    b"http://www.a.cz/ 192.0.2.1 20080430204826 text/html 1043\n",
    b"http://a.cz/ 192.0.2.1 20080430204826 text/html 200 %s - 12 a.arc 1043\n" % SHA1.encode(),
    b"cz,a)/ 20080430204826\tcdx-00000.gz\t0\t188224\t1\n",
    b"hello world",
    b'{"a": 1}\n',
    b"CDX",
    b" CDX \n",
]


@pytest.mark.parametrize("data", NOT_INDEXES)
def test_what_is_no_index(data):
    assert find_form(data) is None
    assert find_form(gzip.compress(data)) is None


@pytest.mark.parametrize(
    ("data", "is_one"),
    [
        (b"cz,a)/ 20080430204826\tcdx-00000.gz\t0\t188224\t1\n", True),
        (b"!meta 0 {}\ncz,a)/ 20080430204826\tpart-a\t0\t188224", True),
        (b"cz,a)/ 20080430204826\tcdx-00000.gz\t0\t188224\tx\n", False),
        (b"cz,a)/ 20080430204826\tcdx-00000.gz\t0\n", False),
        (line(), False),
        (b"a\tb\tc\t1\t2\n", False),
        (b"", False),
    ],
)
def test_a_secondary_index_is_known(data, is_one):
    assert is_secondary(data) is is_one


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_arbitrary_bytes_raise_nothing(tmp_path, seed):
    draw = random.Random(seed)
    data = bytearray(gzip.compress(PLAIN, 0) if seed % 2 else PLAIN)
    for _ in range(20):
        at = draw.randrange(len(data))
        data[at : at + draw.randint(0, 9)] = draw.randbytes(draw.randint(0, 9))
    read = Read(bytes(data), tmp_path)
    assert read.given.captures == len(read.captures)
    assert set(read.codes()) <= set(FAULT_CODES)


def test_bytes_that_zlib_holds_back(tmp_path):
    text = PLAIN * 40
    assert Read(zlib.compress(text, wbits=31), tmp_path).given.captures == 50


def test_an_interrupt_ends_it_at_once(tmp_path):
    data = PLAIN.replace(b"/page", b"/p") * 500

    def interrupt(*_):
        raise KeyboardInterrupt

    began = time.monotonic()
    what = index_block.IndexFile("i", tmp_path, "0", ALL)
    with pytest.raises(KeyboardInterrupt):
        reader.read(io.BytesIO(data), what, "cdxj", 2, interrupt, 1 << 20)
    assert time.monotonic() - began < 20


def test_json_that_a_name_is_in_twice(tmp_path):
    twice = line().replace(b'{"url"', b'{"url": "http://first.cz/", "url"')
    (found,) = Read(twice, tmp_path).captures
    assert found["url"] == "http://first.cz/"
    assert json.loads(twice.partition(b" {")[2].join([b"{", b""]))["url"] != found["url"]
