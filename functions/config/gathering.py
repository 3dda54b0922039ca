"""The configuration keys for gathering: the files behind the URLs of templates."""

from functions.config import value
from functions.config.fields import Field, Fields
from functions.config.key import ConfigKey

BATCH = Fields(
    {
        "minutes": Field(5, value.between(1, 1440), "minutes from 1 to 1440"),
        "files": Field(5000, value.between(1, 100_000), "a number from 1 to 100000"),
    }
)

KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "gather.batch",
        BATCH.defaults(),
        BATCH.is_valid,
        BATCH.expectation,
        "a batch starts no request after this many minutes or files, and is then committed",
        BATCH.problem,
        BATCH.complete,
    ),
    ConfigKey(
        "gather.interval_days",
        30,
        value.between(0, 3650),
        "days from 0 to 3650",
        "when a file is fetched again",
    ),
    ConfigKey(
        "gather.retry_days",
        1,
        value.between(0, 3650),
        "days from 0 to 3650",
        "when a file is tried again after a temporary failure; doubles each time, up to "
        "gather.interval_days",
    ),
    ConfigKey(
        "gather.pdf_text",
        False,
        value.is_flag,
        "true or false",
        "also record a digest of each PDF's text; needs `pip install sheaf-archive[pdf]`",
    ),
)
