"""The order of versions: texts that sort as the platform's versions do, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.ingest import version_order

NUMBERS = st.lists(st.integers(0, 10**12 - 1), min_size=1, max_size=8)


def dotted(numbers: list[int]) -> str:
    return ".".join(map(str, numbers))


@given(NUMBERS, NUMBERS)
def test_dotted_versions_sort_as_their_numbers(one: list[int], two: list[int]) -> None:
    first, second = version_order("dataverse", dotted(one)), version_order("dataverse", dotted(two))
    assert first is not None
    assert second is not None
    assert (first < second, first == second) == (one < two, one == two)


@given(st.integers(1, 10**12 - 1), st.integers(1, 10**12 - 1))
def test_counts_and_ids_of_records_sort_as_numbers(one: int, two: int) -> None:
    for first, second in (
        (version_order("zenodo", "9", one), version_order("zenodo", "8", two)),
        (version_order("zenodo", str(one)), version_order("zenodo", str(two))),
    ):
        assert first is not None
        assert second is not None
        assert (first < second) == (one < two)


@given(st.text(), st.none() | st.text(), st.none() | st.integers(0))
def test_any_version_has_an_order_or_none(platform: str, version: str | None, index: int) -> None:
    found = version_order(platform, version, index)
    assert found is None or found[:2] in ("i:", "n:", "r:")


@pytest.mark.parametrize(
    ("platform", "version", "index", "kind"),
    [
        ("inveniordm", "2bk3z-5tq81", 3, "i:"),
        ("zenodo", "7078725", 3, "i:"),
        ("zenodo", "7078725", None, "r:"),
        ("dataverse", "4.1", None, "n:"),
        ("figshare", "3", None, "n:"),
        ("inveniordm", "2bk3z-5tq81", None, None),
        ("inveniordm", "12345", None, None),
        ("ckan", "2.0", None, None),
        ("osf", None, None, None),
        ("dataverse", "4.1-beta", None, None),
        ("dataverse", "", None, None),
        ("dataverse", "1" * 13, None, None),
        ("zenodo", "70.5", None, None),
        ("zenodo", "٣", None, None),
        ("zenodo", "1", 10**12, None),
    ],
)
def test_what_an_order_is_made_of(
    platform: str, version: str | None, index: int | None, kind: str | None
) -> None:
    found = version_order(platform, version, index)
    assert (found and found[:2]) == kind


def test_zeros_before_a_number_say_nothing() -> None:
    assert version_order("dataverse", "04.001") == version_order("dataverse", "4.1")
