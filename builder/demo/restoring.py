"""The demo's keepsake: pages out of the archive, restored over HTTP as `sheaf restore` does it."""

import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from builder.http.limits import Limits
from builder.restore import endpoint, selection, status
from builder.restore.client import Exchange
from builder.restore.endpoint import EndpointSource
from builder.restore.errors import RebuildError
from builder.restore.folder import Folder
from builder.restore.manifest import Entries
from builder.restore.plan import Plan
from builder.restore.protocols import Choice
from builder.restore.report import Account
from builder.restore.session import Order, Session

_LIMITS = Limits(connect=5, first_byte=60, total=600, rate=1, bytes=64 << 20)


@dataclass(frozen=True, slots=True)
class Keepsake:
    """What was restored: files of a host in a folder, and the page to begin with."""

    host: str
    page: Path
    account: Account

    def problem(self) -> str | None:
        """Return what is not as it should be, None if all is."""
        if self.account.missing or not self.page.is_file():
            return f"{self.page} was to be restored, and is not whole"
        return None


def keepsake(base: str, host: str, target: Path) -> Keepsake:
    """Restore a host of what is served at `base` into a folder, with links that lead within it.

    Raises SheafError.
    """
    agent = f"Sheaf/{metadata.version('sheaf')} (demonstration)"
    choice = Choice(None, (host,), selection.LAST)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sheaf-demo-")))
        exchange = Exchange(agent, _LIMITS)
        source = stack.enter_context(closing(EndpointSource(endpoint.base(base), exchange)))
        plan = stack.enter_context(closing(Plan(scratch, status.accepting(status.USUAL))))
        if not plan.add(source.captures(choice)):
            raise RebuildError(f"{base} has nothing of {host}")
        plan.follow(lambda url: source.of_url(url, choice.until))
        plan.settle(extended=True)
        folder = stack.enter_context(closing(Folder(target)))
        entries = stack.enter_context(closing(Entries(scratch)))
        account = Session(source, plan, folder, entries, Order(converted=True)).restore()
    return Keepsake(host, target / host / "index.html", account)
