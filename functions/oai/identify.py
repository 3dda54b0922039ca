"""Identify responses (OAI-PMH 2.0, section 4.2, and the guidelines)."""

from functions import distribution
from functions.config.configuration import Configuration
from functions.oai.answer import Identify
from functions.oai.rights import REPEC, Statement, parse_statement, read_rights
from functions.snapshot import identifier, layout
from functions.snapshot.instant import from_text
from functions.snapshot.manifest import Manifest

_SAMPLE = identifier.capture_identity(b"http://example.org/", None, None, None)


def identify(configuration: Configuration, manifest: Manifest) -> Identify:
    """Return the Identify response as of a snapshot.

    The sample identifier has the form of the oai-identifier guideline and need not exist. It is
    empty if templates keep identifiers of another form. A configured earliest datestamp is used
    only if it is a lower bound of all datestamps.
    """
    earliest = configuration["repository.earliest_datestamp"]
    floor = min(manifest.earliest, from_text(earliest)) if earliest else manifest.earliest
    root = configuration["identify.data_url"]
    if root and not root.endswith("/"):
        root += "/"
    return Identify(
        name=configuration["repository.name"],
        emails=tuple(configuration["repository.admin_emails"]),
        earliest=floor,
        namespace=manifest.namespace,
        sample="" if _strange(manifest) else identifier.to_oai(manifest.namespace, _SAMPLE),
        snapshot=manifest.snapshot,
        effective=manifest.effective,
        records=sum(manifest.kinds().values()),
        parquet=root and root + layout.RECORDS,
        views=root and root + layout.views_key(manifest.snapshot),
        version=distribution.version(),
        friends=tuple(configuration["identify.friends"]),
        branding=configuration["identify.branding"],
        policies={
            name: parse_statement(said) for name, said in configuration["identify.eprints"].items()
        },
        rights=_rights(configuration, manifest),
        descriptions=tuple(text.strip() for text in configuration["identify.descriptions"]),
    )


def _strange(manifest: Manifest) -> bool:
    """Return whether templates have identifiers without the form of the oai-identifier scheme."""
    return manifest.prefix not in ("", identifier.to_oai(manifest.namespace, ""))


def _rights(configuration: Configuration, manifest: Manifest) -> tuple[Statement, ...]:
    told = read_rights(configuration).all()
    return (*told, REPEC) if manifest.kinds().get("template") else told
