"""Parser for persons' names and ORCID iDs."""

import re

from builder.filesets.item import Person
from builder.filesets.metadata.json_document import text

_ORCID = re.compile(r"(?:https?://(?:www\.)?orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])/?", re.I)


def orcid(value: object) -> str | None:
    """Return an ORCID iD without a resolver's URL; None if it or its check digit is invalid."""
    found = _ORCID.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    total = 0
    digits = found[1].replace("-", "").upper()
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    return found[1].upper() if digits[-1] == ("X" if check == 10 else str(check)) else None


def from_parts(
    given: object, family: object, *, iri: object = None, affiliations: tuple[str, ...] = ()
) -> Person | None:
    """Return a person by the parts of the name, written as `Family, Given`.

    `iri` is an ORCID iD in any form. None if both parts are empty.
    """
    first, last = text(given), text(family)
    if first is None and last is None:
        return None
    return Person(
        name=", ".join(part for part in (last, first) if part),
        given=first if last else None,
        family=last if first else None,
        orcid=orcid(iri),
        affiliations=affiliations,
    )


def from_text(value: object) -> Person | None:
    """Return a person by one text, which is split only if it is exactly `Family, Given`.

    Years and other additions stay in the name: `Ford, David, 1761-1835` is not split.
    """
    name = text(value)
    if name is None:
        return None
    family, comma, given = (part.strip() for part in name.partition(","))
    plain = comma and family and given and "," not in given
    if not plain or any(character.isdigit() for character in name):
        return Person(name=name)
    return Person(name=name, given=given, family=family)
