"""Statements: what may be done with metadata, or a policy; in words, or by a URL that has them.

OAI-PMH 2.0, guidelines for rights expressions and for the eprints description.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from functions.config import description
from functions.config.configuration import Configuration
from functions.snapshot import setspec


@dataclass(frozen=True, slots=True)
class Statement:
    """Either a URL or a text; the other is empty."""

    url: str = ""
    text: str = ""


def read(value: str) -> Statement:
    """Return the statement that a value of the configuration is."""
    return Statement(url=value) if description.is_url(value) else Statement(text=value)


REPEC = Statement(
    text="Obtained from RePEc (http://repec.org), which is to be named as the source, with a link "
    "to it. No charge may be made for it. Who displays it shows Title, Author-Name and "
    "File-Restriction or, for want of that, the Restriction of series or archive."
)
"""RePEc's terms for its templates, as each of them has them in Dublin Core."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What may be done with the metadata: of every record, and of those within a set."""

    general: Statement | None
    of_sets: Mapping[str, Statement]

    def of(self, sets: tuple[str, ...]) -> tuple[Statement, ...]:
        """Return what holds of a record in `sets`: what is said of the most specific ones.

        Sets of which none lies within the other count side by side; what is said of every record
        holds where nothing is said of any set of the record.
        """
        said = {above for spec in sets for above in setspec.lineage(spec) if above in self.of_sets}
        found = dict.fromkeys(self.of_sets[spec] for spec in setspec.most_specific(said))
        return tuple(found) or ((self.general,) if self.general else ())

    def all(self) -> tuple[Statement, ...]:
        """Return every statement that there is, each once."""
        general = (self.general,) if self.general else ()
        return tuple(dict.fromkeys((*general, *self.of_sets.values())))


def rights(configuration: Configuration) -> Rights:
    """Return the rights that the configuration tells."""
    general = configuration["rights.statement"]
    return Rights(
        read(general) if general else None,
        {spec: read(value) for spec, value in configuration["rights.sets"].items()},
    )
