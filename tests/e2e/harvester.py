"""A minimal OAI-PMH harvester: walks a whole list and says what it saw."""

from dataclasses import dataclass
from urllib.parse import urlencode
from urllib.request import urlopen
from xml.etree import ElementTree

_OAI = "{http://www.openarchives.org/OAI/2.0/}"


@dataclass(frozen=True)
class HarvestSummary:
    """What a harvest saw: all records, how many of them are deleted, and who they are."""

    records: int
    deleted: int
    identifiers: frozenset[str]


def harvest(base_url: str, prefix: str = "oai_dc", set: str | None = None) -> HarvestSummary:
    """Harvest all records of `base_url` in a format, of one set if `set` is given.

    No identifier may come twice, and no page but an empty list may be without records.
    """
    arguments = {"verb": "ListRecords", "metadataPrefix": prefix, **({"set": set} if set else {})}
    seen: dict[str, bool] = {}
    while arguments:
        with urlopen(f"{base_url}?{urlencode(arguments)}", timeout=60) as response:
            root = ElementTree.fromstring(response.read())
        errors = [error.get("code") for error in root.findall(f"{_OAI}error")]
        if not seen and errors == ["noRecordsMatch"]:
            break
        headers = root.findall(f"{_OAI}ListRecords/{_OAI}record/{_OAI}header")
        assert headers, errors
        for header in headers:
            name = header.findtext(f"{_OAI}identifier", "")
            assert name not in seen, f"{name} came twice"
            seen[name] = header.get("status") == "deleted"
        token = root.findtext(f"{_OAI}ListRecords/{_OAI}resumptionToken")
        arguments = {"verb": "ListRecords", "resumptionToken": token} if token else {}
    return HarvestSummary(len(seen), sum(seen.values()), frozenset(seen))
