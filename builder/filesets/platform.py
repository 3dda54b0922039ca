"""The platforms that are known, in the order in which they are asked whether a request is theirs."""

from builder.filesets.seam import FilesetPlatformHelper

PLATFORMS: tuple[FilesetPlatformHelper, ...] = ()
