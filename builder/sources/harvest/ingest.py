"""Aggregation: copies harvested records from their folders into an intake run.

Guidelines for aggregators (http://www.openarchives.org/OAI/2.0/guidelines-aggregator.htm): an item
keeps its identifier if this is of the oai scheme. Each record says where it was harvested.

A part that was ingested is known by its digest, and not read again. What its rows mean for an item
is decided by builder.kinds.records.sightings.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from builder.errors import UsageError
from builder.intake import intake
from builder.intake.captures import FAULT_CODES, Fault
from builder.intake.intake import IntakeSource
from builder.intake.rows import IntakeWriter
from builder.sources.harvest import folder, records
from builder.sources.harvest.errors import Broken, HarvestError
from builder.sources.harvest.fragment import (
    Fragments,
    HarvestOrigin,
    cut_fragments,
    is_provenance,
    is_uri,
    origins,
    to_uri,
)
from builder.sources.harvest.mirror import Replica, replicate_set
from builder.sources.harvest.repository import HarvestedRepository, find_repository
from builder.sources.harvest.state import HarvestState
from builder.sources.harvest.version import HarvestedRow
from builder.store.durable import writing
from builder.store.parquet.writer import RowWriter
from builder.text import tally
from functions.snapshot import oai_name
from functions.snapshot.errors import describe_failure
from functions.snapshot.instant import from_datestamp
from functions.snapshot.item_tables import INTAKE, NAMES, READING
from functions.snapshot.store import Writer

UNREADABLE, FOREIGN = "harvest-unreadable", "harvest-namespace"
EMPTIED, DAMAGED = "harvest-emptied", "harvest-damaged"
_MOST_FAULTS = 1000
"""Faults of one code that are named in a harvest."""
_METHOD = "2"
"""Way in which parts are read; parts that were read in another way are read again."""
_encode = json.JSONEncoder(ensure_ascii=False).encode
_encode_sorted = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class Harvest:
    """A harvest on disk: its folder, state and repository.

    `names` are those of its repository's sets.
    """

    folder: Path
    state: HarvestState
    names: Mapping[str, str]
    repository: HarvestedRepository
    order: Callable[[int], str]
    """The place of a run in the order of all runs, by its number."""


@dataclass(slots=True)
class Gathered:
    """Result of an ingest: schemas and namespaces of each prefix, and counts.

    `faults` counts by code. `parts` are those that were read, `known` those read before.
    `ahead` are the seconds by which the clock of a replicated repository is ahead, beyond
    publish.lead.
    """

    run: str
    harvests: int = 0
    records: int = 0
    deleted: int = 0
    parts: int = 0
    known: int = 0
    ahead: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    formats: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether all parts could be read."""
        return not self.faults[DAMAGED]

    def text(self, offered: Mapping[str, Mapping[str, str]]) -> str:
        """Return a summary, with the formats that are not offered yet.

        `offered` has the crosswalks of each format by its prefix.
        """
        lines = [
            f"{tally(self.records, 'record')} of {tally(self.harvests, 'harvest')}, "
            f"{self.deleted:,} deleted, ready to publish"
        ]
        if not self.parts and not self.faults:
            lines = [f"{tally(self.harvests, 'harvest')}: everything was ingested before"]
        if self.ahead:
            lines.append(
                f"the repository's clock is {self.ahead:,} seconds ahead: set publish.lead to "
                f"{self.ahead + 60}, or correct the clock, or clients of it may miss changes here"
            )
        lines += [f"{count:,} x {FAULT_CODES[code]}" for code, count in self.faults.items()]
        for prefix, (schema, namespace) in sorted(self.formats.items()):
            crosswalks = offered.get(prefix, {})
            if "harvested" not in crosswalks:
                values = {"prefix": prefix, "schema": schema, "namespace": namespace}
                kinds = {**crosswalks, "harvested": "harvested-raw.xml"}
                row = ", ".join(f"{kind} = {json.dumps(name)}" for kind, name in kinds.items())
                lines += [
                    f"{prefix} is not offered: add this row to formats.toml in the folder "
                    "formats.templates to offer it",
                    "  [[format]]",
                    *(f"  {k} = {json.dumps(v, ensure_ascii=False)}" for k, v in values.items()),
                    f"  crosswalks = {{ {row} }}",
                ]
        return "\n".join(lines)


def open_harvest(place: Path, named: Mapping[str, Sequence[str]]) -> Harvest:
    """Return the harvest in a folder; `named` is of list_addresses. Raises UsageError."""
    names = place / folder.SETS
    try:
        state = folder.read(place)
        if state is None:
            raise UsageError(f"{place} is no longer a folder of a harvest")
        sets = json.loads(names.read_bytes()) if names.is_file() else []
        return Harvest(
            place,
            state,
            {str(spec): str(name) for spec, name in sets},
            find_repository(named, state.base_url),
            state.order_runs(),
        )
    except HarvestError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{place} cannot be read: {describe_failure(error)}") from error
    except (ValueError, TypeError) as error:
        raise UsageError(f"{names} is damaged: {describe_failure(error)}") from error


@dataclass(slots=True)
class HarvestIngest:
    """Writes harvests into the intake, as one run of that `name`.

    `namespace` is the store's own: an item of another repository does not keep an identifier in it.
    `readings` are those of parts that were ingested. `namespaces` are those of the offered
    formats by prefix, `named` is of repository.list_addresses. `scratch` is for unfinished files.
    """

    store: Writer
    namespace: str
    named: Mapping[str, Sequence[str]]
    readings: Collection[str]
    namespaces: Mapping[str, str]
    scratch: Path
    name: str
    replica: Replica | None = None
    _rows: RowWriter = field(init=False)
    _faults: IntakeWriter = field(init=False)
    _named: Counter[tuple[str, str]] = field(default_factory=Counter)
    _gathered: Gathered = field(init=False)

    def carry_out(self, places: Sequence[Path]) -> Gathered:
        """Write the harvests in the folders as a run; none if nothing is new.

        A part that cannot be read is a fault, and the others are ingested. Raises UsageError and
        StoreError.
        """
        scratch = self.scratch
        gathered = self._gathered = Gathered(self.name)
        with writing(scratch):
            part = intake.part_path(scratch, "harvested", "000000")
            self._rows = RowWriter(part, INTAKE, unlike={"entry", "digest"})
            names = RowWriter(intake.part_path(scratch, "set_names", "000000"), NAMES)
            self._faults = IntakeWriter(scratch, "000000")
            sources: list[IntakeSource] = []
            harvests = [open_harvest(place, self.named) for place in places]
            origin = None
            if self.replica:
                origin, sets = self.replica.describe(harvests)
                for row in sets if origin else ():
                    names.append(row)
            for harvest in harvests:
                gathered.harvests += 1
                new_parts = list(self._read_parts(harvest))
                sources += new_parts
                if new_parts and not self.replica:  # else the origin names its sets
                    host = harvest.repository.host
                    if called := harvest.state.identify.get("repositoryName"):
                        names.append((oai_name.join_set("repository", host), called))
                    for spec, name in sorted(harvest.names.items()):
                        if spec and name:
                            names.append((_from(host, spec), name))
            for writer in (self._rows, names, self._faults):
                writer.close()
        if sources or gathered.faults or origin:
            run = intake.IntakeRun(
                self.name,
                tuple(sources),
                harvested=gathered.records,
                origin=origin or (self.replica.published if self.replica else None),
            )
            intake.commit(self.store, run, scratch)
        return gathered

    def _read_parts(self, harvest: Harvest) -> Iterator[IntakeSource]:
        """Write the rows of a harvest's new parts, and yield each part as a source."""
        gathered = self._gathered
        for part in harvest.state.parts:
            source = f"{harvest.folder.name}/{part.name}"
            before, written = gathered.faults.total(), gathered.records
            try:
                path = folder.check_part(harvest.folder, part)
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                state, repository = harvest.state, harvest.repository
                list_ = [repository.place, state.prefix, state.set or "", str(part.run)]
                if self.replica:
                    list_.append(f"replicated {self.replica.provenance}")
                text = "\n".join((_METHOD, digest, *list_))
                reading = READING + hashlib.sha256(text.encode()).hexdigest()
                if reading in self.readings:
                    gathered.known += 1
                    continue
                latest = ""
                for row in records.read_part(path, part.run, dc=False):
                    self._add(harvest, row)
                    latest = max(latest, row.harvested)
                if self.replica:
                    ahead = self.replica.measure_ahead(harvest, part.run, latest)
                    gathered.ahead = max(gathered.ahead, ahead)
            except (HarvestError, OSError) as error:
                self._note(source, DAMAGED, None, str(error), "left out until it can be read")
                continue
            gathered.parts += 1
            count, form = gathered.faults.total() - before, f"harvest.{harvest.state.form}"
            many = gathered.records - written
            yield IntakeSource(
                source, digest, str(path), form, part.size, 0, many, count, {}, {}, reading=reading
            )

    def _add(self, harvest: Harvest, row: HarvestedRow) -> None:
        """Write a row, or name why it is left out."""
        faults = partial(self._note, harvest.state.base_url)
        prefix, entry = harvest.state.prefix, None
        if not row.deleted:
            try:
                pieces = cut_fragments(row.record)
            except Broken as error:
                faults(UNREADABLE, row.identifier, str(error), _LEFT_OUT)
                return
            if pieces.metadata is None:
                faults(EMPTIED, row.identifier, "it has no metadata", "its format is ended")
            else:
                if fault := self._find_foreign(prefix, harvest, pieces):
                    faults(FOREIGN, row.identifier, *fault)
                    if fault[1] == _LEFT_OUT:
                        return
                entry = make_entry(harvest, row, pieces, self.replica)
                if not self.replica:
                    self._gathered.formats[prefix] = (entry["schema"], entry["namespace"])
        self._gathered.records += 1
        self._gathered.deleted += entry is None
        self._rows.append(self._row(harvest, row, entry))

    def _note(self, source: str, code: str, field_: str | None, detail: str, done: str) -> None:
        """Count a fault, and name it up to a limit; `field_` is the identifier of its record."""
        self._gathered.faults[code] += 1
        self._named[source, code] += 1
        if self._named[source, code] <= _MOST_FAULTS:
            self._faults.fault(Fault(source, None, code, field_, detail, done))
        elif self._named[source, code] == _MOST_FAULTS + 1:
            detail = f"{_MOST_FAULTS:,} of {code} are named"
            self._faults.fault(Fault(source, None, "faults-cut", None, detail, "counted"))

    def _find_foreign(
        self, prefix: str, harvest: Harvest, pieces: Fragments
    ) -> tuple[str, str] | None:
        """Return why metadata is not of its format, and what is done; None if it is."""
        assert pieces.metadata is not None
        declared = harvest.state.format.get("metadataNamespace", "")
        expected = self.namespaces.get(prefix, declared)
        if expected and not self.replica and pieces.metadata.namespace != expected:
            detail = f"{prefix} has the namespace {expected}, not {pieces.metadata.namespace!r}"
            return detail[:300], _LEFT_OUT
        if pieces.more:
            return f"it has {pieces.more + 1} elements of metadata", "the first one is served"
        return None

    def _row(
        self, harvest: Harvest, row: HarvestedRow, entry: Mapping[str, Any] | None
    ) -> tuple[Any, ...]:
        """Return a row of INTAKE."""
        repository, state = harvest.repository, harvest.state
        other = oai_name.harvested_identifier(self.namespace, repository.place, row.identifier)
        spec = "" if row.single or state.set is None else state.set
        stays = is_uri(row.identifier) and oai_name.is_foreign(row.identifier, self.namespace)
        if self.replica:
            stays = oai_name.is_uri(row.identifier)
        host = None if self.replica else repository.host
        return (
            row.identifier if stays else other,
            row.identifier if stays and self.replica else other,
            state.base_url,
            state.identify.get("repositoryName") or repository.host,
            row.identifier,
            state.prefix,
            entry is None,
            _datestamp(harvest, row),
            _harvest_time(harvest, row),
            sorted({*row.sets}),
            list(sets(host, row.sets)),
            None if entry is None else _encode_sorted(entry),
            entry["digest"] if entry else None if row.deleted else "",
            repository.place,
            repository.places,
            spec,
            _from(host, spec) if spec else None,
            harvest.order(row.run),
        )


_LEFT_OUT = "left out"


@lru_cache(maxsize=4096)
def sets(host: str | None, specs: Sequence[str]) -> tuple[str, ...]:
    """Return our sets of an item, given the host of its repository and its setSpecs there.

    Without a host they are those of a mirror.
    """
    if host is None:
        return tuple(sorted({*map(replicate_set, specs)}))
    return oai_name.most_specific_sets(
        [oai_name.join_set("repository", host), *(_from(host, spec) for spec in specs)]
    )


def _from(host: str | None, spec: str) -> str:
    """Return our set for a set of another repository; without a host, that of a mirror."""
    if host is None:
        return replicate_set(spec)
    if oai_name.is_set(spec):
        return f"{oai_name.join_set('from', host)}:{spec}"
    return oai_name.join_set("from", host, *spec.split(":"))


def make_entry(
    harvest: Harvest, row: HarvestedRow, pieces: Fragments, replica: Replica | None = None
) -> dict[str, Any]:
    """Return the entry of an item in a format, made of the pieces of its record.

    `digest` is the same for the same record, whenever and from which address it was harvested, and
    whatever schema the repository names. A mirror serves what came under a prefix whatever its
    namespace is, and names itself in the provenance only where that is configured.
    """
    assert pieces.metadata is not None
    metadata, format_ = pieces.metadata, harvest.state.format
    namespace = metadata.namespace or format_.get("metadataNamespace", "")
    own = HarvestOrigin(
        harvested=_harvest_time(harvest, row),
        altered=row.fault is not None,
        base_url=harvest.state.base_url,
        identifier=to_uri(row.identifier),
        datestamp=_datestamp(harvest, row),
        namespace=namespace if is_uri(namespace) else f"urn:{quote(namespace, safe='') or 'none'}",
    )
    states_origin = replica is None or replica.provenance
    about = [p.text for p in pieces.about if not (states_origin and is_provenance(p))]
    chains = (origins(piece) for piece in pieces.about if is_provenance(piece))
    chain = [origin._asdict() for origin in (own, *next(filter(None, chains), ()))]
    steady = (own.identifier, own.datestamp, own.altered, namespace, metadata.text, about)
    text = _encode((steady, chain[1:] if states_origin else "replicated"))
    return {
        "prefix": harvest.state.prefix,
        "schema": format_.get("schema", ""),
        "namespace": "" if replica else namespace,
        "datestamp": own.datestamp,
        "metadata": metadata.text,
        "about": about,
        "origins": chain if states_origin else [],
        "harvested": own.harvested,
        "digest": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
    }


def _harvest_time(harvest: Harvest, row: HarvestedRow) -> str:
    """Return when a record was harvested: by the repository's clock, or when the last run began."""
    if from_datestamp(row.harvested) is not None:
        return row.harvested
    state = harvest.state
    begun = {run.number: run.started for run in (*state.runs, state.going) if run is not None}
    times = (begun.get(row.run, ""), *sorted(begun.values()))  # old runs are not kept
    return next(filter(from_datestamp, times), "1970-01-01T00:00:00Z")


def _datestamp(harvest: Harvest, row: HarvestedRow) -> str:
    """Return a record's datestamp, or only its day if the time is not in the form of OAI-PMH."""
    for text in (row.datestamp, row.datestamp[:10]):
        if from_datestamp(text) is not None:
            return text
    return _harvest_time(harvest, row)
