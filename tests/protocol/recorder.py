"""Recorded runs: what the writes of a store and the readings of its pointer were, in Quint's words.

Events are those of recorded.qnt, as JSON that marks sets and maps as Quint's traces do. Times are
milliseconds since an hour before the run. Where a snapshot has no data files, a sequence of its
manifest is an item, and its first position the item's place.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from functions.reading.as_of import PointerReading
from functions.snapshot import layout
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer
from tests.interleaving.hours import Hours

ITEMS = 60
"""Items, or publishes, of a run that the specification has room for."""
Rows = Mapping[int, Mapping[str, Any]]
"""Rows of the specification by the numbers of their items, with datetimes."""
_ABSENT = {"place": 0, "at": 0, "version": 0, "gone": False}
_NOTHING: dict[str, Any] = {
    "kind": "",
    "number": 0,
    "manifest": {
        "at": -1,
        "rows": {"#map": []},
        "last": 0,
        "skipped": {"#set": []},
        "born": 0,
        "owner": 0,
    },
    "pointer": {
        "entries": [],
        "settled": True,
        "removing": {"#set": []},
        "until": 0,
        "holder": 0,
        "retired": {"#set": []},
        "expiries": 0,
    },
    "reading": {"time": 0, "number": 0, "at": -1, "reached": 0, "gone": {"#set": []}},
    "clock": 0,
    "now": 0,
    "change": "",
    "reader": 0,
    "keep": 0,
    "date": 0,
}


class Recording:
    """The events of a run, in order."""

    def __init__(self, hours: Hours) -> None:
        self.events: list[dict[str, Any]] = []
        self._hours = hours
        self._began = hours.now - timedelta(hours=1)  # no time is 0 or less

    def add(self, kind: str, clock: datetime | None = None, **found: Any) -> None:
        now = self._time(self._hours.now)
        seen = now if clock is None else self._time(clock)
        self.events.append({**_NOTHING, "kind": kind, "clock": seen, "now": now, **found})

    def resume(self, other: "Recording") -> None:
        """Begin with the events of another run, which began at the same time."""
        self.events = list(other.events)

    def manifest(self, manifest: Manifest, rows: Rows) -> None:
        """Record a manifest; `rows` may lack items that are absent."""
        every = dict.fromkeys(range(1, ITEMS + 1), _ABSENT)
        for number in every.keys() & rows.keys():
            row = rows[number]
            every[number] = {**_ABSENT, **row, "at": self._time(row["at"])}
        found = {
            "at": self._time(manifest.effective),
            "rows": {"#map": [[n, row] for n, row in every.items()]},
            "last": manifest.last_position,
            "skipped": {"#set": list(manifest.skipped)},
            "born": self._time(self._hours.now),
            "owner": 0,
        }
        self.add("manifest", number=manifest.snapshot, manifest=found)

    def pointer(self, pointer: Pointer, clock: datetime, change: str) -> None:
        expiry = pointer.expiry
        found = {
            "entries": [
                {"number": e.snapshot, "at": self._time(e.effective)} for e in pointer.entries
            ],
            "settled": pointer.settled,
            "removing": {"#set": list(expiry.snapshots) if expiry else []},
            "until": self._time(expiry.until) if expiry else 0,
            "holder": int(expiry.holder[:12], 16) if expiry else 0,
            "retired": {"#set": _numbers(pointer)},
            "expiries": pointer.expiries,
        }
        self.add("pointer", clock, pointer=found, change=change)

    def look(self, reader: int, clock: datetime) -> None:
        """Record that a reader has the pointer as it is now."""
        self.add("look", clock, reader=reader)

    def reading(
        self, reader: int, clock: datetime, reading: PointerReading, keep: timedelta
    ) -> None:
        """Record the reading that a reader answers from; it keeps one for less than `keep`."""
        gone = _numbers(reading.pointer)
        if reading.pointer.expiry:
            gone += reading.pointer.expiry.snapshots
        found = {
            "time": self._time(reading.instant),
            "number": reading.entry.snapshot,
            "at": self._time(reading.entry.effective),
            "reached": reading.reached,
            "gone": {"#set": gone},
        }
        self.add(
            "read",
            clock,
            reading=found,
            reader=reader,
            date=self._time(reading.response_date),
            keep=round(keep.total_seconds() * 1000),
        )

    def _time(self, when: datetime) -> int:
        return round((when - self._began).total_seconds() * 1000)


def _numbers(pointer: Pointer) -> list[int]:
    return [n for first, last in pointer.retired for n in range(first, last + 1)]


def sequences(manifest: Manifest) -> Rows:
    """Return the sequences of a manifest as rows."""
    return {s.number: {"place": s.first, "at": s.effective} for s in manifest.sequences}


class Recorded:
    """A store that records what is written, in the order of the writes."""

    def __init__(
        self,
        store: Writer,
        recording: Recording,
        clock: Callable[[], datetime],
        rows: Callable[[Manifest], Rows] = sequences,
    ) -> None:
        self._store = store
        self._recording = recording
        self._rows = rows
        self.clock = clock
        """The clock of the process that writes next."""
        self.change = "publish"
        """What it does."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def create(self, key: str, data: bytes) -> None:
        self._store.create(key, data)
        number = layout.snapshot_of(key)
        if number is not None and key == layout.manifest_key(number):
            manifest = Manifest.from_json(data)
            self._recording.manifest(manifest, self._rows(manifest))

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        found = self._store.replace(key, data, tag)
        if key == layout.POINTER:
            self._recording.pointer(Pointer.from_json(data), self.clock(), self.change)
        return found

    def remove(self, *keys: str) -> None:
        self._store.remove(*keys)
        for key in keys:
            number = layout.snapshot_of(key)
            if number is not None and key == layout.manifest_key(number):
                self._recording.add("remove", number=number)


def to_quint(value: Any) -> str:
    """Return a recorded value as an expression of Quint."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    return f"[{', '.join(map(to_quint, value))}]" if isinstance(value, list) else _compound(value)


def _compound(value: dict[str, Any]) -> str:
    def members() -> Iterator[str]:
        for name, found in value.items():
            if name == "#set":
                yield f"Set({', '.join(map(to_quint, found))})"
            elif name == "#map":
                yield f"Map({', '.join(f'{to_quint(k)} -> {to_quint(v)}' for k, v in found)})"
            else:
                yield f"{name}: {to_quint(found)}"

    made = ", ".join(members())
    return made if value.keys() & {"#set", "#map"} else f"{{ {made} }}"
