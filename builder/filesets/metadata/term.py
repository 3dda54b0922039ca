"""DataCite's terms for platforms' terms."""

from collections.abc import Mapping

from builder.filesets.item import Related
from builder.filesets.metadata.json_document import text
from functions.oai.render.datacite import RELATIONS

_RELATED = {name.lower(): name for name in RELATIONS}
_ROLES = """
ContactPerson DataCollector DataCurator DataManager Distributor Editor HostingInstitution Producer
ProjectLeader ProjectManager ProjectMember RegistrationAgency RegistrationAuthority RelatedPerson
Researcher ResearchGroup RightsHolder Sponsor Supervisor WorkPackageLeader
"""
_CONTRIBUTORS = {name.lower(): name for name in _ROLES.split()}
_SCHEMES = {
    "ark": "ARK",
    "arxiv": "arXiv",
    "ads": "bibcode",
    "bibcode": "bibcode",
    "doi": "DOI",
    "ean13": "EAN13",
    "eissn": "EISSN",
    "handle": "Handle",
    "hdl": "Handle",
    "igsn": "IGSN",
    "isbn": "ISBN",
    "issn": "ISSN",
    "istc": "ISTC",
    "lsid": "LSID",
    "pmid": "PMID",
    "purl": "PURL",
    "upc": "UPC",
    "url": "URL",
    "urn": "URN",
    "w3id": "w3id",
}
"""Platforms' names of schemes, in lower case, and DataCite's relatedIdentifierType."""


def relate(identifier: object, scheme: object, relation: object) -> tuple[Related, ...]:
    """Return the related identifier; empty if DataCite has no term for the scheme or relation."""
    named = text(identifier)
    kind = _SCHEMES.get((text(scheme) or "").lower())
    how = _RELATED.get((text(relation) or "").lower())
    return (Related(named, kind, how),) if named and kind and how else ()


def general(kind: object, types: Mapping[str, str]) -> str:
    """Return DataCite's resourceTypeGeneral of a platform's type, `Other` if `types` lacks it.

    No type means Dataset.
    """
    named = text(kind)
    return "Dataset" if named is None else types.get(named.lower(), "Other")


def role(value: object) -> str:
    """Return DataCite's contributorType of a platform's role, `Other` if it has none."""
    named = (text(value) or "").lower().replace(" ", "")
    return _CONTRIBUTORS.get(named, "Other")
