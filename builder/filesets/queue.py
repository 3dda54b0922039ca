"""Requests from an Amazon SQS queue: one message, one request.

A message stays hidden for some minutes, which are renewed while its request runs. It is deleted
once its result is stored, and returned to the queue if a retry may succeed. SQS moves a message
that was received too often to the dead-letter queue. Messages may arrive twice; the second time,
the files are found archived.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from builder.filesets import request as line
from builder.filesets import status
from builder.filesets.item import IngestOutcome, IngestRequest
from builder.filesets.request import BadLine
from builder.store import aws
from functions.snapshot.errors import SheafError, StoreError

_TOGETHER = 10  # messages that SQS accepts in one batch
_SOONEST, _LATEST = 60, 3600
"""Seconds before a retry: the first delay, which doubles each time, and the longest."""


class QueueError(SheafError):
    """The queue does not respond, or rejects the credentials."""


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message: its text, its receipt handle, and how often it was received so far."""

    id: str
    text: str
    receipt: str
    received: int = 1

    def request(self) -> IngestRequest:
        """Return its request; for an invalid message a placeholder, so that it gets a result."""
        try:
            return line.parse(self.text)
        except BadLine as error:
            return line.invalid_request(f"message {self.id}: {error}", self.text)


def is_final(outcome: IngestOutcome) -> bool:
    """Return whether a retry would give the same outcome."""
    return not status.of(outcome.status).retryable


def wait(received: int) -> int:
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
    _held: dict[int, tuple[IngestRequest, QueueMessage]] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def requests(self, stop: threading.Event, *, lasting: bool = False) -> Iterator[IngestRequest]:
        """Yield the requests of messages, received one at a time, until the queue is empty.

        With `lasting`, wait for more messages until `stop` is set.
        """
        while not stop.is_set():
            message = self._receive()
            if message is not None:
                request = message.request()
                with self._lock:
                    self._held[id(request)] = (request, message)
                yield request
            elif not lasting:
                return

    def settle(self, outcome: IngestOutcome) -> None:
        """Delete or return the message of a request, once its outcome is stored."""
        with self._lock:
            found = self._held.pop(id(outcome.request), None)
        if found is None:
            return
        _, message = found
        if is_final(outcome):
            self._ask("delete_message", ReceiptHandle=message.receipt)
        else:
            seconds = 0 if outcome.status == "cancelled" else wait(message.received)
            self._let(message, seconds)

    def release(self) -> None:
        """Return all messages without an outcome to the queue at once."""
        with self._lock:
            held, self._held = list(self._held.values()), {}
        for _, message in held:
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
                held = [message for _, message in self._held.values()]
            for start in range(0, len(held), _TOGETHER):
                entries = [
                    {
                        "Id": str(number),
                        "ReceiptHandle": message.receipt,
                        "VisibilityTimeout": self.visibility,
                    }
                    for number, message in enumerate(held[start : start + _TOGETHER])
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
        for found in answer.get("Messages", ()):
            received = int(found.get("Attributes", {}).get("ApproximateReceiveCount", 1))
            return QueueMessage(found["MessageId"], found["Body"], found["ReceiptHandle"], received)
        return None

    def _let(self, message: QueueMessage, seconds: int) -> None:
        self._ask(
            "change_message_visibility", ReceiptHandle=message.receipt, VisibilityTimeout=seconds
        )

    def _ask(self, what: str, **given: object) -> Any:
        try:
            return getattr(self.client, what)(QueueUrl=self.url, **given)
        except aws.errors() as error:
            raise QueueError(f"{self.url}: {error}") from error


def connect(url: str) -> Queue:
    """Return the queue at `url`, with the process's credentials. Raises QueueError."""
    try:
        return Queue(url, aws.sqs(_region(url)))
    except StoreError as error:
        raise QueueError(f"{url}: {error}") from error


def _region(url: str) -> str | None:
    """Return the region in the URL of a queue, or None."""
    labels = url.partition("://")[2].partition("/")[0].split(".")
    return labels[1] if labels[0] == "sqs" and labels[2:3] == ["amazonaws"] else None
