"""What can be wrong with a store or with a configuration."""

NO_SPACE = "the disk for scratch files is full: free some space, or name another by TMPDIR"


class SheafError(Exception):
    """Base of every error that Sheaf raises on purpose; its text is one line for a person."""


class ConfigurationError(SheafError):
    """A key of the configuration holds what it may not hold."""


class StoreError(SheafError):
    """The store cannot be read or written, or holds what it may not hold."""


class StoreUnavailable(StoreError):
    """The store did not answer for as long as was to be waited; it may answer later."""


class MissingObject(StoreError):
    """The store holds no object under that key."""


class Conflict(StoreError):
    """Somebody else wrote the object first: a conditional write did not take place."""


class DamagedStore(StoreError):
    """An object of the store is not what its snapshot says that it is."""


class NewerSchema(StoreError):
    """The store was written by a later Sheaf than this one."""


class OlderSchemaError(StoreError):
    """The store was written by an earlier Sheaf, whose tables have other columns."""


class NothingPublished(StoreError):
    """The store has no snapshot that is in effect."""
