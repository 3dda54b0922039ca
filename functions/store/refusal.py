"""What S3 says when it does not do what was asked, and what that means for a person."""

import re
from dataclasses import dataclass

from functions.snapshot.errors import Conflict, MissingObject, StoreError, StoreUnavailable

_STATUS = re.compile(r"status(?: code)?: (\d{3})")
_CODE = re.compile(r'<Code>(\w+)</Code>|code: "(\w+)"')
_URL = re.compile(r"Error performing [A-Z]+ (\S+)")
_TRANSPORT = re.compile(r"kind: (Timeout|Connect|Request|Interrupted|Decode)\b")
_CREDENTIALS = (
    "//169.254.", "//[fd00:ec2", "/latest/api/token", "/latest/meta-data/", "//sts.", "AssumeRole",
)  # fmt: skip
_OWN = re.compile(r"credential provider: StoreError: (.*)")
_FOREIGN = re.compile(r'ath "(.*?)"(?: contained|: Encountered)', re.DOTALL)
_REGION = "Received redirect"
_SECRET = re.compile(r"//[^/\s]*@")

# Codes that come with a status which by itself would not be worth another try: the request was
# damaged on its way, came too slowly, or met another one that was just being carried out. A removal
# of many keys is answered 200 with a code for each that stayed. And an upload is gone that was
# completed by a request whose answer got lost: it is made again, as a whole.
_PASSING = {
    "BadDigest", "IncompleteBody", "InternalError", "NoSuchUpload", "RequestTimeout",
    "ServiceUnavailable", "SlowDown", "Throttling", "XAmzContentChecksumMismatch",
    "XAmzContentSHA256Mismatch",
}  # fmt: skip

_OF_ONE = {"AccessDenied", "InvalidObjectState"}
"""Codes of an object that is another's, or lies in cold storage."""

_MEANING = {
    "NoSuchBucket": "there is no such bucket; create it, or correct the store's address",
    "InvalidBucketName": "that is no name of a bucket; correct the store's address",
    "SignatureDoesNotMatch": "the server refuses the signature: the secret access key is wrong",
    "InvalidAccessKeyId": "the server does not know the access key; check the credentials",
    "ExpiredToken": "the credentials have expired; get new ones",
    "InvalidToken": "the session token is not valid; get new credentials",
    "RequestTimeTooSkewed": "this machine's clock is wrong by more than the server permits",
    "AuthorizationHeaderMalformed": "the bucket lies in another region; set store.region",
    "PermanentRedirect": "the bucket lies in another region; set store.region",
    "EntityTooLarge": "the object is larger than the server permits",
    "NotImplemented": "the server cannot do what was asked; see docs/store.md for what it must",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that failed: HTTP status and S3's code where there was an answer.

    `transport` is how the way to the server failed, empty where it did not; `url` is what was
    asked, which need not be the bucket: credentials are asked for as well. `renewing` tells that
    there were some before; `keyless` is why they cannot be had, where that was told. `foreign` is a
    key that was listed and cannot be asked for.
    """

    kind: str
    text: str
    status: int = 0
    code: str = ""
    transport: str = ""
    url: str = ""
    renewing: bool = False
    keyless: str = ""
    foreign: str = ""

    @classmethod
    def of(cls, error: Exception, renewing: bool = False) -> "Refusal":
        """Read an error of obstore's: its class and its text are all that there is."""
        text = str(error)
        status, code, url = _STATUS.search(text), _CODE.search(text), _URL.search(text)
        transport = None if status else _TRANSPORT.search(text)
        keyless = _OWN.search(text)
        foreign = _FOREIGN.search(text) if type(error).__name__ == "InvalidPathError" else None
        return cls(
            kind=type(error).__name__,
            text=text.partition("\n")[0],
            status=int(status[1]) if status else 0,
            code=(code[1] or code[2]) if code else "",
            transport=transport[1] if transport else "",
            url=url[1] if url else "",
            renewing=renewing,
            keyless=keyless[1] if keyless else "",
            foreign=foreign[1] if foreign else "",
        )

    @staticmethod
    def concerns_one(error: StoreError) -> bool:
        """Tell whether `error` was made of a refusal of one object, where others may be had."""
        cause = error.__cause__
        return isinstance(cause, Exception) and Refusal.of(cause).code in _OF_ONE

    @staticmethod
    def concerns_key(error: StoreError) -> bool:
        """Tell whether `error` was made of a key that obstore cannot name."""
        return type(error.__cause__).__name__ == "InvalidPathError"

    @property
    def credentials(self) -> bool:
        """Tell whether it was credentials that could not be had."""
        return bool(self.keyless) or any(mark in self.url for mark in _CREDENTIALS)

    @property
    def passing(self) -> bool:
        """Tell whether the same request may be answered a little later."""
        if self.credentials:
            return self.renewing
        busy = self.status in (408, 409, 429) or self.status in range(500, 600)
        if self.code in ("NoSuchBucket", "NotImplemented"):
            return False
        return busy or bool(self.transport) or self.code in _PASSING

    def error(self, bucket: str, key: str, action: str, waited: str) -> StoreError:
        """Return what to raise: `action` is what was wanted, `waited` for how long, in words."""
        where = f"s3://{bucket}/{key}"
        if self.keyless:
            kind = StoreUnavailable if self.renewing else StoreError
            return kind(f"s3://{bucket}: {self.keyless}")
        if self.credentials and self.renewing:
            return StoreUnavailable(
                f"s3://{bucket}: the credentials could not be renewed; what gives them was asked "
                f"again for {waited}; run again later"
            )
        if self.credentials:
            return StoreError(
                f"s3://{bucket}: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or AWS_PROFILE, or give this machine a role"
            )
        if self.foreign:
            return StoreError(
                f"s3://{bucket} holds {self.foreign!r}, which is no key of Sheaf's and keeps "
                f"{key or 'it'} from being listed; remove that object by the server's own tools"
            )
        if self.code in _MEANING:
            return StoreError(f"{where}: {_MEANING[self.code]}")
        if self.passing:
            return StoreUnavailable(f"{where}: {self._absence(waited)}")
        if self.status == 412 or self.kind in ("AlreadyExistsError", "PreconditionError"):
            return Conflict(f"{where} was written by somebody else")
        if self.status == 404 or self.kind == "FileNotFoundError":
            return MissingObject(f"s3://{bucket} has no {key}")
        if self.status in (401, 403) or self.code == "AccessDenied":
            return StoreError(
                f"{where}: no permission: these credentials need {action} there"
                + (" (and s3:ListBucket, to be told what is missing)" if "Get" in action else "")
            )
        if _REGION in self.text:
            return StoreError(f"{where}: {_MEANING['PermanentRedirect']}")
        said = f"the server answered {self.status} {self.code}".rstrip()
        text = _SECRET.sub("//...@", self.text)[:300]
        return StoreError(f"{where}: {said if self.status else text}")

    def _absence(self, waited: str) -> str:
        tried = f"was asked again for {waited}; run again later"
        if self.transport == "Connect" or self.transport == "Request":
            return f"the server cannot be reached; check the network and store.endpoint. It {tried}"
        if self.transport == "Timeout":
            return f"the server did not answer in time; it {tried}"
        if self.transport:
            return f"the connection was lost; the server {tried}"
        return f"the server is busy or out of order ({self.status} {self.code}); it {tried}"
