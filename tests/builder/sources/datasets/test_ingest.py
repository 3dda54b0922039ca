"""A request's way, step by step, over a platform and a strategy of the tests' own."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets import status
from builder.sources.datasets.ingest import version_order
from builder.sources.datasets.item import (
    ArchiveStrategyResult,
    FilesetPlatformItem,
    IngestOutcome,
)
from builder.sources.datasets.protocols import FilesetError
from functions.snapshot.errors import Conflict, DamagedStore, StoreError
from tests.builder.sources.datasets import fakes
from tests.builder.sources.datasets.fakes import Fakes, Process, archived
from tests.builder.sources.datasets.outcomes import file, item

URL = "https://doi.org/10.5/1"


def outcome(*answers: fakes.Answer, **more: object) -> tuple[IngestOutcome, Fakes]:
    made = Fakes()
    return made.ingest().process(made.give(URL, *answers), **more), made  # type: ignore[arg-type]


def test_one_small_file_is_kept_as_a_file() -> None:
    found, made = outcome(item("a.csv"))
    assert (found.status, found.strategy, found.code) == ("success-file", "web-file", "")
    assert found.at == "20261122100000"
    assert [f.status for f in found.archived.manifest] == ["verified"]
    assert found.resource is not None
    assert found.item is not None
    assert "1 file" in found.reason
    assert made.processed == ["41"]


def test_the_way_in_which_a_platform_listed_its_files_is_told() -> None:
    found, _ = outcome(item("a.csv", detail="links of the page list its files"))
    assert (found.status, found.detail) == ("success-file", "links of the page list its files")


def raising(error: Exception) -> Process:
    def failing(strategy: str, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        raise error

    return failing


@pytest.mark.parametrize("name", ["platform-embargoed", "platform-restricted", "platform-gone"])
def test_an_item_that_the_platform_refuses_is_told_with_its_metadata(name: str) -> None:
    refused = item(platform_status=name, until="2027-01-01", detail="until then")
    found, made = outcome(refused)
    assert (found.status, found.detail, found.item) == (name, "until then", refused)
    assert made.processed == []


@pytest.mark.parametrize("name", ["success", "platform-restricted"])
def test_every_item_is_told_with_the_order_of_its_version(name: str) -> None:
    found, _ = outcome(item("a.csv", platform_status=name, version="a", index=3))
    assert found.item.order == "i:000000000003"


def test_what_a_platform_raises_is_the_outcome() -> None:
    error = FilesetError("platform-scope", "it is all versions", code="work-level")
    found, _ = outcome(error)
    assert found.status == "platform-scope"
    assert (found.detail, found.code) == ("it is all versions", "work-level")
    gone = FilesetError("platform-gone", "a tombstone", item=item(platform_status="platform-gone"))
    found, _ = outcome(gone)
    assert found.item == gone.item


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (StoreError("the disk is full"), "error-store-upload"),
        (Conflict("somebody else wrote it"), "error-store-upload"),
        (DamagedStore("other bytes came back"), "error-store-verify"),
        (ZeroDivisionError("division by zero"), "internal-error"),
        (RecursionError("too deep"), "internal-error"),
    ],
)
def test_every_error_is_one_outcome(error: Exception, name: str) -> None:
    made = Fakes(process=raising(error))
    found = made.ingest().process(made.give(URL, item("a.csv")))
    assert found.status == name
    assert str(error) in found.detail
    assert found.item is not None
    if name == "internal-error":
        assert found.detail.startswith(type(error).__name__)
        assert "failing, line" in found.detail
        assert "\n" not in found.detail


def test_a_file_that_fails_tells_how_far_all_had_come() -> None:
    marked = [file("a.csv", status="verified"), file("b.csv", status="stalled")]
    made = Fakes(process=raising(FilesetError("stalled", "b.csv: 3 bytes", manifest=marked)))
    found = made.ingest().process(made.give(URL, item("a.csv", "b.csv")))
    assert (found.status, found.detail) == ("stalled", "b.csv: 3 bytes")
    assert [f.status for f in found.archived.manifest] == ["verified", "stalled"]


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("name", ["mismatch-md5", "mismatch-size", "file-404", "over-limit-stream"])
def test_a_dataset_that_changes_meanwhile_is_told_from_one_that_is_wrong(
    name: str, raises: bool
) -> None:
    def failing(strategy: str, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        marked = [replace(item.files[0], status=name)]
        if raises:
            raise FilesetError(name, "a.csv", manifest=marked)
        return replace(archived(strategy, item), status=name, manifest=tuple(marked))

    made = Fakes(process=failing)
    before, after = item("a.csv"), item(manifest=(file("a.csv", 9),))
    assert made.ingest().process(made.give(URL, before, after)).status == "changed-during-ingest"
    assert made.ingest().process(made.give(URL, before)).status == name
    broken = FilesetError("platform-timeout")
    assert made.ingest().process(made.give(URL, before, broken)).status == name


def test_a_new_version_alone_is_a_change_too() -> None:
    made = Fakes(process=raising(FilesetError("file-404", "a.csv")))
    request = made.give(URL, item("a.csv", version="1"), item("a.csv", version="2"))
    assert made.ingest().process(request).status == "changed-during-ingest"


def test_success_without_each_file_is_a_fault_of_ours() -> None:
    def lying(strategy: str, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        whole = archived(strategy, item)
        return replace(whole, manifest=whole.manifest[:1])

    made = Fakes(process=lying)
    found = made.ingest().process(made.give(URL, item("a.csv", "b.csv")))
    assert (found.status, "b.csv" in found.detail) == ("internal-error", True)


def test_a_request_has_so_much_time_and_the_strategy_is_told_until_when() -> None:
    now = [1000.0]

    def slow() -> FilesetPlatformItem:
        now[0] += 61
        return item("a.csv")

    made = Fakes()
    ingest = made.ingest(seconds=60, monotonic=lambda: now[0])
    assert ingest.process(made.give(URL, item("a.csv"))).status == "success-file"
    assert made.until == [1060.0]
    found = ingest.process(made.give(f"{URL}2", slow))
    assert (found.status, found.detail) == ("deadline-exceeded", "more than 60 s")
    assert status.of(found.status).retryable


def test_one_that_is_to_end_ends_before_the_next_question() -> None:
    made = Fakes()
    made.stop.set()
    found = made.ingest().process(made.give(URL, item("a.csv")))
    assert (found.status, made.platform.asked) == ("cancelled", [])


NUMBERS = st.lists(st.integers(0, 10**12 - 1), min_size=1, max_size=8)


def dotted(numbers: list[int]) -> str:
    return ".".join(map(str, numbers))


@given(NUMBERS, NUMBERS)
def test_dotted_versions_sort_as_their_numbers(low: list[int], top: list[int]) -> None:
    first, second = (
        version_order("dataverse", dotted(low)),
        version_order("dataverse", dotted(top)),
    )
    assert None not in (first, second)
    assert (first < second, first == second) == (low < top, low == top)


@given(st.integers(1, 10**12 - 1), st.integers(1, 10**12 - 1))
def test_counts_and_ids_of_records_sort_as_numbers(left: int, right: int) -> None:
    for first, second in (
        (version_order("zenodo", "9", left), version_order("zenodo", "8", right)),
        (version_order("zenodo", str(left)), version_order("zenodo", str(right))),
    ):
        assert None not in (first, second)
        assert (first < second) == (left < right)


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
