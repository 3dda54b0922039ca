"""What follows a change of the store's content: log, tables and dumps are brought up to date."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from builder.dump.clean import list_strays
from builder.dump.listing import DumpState
from builder.dump.update import check_names, update_dumps
from builder.iceberg.clean import expire_tables
from builder.iceberg.index import INDEX
from builder.iceberg.update import update_tables
from builder.proofs.clean import remove_retired
from builder.proofs.index import NEWEST
from builder.proofs.log import sign_snapshots
from builder.proofs.signer import LogSigner, open_signer
from builder.proofs.tiles import CHECKPOINT
from builder.runtime import Runtime
from builder.snapshot import expiry
from builder.snapshot.expiry import Expired
from builder.snapshot.transaction import Change, ChangeResult, NothingSelectedError, revise
from builder.store.identity import BEGUN, revise_identity
from functions.config.configuration import Configuration
from functions.snapshot import dumps, layout
from functions.snapshot.errors import DamagedStore, MissingObject, StoreError
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


class DerivedError(StoreError):
    """A change is in effect, but the log, tables or dumps do not have it yet."""


def check_derived(configuration: Configuration) -> LogSigner | None:
    """Check `publish.dumps` before anything is published, and return the signer if one is named.

    Raises ConfigurationError, UsageError, and StoreError if AWS does not answer.
    """
    check_names(configuration)
    return open_signer(configuration)


def change_store(
    store: Writer, configuration: Configuration, runtime: Runtime, change: Change
) -> ChangeResult:
    """Make the change the next snapshot, and bring all that follows from it up to date.

    What an interrupted command left behind is completed as well, also if nothing is selected now.
    Raises DerivedError and the errors of `check_derived` and of transaction.revise.
    """
    signer = check_derived(configuration)
    try:
        built = revise(store, configuration, runtime, change)
    except NothingSelectedError:
        update_derived(store, configuration, runtime, signer)
        raise
    update_derived(store, configuration, runtime, signer)
    return built


def update_derived(
    store: Writer, configuration: Configuration, runtime: Runtime, signer: LogSigner | None
) -> None:
    """Bring the log (`sign`), tables (`publish.tables`) and dumps (`publish.dumps`) up to date.

    `signer` is that of `check_derived`: on AWS, opening it is a request. Raises DerivedError.
    """
    with _follow():
        if signer is not None:
            sign_snapshots(store, signer, runtime)
        update_tables(store, configuration, runtime)
        update_dumps(store, configuration, runtime)
        _update_identity(store, configuration, signer)


def _update_identity(store: Writer, configuration: Configuration, signer: LogSigner | None) -> None:
    """Say in the store's identity what there must be from now on."""
    pointer = Catalogue(store).pointer()
    if pointer.newest() is None:
        return
    outputs = {
        INDEX: configuration["publish.tables"],
        dumps.INDEX: configuration["publish.dumps"],
        CHECKPOINT: signer,
        NEWEST: signer,
    }
    parts = [key for key, is_on in outputs.items() if is_on]
    off = () if signer else (CHECKPOINT, NEWEST)  # a log stays, though nobody signs
    revise_identity(
        store,
        pointer.store,
        parts=(*BEGUN, layout.SNAPSHOTS, *parts),
        off={*outputs}.difference(parts, off),
        signers=[] if signer is None else [key.to_text() for key in signer.keys],
    )


def expire(
    store: Writer, runtime: Runtime, keep: int = 1, older: timedelta = timedelta(0)
) -> Expired:
    """Retire old snapshots (expiry.expire), and what proofs, tables and dumps need no longer.

    Raises DerivedError and the errors of expiry.expire.
    """
    done = expiry.expire(store, runtime, keep, older)
    with _follow():
        return replace(done, objects=done.objects + _remove_derived(store, runtime))


def _remove_derived(store: Writer, runtime: Runtime) -> int:
    """Remove what proofs, tables and dumps need no longer; return the number of objects."""
    removed = expire_tables(store, runtime) + remove_retired(store, runtime.clock())
    try:
        state = DumpState.read(store)
        strays = list_strays(store, state, runtime.clock())
    except (MissingObject, DamagedStore):
        return removed  # without dumps, or the next publish makes them anew
    store.remove(*strays, *state.index.removed)
    return removed + len(strays)


@contextmanager
def _follow() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise DerivedError(
            f"{error}. The change is in effect; `sheaf publish` completes log, tables and dumps"
        ) from error
