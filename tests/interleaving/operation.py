"""Operations: runs of the builder that stop before each write, and move on or die when told to."""

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Protocol

from builder.runtime import Runtime
from functions.config import configuration
from functions.config.configuration import Configuration
from functions.snapshot import layout
from functions.snapshot.errors import SheafError
from functions.snapshot.pointer import Expiry, Pointer
from functions.snapshot.store import Writer
from tests.builder.conftest import NAMESPACE
from tests.interleaving.hours import Hours
from tests.interleaving.killer import Killed

STOPS = ("look", "put", "create", "replace", "replaced", "witness", "sleep", "remove")
"""Where an operation can stop: before it reads the pointer, before each write, after it moved the
pointer, before it writes the witness behind it, and where it waits."""
SETTINGS = configuration.parse(
    f'[repository]\nnamespace = "{NAMESPACE}"\n[publish]\ntables = false\n', {}
)

IDENTITY = "0123456789abcdef" * 2
"""The id of every store of the machine."""

_MOST = 5000  # stops of one operation; one that needs more goes round in circles
_STUCK = 600  # real seconds, for a machine that is very busy


class Change(Protocol):
    """What an operation does."""

    def work(self, store: Any, settings: Configuration, runtime: Runtime) -> Any: ...


class Operation:
    """A run of the builder in a thread of its own, of which only one moves at a time."""

    def __init__(
        self,
        change: Change,
        store: Writer,
        hours: Hours,
        skew: float,
        moved: Callable[["Operation", Pointer], None],
    ) -> None:
        self.change = change
        self.at = "begin"
        self.over = False
        self.accompanied = False
        """Others were going on besides, and may have been in its way."""
        self.result: Any = None
        self.refusal: SheafError | None = None
        self.captures: list[str] = []
        """Runs of the intake whose captures were taken up since the intake was last listed."""
        self.expiry: Expiry | None = None
        self.wake: datetime | None = None
        self._skew = timedelta(seconds=skew)
        self.clock = hours.clock(skew)
        self._hours = hours
        self._dead = False
        self._failure: BaseException | None = None
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._store = Gate(store, self, moved)
        threading.Thread(target=self._run, daemon=True).start()

    def advance(self, stop: str, count: int = 1) -> None:
        """Go on up to the `count`th `stop`, to the end, or to where time must pass."""
        for _ in range(_MOST):
            if not self._step():
                return
            count -= self.at == stop
            if not count:
                return
        raise AssertionError(f"{self.change} does not end")

    def waits(self) -> bool:
        """Tell whether time must pass before it can go on."""
        return not self.over and self.wake is not None and self._hours.now < self.wake

    def die(self) -> None:
        """End it where it is: none of its calls reaches the store any more."""
        self._dead = True
        self.wake = None
        while self._step():
            pass

    def skewed(self, when: datetime) -> datetime:
        """Return what its own clock showed at a true time."""
        return when + self._skew

    def outcome(self) -> str:
        """Say in a word how it ended."""
        return type(self.refusal).__name__ if self.refusal else "died" if self._dead else "done"

    def overdue(self) -> bool:
        """Tell whether it removes things under a lease that is as good as over.

        A process that stops for so long in the midst of a batch is beyond what a lease can promise.
        """
        return self.expiry is not None and self.clock() > self.expiry.until - timedelta(seconds=5)

    def stop(self, name: str) -> None:
        """Stop here, in the operation's own thread, until it is told to go on."""
        self.at = name
        if not self._dead:
            self._back.release()
            self._go.acquire()
        if self._dead:
            raise Killed

    def _step(self) -> bool:
        if self.over or self.waits():
            return False
        self.wake = None
        self._go.release()
        assert self._back.acquire(timeout=_STUCK), f"{self.change} is stuck at {self.at}"
        if self._failure is not None:
            raise self._failure
        return not self.over

    def _run(self) -> None:
        self._go.acquire()
        runtime = Runtime(
            self.clock, self._sleep, lambda text: None, {}, 1, identity=lambda: IDENTITY
        )
        try:
            if not self._dead:
                self.result = self.change.work(self._store, SETTINGS, runtime)
        except Killed:
            pass
        except SheafError as error:
            self.refusal = error
        except BaseException as error:  # noqa: BLE001 - told to whoever moves the operation
            self._failure = error
        self.over = True
        self._back.release()

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.wake = self._hours.now + timedelta(seconds=seconds)
        self.stop("sleep")


class Gate:
    """The store as one operation sees it."""

    def __init__(
        self, store: Writer, operation: Operation, moved: Callable[[Operation, Pointer], None]
    ) -> None:
        self._store = store
        self._operation = operation
        self._moved = moved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def tag(self, key: str) -> str | None:
        if key == layout.POINTER:
            self._operation.stop("look")
        return self._store.tag(key)

    def keys(self, prefix: str) -> Iterator[str]:
        if prefix == layout.INTAKE:
            self._operation.captures = []
        return self._store.keys(prefix)

    def local(self, key: str, spans: Any = None, size: int | None = None) -> Any:
        found = self._store.local(key, spans, size)
        if key.startswith(layout.INTAKE) and "/captures-" in key:
            self._operation.captures.append(key.split("/")[1])
        return found

    def put(self, key: str, source: Any) -> None:
        self._operation.stop("put")
        self._store.put(key, source)

    def create(self, key: str, data: bytes) -> None:
        self._operation.stop("create")
        self._store.create(key, data)

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        if key == layout.WITNESS:
            self._operation.stop("witness")
        if key != layout.POINTER:
            return self._store.replace(key, data, tag)
        self._operation.stop("replace")
        found = self._store.replace(key, data, tag)
        pointer = Pointer.from_json(data)
        self._operation.expiry = pointer.expiry
        try:
            self._moved(self._operation, pointer)
        except SheafError as error:  # no refusal of the operation's own
            raise AssertionError(f"what was published cannot be read: {error!r}") from error
        self._operation.stop("replaced")
        return found

    def remove(self, *keys: str) -> None:
        for key in keys:
            self._operation.stop("remove")
            self._store.remove(key)
