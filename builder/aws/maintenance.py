"""Maintenance of a store by events: what `sheaf expire` and `sheaf verify` do.

    {"task": "expire", "keep": 10, "days": 90}
    {"task": "verify", "parts": 30, "time": "2026-11-23T03:00:00Z"}     the part of that day
    {"task": "verify", "part": "3/30"}
    {"task": "verify"}                                                  everything

A timer passes the time for which it was set. So a repeated event reads the same part, and as many
days in a row as there are parts read everything.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from builder.errors import UsageError
from builder.outputs.follow import expire
from builder.progress import show_bytes
from builder.store.context import Context
from builder.verify.choice import StorePart, parse_part
from builder.verify.report import make_report, record, report_document
from builder.verify.verify import VerifyRuntime, verify
from functions.config.configuration import Configuration

_MOST = 999_999


def expire_snapshots(context: Context, event: Mapping[str, Any]) -> dict[str, object]:
    """Retire snapshots that are neither among the newest `keep` nor younger than `days`.

    Raises NothingPublished, UsageError and StoreError.
    """
    if "keep" not in event and "days" not in event:
        raise UsageError(f"the event selects nothing: give keep, days, or both: {event}")
    keep = _number(event, "keep", 1, 1)
    age = timedelta(days=_number(event, "days", 0, 0))
    done = expire(context.published_store(), context.runtime(), keep, age)
    return {"task": "expire", **asdict(done)}


def verify_part(
    context: Context, event: Mapping[str, Any], settings: Configuration
) -> dict[str, object]:
    """Check the part that the event names, record the report in the store, and return it.

    `damage` counts objects.
    Raises NothingPublished, UsageError and StoreError.
    """
    choice, began, store = _choose_part(event), context.now(), context.published_store()
    runtime = VerifyRuntime(
        context.now, show_bytes, settings["publish.memory"], os.cpu_count() or 1
    )
    done = verify(store, runtime, choice=choice)
    record(store, make_report(done, choice, began, context.now()))
    return {"task": "verify", **report_document(context.store.address, done, choice)}


def _choose_part(event: Mapping[str, Any]) -> StorePart | None:
    if "part" in event:
        return parse_part(str(event["part"]))
    if "parts" not in event:
        return None
    count = _number(event, "parts", 1, 1)
    try:
        day = datetime.fromisoformat(str(event.get("time"))).toordinal()
    except ValueError as error:
        raise UsageError(
            f"the event has parts, but no time such as 2026-11-23T03:00:00Z: {event}"
        ) from error
    return StorePart(day % count + 1, count)


def _number(event: Mapping[str, Any], name: str, default: int, least: int) -> int:
    value = event.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise UsageError(f"{name}: expected a number from {least}, got {value!r}")
    return value
