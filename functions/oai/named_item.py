"""Items by what clients call them: OAI identifiers, and the bare handles of templates."""

from collections.abc import Collection

from functions.oai.repository import PublishedRecord, Repository
from functions.snapshot import oai_name
from functions.snapshot.manifest import Manifest


def find_record(
    repository: Repository, manifest: Manifest, name: str, *, fields: Collection[str] | None = None
) -> PublishedRecord | None:
    """Return the item with that identifier, else the template with that handle, else None.

    `fields` are as in Repository.record. Raises StoreError.
    """
    record = repository.record(manifest, name, fields=fields)
    handle = None if record else oai_name.find_handle(name)
    if handle is None or "template" not in manifest.kinds():
        return record
    prefix = manifest.prefix or oai_name.to_oai(manifest.namespace, "")
    return repository.record(manifest, oai_name.template_identifier(prefix, handle), fields=fields)
