"""Mirror: what an ingest does differently for the repository that the store replicates."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from builder.errors import UsageError
from builder.intake.mirror import check_store, find_replica
from builder.sources.harvest.repository import find_repository, list_addresses
from functions.config.configuration import Configuration
from functions.snapshot import oai_name
from functions.snapshot.instant import from_datestamp
from functions.snapshot.manifest import UNSTAMPED, Manifest, MirrorOrigin
from functions.snapshot.store import Reader
from functions.store.catalog import Catalogue

if TYPE_CHECKING:
    from builder.sources.harvest.ingest import Harvest


Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Replica:
    """The repository to replicate: its `place`, what is published of it, and settings.

    With `provenance`, each record says where it was harvested. `lead` is publish.lead in seconds.
    """

    place: str
    published: MirrorOrigin | None
    provenance: bool
    lead: int

    def describe(self, harvests: Sequence["Harvest"]) -> tuple[MirrorOrigin | None, Pairs]:
        """Return the origin as its harvests have it, and the names of its sets by setSpec, sorted.

        The latest harvest decides. The origin is None if it is as published. Raises UsageError for
        a harvest of another repository.
        """
        formats: dict[str, tuple[str, str]] = {}
        names: Mapping[str, str] = {}
        for harvest in sorted(
            harvests, key=lambda h: max((r.started for r in h.state.runs), default="")
        ):
            if harvest.repository.place != self.place:
                raise UsageError(
                    f"{harvest.folder} is a harvest of {harvest.state.base_url}, but this store "
                    f"replicates {self.place}: a store replicates one repository and nothing else"
                )
            state, names = harvest.state, harvest.names or names
            row = state.format
            if row.get("schema") and row.get("metadataNamespace"):
                formats[state.prefix] = row["schema"], row["metadataNamespace"]
        sets = sorted({replicate_set(s): name or s for s, name in names.items() if s}.items())
        digest = hashlib.sha256(json.dumps(sets).encode()).hexdigest() if sets else ""
        origin = MirrorOrigin(
            place=self.place,
            base_url=state.base_url,
            name=state.identify.get("repositoryName") or harvests[0].repository.host,
            emails=state.emails,
            descriptions=state.descriptions,
            deleted=state.identify.get("deletedRecord", "no"),
            formats=formats,
            sets=digest,
        ).follow(self.published)
        return None if origin == self.published else origin, sets

    def measure_ahead(self, harvest: "Harvest", run: int, latest: str) -> int:
        """Return by how many seconds the origin's clock is ahead at least; 0 within publish.lead.

        `latest` is the last responseDate of a finished run. Clients go on from such dates (see
        docs/operations/mirror.md), so each publish must be later than what it shows.
        """
        ends = (ended.ended for ended in harvest.state.runs if ended.number == run)
        ended, dated = from_datestamp(next(ends, "")), from_datestamp(latest)
        ahead = int((dated - ended).total_seconds()) if dated and ended else 0
        return ahead if ahead > self.lead else 0


def read_replica(configuration: Configuration, store: Reader) -> Replica | None:
    """Return the repository to replicate, None without one. Raises UsageError (check_store)."""
    catalogue = Catalogue(store)
    newest = catalogue.pointer().newest()
    before = catalogue.manifest(newest.snapshot) if newest else Manifest(0, UNSTAMPED, "", (), {})
    rule, replica = find_replica(configuration), None
    if rule is not None:
        place = find_repository(list_addresses(configuration), rule["url"]).place
        replica = Replica(place, before.origin, rule["provenance"], configuration["publish.lead"])
    check_store(before.origin, sum(before.kinds().values()), replica.place if replica else None)
    return replica


def replicate_set(spec: str) -> str:
    """Return the set of a mirror for a set of its origin: the same, if it is a valid setSpec."""
    return spec if oai_name.is_set(spec) else oai_name.join_set(*spec.split(":"))
