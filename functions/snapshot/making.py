"""Making: what makes the XML of a metadata format, and since when."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.snapshot import instant


@dataclass(frozen=True, slots=True)
class Making:
    """A digest of the templates that make a format.

    `since` is the instant from which it is so, and `snapshot` the one that took effect then; None
    and 0 for a format that has been made so for as long as it is known. In the format no record
    has an earlier datestamp than `since`.
    """

    digest: str
    since: datetime | None = None
    snapshot: int = 0

    def to_json(self) -> list[Any]:
        """Return it as a manifest holds it."""
        return [self.digest, self.since and instant.to_text(self.since), self.snapshot]

    @staticmethod
    def from_json(value: Any) -> "Making":
        """Read what `to_json` gave. Raises ValueError or TypeError for anything else."""
        digest, since, snapshot = value
        return Making(
            str(digest), None if since is None else instant.from_text(since), int(snapshot)
        )
