"""Chains of recorded redirects: from a URL to the one whose bytes are stored."""

from collections.abc import Callable

MOST = 10
"""Maximum length of a chain."""


class RedirectChainError(ValueError):
    """A chain of redirects is a loop, or has more than MOST hops."""


def follow(url: str, step: Callable[[str], str | None]) -> list[str]:
    """Return the chain of URLs that begins with `url`.

    `step` returns the target of a URL, or None at the end. Raises RedirectChainError.
    """
    chain = [url]
    while (target := step(chain[-1])) is not None:
        if target in chain:
            raise RedirectChainError(f"{url} leads to {target} again: the redirects are a loop")
        if len(chain) > MOST:
            raise RedirectChainError(f"{url} leads to {target}: more than {MOST} redirects")
        chain.append(target)
    return chain
