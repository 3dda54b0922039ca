"""The shape of an output: what follows a snapshot, how it is checked, retired and copied."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from builder.runtime import Runtime
from builder.snapshot.audit import StoreAudit
from builder.store.copier import ObjectCopier
from builder.store.findings import Finding
from functions.config.configuration import Configuration
from functions.snapshot.errors import Conflict
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class OutputUpdate:
    """What an output does after each change, as a configuration wants it.

    `run` brings it to the newest snapshot; it raises StoreError, and completes what an earlier one
    left undone. From then on there must be the `objects`, and there need not be the `ended` ones,
    by the store's identity, which also names the `signers`.
    """

    run: Callable[[Writer, Runtime], object]
    objects: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    signers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyComparison:
    """Two stores that both keep the `snapshots`; a copy that is `late` lacks newer ones.

    `keys` must have signed both; None checks no signature.
    """

    store: Writer
    copy: Writer
    snapshots: Sequence[int]
    late: bool
    keys: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """An output compared with that of a copy: the `names` that both should have, and findings.

    A copy that `is_older` may lack what lies below the prefixes `copied`. A report has the `lines`,
    and the `document` as JSON.
    """

    names: frozenset[str] = frozenset()
    is_older: bool = False
    findings: Sequence[Finding] = ()
    lines: Sequence[str] = ()
    document: Mapping[str, object] = field(default_factory=dict)


class Output(ABC):
    """An output. What it does not need, it leaves out."""

    copied: tuple[str, ...] = ()
    """Prefixes of the objects that a copy of the store gets; the others follow from those."""

    def check(self, configuration: Configuration) -> None:  # noqa: B027 - most have nothing to check
        """Check the configuration, before a service is asked. Raises ConfigurationError."""

    @abstractmethod
    def open(self, configuration: Configuration) -> OutputUpdate:
        """Return the update that the configuration wants, before anything is published.

        Raises ConfigurationError, UsageError, and StoreError if a service does not answer.
        """

    @abstractmethod
    def retire(self, store: Writer, runtime: Runtime, *, anew: bool) -> int:
        """Remove what no kept snapshot needs; return the number of objects. Raises StoreError.

        With `anew`, that is all that is not named, as after a purge. Otherwise, young objects stay
        for readers and for updates in progress.
        """

    @abstractmethod
    def verify(self, audit: StoreAudit) -> Sequence[Finding]:
        """Return what is wrong with it. Raises StoreError if the store cannot be read."""

    def compare(self, comparison: CopyComparison) -> OutputComparison:
        """Compare the outputs of two stores; a copy may have one of its own. Raises StoreError."""
        return OutputComparison()

    def check_copy(self, source: Writer, target: Writer) -> None:  # noqa: B027
        """Raise StoreError if a copy would destroy what the target has."""

    def copy(  # noqa: B027 - the next publish there makes it
        self, source: Writer, copier: ObjectCopier, runtime: Runtime, snapshots: Sequence[int]
    ) -> None:
        """Bring the output of the copier's target to that of the source, after its pointer.

        `snapshots` are those that the target keeps. Raises as the copier does.
        """


def try_often(attempt: Callable[[], None], what: str) -> None:
    """Repeat an attempt that other processes disturb. Raises Conflict if they do so every time."""
    for _ in range(8):
        with suppress(Conflict):
            return attempt()
    raise Conflict(f"{what} changed by other processes every time; run the command again")
