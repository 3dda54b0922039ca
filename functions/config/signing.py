"""The configuration keys for the signed log."""

import re
from typing import Any

from functions.config import check
from functions.config.key import ConfigKey

_ARN = re.compile(r"arn:aws:(secretsmanager|kms):[a-z0-9-]+:[0-9]{12}:\S+")
_NAME = re.compile(r"[^\s+]+")


def _is_key_or_empty(value: Any) -> bool:
    return value == "" or (check.is_text(value) and value.startswith("PRIVATE+KEY+"))


SIGN_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "sign.key_file",
        "",
        lambda v: v == "" or check.is_text(v),
        "a file of `sheaf prove --new-key`, or empty",
        "private key that signs each snapshot, relative to sheaf.toml; empty: nothing is signed",
    ),
    ConfigKey(
        "sign.key",
        "",
        _is_key_or_empty,
        "the text of such a file, or empty",
        "the private key itself, for the environment: SHEAF_SIGN_KEY",
    ),
    ConfigKey(
        "sign.aws_key",
        "",
        lambda v: v == "" or (isinstance(v, str) and bool(_ARN.fullmatch(v))),
        "an ARN of Secrets Manager or of KMS, or empty",
        "secret with the text of such a file, or key ECC_NIST_EDWARDS25519 of KMS",
    ),
    ConfigKey(
        "sign.name",
        "",
        lambda v: v == "" or (check.is_text(v) and bool(_NAME.fullmatch(v))),
        "a text without spaces and +, or empty",
        "name of the log, for a new key and for one of KMS; empty: the namespace and /log",
    ),
    ConfigKey(
        "sign.former_keys",
        [],
        lambda v: isinstance(v, list) and all(check.is_text(text) for text in v),
        "a list of verifier keys",
        "keys that signed the log before this one, with the same name",
    ),
)
