"""Credentials: the environment's keys, or a profile of ~/.aws with the region written there."""

import configparser
from collections.abc import Callable, Mapping
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
    """Return the environment's keys, else those of the profile that AWS_PROFILE names or the
    default one; in this order AWS's own tools look. The region is the profile's.

    Without keys where they have to be fetched from somewhere else. Raises StoreError where
    AWS_PROFILE names a profile that is needed and not there, or that has no keys of its own.
    """
    name = environment.get("AWS_PROFILE", "")
    home = _home(environment) / ".aws"
    secrets = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials")
    settings = Path(environment.get("AWS_CONFIG_FILE") or home / "config")
    wanted = name or "default"
    values = {
        **_section(settings, wanted if wanted == "default" else f"profile {wanted}"),
        **_section(secrets, wanted),
    }
    region = checked("the profile's region", values.get("region", ""))
    if environment.get("AWS_ACCESS_KEY_ID"):
        return of_environment(environment, region)
    if not name and any(environment.get(variable) for variable in _ELSEWHERE):
        return Profile(region=region)
    if name and not values:
        raise StoreError(
            f"AWS_PROFILE is {name}, but {secrets} and {settings} have no such profile"
        )
    found = _profile(values, str.lower, region)
    if name and not (found.access_key and found.secret_key):
        raise StoreError(
            f"the profile {name} has no keys of its own: run "
            f'eval "$(aws configure export-credentials --profile {name} --format env)", '
            "unset AWS_PROFILE and run again"
        )
    if not found.access_key and environment.get("AWS_SECRET_ACCESS_KEY"):
        raise StoreError("AWS_SECRET_ACCESS_KEY is set without AWS_ACCESS_KEY_ID")
    return found


def of_environment(environment: Mapping[str, str], region: str = "") -> Profile:
    """Return the environment's keys. Raises StoreError for what are none."""
    return _profile(environment, str.upper, region)


def checked(name: str, value: str) -> str:
    """Return the value of a variable, which may be a secret.

    Raises StoreError for one that no request can be signed with.
    """
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise StoreError(f"{name} holds a blank, a line's end or what else cannot be in it")
    return value


def _profile(values: Mapping[str, str], case: Callable[[str], str], region: str) -> Profile:
    names = [case(f"aws_{name}") for name in ("access_key_id", "secret_access_key")]
    access_key, secret_key = (checked(name, values.get(name, "")) for name in names)
    if bool(access_key) != bool(secret_key):
        given, wanted = names if access_key else reversed(names)
        raise StoreError(f"{given} is set without {wanted}")
    name = case("aws_session_token")
    return Profile(access_key, secret_key, checked(name, values.get(name, "")), region)


def _home(environment: Mapping[str, str]) -> Path:
    try:
        return Path(environment.get("HOME") or "~").expanduser()
    except RuntimeError:  # a user that the machine does not know, as a function's may be
        return Path("/")


def _section(path: Path, name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, "utf-8")
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        # the error's own text would quote the line, which may hold a secret
        raise StoreError(f"{path} cannot be read as profiles ({type(error).__name__})") from None
    return dict(parser[name]) if parser.has_section(name) else {}
