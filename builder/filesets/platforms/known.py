"""The list of platforms, in the order in which they are matched with a request."""

from builder.filesets.platforms.archiveorg import ArchiveOrg
from builder.filesets.platforms.ckan import Ckan
from builder.filesets.platforms.dataverse import Dataverse
from builder.filesets.platforms.dryad import Dryad
from builder.filesets.platforms.figshare import Figshare
from builder.filesets.platforms.inveniordm import InvenioRDM
from builder.filesets.platforms.mendeley import Mendeley
from builder.filesets.platforms.osf import Osf
from builder.filesets.platforms.pangaea import Pangaea
from builder.filesets.platforms.zenodo import Zenodo
from builder.filesets.protocols import FilesetPlatformHelper

PLATFORMS: tuple[FilesetPlatformHelper, ...] = (
    Zenodo(),
    ArchiveOrg(),
    Dryad(),
    Osf(),
    Mendeley(),
    Pangaea(),
    Figshare(),
    Dataverse(),
    InvenioRDM(),
    Ckan(),
)
