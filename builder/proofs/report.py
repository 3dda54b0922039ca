"""What a bundle proves, as text for people and as JSON."""

from typing import Any

from builder.proofs.bundle import Verdict
from builder.text import visible
from functions.snapshot.seal import to_values


def describe_verdict(verdict: Verdict) -> str:
    """Return the claim that a bundle proves, in one or two lines."""
    until = f"until {verdict.until}" if verdict.until else "and was the newest one in the log"
    place = f"snapshot {verdict.snapshot}, which was in effect from {verdict.effective} {until}"
    # A bundle may claim any text: none may look like a part of this one.
    name = visible(verdict.identifier)
    name = f'"{name}"' if " " in name else name
    if not verdict.present:
        return f"{name} was not in {place}"
    state = "was deleted in" if verdict.deleted else "was in"
    return (
        f"{name} {state} {place}\n"
        f"datestamp {verdict.datestamp}, SHA-256 of the record {verdict.digest}"
    )


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """Return the claim as JSON values."""
    return {"proved": True, **to_values(verdict)}
