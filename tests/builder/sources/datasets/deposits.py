"""Deposits of Zenodo as it is now, made up, at the fake server."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tests.builder.sources.datasets.body import Body, digest
from tests.builder.sources.datasets.pages import REAL, real
from tests.builder.sources.datasets.server import Answer, Server, json_of, served

ZENODO = "https://zenodo.org"


def page(id_: int | str, base: str = ZENODO) -> str:
    """Return the URL of a deposit's landing page."""
    return f"{base}/records/{id_}"


def content(id_: int | str, path: str, base: str = ZENODO) -> str:
    """Return the URL of a file's bytes."""
    return f"{base}/api/records/{id_}/files/{quote(path, safe='')}/content"


def record(
    id_: int | str, files: Mapping[str, Body], base: str = ZENODO, **metadata: Any
) -> dict[str, Any]:
    """Return what the API says of a deposit; those of Zenodo have numbers."""
    concept, prefix = f"{id_}-all", "10.5072/"
    if isinstance(id_, int):
        concept, prefix = str(id_ - 1), "10.5281/zenodo."
    return {
        "id": id_,
        "conceptrecid": concept,
        "doi": f"{prefix}{id_}",
        "conceptdoi": f"{prefix}{concept}",
        "links": {
            "self": f"{base}/api/records/{id_}",
            "self_html": page(id_, base),
            "archive": f"{base}/api/records/{id_}/files-archive",
        },
        "metadata": {
            "title": f"Hives of the year {id_}",
            "creators": [{"name": "Medová, Jana", "orcid": "0000-0002-1825-0097"}],
            "publication_date": "2026-03-04",
            "description": "<p>Weights of hives.</p>",
            "access_right": "open",
            "resource_type": {"type": "dataset"},
            "license": {"id": "cc-by-4.0"},
            "version": "1",
            **metadata,
        },
        "files": [
            {
                "id": f"{id_}-{number}",
                "key": path,
                "size": len(body),
                "checksum": f"md5:{digest('md5', body)}",
                "links": {"self": content(id_, path, base)},
            }
            for number, (path, body) in enumerate(files.items())
        ],
    }


def deposit(
    server: Server,
    id_: int | str,
    files: Mapping[str, Body],
    *,
    answers: Mapping[str, Answer] | None = None,
    base: str = ZENODO,
    **metadata: Any,
) -> str:
    """Have the server know a deposit, and return the URL of its page.

    `answers` are given in place of the files that they name.
    """
    server.add(f"{base}/api/records/{id_}", json_of(record(id_, files, base, **metadata)))
    for path, body in files.items():
        answer = (answers or {}).get(path) or served(body, etag="strong")
        server.add(content(id_, path, base), answer)
    return page(id_, base)


def register(server: Server, name: str, url: str) -> None:
    """Have the registry of DOIs know where one leads."""
    values = [{"index": 1, "type": "URL", "data": {"format": "string", "value": url}}]
    document = {"responseCode": 1, "handle": name, "values": values}
    server.add(f"https://doi.org/api/handles/{name}", json_of(document))


def doi(server: Server, id_: int) -> str:
    """Have the registry of DOIs know a deposit's, and return it."""
    name = f"10.5281/zenodo.{id_}"
    register(server, name, page(id_))
    return name


def real_deposit(server: Server) -> tuple[str, dict[str, bytes]]:
    """Have the server know a real deposit in the older form; return its DOI, and its files."""
    told = real("zenodo/legacy_record_7078725.json")
    folder = REAL / "zenodo" / "bodies" / "7078725"
    bodies = {file.name: file.read_bytes() for file in folder.iterdir()}
    server.add(f"{ZENODO}/api/records/{told['id']}", json_of(told))
    for file in told["files"]:
        server.add(file["links"]["self"], served(bodies[file["key"]]))
    register(server, told["doi"], f"{ZENODO}/record/{told['id']}")
    return str(told["doi"]), bodies
