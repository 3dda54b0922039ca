"""Exchanges of a visit: requests and what came for each."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

Arguments = tuple[tuple[str, str], ...]
"""Names and values in the order in which they are sent; a name may come twice."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how: by which method, with or without the cookies of earlier answers.

    `coding` is the content coding that is accepted. What is `wrong` is sent once only.
    """

    arguments: Arguments
    method: str = "GET"
    coding: str = "gzip"
    cookies: bool = True
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its response; `status` is 0 if there was none, and `trouble` says why.

    `fields` are the first header field of each name, in lower case. `body` is unpacked. `size` is
    the number of its bytes, `seconds` the time until it was complete. `failures` counts earlier
    attempts that failed. `redirected`: there was a redirect; `lost_query`: one without a query;
    `moved`: one for good.
    `code` is that of builder.http.errors. `coded` is the content coding, and `mislabelled` means
    that the body has another one.
    """

    arguments: Arguments
    url: str
    method: str = "GET"
    status: int = 0
    fields: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    size: int = 0
    seconds: float = 0.0
    trouble: str = ""
    code: str = ""
    coded: str = ""
    mislabelled: bool = False
    failures: int = 0
    lost_query: bool = False
    redirected: bool = False
    moved: bool = False

    @property
    def verb(self) -> str:
        """The verb that was sent, or ""."""
        return dict(self.arguments).get("verb", "")

    def curl(self, header_names: Iterable[str] = ()) -> str:
        """Return the request as a command line; values of the named headers are left out."""
        words = ["curl", "-sS"]
        for name in header_names:
            words += ["-H", f"{name}: ..."]
        if self.method == "POST":
            words += ["-d", urlencode(self.arguments)]
        return shlex.join([*words, self.url])
