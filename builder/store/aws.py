"""AWS clients. The only module that imports boto3, and only when a client is needed.

boto3 finds the credentials: variables, profiles, single sign-on, roles of machines and containers.
Requests are not retried here (functions.store.connection.ObjectClient.attempt does that).
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

from functions.snapshot.errors import StoreError
from functions.store import s3_request
from functions.store.connection import (
    BucketConnection,
    endpoint_of,
    forget_empty,
    is_by_host,
    region_of,
)
from functions.store.s3_request import Refusal

_POOL = 32  # connections to one server
_CONNECT = 5.0  # seconds
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_REGION = "AWS_DEFAULT_REGION"
_UNUSABLE = "AWS cannot be used"
_EXPIRED = "Credentials were refreshed"
_KEY_OPERATIONS = ("AssumeRole", "GetRoleCredentials", "CreateToken", "CreateOAuth2Token")


def errors() -> tuple[type[Exception], ...]:
    """Return the errors that clients raise; `refusal` gives the meaning of each.

    botocore lets errors of urllib3 pass while it reads the body of a refusal. Keys from a profile
    may have expired (RuntimeError), and its process may print something else.
    """
    import botocore.exceptions
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError

    core = (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)
    return (*core, ResponseParserError, HTTPError, OSError, RuntimeError, json.JSONDecodeError)


def s3(
    bucket: str,
    connection: BucketConnection,
    environment: Mapping[str, str],
    timeouts: Sequence[float],
) -> list[Any]:
    """Return one S3 client for each read timeout (seconds without a byte of a response).

    Raises StoreError for invalid settings, keys or profiles.
    """
    import botocore
    from botocore.config import Config

    endpoint = endpoint_of(connection, environment)
    region = region_of(connection, environment)
    anonymous = environment.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true")
    config = Config(
        signature_version=botocore.UNSIGNED if anonymous else "s3v4",
        s3={"addressing_style": "virtual" if is_by_host(bucket, connection, endpoint) else "path"},
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=_POOL,
        # Not every server accepts the checksums that boto3 adds by default; writes have an MD5.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    session = _session(environment)
    clients = []
    with calling(_UNUSABLE):
        for seconds in timeouts:
            limits = Config(connect_timeout=min(_CONNECT, seconds), read_timeout=seconds)
            client = session.client(
                "s3",
                region_name=region or session.region_name or "us-east-1",
                endpoint_url=endpoint or None,
                config=config.merge(limits),
            )
            client.meta.events.register("before-call.s3.DeleteObjects", _sum_by_md5)
            client.meta.events.register("before-call.s3.HeadBucket", _unknown_region)
            clients.append(client)
    return clients


def connect(service: str, region: str | None) -> Any:
    """Return a client of a service, by boto3's name, with the process's credentials.

    Raises StoreError.
    """
    session = _session({})
    with calling(_UNUSABLE):
        return session.client(service, region_name=region)


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Raise the errors of a client as StoreError; `what` names the resource."""
    try:
        yield
    except errors() as error:
        raise StoreError(f"{what}: {error}") from error


def refusal(error: Exception) -> Refusal | None:
    """Return the meaning of an error of boto3; None for any other error."""
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        ParamValidationError,
    )

    text = str(error)
    if isinstance(error, ClientError):
        if error.operation_name.startswith(_KEY_OPERATIONS):
            return Refusal(credentials=True, reason=text)
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        code = str(error.response.get("Error", {}).get("Code", ""))
        return Refusal(status, "" if code.isdigit() else code, text=text)
    for transport, kinds in _transports():
        if isinstance(error, kinds):
            return Refusal(transport=transport, text=text)
    if isinstance(error, NoCredentialsError):
        return Refusal(credentials=True, text=text)
    if isinstance(error, ParamValidationError):
        return Refusal(text=text)
    # The other errors concern profiles, single sign-on and other sources of credentials.
    expired = isinstance(error, RuntimeError) and text.startswith(_EXPIRED)
    is_of_keys = expired or isinstance(error, BotoCoreError | json.JSONDecodeError)
    return Refusal(credentials=True, reason=text.partition("\n")[0]) if is_of_keys else None


def error_of_key(code: str, operation: str) -> Exception:
    """Return the error of one key in a response of status 200 to a request for many keys."""
    import botocore.exceptions

    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 200}}
    error: Exception = botocore.exceptions.ClientError(answer, operation)
    return error


class SessionEnvironment(Mapping[str, str]):
    """Environment variables, completed by the keys and the region of boto3's session.

    So the readers in `functions`, which know only variables, support profiles and single sign-on.
    Keys are renewed when AWS_ACCESS_KEY_ID is looked up. The same thread then gets the other keys
    of that moment. boto3 is not imported if the environment has keys. Look-ups raise StoreError.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._session: Any = None
        self._thread = threading.local()

    def __reduce__(self) -> tuple[type["SessionEnvironment"], tuple[dict[str, str]]]:
        """Return what another process needs for a session of its own."""
        return SessionEnvironment, (dict(self._environment),)

    def __getitem__(self, name: str) -> str:
        value = self._environment.get(name, "")
        if not value and name == _REGION and not self._environment.get("AWS_REGION"):
            value = self._open().region_name or ""
        if name in _KEYS and not self._environment.get(_KEYS[0]):
            if name == _KEYS[0]:
                self._thread.keys = self._renew_keys()
            value = getattr(self._thread, "keys", {}).get(name, "")
        if not value and name not in self._environment:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)

    def _open(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = _session(self._environment)
            return self._session

    def _renew_keys(self) -> dict[str, str]:
        session = self._open()
        try:
            with self._lock:
                credentials = session.get_credentials()
            frozen = credentials and credentials.get_frozen_credentials()
        except errors() as error:
            raise StoreError(f"no credentials: {error}") from error
        if not frozen:
            return {}
        values = (frozen.access_key, frozen.secret_key, frozen.token)
        return {name: value for name, value in zip(_KEYS, values, strict=True) if value}


def _session(environment: Mapping[str, str]) -> Any:
    """Return a session with the environment's keys, else with those that boto3 finds."""
    import boto3

    forget_empty()
    keys = s3_request.environment_keys(environment)
    with calling(_UNUSABLE):
        return boto3.Session(
            aws_access_key_id=keys.access_key or None,
            aws_secret_access_key=keys.secret_key or None,
            aws_session_token=keys.token or None,
        )


@cache
def _transports() -> tuple[tuple[str, tuple[type[Exception], ...]], ...]:
    import botocore.exceptions as core
    import urllib3.exceptions as below
    from botocore.parsers import ResponseParserError

    broken = (core.HTTPClientError, core.IncompleteReadError, below.HTTPError)
    return (
        ("Timeout", (core.ReadTimeoutError, below.TimeoutError, TimeoutError)),
        ("Connect", (core.ConnectionError,)),
        ("Interrupted", (*broken, ResponseParserError, ConnectionError)),
    )


def _sum_by_md5(params: dict[str, Any], **_: object) -> None:
    """Send a removal with its MD5, in the place of the CRC32 that boto3 would add even so."""
    digest = hashlib.md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = base64.b64encode(digest).decode()
    params["context"].pop("checksum", None)


def _unknown_region(**_: object) -> tuple[Any, dict[str, Any]]:
    """Answer boto3's own request for the region of a bucket if a redirect did not name the region.

    The server would redirect that request again, endlessly.
    """
    return SimpleNamespace(status_code=200), {"ResponseMetadata": {"HTTPHeaders": {}}}
