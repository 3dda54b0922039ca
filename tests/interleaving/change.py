"""Changes: what operations do to a store, and what each may make of the repository's state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from builder.publish.publish import publish
from builder.publish.reinstate import reinstate
from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from builder.runtime import Runtime
from builder.snapshot.expiry import expire
from functions.config.configuration import Configuration
from tests.interleaving.item import Given, Item, State, awaited, digest_of, ingested, withdrawn

Allowed = Mapping[str, tuple[Item, ...]]
"""For each item that a change touches what it may be afterwards."""
Past = Callable[[str], list[tuple[int, Item]]]
"""Gives an item's live versions in snapshots kept when a change began, the newest first, each with
the number of the snapshot; 0 where it has been retired since."""


@dataclass(frozen=True)
class Context:
    """What a change meets: the state, the runs of the intake that it took up, and the past."""

    state: State
    runs: list[Mapping[str, Given]]
    past: Past


@dataclass(frozen=True)
class Publication:
    """`sheaf publish`."""

    def work(self, store: Any, settings: Configuration, runtime: Runtime) -> Any:
        return publish(store, settings, runtime)

    def allowed(self, met: Context) -> Allowed:
        return {name: (item,) for name, item in ingested(met.state, met.runs).items()}


@dataclass(frozen=True)
class Withdrawal:
    """`sheaf withdraw`, with or without `--purge`."""

    selection: Selection
    purge: bool = False

    def work(self, store: Any, settings: Configuration, runtime: Runtime) -> Any:
        return withdraw(store, settings, runtime, self.selection, "asked for", purge=self.purge)

    def allowed(self, met: Context) -> Allowed:
        return {
            name: (withdrawn(item),)
            for name, item in met.state.items()
            if not item.withdrawn
            and _meets(self.selection, name, item)
            and not (item.deleted and self.selection.digest)  # it has no digest any more
        }


@dataclass(frozen=True)
class Restoration:
    """`sheaf reinstate`."""

    selection: Selection

    def work(self, store: Any, settings: Configuration, runtime: Runtime) -> Any:
        return reinstate(store, settings, runtime, self.selection)

    def allowed(self, met: Context) -> Allowed:
        found: dict[str, tuple[Item, ...]] = {}
        for name, item in met.state.items():
            if not item.withdrawn:
                continue
            past = met.past(name)
            # Up to the newest that is still kept: those before it may have gone meanwhile.
            kept = next((i for i, (number, _) in enumerate(past) if number), len(past))
            options = [item.moved(old) for _, old in past[: kept + 1]]
            if not _meets(self.selection, name, item):
                continue
            if kept == len(past) and self.selection.digest is None:
                options.append(awaited(item))
            if options:
                found[name] = tuple(options)
        return found


@dataclass(frozen=True)
class Expiration:
    """`sheaf expire`."""

    keep: int
    older: timedelta

    def work(self, store: Any, settings: Configuration, runtime: Runtime) -> Any:
        return expire(store, runtime, self.keep, self.older)

    def allowed(self, met: Context) -> Allowed:
        return {}


AnyChange = Publication | Withdrawal | Restoration | Expiration


def _meets(selection: Selection, name: str, item: Item) -> bool:
    return (
        (not selection.identifiers or name in selection.identifiers)
        and item.within(selection.set)
        and selection.digest in (None, digest_of(name))
    )
