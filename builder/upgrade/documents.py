"""JSON documents of earlier schemas, brought to the present one."""

import json
from collections.abc import Mapping
from typing import Any

from functions.snapshot import layout
from functions.snapshot.errors import VERSION, DamagedStore, OlderSchemaError, check_version
from functions.snapshot.leaf import MALFORMED, Leaf
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import DIGEST, Pointer, digest
from functions.snapshot.witness import Witness

_LACKING: Mapping[int, Mapping[str, Any]] = {
    # schema: keys that its manifests lack, with the values that mean the same
    1: {"views": "", "publisher": "", "store": ""},
}


def parse(data: bytes, key: str) -> dict[str, Any]:
    """Return a document of any schema up to the present one. Raises NewerSchema, DamagedStore."""
    try:
        found: dict[str, Any] = json.loads(data)
        check_version(found["schema"], found.get("sheaf"))
    except OlderSchemaError:
        pass
    except MALFORMED as error:
        raise DamagedStore(f"{key} is damaged: {error!r}") from error
    return found


def is_older(found: Mapping[str, Any]) -> bool:
    """Return whether a parsed document is of an earlier schema."""
    return bool(found["schema"] < VERSION)


def convert_pointer(found: Mapping[str, Any]) -> Pointer:
    """Return the pointer that a document describes. Raises DamagedStore."""
    return Pointer.from_json(_dump(_check_digest(found, layout.POINTER)))


def convert_witness(found: Mapping[str, Any]) -> Witness:
    """Return the witness that a document describes. Raises DamagedStore."""
    return Witness.from_json(_dump(_check_digest(found, layout.WITNESS)))


def _check_digest(found: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a document without its digest, which must be right if it is there."""
    if found.get(DIGEST, digest({**found})) != digest({**found}):
        raise DamagedStore(f"{key} is damaged: it does not match its {DIGEST}")
    return {name: value for name, value in found.items() if name != DIGEST}


def write_pointer(pointer: Pointer, schema: int) -> bytes:
    """Return a pointer as a document of an earlier schema, which any later one reads."""
    found = {**json.loads(pointer.to_json()), "schema": schema}
    del found[DIGEST]
    return json.dumps({**found, DIGEST: digest(found)}, indent=1).encode()


def convert_manifest(found: Mapping[str, Any]) -> Manifest:
    """Return the manifest that a document describes. Raises DamagedStore."""
    return Manifest.from_json(_dump({**_LACKING.get(found["schema"], {}), **found}))


def convert_leaf(found: Mapping[str, Any]) -> Leaf:
    """Return the leaf that a document describes. Raises DamagedStore."""
    return Leaf.from_json(_dump(found))


def _dump(found: Mapping[str, Any]) -> bytes:
    return json.dumps({**found, "schema": VERSION}).encode()
