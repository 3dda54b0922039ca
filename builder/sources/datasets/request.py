"""Requests: from JSON lines, from an endless stream, or from an Amazon SQS queue.

A message of a queue is one request. It stays hidden for some minutes, which are renewed while its
request runs. It is deleted once its result is stored, and returned to the queue if a retry may
succeed. SQS moves a message that was received too often to the dead-letter queue. Messages may
arrive twice; the second time, the files are found archived.
"""

import json
import os
import re
import select
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from builder.http.secrets import clean_text
from builder.sources.datasets import status
from builder.sources.datasets.item import DATASET, IngestOutcome, IngestRequest
from builder.store import aws
from functions.snapshot.errors import SheafError, StoreError

LONGEST = 1_000_000
"""Characters in a line; a longer line is invalid."""
_URL = 1500  # characters, the width of the column in sandcrawler's database
_TOGETHER = 10  # messages that SQS accepts in one batch
_RETURNED = {"MessageNotInflight", "InvalidParameterValue"}
"""Codes of SQS for a message that is not hidden any more, or longer than twelve hours."""
_SOONEST, _LATEST = 60, 3600
"""Seconds before a retry: the first delay, which doubles each time, and the longest."""


_NAME = re.compile(r"(?:https?://|doi:\s*|hdl:\s*|10\.[0-9]{2,9}(?:\.[0-9]+)*/)\S+", re.IGNORECASE)
"""A line that is a URL, a DOI or another handle."""


class BadLine(ValueError):
    """A line is not a valid request; the text says why."""


def request_of_text(url: str) -> IngestRequest:
    """Return the request for a URL or a DOI."""
    return IngestRequest(url, given={"base_url": url, "ingest_type": DATASET})


def parse_request(text: str) -> IngestRequest:
    """Parse a line as a request. Raises BadLine.

    A line is a JSON object with a `base_url`, whose other fields the result repeats, or only a URL
    or a DOI.
    """
    if len(text) > LONGEST:
        raise BadLine(f"more than {LONGEST:,} characters")
    fields: Any = {"base_url": text.strip(), "ingest_type": DATASET}
    if not _NAME.fullmatch(text.strip()):
        try:
            fields = json.loads(text, parse_constant=_refuse_constant)
        except RecursionError as error:
            raise BadLine("not JSON: nested too deeply") from error
        except ValueError as error:
            raise BadLine(f"not JSON: {error}") from error
    if not isinstance(fields, Mapping):
        raise BadLine("not a JSON object")
    url = fields.get("base_url")
    if not isinstance(url, str) or not url.strip():
        raise BadLine("base_url: expected a URL or a DOI")
    if len(url) > _URL:
        raise BadLine(f"base_url: more than {_URL:,} characters")
    kind = fields.get("ingest_type", DATASET)
    if not isinstance(kind, str):
        raise BadLine("ingest_type: expected a text")
    return IngestRequest(url.strip(), kind, fields)


def request_or_mark(where: str, text: str) -> IngestRequest:
    """Return the request of a line; for an invalid one the placeholder, which says why."""
    try:
        return parse_request(text)
    except BadLine as error:
        return invalid_request(f"{where}: {error}", text)


def invalid_request(where: str, text: str) -> IngestRequest:
    """Return a placeholder request for an invalid line, so that it gets a result."""
    return IngestRequest(where, given={"line": text[:_URL]})


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def read_requests(descriptor: int, stop: threading.Event) -> Iterator[IngestRequest]:
    """Yield the request of each line of an open file, JSON in UTF-8, until `stop` is set.

    An invalid line yields a placeholder request with its number, from 1. Empty lines are skipped.
    Of a line that is too long, only as much as a valid line may have is kept in memory.
    """
    for number, data in enumerate(_lines(descriptor, stop), 1):
        if not data.strip():
            continue
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        try:
            data.decode("utf-8")
            yield request_or_mark(f"line {number}", text)
        except UnicodeDecodeError:
            yield invalid_request(f"line {number}: no UTF-8", text)


def _lines(descriptor: int, stop: threading.Event) -> Iterator[bytes]:
    """Yield the lines without line ends; a line that is too long is cut off."""
    rest = b""
    while not stop.is_set():
        ready, _, _ = select.select([descriptor], [], [], 0.2)
        if not ready:
            continue
        if not (data := os.read(descriptor, 65_536)):
            break
        *lines, end = data.split(b"\n")
        for line in lines:
            yield rest + line
            rest = b""
        rest = (rest + end)[: 4 * LONGEST + 1]
    if rest and not stop.is_set():
        yield rest


class QueueError(SheafError):
    """The queue does not respond, or rejects the credentials; `code` is that of SQS, or empty."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(clean_text(text))
        self.code = code


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message: its text, its receipt handle, and how often it was received so far."""

    id: str
    text: str
    receipt: str
    received: int = 1


def is_final(outcome: IngestOutcome) -> bool:
    """Return whether a retry would give the same outcome."""
    return not (outcome.incomplete or status.of(outcome.status).retryable)


def retry_wait(received: int) -> int:
    """Return the seconds until the next try of a message that was received so often."""
    return min(_LATEST, _SOONEST << min(max(received, 1) - 1, 10))


@dataclass(slots=True)
class Queue:
    """The queue at `url`. `client` is a boto3 client, as `connect` creates it.

    A message stays hidden for `visibility` seconds, renewed before they end. Safe to use from
    threads. All methods raise QueueError.
    """

    url: str
    client: Any
    visibility: int = 300
    poll: int = 2
    """Seconds for which one call waits for messages."""
    _hidden: dict[int, tuple[IngestRequest, QueueMessage]] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def requests(self, stop: threading.Event, *, lasting: bool = False) -> Iterator[IngestRequest]:
        """Yield the requests of messages, received one at a time, until the queue is empty.

        With `lasting`, wait for more messages until `stop` is set.
        """
        while not stop.is_set():
            if (message := self._receive()) is not None:
                request = request_or_mark(f"message {message.id}", message.text)
                with self._lock:
                    self._hidden[id(request)] = (request, message)
                yield request
            elif not lasting:
                return

    def settle(self, outcome: IngestOutcome) -> None:
        """Delete or return the message of a request, once its outcome is stored."""
        with self._lock:
            _, message = self._hidden.pop(id(outcome.request), (None, None))
        if message is None:
            return
        if is_final(outcome):
            self._ask("delete_message", ReceiptHandle=message.receipt)
        else:
            self._let(message, 0 if outcome.status == "cancelled" else retry_wait(message.received))

    def release(self) -> None:
        """Return all messages without an outcome to the queue at once."""
        with self._lock:
            hidden, self._hidden = list(self._hidden.values()), {}
        for _, message in hidden:
            self._let(message, 0)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Keep messages hidden during the block, and return those without an outcome after it."""
        ended = threading.Event()
        thread = threading.Thread(target=self._beat, args=(ended,), name="heartbeat")
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.release()

    def _beat(self, ended: threading.Event) -> None:
        while not ended.wait(self.visibility / 3):
            with self._lock:
                messages = [message for _, message in self._hidden.values()]
            for start in range(0, len(messages), _TOGETHER):
                entries = [
                    {
                        "Id": str(number),
                        "ReceiptHandle": message.receipt,
                        "VisibilityTimeout": self.visibility,
                    }
                    for number, message in enumerate(messages[start : start + _TOGETHER])
                ]
                try:
                    self._ask("change_message_visibility_batch", Entries=entries)
                except QueueError:
                    continue  # the next beat may be in time, or another worker gets the message

    def _receive(self) -> QueueMessage | None:
        answer = self._ask(
            "receive_message",
            MaxNumberOfMessages=1,
            WaitTimeSeconds=self.poll,
            VisibilityTimeout=self.visibility,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        for row in answer.get("Messages", ()):
            received = int(row.get("Attributes", {}).get("ApproximateReceiveCount", 1))
            return QueueMessage(row["MessageId"], row["Body"], row["ReceiptHandle"], received)
        return None

    def _let(self, message: QueueMessage, seconds: int) -> None:
        """Return a message to the queue, unless it returned by itself."""
        fields = {"ReceiptHandle": message.receipt, "VisibilityTimeout": seconds}
        try:
            self._ask("change_message_visibility", **fields)
        except QueueError as error:
            if error.code not in _RETURNED:
                raise

    def _ask(self, what: str, **fields: object) -> Any:
        try:
            return getattr(self.client, what)(QueueUrl=self.url, **fields)
        except aws.errors() as error:
            answer: Any = getattr(error, "response", {})
            code = str(answer.get("Error", {}).get("Code", ""))
            raise QueueError(f"{self.url}: {error}", code.rpartition(".")[2]) from error


def connect_queue(url: str) -> Queue:
    """Return the queue at `url`, with the process's credentials. Raises QueueError."""
    labels = url.partition("://")[2].partition("/")[0].split(".")
    region = labels[1] if labels[0] == "sqs" and labels[2:3] == ["amazonaws"] else None
    try:
        return Queue(url, aws.connect("sqs", region))
    except StoreError as error:
        raise QueueError(f"{url}: {error}") from error
