"""Captures whose compressed member failed: marked, with no digest or identity of corrupt bytes."""

import gzip
import hashlib
from types import SimpleNamespace

import pytest

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives import backlog
from functions.archive import stream
from tests.builder.sources.webarchives.containers import (
    arc,
    captures,
    codes,
    events,
    filedesc,
    frame,
    http,
    members,
    sha1,
    warc,
    zipped,
)

BODY = b"<title>One</title>" + b"some text " * 40
SHA1 = sha1(BODY)
DECLARED = b"WARC-Payload-Digest: sha1:" + SHA1.encode()
PLAIN = warc(http(BODY))
TOLD = warc(http(BODY), DECLARED)


def spoil(member, at=-8, bit=1):
    """Flip a bit, of the checksum unless told otherwise."""
    changed = bytearray(member)
    changed[at] ^= bit
    return bytes(changed)


def test_a_damaged_capture_keeps_the_declared_digest_and_its_identity():
    for whole in (zipped(TOLD), frame(TOLD)):
        damaged = spoil(whole, -8 if whole.startswith(b"\x1f") else -1)
        (one,), (other,) = captures(whole), captures(damaged)
        assert (one.content_damaged, one.content_digest) == (None, SHA1)
        assert (other.content_damaged, other.content_digest) == ("checksum", SHA1)
        assert other.identity == one.identity


@pytest.mark.parametrize("record", [PLAIN, TOLD, arc(http(BODY))], ids=["plain", "told", "arc"])
@pytest.mark.parametrize("pack", [zipped, frame])
def test_no_flipped_bit_gives_a_digest_of_corrupt_bytes(pack, record):
    whole = pack(record)
    (sound,) = captures(whole)
    identities = set()
    for at in range(12, len(whole)):
        for one in captures(spoil(whole, at, 1 << at % 8)):
            if one.url != sound.url or one.fetch_date != sound.fetch_date:
                assert one.content_damaged
            elif one.content_damaged:
                assert one.content_digest in (None, SHA1) or record is TOLD
                identities.add((one.fetch_status, one.content_digest, one.identity))
            else:
                assert one.content_truncated or one.identity == sound.identity
    of_status = [i for status, digest, i in identities if status == 200 and digest is None]
    assert len(of_status) <= 1  # it does not follow from the corrupt bytes
    assert identities


def test_compressed_data_that_breaks_within_the_payload():
    noise = b"".join(hashlib.sha512(b"%d" % n).digest() for n in range(1000))
    whole = zipped(warc(http(noise), b"WARC-Payload-Digest: sha1:" + b"A" * 32))
    (one,) = captures(spoil(whole, len(whole) // 2, 255))
    assert one.content_damaged in ("compression", "checksum")
    assert one.content_digest == "A" * 32


def test_a_declared_digest_that_is_there_proves_the_payload():
    sha256 = b"WARC-Payload-Digest: sha256:" + hashlib.sha256(BODY).hexdigest().encode()
    whole = zipped(warc(http(BODY), sha256))
    (one,) = captures(spoil(whole))
    assert (one.content_damaged, one.content_digest) == ("checksum", SHA1)
    assert one.identity == captures(whole)[0].identity


def test_records_that_share_a_damaged_member_are_all_marked():
    records = [warc(http(BODY + b"%d" % n), url=b"http://a.cz/%d" % (n // 2)) for n in range(6)]
    whole = zipped(b"".join(records))
    assert [one.content_damaged for one in captures(whole)] == [None] * 6
    found = captures(spoil(whole) + members([PLAIN]))
    assert [one.content_damaged for one in found] == ["checksum"] * 6 + [None]
    assert {one.content_digest for one in found[:6]} == {None}
    assert len({one.identity for one in found}) == 7  # by ordinals, for their digests are unknown
    again = captures(spoil(whole) + members([PLAIN]))
    assert [one.identity for one in again] == [one.identity for one in found]


def test_many_records_of_one_member_wait_for_its_end_on_the_disk(monkeypatch):
    monkeypatch.setattr(backlog, "_IN_MEMORY", 1000)
    records = [warc(http(b"%d" % n), url=b"http://a.cz/%d" % n) for n in range(90)]
    whole = gzip.compress(b"".join(records), 1, mtime=0)
    found = events(spoil(whole))
    marks = [e.content_damaged for e in found if hasattr(e, "content_damaged")]
    assert marks == ["checksum"] * 90
    assert [e.url for e in captures(whole)] == [f"http://a.cz/{n}" for n in range(90)]


def test_a_member_without_its_end_is_marked_unless_it_is_truncated():
    whole = zipped(PLAIN)
    (one,) = captures(whole[:-3])  # all of the payload, and no checksum
    assert (one.content_damaged, one.content_digest, one.content_truncated) == ("cut", None, None)
    (one,) = captures(whole[:-40])
    assert (one.content_damaged, one.content_truncated) == (None, "unspecified")


def test_a_healthy_neighbour_is_not_marked():
    broken = spoil(zipped(PLAIN.replace(b"WARC/1.0", b"WBRC/1.0")))  # begins no record
    one, other = captures(zipped(TOLD) + broken + zipped(PLAIN))
    assert (one.content_damaged, other.content_damaged) == (None, None)


def test_the_fault_says_which_digest_is_published():
    bad = warc(http(BODY), b"WARC-Payload-Digest: sha1:" + b"A" * 32)
    (fault,) = [
        e for e in events(spoil(zipped(bad))) if getattr(e, "code", "") == "digest-mismatch"
    ]
    assert fault.done == "published with the declared one"
    assert codes(zipped(filedesc())) == []


@pytest.mark.parametrize(
    ("pack", "filler", "most"),
    [(zipped, b"\0", 1), (zipped, b"\n", 20), (frame, b"\0", 1), (frame, b"\n", 18)],
)
def test_a_member_that_inflates_a_thousandfold_is_a_fault(monkeypatch, pack, filler, most):
    searched = 0
    pattern = stream.RECORD_START

    def search(data, at):
        nonlocal searched
        searched += len(data) - at
        return pattern.search(data, at)

    monkeypatch.setattr(stream, "RECORD_START", SimpleNamespace(search=search))
    bomb = pack(b"WARC/1.1\r\n" + filler * (70 << 20))
    found = list(events(pack(PLAIN) + bomb + pack(PLAIN)))
    assert sum(isinstance(one, Capture) for one in found) == 2
    faults = [one.code for one in found if isinstance(one, Fault)]
    assert ("zstd-corrupt" in faults) == (pack is frame)
    assert searched < most << 20
