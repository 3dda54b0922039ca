"""The demo's sequel: what becomes of a change, from the archive's folder to the harvester."""

from collections.abc import Callable
from dataclasses import dataclass

from builder.demo import papers
from builder.demo.harvesting import Crop, Field
from builder.demo.outline import outline
from builder.demo.repec import Exhibit, Taken
from builder.display import tally
from builder.obi.row import TEMPLATE, Incidence
from builder.snapshot.transaction import Built
from functions.snapshot import identifier

_FORMATS = ("oai_dc", "amf", "redif")
_DATASET = "oai_datacite"


@dataclass(frozen=True, slots=True)
class Sequel:
    """What happened, what a harvester was told of it, and the answers to it as lines."""

    incidences: tuple[Incidence, ...]
    harvested: Crop
    answers: tuple[str, ...]

    def problem(self) -> str | None:
        """Return what is not as it should be, None if all is."""
        happened = sorted(f"{row.what} {row.kind}" for row in self.incidences)
        if happened != ["change fobi", "change tobi", "deletion fobi", "deletion tobi"]:
            return f"two changes and two deletions were to be noted, and these were: {happened}"
        if (self.harvested.records, self.harvested.deleted) != (2, 1):
            return (
                f"a changed and a deleted record were to be harvested, and it was "
                f"{tally(self.harvested.records, 'record')}, {self.harvested.deleted} deleted"
            )
        return None

    def lines(self) -> list[str]:
        """Return what happened for people."""
        harvested = self.harvested
        return [
            "  then        an abstract and a full text were changed, a template and a full text "
            "taken away:",
            *(
                f"    {row.what:10}{'template' if row.kind == TEMPLATE else 'file':10}{row.id}"
                for row in self.incidences
            ),
            f"  harvested   {tally(harvested.records, 'record')} since {harvested.since}, "
            f"{harvested.deleted} of them deleted",
            "",
            *(f"  {line}" for line in self.answers),
        ]

    def document(self) -> dict[str, object]:
        """Return what happened as --json prints it."""
        return {
            "incidences": [[row.what, row.kind, row.id] for row in self.incidences],
            "since": self.harvested.since,
            "harvested": self.harvested.records,
            "deleted": self.harvested.deleted,
        }


def sequel(
    shown: Exhibit, publish: Callable[[], Built], field: Field, prefix: str, dataset: str
) -> Sequel:
    """Change the archive, take it in, publish, and harvest what is new since the last harvest.

    `prefix` is that of the templates' identifiers, `dataset` the identifier of a dataset that is
    shown besides. Raises HarvestError and StoreError.
    """
    shown.change()
    taken: Taken = shown.take_in()
    publish()
    news = field.harvest()
    answers: list[str] = []
    changed = identifier.template(prefix, papers.CHANGED)
    for format_ in _FORMATS:
        header, *rest = outline(field.record(changed, format_))
        answers += [f"{format_:12}{header}" if not answers else format_, *rest]
    (header,) = outline(field.record(identifier.template(prefix, papers.REMOVED), "oai_dc"))
    answers.append(f"{'deleted':12}{header}")
    header, *rest = outline(field.record(dataset, _DATASET))
    answers += [f"{'dataset':12}{header}", _DATASET, *rest]
    return Sequel(taken.incidences, news, tuple(answers))
