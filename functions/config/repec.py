"""The configuration keys for RePEc's templates and the files behind their URLs."""

from functions.config import description, value
from functions.config.key import ConfigKey
from functions.snapshot import identifier

KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "redif.directory",
        "",
        lambda v: v == "" or value.is_text(v),
        "a folder, or empty",
        "tree of templates that `sheaf ingest` reads if no source is given; relative to sheaf.toml",
    ),
    ConfigKey(
        "redif.largest",
        256,
        value.between(1, 65_536),
        "megabytes from 1",
        "size limit of a ReDIF file; larger files are skipped and reported",
    ),
    ConfigKey(
        "redif.origin",
        "",
        lambda v: v == "" or description.is_place(v),
        "an http or https URL without ? and #, s3://bucket/prefix, or empty",
        "address of the folders of RePEc's archives, stated in each template; empty: no statement",
    ),
    ConfigKey(
        "redif.identifier_prefix",
        "",
        lambda v: isinstance(v, str) and (v == "" or identifier.is_prefix(v)),
        "oai: or oai:, a domain name and a colon, or empty",
        "prefix of the handle in a template's identifier; oai: keeps RePEc's own; empty: oai: and "
        "the namespace; do not change it after the first publish",
    ),
)
