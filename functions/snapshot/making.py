"""A making: the version of a format's templates, and since when it applies."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.snapshot import instant


@dataclass(frozen=True, slots=True)
class Making:
    """A digest of the templates that produce a format.

    `since` is the instant from which they apply, and `snapshot` the snapshot that took effect then.
    They are None and 0 if the templates never changed. No record has an earlier datestamp in the
    format than `since`.
    """

    digest: str
    since: datetime | None = None
    snapshot: int = 0

    def to_json(self) -> list[Any]:
        """Return it as JSON values for a manifest."""
        return [self.digest, self.since and instant.to_text(self.since), self.snapshot]

    @staticmethod
    def from_json(value: Any) -> "Making":
        """Build it from the output of `to_json`.

        Raises ValueError or TypeError for anything else.
        """
        digest, since, snapshot = value
        return Making(
            str(digest), None if since is None else instant.from_text(since), int(snapshot)
        )
