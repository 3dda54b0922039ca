"""Revisits of real archives: as many find their original as was measured, whatever the order."""

from itertools import pairwise
from pathlib import Path

import pytest

from builder.intake.captures import Capture
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from tests.builder.conftest import World

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "webarchive"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real archives at {DATA}")

BL = "core/ukwa-disc__BL-2014032512"
FIRST = f"{BL}1225068-00000-32090~opera~8443.warc.gz"
SECOND = f"{BL}2341434-00000-32090~opera~8443.warc.gz"
AGNOSTIC = "hard/pywb__example-url-agnostic"


def captures(name: str) -> list[Capture]:
    rules = DocumentRules(redirects=True, errors=True)
    with (DATA / name).open("rb") as file:
        return [e for e in ArchiveReader(file, Path(name).name, rules) if isinstance(e, Capture)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["core/webarchivcz__example-20200623-crawler0.warc.gz"], [(3, 0)]),
        (["core/pywb__iana.warc.gz"], [(123, 0)]),
        (["core/pywb__dupes.warc.gz"], [(9, 8)]),
        ([FIRST, SECOND], [(0, 0), (55, 0)]),
        ([SECOND, FIRST], [(55, 55), (55, 0)]),
        ([f"{AGNOSTIC}-revisit.warc.gz", f"{AGNOSTIC}-orig.warc.gz"], [(1, 1), (1, 0)]),
    ],
    ids=["czech", "iana", "dupes", "british", "british-healed", "url-agnostic-healed"],
)
def test_as_many_are_resolved_as_was_measured(
    world: World, names: list[str], expected: list[tuple[int, int]]
) -> None:
    """Of each snapshot: how many revisits there are, and how many of them lack an original."""
    found, healed = [], []
    for name in names:
        built = world.add(captures(name))
        assert built.manifest is not None
        found.append((built.manifest.revisits, built.manifest.unresolved))
        healed.append(built.moved)
    assert found == expected
    assert healed[1:] == [max(0, a - b) for (_, a), (_, b) in pairwise(expected)]
