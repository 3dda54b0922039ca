"""The ingest of ReDIF: trees and tarballs of RePEc in, a run of the obi store out."""

from builder.sources.source import Source

REDIF = Source(
    __name__,
    "trees and tarballs of ReDIF",
    {
        "-f,--file TARBALL...": "a tarball of ReDIF, dated by its name or by --tist; several are "
        "read in the order of their dates, before any SOURCE",
        "--tist TIME": "date of a single TARBALL, or of the ReDIF in the SOURCEs: seconds since "
        "1970, or a date",
        "--accept-loss [ARCHIVE]...": "delete missing templates, however many. With a name, such "
        "as aaa: those of that ARCHIVE, even if its folder is missing. Without: those of all "
        "archives that were read completely, and those outside archives",
    },
    is_dated=True,
)
