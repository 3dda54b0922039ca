"""Templates of a series or an archive as one OCFL object.

Each run in which one of them appeared, changed or was lost is a version of the object. Its state
has all templates of that time, and bytes that are unchanged are not stored again. The ReDIF files
of an archive's folder are one object, too. So an archive has few objects, however many papers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path

from builder.exports.obi_source import COLUMNS, LoggedObject, fetch_rows, parse_logged, to_date
from builder.exports.ocfl.inventory import OcflInventory
from builder.exports.ocfl.root import ForeignRoot, OcflVersion
from builder.exports.staging import PackageFile
from builder.obi import content, key
from builder.obi.content import DELETION, SOURCE, TEMPLATE, Version
from builder.sources.redif.staging import PREFIX
from functions.snapshot.store import Reader
from functions.store import engine

ROWS = "versions.jsonl"
"""Name of the file in each version with the log rows of all its files."""
SERIES, ARCHIVE = "series", "archive"
_TIST = attrgetter("tist")
_ARCHIVE_PART = "array_to_string(string_split(id, ':')[:2], ':')"
_SERIES_PART = "array_to_string(string_split(id, ':')[:3], ':')"
_OF_ARCHIVE = "regexp_matches(id, '^(?:RePEc|ReLIS|mapin):[a-z]{3}(?::|$)')"
_OF_SERIES = "regexp_matches(id, '^(?:RePEc|ReLIS|mapin):[a-z]{3}:[a-z0-9]{6}(?::|$)')"
BY: Mapping[str, str] = {
    SERIES: f"CASE WHEN {_OF_SERIES} THEN {_SERIES_PART} "
    f"WHEN {_OF_ARCHIVE} THEN {_ARCHIVE_PART} ELSE id END",
    ARCHIVE: f"CASE WHEN {_OF_ARCHIVE} THEN {_ARCHIVE_PART} ELSE id END",
}
"""The id of the object to which a template belongs, in SQL, by the choice of the operator."""
_EVENTS = f"""
SELECT part, e.tist, e.what, v.tist, {{columns}}
FROM (
    SELECT {{part}} AS part, tist, id, kind, what FROM incidence WHERE kind = '{TEMPLATE}'
    UNION ALL
    SELECT concat('{PREFIX}', coalesce(home, '.')), tist, id, kind, ''
    FROM version WHERE kind = '{SOURCE}'
) e ASOF JOIN version v ON v.id = e.id AND v.kind = e.kind AND v.tist <= e.tist
ORDER BY part, e.tist, e.id
"""


@dataclass(frozen=True, slots=True)
class SeriesEvent:
    """What happened to one template or ReDIF file in the run `tist`."""

    tist: int
    what: str
    logged: LoggedObject

    @property
    def name(self) -> str:
        """The name of its file in a version."""
        version = self.logged.version
        if version.kind == SOURCE:
            return key.name(version.id.removeprefix(PREFIX))
        return f"{key.name(version.id)}.rdf"


@dataclass(frozen=True, slots=True)
class SeriesObject:
    """The templates of a series; implements builder.exports.ocfl.root.OcflSource."""

    store: Reader
    id: str
    events: Sequence[SeriesEvent]
    """In the order of runs."""

    def list_new(self, inventory: OcflInventory, where: Path) -> Iterator[OcflVersion]:
        """Return the versions behind the last one of the inventory. Raises ForeignRoot."""
        created = [str(version.get("created")) for _, version in sorted(inventory.versions.items())]
        count = len(created)
        if created != [to_date(tist) for tist, _ in groupby(self.events, _TIST)][:count]:
            raise ForeignRoot(f"{where}: its versions are not those of {self.id} in the store")
        if count and not _is_of(inventory, next(self._versions(count - 1))):
            raise ForeignRoot(
                f"{where}: its version {count} differs from that of {self.id} in the store"
            )
        return self._versions(count)

    def _versions(self, first: int) -> Iterator[OcflVersion]:
        """Yield the versions from number `first` on, from 0; each has all templates of its time."""
        present: dict[str, Version] = {}
        for number, (tist, events) in enumerate(groupby(self.events, _TIST)):
            count = 0
            for event in events:
                count += 1
                if event.what == DELETION:
                    present.pop(event.name, None)
                else:
                    present[event.name] = event.logged.version
            if number < first:
                continue
            members = sorted(present.items())
            rows = [content.row_line(replace(v, pack=None, start=None)) for _, v in members]
            files = (
                PackageFile(name, v.bytes, v.sha256, partial(content.version_parts, self.store, v))
                for name, v in members
            )
            table = PackageFile(ROWS, 0, None, partial(iter, rows))
            yield OcflVersion(to_date(tist), f"{count} of its files changed", (*files, table))


def _is_of(inventory: OcflInventory, version: OcflVersion) -> bool:
    """Return whether the last version of an inventory has these files."""
    state = inventory.state(inventory.head)
    stored = inventory.fixity.get("sha256", {})
    digests = inventory.digests()
    return state.keys() == {file.path for file in version.files} and all(
        state[file.path] == digests.get(next(iter(stored.get(file.sha256, ())), ""))
        for file in version.files
        if file.sha256 is not None
    )


def count_objects(connection: engine.Connection, by: str) -> int:
    """Return the number of objects, from the tables of the replay."""
    events = _EVENTS.format(part=BY[by], columns="v.id")
    ((count,),) = fetch_rows(connection, f"SELECT count(DISTINCT part) FROM ({events})")
    return int(count)


def list_sources(store: Reader, connection: engine.Connection, by: str) -> Iterator[SeriesObject]:
    """Yield the objects of all templates and ReDIF files, one for each series or archive."""
    rows = fetch_rows(connection, _EVENTS.format(part=BY[by], columns=COLUMNS))
    for part, group in groupby(rows, itemgetter(0)):
        events = [
            SeriesEvent(row[1], row[2], parse_logged((row[3], row[2], *row[4:]))) for row in group
        ]
        yield SeriesObject(store, str(part), events)
