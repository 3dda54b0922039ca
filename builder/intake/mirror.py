"""Mirrors: a store that replicates one repository, and holds nothing else.

Identifiers and sets of a mirror are those of its origin. So nothing else may have some in the same
store, and items that were aggregated under other ones cannot become those of a mirror.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from builder.errors import UsageError
from builder.intake.intake import IntakeRun
from builder.text import tally
from functions.config.configuration import Configuration
from functions.snapshot.manifest import Manifest, MirrorOrigin

_ANOTHER = "set store.uri to another folder, and ingest and publish there"


def find_replica(configuration: Configuration) -> Mapping[str, Any] | None:
    """Return the repository of the configuration that the store replicates, if it does."""
    return next((rule for rule in configuration["repositories"] if rule["replicate"]), None)


def refuse_beside_replica(configuration: Configuration, name: str) -> None:
    """Raise UsageError if the store replicates a repository, for an input that is no harvest."""
    if rule := find_replica(configuration):
        raise UsageError(f"{name}: this store replicates {rule['url']}, nothing else: {_ANOTHER}")


def check_store(origin: MirrorOrigin | None, items: int, place: str | None) -> None:
    """Raise UsageError if a store with this origin and number of items is not of the same mirror.

    `place` is that of the repository to replicate, None without one.
    """
    if origin is not None and origin.place != place:
        raise UsageError(
            "this store replicates one repository, whose [[repositories]] table needs `replicate = "
            f"true`, and {origin.place} as `url` or in `former`; for other items, {_ANOTHER}"
        )
    if origin is None and place is not None and items:
        raise UsageError(
            f"this store has {tally(items, 'item')} under other identifiers and sets than "
            f"{place} gives: to replicate it, {_ANOTHER}; folders of harvests have all that it "
            "needs, so nothing is requested again"
        )


def find_origin(
    configuration: Configuration, before: Manifest, runs: Sequence[IntakeRun], *, others: bool
) -> MirrorOrigin | None:
    """Return the origin of the store after a publish of these runs, None without one.

    `others` says that there is something new beside them. Raises UsageError if a mirror would get
    items of anything but its origin.
    """
    runs = [run for run in runs if not run.published]
    origin, items = before.origin, sum(before.kinds().values())
    if find_replica(configuration) is None and not (origin or any(run.origin for run in runs)):
        return None
    for run in runs:
        if run.origin is None:
            raise UsageError(
                f"intake/{run.name} is not of the repository that this store replicates: remove "
                "this folder of the store, and ingest its sources into another store"
            )
        check_store(origin, items, run.origin.place)
        origin = run.origin.follow(origin)
    if others:
        raise UsageError(f"this store replicates a repository: for templates of RePEc, {_ANOTHER}")
    return origin
