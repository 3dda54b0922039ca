"""The demo's dataset: a record of a local platform with the API of InvenioRDM."""

import hashlib
import json
from collections.abc import Mapping

RECORD = "/records/hives-2024"
_API = "/api/records/hives-2024"
_FILES = {
    "README.txt": b"Weights of hives on the roofs of a town. Made up for a demonstration.\n",
    "hives.csv": b"hive,roof\n1,school\n2,library\n3,town hall\n",
    "weights.csv": b"day,hive,grams\n"
    + b"".join(b"2024-06-%02d,%d,%d\n" % (d, h, 31_000 + 70 * d + 900 * h)
               for d in range(1, 31) for h in (1, 2, 3)),
}  # fmt: skip
FILES = len(_FILES)


def answers(base: str) -> Mapping[str, tuple[str, bytes]]:
    """Return the responses of the platform at `base`: media type and body by path."""
    found = {
        f"{_API}/files/{name}/content": (
            "text/plain" if name.endswith(".txt") else "text/csv",
            data,
        )
        for name, data in _FILES.items()
    }
    return {**found, _API: ("application/json", json.dumps(_record(base)).encode())}


def _record(base: str) -> dict[str, object]:
    def person(family: str, given: str) -> dict[str, object]:
        return {
            "person_or_org": {
                "type": "personal",
                "name": f"{family}, {given}",
                "family_name": family,
                "given_name": given,
            },
            "affiliations": [{"name": "Institute of Bees"}],
        }

    entries = {
        name: {
            "key": name,
            "size": len(data),
            "checksum": f"md5:{hashlib.md5(data, usedforsecurity=False).hexdigest()}",
            "mimetype": "text/plain" if name.endswith(".txt") else "text/csv",
            "links": {"content": f"{base}{_API}/files/{name}/content"},
        }
        for name, data in _FILES.items()
    }
    return {
        "id": "hives-2024",
        "parent": {"id": "hives"},
        "is_published": True,
        "access": {"record": "public", "files": "public"},
        "pids": {"doi": {"identifier": "10.5072/hives.2024"}},
        "links": {"self": f"{base}{_API}", "self_html": f"{base}{RECORD}"},
        "metadata": {
            "title": "Weights of hives in a town",
            "creators": [person("Wax", "Ida"), person("Comb", "Otto")],
            "publisher": "Sheaf's demonstration",
            "publication_date": "2024-07-01",
            "resource_type": {"id": "dataset"},
            "description": "<p>Three hives were weighed on each day of June.</p>",
            "subjects": [{"subject": "honey"}, {"subject": "bees"}],
            "languages": [{"id": "eng"}],
            "rights": [
                {
                    "id": "cc-by-4.0",
                    "title": {"en": "Creative Commons Attribution 4.0"},
                    "link": "https://creativecommons.org/licenses/by/4.0/",
                }
            ],
            "version": "1.0",
        },
        "files": {
            "enabled": True,
            "count": len(_FILES),
            "total_bytes": sum(map(len, _FILES.values())),
            "entries": entries,
        },
    }
