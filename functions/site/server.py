"""Opens what a local server answers by: OAI-PMH, the pages, and archived bytes if they are served.

It is apart from `assembly`, because a Lambda function of the pages has no archived bytes.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path

from functions.config.configuration import Configuration
from functions.content import assembly
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from functions.site.assembly import site_over
from functions.snapshot.errors import NothingPublished
from functions.store import catalog
from functions.store.slice import open_reader


def open_site(
    uri: str,
    base: Path,
    folder: Path,
    settings: Configuration,
    environment: Mapping[str, str],
    clock: Callable[[], datetime],
    log: Callable[[str], None] | None,
    compress: Callable[[bytes], bytes],
    rows: int,
    memory: int,
) -> tuple[Application, assembly.Answer, Callable[[], None]]:
    """Return the application over the store at `uri`, what answers all requests, and what closes.

    `uri` is relative to `base`; `folder` is that of the configuration. `rows` are the bytes of
    cached rows, `memory` the megabytes of the database. Raises SheafError.
    """
    with ExitStack() as stack:
        reader = open_reader(uri, base, settings, environment)
        stack.callback(reader.close)
        repository = DuckRepository(reader, rows, ahead=True, memory=memory)
        stack.callback(repository.close)
        metadata = Application(
            repository,
            settings,
            clock,
            log,
            compress=compress,
            pages=site_over(repository),
        )
        with suppress(NothingPublished):  # until the first publish, answers are 503
            metadata.prepare()
        answer: assembly.Answer = metadata.answer
        if settings["content.serve"]:
            content = assembly.application(
                repository,
                reader.address,
                folder,
                settings,
                environment,
                clock,
                log,
                compress,
            )
            answer = assembly.beside(content, answer)
        catalog.collect_less_often()
        return metadata, answer, stack.pop_all().close
