"""Folders of harvests, written as a harvest writes them, without one."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from builder.sources.harvest import folder as folders
from builder.sources.harvest import records
from builder.sources.harvest.state import HarvestState, PartFile
from builder.sources.harvest.version import HarvestedRow
from tests.builder.sources.harvest import element
from tests.builder.sources.harvest.element import Item
from tests.builder.sources.harvest.provider import PREFIXES

OAI = ' xmlns="http://www.openarchives.org/OAI/2.0/"'
XSI = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
FORM = "%Y-%m-%dT%H:%M:%SZ"
URL = "http://a.cz/oai"


def row(
    item: Item, prefix: str = "oai_dc", came: str = "2026-11-22T10:00:00Z", fault: str | None = None
) -> HarvestedRow:
    """Return the row of an item as a harvest would write it."""
    text = element.record(item, prefix, FORM).replace("<record", f"<record{OAI}{XSI}", 1)
    stamp = item.stamp.strftime(FORM)
    return HarvestedRow(item.identifier, stamp, item.deleted, item.sets, {}, text, came, 1, fault)


def harvest(
    folder: Path,
    rows: Iterable[HarvestedRow],
    url: str = URL,
    prefix: str = "oai_dc",
    form: str = "parquet",
    sets: Sequence[tuple[str, str]] = (),
    name: str = "Archive A",
    set_: str | None = None,
    begun: str | None = None,
    format_: Mapping[str, str] | None = None,
) -> Path:
    """Write a harvest into a folder of harvests, in place of one of the same; return its own.

    Its run began at `begun`, else when the last row came.
    """
    own = folder / folders.folder_name(url, prefix, set_)
    own.mkdir(parents=True, exist_ok=True)
    file = folders.part_name(1, 1, form)
    writer = records.open_part(own / file, form)
    written = [*rows]
    for one in written:
        writer.append(one)
    writer.close()
    schema, namespace = PREFIXES.get(prefix, ("", ""))
    begun = begun or max((one.harvested for one in written), default="")
    state = HarvestState(
        base_url=url,
        prefix=prefix,
        set=set_,
        form=form,
        identify={"repositoryName": name, "granularity": "YYYY-MM-DDThh:mm:ssZ"},
        format=format_
        or {"metadataPrefix": prefix, "schema": schema, "metadataNamespace": namespace},
        parts=[PartFile(file, len(written), (own / file).stat().st_size, begun)],
    )
    (own / folders.STATE).write_bytes(state.document())
    if sets:
        (own / folders.SETS).write_text(json.dumps(sets), "utf-8")
    return own
