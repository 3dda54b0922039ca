"""The configuration key for the signed log."""

import re

from functions.config import check
from functions.config.key import Field, row

NAME = "sign.key"
PRIVATE = "PRIVATE+KEY+"
_ARN = re.compile(r"arn:aws:(secretsmanager|kms):[a-z0-9-]+:[0-9]{12}:\S+")


def is_file(value: str) -> bool:
    """Return whether a value of the key is the path of a file."""
    return bool(value) and not value.startswith((PRIVATE, "arn:"))


def _is_key(value: object) -> bool:
    if not isinstance(value, str) or value == "" or value.startswith(PRIVATE):
        return isinstance(value, str)
    return bool(_ARN.fullmatch(value)) if value.startswith("arn:") else check.is_text(value)


SIGN_KEYS: tuple[Field, ...] = (
    row(
        NAME,
        Field(
            "",
            _is_key,
            "a file of `sheaf prove --new-key`, its text, an ARN of Secrets Manager or KMS, or "
            "empty",
        ),
        "private key that signs each snapshot; a file is relative to sheaf.toml, the text is for "
        "the environment; empty: nothing is signed",
    ),
)
