"""Bundles prove that records were in a snapshot, were deleted there, or were not there."""

import json
from pathlib import Path

import pytest

from builder.outputs.log.bundle import ProofBundle, verify_bundle
from builder.outputs.log.note import ProofError
from functions.snapshot import instant
from functions.snapshot.errors import MissingObject
from tests.builder.outputs.dumps.history import identify
from tests.builder.outputs.log.conftest import Signed


def test_a_record_is_present_deleted_or_absent(signed: Signed, tmp_path: Path) -> None:
    signed.publish(*range(200))
    first = instant.to_text(signed.world.clock())
    signed.world.clock.sleep(60)
    signed.publish(300, 5, title="Another")
    signed.world.clock.sleep(60)
    signed.world.withdraw(identify(5), "a request", **signed.settings)
    then = signed.verify(identify(5), first)
    assert (then.present, then.deleted, then.row and then.row["title"]) == (True, False, "Page 5")
    assert (then.snapshot, then.effective, then.datestamp) == (1, first, first)
    now = signed.verify(identify(5))
    assert (now.snapshot, now.present, now.deleted, now.until) == (3, True, True, None)
    assert now.row
    assert now.row["reason"] == "a request"
    assert "title" not in now.row
    assert "Page 5" not in signed.prove(identify(5)).to_json().decode()
    assert not signed.verify(identify(300), first).present
    assert signed.verify(identify(300)).present
    assert not signed.verify(identify(9999)).present

    def check(bundle: ProofBundle) -> str:
        done = signed.check(bundle.to_json(), tmp_path)
        assert not done.stderr, done.stderr
        return done.stdout

    for identifier, when, state in (
        (identify(5), first, "present in snapshot 1"),
        (identify(5), None, "deleted in snapshot 3"),
        (identify(9999), None, "absent in snapshot 3"),
    ):
        assert f"is {state}\n" in check(signed.prove(identifier, when))
    before = signed.prove(identify(5), first)
    signed.world.withdraw(identify(5), "a request", purge=True, **signed.settings)
    with pytest.raises(MissingObject, match="snapshot 1 was retired"):
        signed.prove(identify(5), first)
    assert "is present in snapshot 1\n" in check(before)
    assert signed.verify(identify(5)).deleted


def test_a_changed_bundle_proves_nothing(signed: Signed, tmp_path: Path) -> None:
    """Each value of a bundle is altered in turn."""
    signed.publish(*range(200))
    signed.world.clock.sleep(60)
    first = instant.to_text(signed.world.clock())
    signed.publish(300)
    bundle = json.loads(signed.prove(identify(7), first).to_json())
    assert verify_bundle(ProofBundle.parse(json.dumps(bundle).encode()), [signed.key]).present
    places = list(leaves(bundle, ()))
    assert len(places) > 25
    for place in places:
        altered = json.loads(json.dumps(bundle))
        alter(altered, place)
        with pytest.raises(ProofError):
            verify_bundle(ProofBundle.parse(json.dumps(altered).encode()), [signed.key])
    alter(bundle, ("records", 0, "text"))
    assert signed.check(json.dumps(bundle).encode(), tmp_path).returncode == 1


def leaves(value: object, place: tuple[object, ...]) -> list[tuple[object, ...]]:
    if isinstance(value, dict):
        return [p for name, one in value.items() for p in leaves(one, (*place, name))]
    if isinstance(value, list):
        return [p for number, one in enumerate(value) for p in leaves(one, (*place, number))]
    return [place]


def alter(document: object, place: tuple[object, ...]) -> None:
    *way, last = place
    for step in way:
        document = document[step]  # type: ignore[index]
    value = document[last]  # type: ignore[index]
    document[last] = (  # type: ignore[index]
        value + 1
        if isinstance(value, int)
        else None
        if value is None
        else ("B" if value[5] == "A" else "A").join((value[:5], value[6:]))
    )


def test_the_json_of_a_record_is_that_of_any_encoder(signed: Signed) -> None:
    """So other programs can compute the digest from the columns."""
    odd = 'á"\\/\u2028\U0001f600<&>\x7f'
    signed.publish(1, title=odd, url_bytes=b"http://\xff/", refers_to_url="")
    verdict = signed.verify(identify(1))
    assert verdict.row
    assert (verdict.row["title"], verdict.row["url_bytes"]) == (odd, b"http://\xff/".hex().upper())
    (record,) = signed.prove(identify(1)).records
    assert record.text == json.dumps(verdict.row, ensure_ascii=False, separators=(",", ":"))
    assert None not in verdict.row.values()
