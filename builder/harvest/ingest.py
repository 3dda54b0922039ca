"""Aggregation: copies harvested records from their folders into an intake run.

Guidelines for aggregators (http://www.openarchives.org/OAI/2.0/guidelines-aggregator.htm): an item
keeps its identifier if this is of the oai scheme. Each record says where it was harvested.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from builder.errors import UsageError
from builder.harvest import folder
from builder.harvest.errors import Broken, HarvestError
from builder.harvest.fragment import (
    Fragment,
    HarvestOrigin,
    cut_fragments,
    is_provenance,
    is_uri,
    origins,
)
from builder.harvest.state import HarvestState
from builder.harvest.version import HarvestedRow
from builder.intake import intake
from builder.intake.rows import IntakeWriter
from builder.parquet.writer import RowWriter
from builder.sources.events import FAULT_CODES, Fault
from builder.text import tally
from functions.snapshot import oai_name
from functions.snapshot.instant import from_datestamp
from functions.snapshot.item_tables import INTAKE, NAMES
from functions.snapshot.store import Writer

UNREADABLE = "harvest-unreadable"
_SCHEME = "oai:"
_SAFE = "!#$&'()*+,/:;=?@[]~%"


@dataclass(frozen=True, slots=True)
class Harvest:
    """A harvest on disk: its folder and its state; `names` are those of its repository's sets."""

    folder: Path
    state: HarvestState
    names: Mapping[str, str]

    @property
    def host(self) -> str:
        """The host of the repository, with the port if one is given."""
        return urlsplit(self.state.base_url).netloc.rpartition("@")[2].lower()

    @property
    def place(self) -> str:
        """The base URL without its scheme, which distinguishes repositories of one host."""
        parts = urlsplit(self.state.base_url)
        path = parts.path.rstrip("/")
        return f"{self.host}{path}{'?' if parts.query else ''}{parts.query}"


@dataclass(slots=True)
class Gathered:
    """Result of an ingest: the schema and namespace of each prefix, and counts."""

    run: str
    harvests: int = 0
    records: int = 0
    deleted: int = 0
    unreadable: int = 0
    formats: dict[str, tuple[str, str]] = field(default_factory=dict)

    def text(self, offered: Collection[str]) -> str:
        """Return a summary, with the formats that are not `offered` yet."""
        lines = [
            f"{tally(self.records, 'record')} of {tally(self.harvests, 'harvest')}, "
            f"{self.deleted:,} deleted, ready to publish"
        ]
        if self.unreadable:
            left_out = tally(self.unreadable, "record is skipped", "records are skipped")
            lines.append(f"{left_out}: {FAULT_CODES[UNREADABLE]}")
        for prefix, (schema, namespace) in sorted(self.formats.items()):
            if prefix not in offered:
                values = {"prefix": prefix, "schema": schema, "namespace": namespace}
                lines += [
                    f"{prefix} is not offered: add this row to formats.toml in the folder "
                    "formats.templates to offer it",
                    "  [[format]]",
                    *(f"  {k} = {json.dumps(v, ensure_ascii=False)}" for k, v in values.items()),
                    '  crosswalks = { harvested = "harvested-raw.xml" }',
                ]
        return "\n".join(lines)


def find(source: str) -> tuple[Path, ...]:
    """Return the harvest folders at a source; an empty tuple if the source is anything else."""
    path = Path(source)
    if not path.is_dir():
        return ()
    if (path / folder.STATE).is_file():
        return (path,)
    return tuple(sorted(one.parent for one in path.glob(f"*/{folder.STATE}")))


def open_harvest(place: Path) -> Harvest:
    """Return the harvest in a folder. Raises UsageError."""
    names = place / folder.SETS
    try:
        found = folder.read(place)
        if found is None:
            raise UsageError(f"{place} is no longer a folder of a harvest")
        told = json.loads(names.read_bytes()) if names.is_file() else []
        return Harvest(place, found, {str(spec): str(name) for spec, name in told})
    except HarvestError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{place} cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError) as error:
        raise UsageError(f"{names} is damaged: {error!r}") from error


def ingest(
    store: Writer, places: Sequence[Path], namespace: str, scratch: Path, name: str
) -> Gathered:
    """Write the harvests into the intake, as one run. Raises UsageError, StoreError.

    `namespace` is the store's own. An item of another repository does not keep an identifier in
    this namespace.
    """
    gathered = Gathered(name)
    with intake.writing(scratch):
        rows = RowWriter(intake.part_path(scratch, "harvested", "000000"), INTAKE)
        names = RowWriter(intake.part_path(scratch, "set_names", "000000"), NAMES)
        faults = IntakeWriter(scratch, "000000")
        for place in places:
            harvest = open_harvest(place)
            gathered.harvests += 1
            try:
                _add(harvest, namespace, rows, faults, gathered)
            except HarvestError as error:
                raise UsageError(str(error)) from error
            for spec, called in _names(harvest):
                names.append((spec, called))
        for writer in (rows, names, faults):
            writer.close()
    run = intake.IntakeRun(name, (), harvested=gathered.records)
    intake.commit(store, run, scratch)
    return gathered


def _add(
    harvest: Harvest, namespace: str, rows: RowWriter, faults: IntakeWriter, gathered: Gathered
) -> None:
    """Write the rows of a harvest, and a fault for each unreadable row."""
    state_ = harvest.state
    for row in folder.rows(harvest.folder, state_):
        try:
            made = entry(harvest, row)
        except Broken as error:
            gathered.unreadable += 1
            faults.fault(
                Fault(state_.base_url, None, UNREADABLE, row.identifier, str(error), "left out")
            )
            continue
        gathered.records += 1
        gathered.deleted += made is None
        if made is not None:
            gathered.formats[state_.prefix] = (made["schema"], made["namespace"])
        rows.append(_row(harvest, row, namespace, made))


def _row(
    harvest: Harvest, row: HarvestedRow, namespace: str, made: Mapping[str, Any] | None
) -> tuple[Any, ...]:
    """Return a row of INTAKE."""
    other = oai_name.harvested_identifier(namespace, harvest.place, row.identifier)
    keeps = is_kept(row.identifier, namespace)
    return (
        row.identifier if keeps else other,
        other,
        harvest.state.base_url,
        harvest.state.identify.get("repositoryName") or harvest.host,
        row.identifier,
        harvest.state.prefix,
        made is None,
        _datestamp(harvest, row),
        _harvest_time(harvest, row),
        sorted({*row.sets}),
        list(sets(harvest.host, row.sets)),
        None if made is None else json.dumps(made, ensure_ascii=False, sort_keys=True),
        None if made is None else made["digest"],
    )


def is_kept(identifier_: str, namespace: str) -> bool:
    """Return whether an item keeps its identifier: of the oai scheme, and of another namespace.

    Otherwise a harvested repository could give an item one of our own identifiers.
    """
    own = identifier_.lower().startswith(f"{_SCHEME}{namespace.lower()}:")
    return identifier_.startswith(_SCHEME) and is_uri(identifier_) and not own


def sets(host: str, specs: Sequence[str]) -> tuple[str, ...]:
    """Return our sets of an item, given the host of its repository and its setSpecs there."""
    return oai_name.most_specific_sets(
        [oai_name.join_set("repository", host), *(_from(host, spec) for spec in specs)]
    )


def _from(host: str, spec: str) -> str:
    """Return our set for a set of another repository."""
    if oai_name.is_set(spec):
        return f"{oai_name.join_set('from', host)}:{spec}"
    return oai_name.join_set("from", host, *spec.split(":"))


def _names(harvest: Harvest) -> Iterator[tuple[str, str]]:
    """Yield the names of sets."""
    called = harvest.state.identify.get("repositoryName")
    if called:
        yield oai_name.join_set("repository", harvest.host), called
    for spec, name in sorted(harvest.names.items()):
        if spec and name:
            yield _from(harvest.host, spec), name


def entry(harvest: Harvest, row: HarvestedRow) -> dict[str, Any] | None:
    """Return the entry of an item in a format; None for a deleted item. Raises Broken.

    `digest` is the same for the same record, whenever it was harvested.
    """
    if row.deleted:
        return None
    pieces = cut_fragments(row.record)
    if pieces.metadata is None:
        raise Broken("it has no metadata")
    metadata, format_ = pieces.metadata, harvest.state.format
    namespace = metadata.namespace or format_.get("metadataNamespace", "")
    own = HarvestOrigin(
        harvested=_harvest_time(harvest, row),
        altered=row.fault is not None,
        base_url=harvest.state.base_url,
        identifier=_uri(row.identifier),
        datestamp=_datestamp(harvest, row),
        namespace=namespace if is_uri(namespace) else f"urn:{quote(namespace, safe='') or 'none'}",
    )
    told, earlier = _split_about(pieces.about)
    found: dict[str, Any] = {
        "prefix": harvest.state.prefix,
        "schema": format_.get("schema", ""),
        "namespace": namespace,
        "datestamp": own.datestamp,
        "metadata": metadata.text,
        "about": [piece.text for piece in told],
        "origins": [asdict(own), *(asdict(one) for one in earlier)],
    }
    steady = {**found, "origins": [{**found["origins"][0], "harvested": ""}, *found["origins"][1:]]}
    text = json.dumps(steady, ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return {**found, "harvested": own.harvested, "digest": digest}


def _split_about(about: Sequence[Fragment]) -> tuple[list[Fragment], tuple[HarvestOrigin, ...]]:
    """Split the about containers of a record into provenance and others."""
    told = [piece for piece in about if not is_provenance(piece)]
    chains = [origins(piece) for piece in about if is_provenance(piece)]
    return told, next(filter(None, chains), ())


def _uri(text: str) -> str:
    """Return an identifier as a URI, which the schema of the container requires."""
    return text if is_uri(text) else quote(text, safe=_SAFE) or "none"


def _harvest_time(harvest: Harvest, row: HarvestedRow) -> str:
    """Return when a record was harvested: by the repository's clock, or when the last run began."""
    if from_datestamp(row.harvested) is not None:
        return row.harvested
    state = harvest.state
    begun = {run.number: run.started for run in (*state.runs, state.going) if run is not None}
    known = (begun.get(row.run, ""), *sorted(begun.values()))  # old runs are not kept
    return next(filter(from_datestamp, known), "1970-01-01T00:00:00Z")


def _datestamp(harvest: Harvest, row: HarvestedRow) -> str:
    """Return a record's datestamp, or only its day if the time is not in the form of OAI-PMH."""
    for text in (row.datestamp, row.datestamp[:10]):
        if from_datestamp(text) is not None:
            return text
    return _harvest_time(harvest, row)
