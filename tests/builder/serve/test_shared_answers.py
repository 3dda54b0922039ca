"""Equal requests at the same time: one of them is answered, for all."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder.serve.shared_answers import SharedAnswers
from functions.http import http_message, service
from functions.http.http_message import Call, HttpResponse
from functions.oai.application import Application
from tests.builder.conftest import World, capture
from tests.functions.oai.client import call_of, configured, event

HARVESTERS = 16
SECONDS = 20


def test_one_of_many_has_the_answer_made_and_each_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    world = World(tmp_path / "store")
    application = Application(world.repository(), configured(), world.clock, lines.append)
    asked: list[Call] = []
    begun, goes_on = threading.Semaphore(0), threading.Event()

    def answer(call: Call) -> HttpResponse:
        asked.append(call)
        begun.release()
        assert goes_on.wait(SECONDS)
        if "GetRecord" in call.query:
            raise MemoryError
        headers = {"Cache-Control": http_message.cache_control(9, pinned=True)}
        return HttpResponse(200, headers, call.query.encode())

    shared = SharedAnswers(answer, application)
    verbs = ("Identify", "ListSets", "GetRecord")
    same, other, fault = (call_of(event(f"verb={verb}")) for verb in verbs)
    plain = call_of(event("verb=Identify", headers={"accept-encoding": "identity"}))
    post = call_of(event("verb=Identify", "POST"))
    with ThreadPoolExecutor(2 * HARVESTERS) as pool:
        answers = [pool.submit(shared, same) for _ in range(HARVESTERS)]
        failures = [pool.submit(shared, fault) for _ in range(2)]
        others = [pool.submit(shared, call) for call in (other, plain, post, post)]
        assert all(begun.acquire(timeout=SECONDS) for _ in range(6))
        goes_on.set()
        assert {a.result(SECONDS).body for a in answers} == {b"verb=Identify"}
        assert all(a.result(SECONDS).status == 200 for a in others)
        assert all(isinstance(f.exception(SECONDS), MemoryError) for f in failures)
    assert len(asked) == 6
    assert [json.loads(line)["bytes"] for line in lines] == [13] * (HARVESTERS - 1)
    assert shared(same).body == b"verb=Identify"  # a later one is answered anew
    assert len(asked) == 7
    goes_on.clear()
    monkeypatch.setattr(service, "PATIENCE", 0.01)
    with ThreadPoolExecutor(2) as pool:  # the other one does not wait for ever
        answers = [pool.submit(shared, same) for _ in range(2)]
        assert all(begun.acquire(timeout=SECONDS) for _ in range(3))
        goes_on.set()
        assert all(answer.result(SECONDS).status == 200 for answer in answers)
    world.close()


def test_who_asks_after_a_publish_is_not_answered_from_before_it(tmp_path: Path) -> None:
    """A list's end is never older than the answers before it (functions.reading.as_of, rule 4)."""
    world, ticks = World(tmp_path / "store"), threading.Semaphore(0)
    world.ingest([capture(1)])
    world.publish()
    world.clock.sleep(30)
    begun, goes_on = threading.Event(), threading.Event()

    def tick() -> float:
        ticks.release()
        return 0.0

    def answer(call: Call) -> HttpResponse:
        response = application.answer(call)
        begun.set()
        assert goes_on.wait(SECONDS)
        return response

    application = Application(world.repository(), configured(), world.clock, timer=tick)
    shared = SharedAnswers(answer, application)
    call = call_of(event("verb=ListRecords&metadataPrefix=oai_dc"))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shared, call)
        assert begun.wait(SECONDS)
        world.ingest([capture(2)])
        world.publish()
        world.clock.sleep(100)
        later = pool.submit(shared, call)
        assert all(ticks.acquire(timeout=SECONDS) for _ in range(2))
        goes_on.set()
        bodies = [answered.result(SECONDS).body for answered in (first, later)]
    assert [capture(2).url in str(body) for body in bodies] == [False, True]
    world.close()
