"""What follows a change of the store's content: the outputs are brought up to date."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from builder.outputs import OUTPUTS
from builder.outputs.output import OutputUpdate
from builder.runtime import Runtime
from builder.snapshot import expiry
from builder.snapshot.expiry import Expired
from builder.snapshot.transaction import Change, ChangeResult, NothingSelectedError, revise
from builder.store.identity import BEGUN, revise_identity
from functions.config.configuration import Configuration
from functions.snapshot import layout
from functions.snapshot.errors import StoreError
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


class OutputError(StoreError):
    """A change is in effect, but the outputs do not have it yet."""


def open_outputs(configuration: Configuration) -> Sequence[OutputUpdate]:
    """Return the updates of all outputs, before anything is published.

    A wrong setting of any of them is refused before a service is asked.
    Raises ConfigurationError, UsageError, and StoreError if AWS does not answer.
    """
    for output in OUTPUTS:
        output.check(configuration)
    return [output.open(configuration) for output in OUTPUTS]


def change_store(
    store: Writer, configuration: Configuration, runtime: Runtime, change: Change
) -> ChangeResult:
    """Make the change the next snapshot, and bring all that follows from it up to date.

    What an interrupted command left behind is completed as well, also if nothing is selected now.
    Raises OutputError and the errors of `open_outputs` and of transaction.revise.
    """
    updates = open_outputs(configuration)
    try:
        result = revise(store, configuration, runtime, change)
    except NothingSelectedError:
        update_outputs(store, runtime, updates)
        raise
    update_outputs(store, runtime, updates)
    return result


def update_outputs(store: Writer, runtime: Runtime, updates: Sequence[OutputUpdate]) -> None:
    """Bring the outputs up to date, then say in the store's identity what there must be.

    `updates` are those of `open_outputs`. Raises OutputError.
    """
    with _follow():
        for update in updates:
            update.run(store, runtime)
        pointer = Catalogue(store).pointer()
        if pointer.newest() is not None:
            objects = [key for update in updates for key in update.objects]
            revise_identity(
                store,
                pointer.store,
                parts=(*BEGUN, layout.SNAPSHOTS, *objects),
                off={key for update in updates for key in update.ended},
                signers=[key for update in updates for key in update.signers],
            )


def expire(
    store: Writer, runtime: Runtime, keep: int = 1, older: timedelta = timedelta(0)
) -> Expired:
    """Retire old snapshots (expiry.expire), and what the outputs need no longer.

    Raises OutputError and the errors of expiry.expire.
    """
    done = expiry.expire(store, runtime, keep, older)
    with _follow():
        return replace(done, objects=done.objects + retire_outputs(store, runtime))


def retire_outputs(store: Writer, runtime: Runtime, *, anew: bool = False) -> int:
    """Remove what the outputs need no longer (Output.retire); return the number of objects."""
    return sum(output.retire(store, runtime, anew=anew) for output in OUTPUTS)


@contextmanager
def _follow() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise OutputError(
            f"{error}. The change is in effect; `sheaf publish` completes log, tables and dumps"
        ) from error
