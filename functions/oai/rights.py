"""Rights of metadata, and policies: statements in words, or by the URL of such words.

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


def parse_statement(value: str) -> Statement:
    """Return the statement of a value of the configuration."""
    return Statement(url=value) if description.is_url(value) else Statement(text=value)


REPEC = Statement(
    text="Obtained from RePEc (http://repec.org), which is to be named as the source, with a link "
    "to it. No charge may be made for it. Who displays it shows Title, Author-Name and "
    "File-Restriction or, for want of that, the Restriction of series or archive."
)
"""RePEc's terms for its templates, as each of them has them in Dublin Core."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Statements about the metadata of every record, and of records within a set."""

    general: Statement | None
    of_sets: Mapping[str, Statement]

    def of(self, sets: tuple[str, ...]) -> tuple[Statement, ...]:
        """Return the statements for a record in `sets`: those of its most specific sets.

        Sets that do not lie within each other count side by side. The general statement holds for
        a record without a statement for any of its sets.
        """
        said = {above for spec in sets for above in setspec.lineage(spec) if above in self.of_sets}
        found = dict.fromkeys(self.of_sets[spec] for spec in setspec.most_specific(said))
        return tuple(found) or ((self.general,) if self.general else ())

    def all(self) -> tuple[Statement, ...]:
        """Return every statement once."""
        general = (self.general,) if self.general else ()
        return tuple(dict.fromkeys((*general, *self.of_sets.values())))


def read_rights(configuration: Configuration) -> Rights:
    """Return the rights of the configuration."""
    general = configuration["rights.statement"]
    return Rights(
        parse_statement(general) if general else None,
        {spec: parse_statement(value) for spec, value in configuration["rights.sets"].items()},
    )
