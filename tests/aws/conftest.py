"""What the proofs share: the built artefact, an archive in SeaweedFS, and who answers from it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aws.archive import SETTINGS, Archive, publish
from tests.aws.build import built
from tests.aws.runtime import Runtime, running
from tests.bucket import fresh


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of `sam build`; BUILT=FOLDER takes one that was built before."""
    if "BUILT" in os.environ:
        return Path(os.environ["BUILT"]).resolve()
    return built(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="session")
def artefact(artefacts: Path) -> Path:
    """Give the folder of the function that serves."""
    return artefacts / "OaiFunction"


@pytest.fixture(scope="session")
def archive(weed_server: str, tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Give an archive in SeaweedFS, which checks signatures, with three snapshots."""
    bucket = fresh(weed_server, prefix="an archive/store")
    bucket.close()
    folder = tmp_path_factory.mktemp("archive")
    made = Archive(bucket.uri, {**bucket.environment, **SETTINGS}, folder)
    publish(made)
    return made


@pytest.fixture(scope="session")
def served(archive: Archive) -> Iterator[str]:
    """Give the URL of `sheaf serve` over the archive."""
    with archive.served() as url:
        yield url


@pytest.fixture(scope="session")
def runtime(
    archive: Archive, artefact: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runtime]:
    """Give the function over the archive."""
    environment = {**archive.environment, "SHEAF_STORE_URI": archive.store}
    with running(artefact, environment, tmp_path_factory.mktemp("runtime")) as one:
        yield one
