"""Rights statements on metadata, and policies: each a text or the URL of a text.

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
    """Return a configuration value as a statement."""
    return Statement(url=value) if description.is_url(value) else Statement(text=value)


REPEC = Statement(
    text="Obtained from RePEc (http://repec.org), which is to be named as the source, with a link "
    "to it. No charge may be made for it. Who displays it shows Title, Author-Name and "
    "File-Restriction or, for want of that, the Restriction of series or archive."
)
"""RePEc's terms for its templates, as each of them has them in Dublin Core."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights statements for all metadata, and for records within a set."""

    general: Statement | None
    of_sets: Mapping[str, Statement]

    def of(self, sets: tuple[str, ...]) -> tuple[Statement, ...]:
        """Return the statements for a record in `sets`: those of its most specific sets.

        If several sets do not contain each other, the statements of all of them apply. The general
        statement applies if no set of the record has one.
        """
        said = {above for spec in sets for above in setspec.lineage(spec) if above in self.of_sets}
        found = dict.fromkeys(self.of_sets[spec] for spec in setspec.most_specific(said))
        return tuple(found) or ((self.general,) if self.general else ())

    def all(self) -> tuple[Statement, ...]:
        """Return each statement once."""
        general = (self.general,) if self.general else ()
        return tuple(dict.fromkeys((*general, *self.of_sets.values())))


def read_rights(configuration: Configuration) -> Rights:
    """Return the rights of the configuration."""
    general = configuration["rights.statement"]
    return Rights(
        parse_statement(general) if general else None,
        {spec: parse_statement(value) for spec, value in configuration["rights.sets"].items()},
    )
