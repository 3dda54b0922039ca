"""Failed S3 requests, and their translation into store errors with a one-line message."""

import re
from dataclasses import dataclass

from functions.snapshot.errors import Conflict, MissingObject, StoreError, StoreUnavailable

_SECRET = re.compile(r"//[^/\s]*@")

# The HTTP status of these codes does not show that a retry can help. The request was damaged in
# transit, arrived too slowly, or collided with another one. A removal of many keys is answered with
# status 200 and a code for each key that was not removed.
_PASSING = {
    "BadDigest", "ConditionalRequestConflict", "IncompleteBody", "InternalError", "RequestTimeout",
    "ServiceUnavailable", "SlowDown", "Throttling", "XAmzContentChecksumMismatch",
    "XAmzContentSHA256Mismatch",
}  # fmt: skip

# A server may send these with status 200, or with a status chosen before the error was known.
_FINAL = {"NoSuchBucket", "NoSuchUpload", "NotImplemented", "PreconditionFailed"}

_OF_ONE = {"AccessDenied", "InvalidObjectState"}  # another account's object, or cold storage

_MEANING = {
    "NoSuchBucket": "there is no such bucket; create it, or correct the store's address",
    "InvalidBucketName": "the bucket's name is invalid; correct the store's address",
    "SignatureDoesNotMatch": "the server refuses the signature: the secret access key is wrong",
    "InvalidAccessKeyId": "the server does not know the access key; check the credentials",
    "ExpiredToken": "the credentials have expired; get new ones",
    "InvalidToken": "the session token is not valid; get new credentials",
    "RequestTimeTooSkewed": "this machine's clock is wrong by more than the server permits",
    "AuthorizationHeaderMalformed": "the bucket is in another region; set store.region",
    "PermanentRedirect": "the bucket is in another region; set store.region",
    "EntityTooLarge": "the object is larger than the server permits",
    "NotImplemented": "the server lacks an operation that Sheaf requires (docs/reference/store.md)",
}


class ForbiddenObjectError(StoreError):
    """The server refuses this object only; others may be readable."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failed request: the HTTP status and S3's code, if there was a response.

    `transport` is Connect, Timeout or Interrupted if the connection failed. `credentials` is true
    if no keys were available, and `reason` says why, if known. `renewing` is true if there were
    keys before. `text` is the library's own message.
    """

    status: int = 0
    code: str = ""
    transport: str = ""
    credentials: bool = False
    reason: str = ""
    renewing: bool = False
    text: str = ""

    @property
    def passing(self) -> bool:
        """True if the same request may succeed a little later."""
        if self.credentials:
            return self.renewing
        if self.code in _FINAL:
            return False
        busy = self.status in (408, 409, 429) or self.status in range(500, 600)
        return busy or bool(self.transport) or self.code in _PASSING

    def error(self, bucket: str, key: str, action: str, waited: str) -> StoreError:
        """Return the error to raise.

        `action` is the S3 permission, `waited` the time of all tries.
        """
        where = f"s3://{bucket}/{key}"
        if self.credentials:
            return self._without_credentials(f"s3://{bucket}", waited)
        if self.code in _MEANING:
            return StoreError(f"{where}: {_MEANING[self.code]}")
        if self.passing:
            return StoreUnavailable(f"{where}: {self._absence(waited)}")
        if self.status == 412 or self.code == "PreconditionFailed":
            return Conflict(f"{where} was written by another process")
        if self.status == 404 or self.code == "NoSuchUpload":
            return MissingObject(f"s3://{bucket} has no {key}")
        kind = ForbiddenObjectError if self.code in _OF_ONE else StoreError
        if self.status in (401, 403) or self.code == "AccessDenied":
            return kind(
                f"{where}: permission denied: these credentials need {action} there"
                + (
                    " (and s3:ListBucket, to distinguish missing objects)"
                    if "Get" in action
                    else ""
                )
            )
        answer = f"the server answered {self.status} {self.code}".rstrip()
        text = _SECRET.sub("//...@", self.text.partition("\n")[0])[:300]
        return kind(f"{where}: {answer if self.status else text}")

    def _without_credentials(self, where: str, waited: str) -> StoreError:
        kind = StoreUnavailable if self.renewing else StoreError
        if self.reason:
            return kind(f"{where}: {self.reason}")
        if self.renewing:
            return kind(
                f"{where}: the credentials could not be renewed; retried for {waited}; run again "
                "later"
            )
        return kind(
            f"{where}: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or AWS_PROFILE, or give this machine a role"
        )

    def _absence(self, waited: str) -> str:
        tried = f"was retried for {waited}; run again later"
        if self.transport == "Connect":
            return f"the server cannot be reached; check the network and store.endpoint. It {tried}"
        if self.transport == "Timeout":
            return f"the server did not answer in time; it {tried}"
        if self.transport:
            return f"the connection was lost; the server {tried}"
        return f"the server is busy or failing ({self.status} {self.code}); it {tried}"
