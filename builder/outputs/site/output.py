"""The site as an output. A copy has none: the next publish there makes its own."""

from collections.abc import Sequence
from contextlib import suppress

from builder.outputs.output import Output, OutputUpdate
from builder.runtime import Runtime
from builder.snapshot.audit import StoreAudit
from builder.store.findings import Finding
from functions.config.configuration import Configuration
from functions.snapshot.errors import DamagedStore
from functions.snapshot.layout import SITE, SITE_ROUTER
from functions.snapshot.store import Writer


class SiteOutput(Output):
    """The site of `publish.site`."""

    def open(self, configuration: Configuration) -> OutputUpdate:
        """Return the update that `publish.site` wants."""
        router = (SITE_ROUTER,)
        objects, ended = (router, ()) if configuration["publish.site"] else ((), router)

        def update(store: Writer, runtime: Runtime) -> None:
            from builder.outputs.site.update import update_site  # loads renderer and pages

            update_site(store, configuration, runtime)

        return OutputUpdate(update, objects, ended)

    def retire(self, store: Writer, runtime: Runtime, *, anew: bool) -> int:
        """Remove what was superseded a day ago, or with `anew` all that it does not name."""
        from builder.outputs.site.site_files import SiteFiles  # which most publishes do not need
        from builder.outputs.site.site_state import SiteState

        files = SiteFiles(store, SITE)
        with suppress(DamagedStore):  # the next publish makes it anew
            state = SiteState.read(files)
            if state is not None:
                return len(state.retire(files, None if anew else runtime.clock()))
        return 0

    def verify(self, audit: StoreAudit) -> Sequence[Finding]:
        """Check that its files are there and whole. Raises StoreError."""
        from builder.outputs.site.verify import site_findings

        return [*site_findings(audit)] if audit.listed else ()
