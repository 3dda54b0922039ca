"""Platforms of one operator: how a dataset is known to be there."""

import re
from typing import ClassVar

from builder.sources.datasets.item import DatasetResource
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.protocols import PlatformFacts


class HostedPlatform:
    """A platform that is known by the `hosts` of its pages, or by its `dois`."""

    facts: ClassVar[PlatformFacts]
    hosts: ClassVar[frozenset[str]]
    dois: ClassVar[re.Pattern[str] | None] = None

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether it is the platform, by host or DOI."""
        if json_document.host(resource.url) in self.hosts:
            return True
        return self.dois is not None and self.dois.fullmatch(resource.doi or "") is not None
