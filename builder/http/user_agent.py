"""Senders: how hosts are told who asks them."""

from builder.http.fetch import AGENT
from functions import distribution
from functions.config.configuration import Configuration, default
from functions.snapshot.errors import ConfigurationError


def check(settings: Configuration) -> None:
    """Raise ConfigurationError where hosts could not tell who asks them."""
    name = "repository.admin_emails"
    if settings[name] == default(name):
        raise ConfigurationError(
            f"{name} is still {default(name)[0]}: set it to yours, for every host is told it"
        )


def agent(settings: Configuration) -> str:
    """Return how we are called: the product, where it is from, and who answers for it."""
    base, mail = settings["repository.base_url"], settings["repository.admin_emails"][0]
    whence = f"+{base}; " if base else ""
    named = f"{AGENT}/{distribution.version()} ({whence}mailto:{mail})"
    return named.encode("ascii", "replace").decode()
