"""The platforms that are known, in the order in which they are asked if a request is theirs."""

from builder.filesets.platforms.dataverse import Dataverse
from builder.filesets.platforms.inveniordm import InvenioRDM
from builder.filesets.platforms.zenodo import Zenodo
from builder.filesets.seam import FilesetPlatformHelper

PLATFORMS: tuple[FilesetPlatformHelper, ...] = (
    Zenodo(),
    Dataverse(),
    InvenioRDM(),
)
