"""Settings with which each process connects to sources on other machines."""

from dataclasses import dataclass, field

from functions.config import configuration
from functions.config.configuration import Configuration
from functions.store.connection import BucketConnection


@dataclass(frozen=True, slots=True)
class SourceAccess:
    """Settings for sources in buckets and on servers; credentials are in the environment."""

    bucket: BucketConnection = field(default_factory=BucketConnection)
    settings: Configuration = field(default_factory=lambda: configuration.parse("", {}))
    """It has the keys `http.*`."""

    @classmethod
    def of(cls, settings: Configuration) -> "SourceAccess":
        """Return the access that the configuration describes."""
        return cls(BucketConnection.of(settings), settings)
