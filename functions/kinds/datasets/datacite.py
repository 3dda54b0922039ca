"""DataCite: filters for the columns of a dataset (functions.kinds.datasets.COLUMNS).

A value outside DataCite's controlled lists is left out or becomes Other. A mandatory but unknown
value is `(:unav)`, one of DataCite's standard values.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from functions.snapshot.oai_name import is_uri

Values = Sequence[Any] | None

NO_YEAR = "0000"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TYPES = _words(
    "Audiovisual Award Book BookChapter Collection ComputationalNotebook ConferencePaper "
    "ConferenceProceeding DataPaper Dataset Dissertation Event Image Instrument "
    "InteractiveResource Journal JournalArticle Model OutputManagementPlan PeerReview "
    "PhysicalObject Preprint Project Report Service Software Sound Standard StudyRegistration "
    "Text Workflow Other"
)
ROLES = _words(
    "ContactPerson DataCollector DataCurator DataManager Distributor Editor HostingInstitution "
    "Other Producer ProjectLeader ProjectManager ProjectMember RegistrationAgency "
    "RegistrationAuthority RelatedPerson ResearchGroup RightsHolder Researcher Sponsor Supervisor "
    "Translator WorkPackageLeader"
)
RELATIONS = _words(
    "IsCitedBy Cites IsSupplementTo IsSupplementedBy IsContinuedBy Continues IsNewVersionOf "
    "IsPreviousVersionOf IsPartOf HasPart IsPublishedIn IsReferencedBy References IsDocumentedBy "
    "Documents IsCompiledBy Compiles IsVariantFormOf IsOriginalFormOf IsIdenticalTo HasMetadata "
    "IsMetadataFor Reviews IsReviewedBy IsDerivedFrom IsSourceOf Describes IsDescribedBy "
    "HasVersion IsVersionOf Requires IsRequiredBy Obsoletes IsObsoletedBy Collects IsCollectedBy "
    "HasTranslation IsTranslationOf"
)
IDENTIFIERS = _words(
    "ARK arXiv bibcode CSTR DOI EAN13 EISSN Handle IGSN ISBN ISSN ISTC LISSN LSID PMID PURL RRID "
    "UPC URL URN w3id"
)

_WEB = ("http://", "https://")
_ORCID = re.compile(r"[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X]")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_DATE = re.compile(r"([0-9]{4})(-[0-9]{2}(-[0-9]{2})?)?")
_ACCESS = {
    "platform-embargoed": "info:eu-repo/semantics/embargoedAccess",
    "platform-restricted": "info:eu-repo/semantics/restrictedAccess",
}


def doi_url(doi: str | None) -> str:
    """Return a DOI as a URL, "" for None."""
    return f"https://doi.org/{doi}" if doi else ""


def identifier_of(doi: str | None, url: str | None, identifier: str) -> Mapping[str, str]:
    """Return the identifier of a dataset: its DOI, else its page, else the item's identifier."""
    if doi:
        return {"type": "DOI", "value": doi}
    return {"type": "URL", "value": url} if url else {"type": "OAI", "value": identifier}


def people(persons: Values) -> list[Mapping[str, Any]]:
    """Return named people, with `kind`, `given`, `family`, `orcid`, `affiliations`, `role`.

    `kind` is DataCite's nameType, "" if it is unknown whether the name is a person's.
    """
    rows: list[Mapping[str, Any]] = []
    for person in persons or ():
        if not isinstance(person, Mapping) or not _text(person, "name"):
            continue
        forename, family = _text(person, "given"), _text(person, "family")
        orcid = _text(person, "orcid")
        role = _text(person, "role")
        kind = "Personal" if forename or family or orcid else ""
        rows.append(
            {
                "name": _text(person, "name"),
                "kind": "Organizational" if person.get("organisation") is True else kind,
                "given": forename,
                "family": family,
                "orcid": orcid if _ORCID.fullmatch(orcid) else "",
                "affiliations": [a for a in map(_plain, person.get("affiliations") or ()) if a],
                "role": role if role in ROLES else "Other",
            }
        )
    return rows


def issue_date(published: str | None) -> str:
    """Return the day, month or year of publication, "" if unknown."""
    match = _DATE.fullmatch(published[:10]) if published else None
    return match[0] if match else ""


def year(published: str | None) -> str:
    """Return the year of publication, NO_YEAR if unknown."""
    return issue_date(published)[:4] or NO_YEAR


def links(
    related: Values, versions: Values = None, doi: str | None = None
) -> list[Mapping[str, str]]:
    """Return related items in DataCite's terms: `identifier`, `type` and `relation`.

    `versions` are other versions of a dataset with this `doi`; one is named by its DOI, unless all
    versions share it.
    """
    rows = [
        (_text(link, "identifier"), _text(link, "identifier_type"), _text(link, "relation"))
        for link in related or ()
        if isinstance(link, Mapping)
    ]
    for version in versions or ():
        own = _text(version, "doi")
        shared = not own or own == doi
        named = (_text(version, "url"), "URL") if shared else (own, "DOI")
        rows.append((*named, _text(version, "relation")))
    return [
        {"identifier": identifier, "type": kind, "relation": relation}
        for identifier, kind, relation in dict.fromkeys(rows)
        if identifier and kind in IDENTIFIERS and relation in RELATIONS
    ]


def describe_closing(access: Mapping[str, Any]) -> str:
    """Return in one line how a platform closed a dataset, since when, and why."""
    status, since, reason = (_text(access, name) for name in ("status", "since", "reason"))
    return f"{status} since {since}" + (f": {reason}" if reason else "")


def rights_of(licences: Values, status: str | None = None) -> list[Mapping[str, str]]:
    """Return licences as `text`, `spdx` and `url` (a URL or ""), and the access rights.

    The access rights are a term of info:eu-repo, if `status` gives them.
    """
    rows: list[Mapping[str, str]] = []
    for licence in licences or ():
        if isinstance(licence, Mapping):
            name, spdx, url = (_text(licence, key) for key in ("name", "spdx", "url"))
            if name or spdx or url:
                link = url if url.startswith(_WEB) and is_uri(url) else ""
                rows.append({"text": name or spdx or url, "spdx": spdx, "url": link})
    if access := _ACCESS.get(status or ""):
        rows.append({"text": access, "spdx": "", "url": access})
    return rows


def media(files: Values) -> list[str]:
    """Return the media types of files, each once, sorted."""
    return sorted({_text(f, "mimetype") for f in files or () if isinstance(f, Mapping)} - {""})


def language_tag(language: str | None) -> str:
    """Return a language in the form of XML Schema, "" if it is invalid."""
    return language if language and _LANGUAGE.fullmatch(language) else ""


def general_type(declared: str | None) -> str:
    """Return DataCite's general type of resource."""
    return declared if declared in TYPES else "Other" if declared else "Dataset"


def _text(values: Mapping[str, Any], name: str) -> str:
    return _plain(values.get(name))


def _plain(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


FILTERS: Mapping[str, Callable[..., Any]] = {
    "closed": describe_closing,
    "doi_url": doi_url,
    "general_type": general_type,
    "issued": issue_date,
    "language_tag": language_tag,
    "licensed": rights_of,
    "links": links,
    "media": media,
    "named": identifier_of,
    "people": people,
    "year": year,
}
"""Filters of dataset crosswalks, by name."""
