"""Credentials: the environment's keys, or a profile of ~/.aws with the region written there."""

import configparser
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from functions.snapshot.errors import StoreError

_ELSEWHERE = (
    # variables by which the environment gives credentials that have to be fetched, or none
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_SKIP_SIGNATURE",
)


@dataclass(frozen=True, slots=True)
class Profile:
    """What the environment or a profile gives; an empty text where it does not."""

    access_key: str = ""
    secret_key: str = ""
    token: str = ""
    region: str = ""

    def __repr__(self) -> str:
        return f"Profile(region={self.region!r})"  # secrets have no place in a log


def load(environment: Mapping[str, str]) -> Profile:
    """Return the profile that AWS_PROFILE names, else the environment's keys, else the default one.

    It is empty where the environment gives credentials in some other way. Raises
    StoreError where AWS_PROFILE names one that is not there, or one with no keys of its own.
    """
    name = environment.get("AWS_PROFILE", "")
    if not name and environment.get("AWS_ACCESS_KEY_ID"):
        return Profile(
            environment["AWS_ACCESS_KEY_ID"],
            environment.get("AWS_SECRET_ACCESS_KEY", ""),
            environment.get("AWS_SESSION_TOKEN", ""),
        )
    if not name and any(environment.get(variable) for variable in _ELSEWHERE):
        return Profile()
    home = Path(environment.get("HOME", "~")).expanduser() / ".aws"
    secrets = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials")
    settings = Path(environment.get("AWS_CONFIG_FILE") or home / "config")
    wanted = name or "default"
    values = {
        **_section(settings, wanted if wanted == "default" else f"profile {wanted}"),
        **_section(secrets, wanted),
    }
    found = Profile(
        values.get("aws_access_key_id", ""),
        values.get("aws_secret_access_key", ""),
        values.get("aws_session_token", ""),
        values.get("region", ""),
    )
    if name and not values:
        raise StoreError(
            f"AWS_PROFILE is {name}, but {secrets} and {settings} have no such profile"
        )
    if name and not (found.access_key and found.secret_key):
        raise StoreError(
            f"the profile {name} has no keys of its own: run "
            f'eval "$(aws configure export-credentials --profile {name} --format env)", '
            "unset AWS_PROFILE and run again"
        )
    return found


def _section(path: Path, name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, "utf-8")
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        # the error's own text would quote the line, which may hold a secret
        raise StoreError(f"{path} cannot be read as profiles ({type(error).__name__})") from None
    return dict(parser[name]) if parser.has_section(name) else {}
