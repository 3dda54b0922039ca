"""Which strategy, and what is too much."""

from typing import Any

import pytest

from builder.sources.datasets.item import FilesetManifestFile, FilesetPlatformItem
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies.choice import STRATEGIES, apply_limits, choose
from functions.config.configuration import parse
from tests.builder.sources.datasets.world import fileset_settings

DEFAULTS = parse("", {})
MEGA, GIGA = 1_000_000, 1_000_000_000


def files(count: int, size: int | None = 1) -> tuple[FilesetManifestFile, ...]:
    return tuple(FilesetManifestFile(path=f"{n}.csv", size=size) for n in range(count))


BORDERS = [
    (files(1, 128 * MEGA), "web-file", "1 file of 128,000,000 bytes: few and small"),
    (files(1, 128 * MEGA + 1), "s3-file", "more than 128,000,000 bytes"),
    (files(1, None), "s3-file", "1 file of unknown size: they may be large"),
    (files(20), "web-fileset", "20 files with 20 bytes, the largest has 1: few and small"),
    (
        files(21),
        "s3-fileset",
        "more than 20 (fileset.strategy.files); fileset.strategy.large is s3",
    ),
    (files(8, 125 * MEGA), "web-fileset", "few and small"),
    (files(9, 125 * MEGA), "s3-fileset", "more than 1,000,000,000 bytes (fileset.strategy.bytes)"),
    ((*files(1), *files(1, None)), "s3-fileset", "1 of unknown size"),
]


@pytest.mark.parametrize(("given", "strategy", "reason"), BORDERS)
def test_few_and_small_files_go_to_a_warc_by_the_proposal_s_numbers(
    given: Any, strategy: str, reason: str
) -> None:
    found = choose(given, "zenodo", DEFAULTS)
    assert found.strategy == strategy
    assert reason in found.reason


SETTINGS: list[tuple[dict[str, Any], int, str | None, str]] = [
    ({"backend": "archiveorg"}, 1, None, "archiveorg-file"),
    ({"backend": "archiveorg"}, 2, None, "archiveorg-fileset"),
    ({"backend": "s3"}, 2, None, "s3-fileset"),
    ({"backend": "web"}, 100, None, "web-fileset"),
    ({"large": "archiveorg"}, 21, None, "archiveorg-fileset"),
    ({"large": "archiveorg", "bundle": "many"}, 21, None, "archiveorg-fileset-bundled"),
    ({"bundle": "many"}, 20, None, "web-fileset"),
    ({"bundle": "many"}, 21, None, "s3-fileset-bundled"),
    ({"bundle": "always"}, 2, None, "s3-fileset-bundled"),
    ({"bundle": "always"}, 2, "u", "s3-fileset-bundled"),
    ({"bundle": "always", "platform_bundle": True}, 2, "u", "web-fileset-bundled"),
    ({"bundle": "always", "platform_bundle": True}, 2, None, "s3-fileset-bundled"),
    ({"bundle": "always"}, 1, "u", "web-file"),
    ({"bundle": "always", "backend": "web"}, 2, "u", "web-fileset-bundled"),
    ({"bundle": "always", "backend": "web"}, 2, None, "web-fileset"),
]


@pytest.mark.parametrize(("given", "count", "bundle_url", "strategy"), SETTINGS)
def test_the_configuration_decides(
    given: dict[str, Any], count: int, bundle_url: str | None, strategy: str
) -> None:
    found = choose(files(count), "zenodo", fileset_settings(**given), bundle_url=bundle_url)
    assert found.strategy == strategy
    for name, value in given.items():
        if name != "platform_bundle" and count > 1:
            said = "fileset.strategy" if name == "backend" else f"fileset.strategy.{name}"
            assert f"{said} is {value}" in found.reason or strategy == "web-fileset"
    assert found.reason.isprintable()


def test_what_archive_org_has_stays_there_unless_another_backend_is_asked_for() -> None:
    assert choose(files(1), "archiveorg", DEFAULTS).strategy == "archiveorg-file"
    assert choose(files(300), "archiveorg", DEFAULTS).strategy == "archiveorg-fileset"
    assert choose(files(1), "archiveorg", fileset_settings(backend="s3")).strategy == "s3-file"


def test_every_strategy_is_chosen_for_something() -> None:
    assert {row[1] for row in BORDERS} | {row[3] for row in SETTINGS} == set(STRATEGIES)


def item(*given: FilesetManifestFile) -> FilesetPlatformItem:
    return FilesetPlatformItem(platform_name="zenodo", manifest=given)


WITHHELD = FilesetManifestFile(path="secret.csv", size=3, status="withheld")
LIMITS: list[tuple[dict[str, Any], FilesetPlatformItem, str, str]] = [
    ({}, item(), "empty-manifest", "lists no files"),
    ({}, item(WITHHELD), "platform-restricted", "withholds 1 of 1 files"),
    ({"partial": False}, item(WITHHELD, *files(1)), "platform-restricted", "withholds 1 of 2"),
    ({"max_files": 3}, item(*files(4)), "too-many-files", "4 files, and fileset.limits.files is 3"),
    ({"max_bytes": 9}, item(*files(2, 5)), "too-large-size", "10 bytes, and fileset.limits.bytes"),
    ({"max_file_bytes": 4}, item(*files(2, 5)), "too-large-file", "0.csv: 5 bytes"),
    (
        {"max_file_bytes": 4, "partial": False},
        item(*files(1, 5), *files(1, 2)),
        "too-large-file",
        "0.csv: 5 bytes",
    ),
    ({}, item(FilesetManifestFile(path="../x")), "unsafe-path", "has a part that is .."),
    (
        {"partial": False},
        item(FilesetManifestFile(path="../x"), *files(1)),
        "unsafe-path",
        "has a part that is ..",
    ),
]


@pytest.mark.parametrize(("given", "one", "status", "detail"), LIMITS)
def test_what_is_too_much_is_refused_and_told(
    given: dict[str, Any], one: FilesetPlatformItem, status: str, detail: str
) -> None:
    with pytest.raises(FilesetError) as caught:
        apply_limits(one, fileset_settings(**given))
    assert caught.value.status == status
    assert detail in caught.value.detail


def test_a_file_that_is_too_large_fails_alone() -> None:
    given = item(*files(1, 5), *files(1, 4), WITHHELD)
    found = apply_limits(given, fileset_settings(max_file_bytes=4, max_bytes=4))
    assert [f.status for f in found.manifest or ()] == ["too-large-file", None, "withheld"]
    assert [f.size for f in found.files] == [4]


def test_files_at_fault_are_marked() -> None:
    with pytest.raises(FilesetError) as caught:
        apply_limits(item(*files(1, 5), WITHHELD), fileset_settings(max_file_bytes=4))
    assert [f.status for f in caught.value.manifest] == ["too-large-file", "withheld"]
    one = item(FilesetManifestFile(path="../x"), *files(1))
    with pytest.raises(FilesetError) as caught:
        apply_limits(one, fileset_settings(partial=False))
    assert [f.status for f in caught.value.manifest] == ["unsafe-path", None]


def test_what_is_within_the_limits_passes_with_paths_made_safe() -> None:
    one = item(FilesetManifestFile(path="e\u0301"), WITHHELD, *files(198, None))
    passed = apply_limits(one, DEFAULTS)
    assert [f.path for f in passed.manifest][:2] == ["\u00e9", "secret.csv"]
    assert passed.withheld == (WITHHELD,)
    assert (
        apply_limits(passed, fileset_settings(max_files=199, max_bytes=1, max_file_bytes=1))
        == passed
    )
