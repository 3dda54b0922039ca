"""Deadlines: an answer that is not ready in time is a 503, and its thread comes to an end."""

import json
import threading
import time
from contextvars import ContextVar

import pytest

from functions.http import deadline
from functions.oai.application import Application
from tests.functions.oai.client import configured, event, respond


class Thread:
    """What a call tells of the thread that it runs in."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.thread: threading.Thread | None = None

    def note(self) -> None:
        self.thread = threading.current_thread()
        self.begun.set()

    def ended(self) -> bool:
        assert self.thread is not None
        self.thread.join(20)
        return not self.thread.is_alive()


def test_what_is_ready_in_time_is_returned_or_raised():
    assert deadline.answer_within(5, lambda: 7) == 7
    assert deadline.answer_within(5, lambda: None) is None
    assert deadline.answer_within(5, threading.current_thread) is not threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        deadline.answer_within(5, lambda: 1 / 0)


def test_the_context_is_the_caller_s():
    found: ContextVar[list[int]] = ContextVar("found")
    found.set([])
    deadline.answer_within(5, lambda: found.get().append(7))
    assert found.get() == [7]


@pytest.mark.parametrize("seconds", [0, -1, 0.05])
def test_what_never_ends_is_stopped_in_silence(seconds, capfd):
    told = Thread()

    def run() -> None:
        told.note()
        while True:
            try:
                sum(range(1000))
            except Exception:  # noqa: BLE001 - as careless code does
                continue

    began = time.monotonic()
    with pytest.raises(deadline.DeadlineError):
        deadline.answer_within(seconds, run)
    assert time.monotonic() - began < 10
    assert told.begun.wait(5)
    assert told.ended()
    assert capfd.readouterr() == ("", "")


def test_what_waits_ends_behind_its_wait(capfd):
    told, release = Thread(), threading.Event()

    def run() -> None:
        told.note()
        release.wait()
        pytest.fail("it went on")

    with pytest.raises(deadline.DeadlineError):
        deadline.answer_within(0.05, run)
    release.set()
    assert told.ended()
    assert capfd.readouterr() == ("", "")


class Hanging:
    """An application of which one method of its repository hangs, and its log."""

    def __init__(self, repository, clock, method: str) -> None:
        self.lines: list[str] = []
        self.release = threading.Event()
        self.told = Thread()
        found = getattr(repository, method)

        def hang(*args, **kwargs):
            if not self.release.is_set():
                self.told.note()
                self.release.wait(30)
            return found(*args, **kwargs)

        setattr(repository, method, hang)
        self.application = Application(repository, configured(), clock, self.lines.append)


@pytest.mark.parametrize("method", ["pointer", "manifest", "size", "page"])
@pytest.mark.parametrize("accepted", ["", "gzip"])
def test_a_request_that_hangs_is_told_to_come_again(repository, clock, caplog, method, accepted):
    hanging = Hanging(repository, clock, method)
    asked = event("verb=ListRecords&metadataPrefix=oai_dc", headers={"accept-encoding": accepted})
    began = time.monotonic()
    reply = respond(hanging.application, asked, 0.5, "a-request")
    assert time.monotonic() - began < 10
    assert (reply["statusCode"], reply["headers"]["Retry-After"]) == (503, "30")
    assert reply["headers"]["Cache-Control"] == "no-store"
    assert reply["body"] == "This takes too long at the moment; try again later.\n"
    assert hanging.application.spent
    assert "no answer within 0.5 s: 'GET' '/oai'" in caplog.text
    hanging.release.set()
    assert hanging.told.ended()
    (line,) = hanging.lines  # what comes too late is not told of once more
    entry = json.loads(line)
    assert (entry["status"], entry["request"], entry["verb"]) == (503, "a-request", "ListRecords")
    assert entry["milliseconds"] >= 500


def test_rendering_has_a_deadline_as_well(repository, clock):
    application = Application(repository, configured(), clock)
    told = Thread()

    class Endless:
        def document(self, answer):
            told.note()
            while True:
                sum(range(1000))

        render = document

    application._renderer = Endless()
    assert respond(application, event("verb=Identify"), 0.5)["statusCode"] == 503
    assert told.ended()


def test_what_is_ready_in_time_is_the_same_as_without_a_deadline(repository, clock, monkeypatch):
    application = Application(repository, configured(), clock)
    queries = ("verb=Identify", "verb=ListRecords&metadataPrefix=oai_dc", "verb=Nope")
    in_time = [respond(application, event(query), 5) for query in queries]
    monkeypatch.delattr(threading, "Thread")  # without a deadline there is none
    assert in_time == [respond(application, event(query)) for query in queries]
    assert not application.spent
