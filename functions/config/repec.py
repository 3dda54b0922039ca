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
        "the tree of templates that `sheaf ingest` reads where it is given no source; seen from "
        "sheaf.toml",
    ),
    ConfigKey(
        "redif.largest",
        256,
        value.between(1, 65_536),
        "megabytes from 1",
        "a file of templates that is larger is left out, and told of",
    ),
    ConfigKey(
        "redif.origin",
        "",
        lambda v: v == "" or description.is_place(v),
        "an http or https URL without ? and #, s3://bucket/prefix, or empty",
        "where the folders of RePEc's archives can be had, told with each template; empty: nothing "
        "is told",
    ),
    ConfigKey(
        "redif.identifier_prefix",
        "",
        lambda v: isinstance(v, str) and (v == "" or identifier.is_prefix(v)),
        "oai: or oai:, a domain name and a colon, or empty",
        "what stands before the handle in a template's identifier; oai: keeps RePEc's own; empty: "
        "oai: and the namespace; not to be changed once published",
    ),
)
