"""The present: readings, kept ones, and clocks."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from functions.reading.as_of import AsOf
from functions.snapshot.errors import NothingPublished, StoreUnavailable
from functions.snapshot.pointer import Pointer
from tests.functions.oai.client import START, Clock
from tests.functions.reading.memory import MemoryRepository, capture

A = "oai:example.org:a"


def present(repository, clock, keep=2.0, allowance=5.0):
    return AsOf(repository, clock, keep, allowance)


@pytest.fixture
def two() -> MemoryRepository:
    """One snapshot in effect, the next in a second from START."""
    repository = MemoryRepository()
    repository.publish({A: capture("http://a/")}, START - timedelta(hours=1))
    repository.publish({A: None}, START + timedelta(seconds=1))
    return repository


def test_nothing_is_in_effect_before_the_first(clock):
    repository = MemoryRepository()
    with pytest.raises(NothingPublished):
        present(repository, clock).reading()
    repository.publish({A: capture("http://a/")}, START + timedelta(seconds=1))
    with pytest.raises(NothingPublished):
        present(repository, clock).reading()


def test_the_response_date_is_the_reading_less_the_allowance(two, clock):
    clock.move(0.9)
    reading = present(two, clock).reading()
    assert reading.entry.snapshot == 1
    assert reading.response_date == START - timedelta(seconds=5)
    assert not reading.cached


def test_the_response_date_of_a_copy_is_when_its_source_was_read(two, clock):
    whole = two.pointer
    two.pointer = lambda: replace(whole(), copied=START + timedelta(minutes=1))
    clock.move(30)
    assert present(two, clock).reading().response_date == START + timedelta(seconds=25)
    clock.move(3600)
    assert present(two, clock).reading().response_date == START + timedelta(seconds=55)


def test_a_reading_is_kept_for_a_while_only(two, clock):
    here = present(two, clock)
    first = here.reading()
    clock.move(1.9)
    kept = here.reading()
    assert kept.cached
    assert (kept.instant, kept.response_date) == (first.instant, first.response_date)
    assert two.reads == 1
    clock.move(0.1)
    assert not here.reading().cached
    assert two.reads == 2


def test_a_kept_reading_stays_true_of_its_own_instant(two, clock):
    here = present(two, clock)
    here.reading()
    clock.move(1.5)
    kept = here.reading()
    assert kept.entry.snapshot == 1  # but the pointer names 2, in effect since half a second
    assert here.reading(fresh=True).entry.snapshot == 2
    assert here.reading().entry.snapshot == 2


def test_where_the_store_does_not_answer_a_kept_reading_serves_for_longer(two, clock):
    class Away(MemoryRepository):
        def pointer(self):
            if away:
                raise StoreUnavailable("nobody answers")
            return two.pointer()

    away = False
    here = present(Away(), clock)
    first = here.reading()
    away = True
    clock.move(60)
    kept = here.reading()
    assert kept.cached
    assert (kept.instant, kept.entry) == (first.instant, first.entry)
    with pytest.raises(StoreUnavailable):  # which is what ends a list
        here.reading(fresh=True)
    clock.move(240)
    with pytest.raises(StoreUnavailable):
        here.reading()
    away = False
    assert here.reading().entry.snapshot == 2


def test_a_store_that_answers_again_is_waited_for(two, clock):
    pointer = two.pointer

    def fail():
        raise StoreUnavailable("nobody answers")

    def answer():
        time.sleep(0.05)
        return pointer()

    here = present(two, clock)
    first = here.reading()
    clock.move(60)
    two.pointer = fail
    assert here.reading().instant == first.instant
    two.pointer = answer
    assert not here.reading().cached


def test_nobody_with_a_cached_reading_waits_for_a_store_that_hangs(two, clock):
    pointer, answers, begun = two.pointer, threading.Event(), []

    def hang():
        begun.append(clock())
        assert answers.wait(20)
        return pointer()

    here = present(two, clock)
    here.patience = 0.05
    first = here.reading()
    two.pointer = hang
    clock.move(60)
    assert here.reading().instant == first.instant
    here.patience = 3600  # only the first waits for a moment
    for _ in range(100):
        assert here.reading().instant == first.instant
    assert len(begun) == 1
    flight, is_own = here.begin()
    assert not is_own
    answers.set()
    assert flight.result(20).entry.snapshot == 2
    clock.move(60)
    assert not here.reading().cached  # the store answers again, so it is waited for


@pytest.mark.parametrize(("keep", "seconds"), [(0, 0), (2, -1)])
def test_nothing_is_kept_for_no_time_or_by_a_clock_that_went_back(two, clock, keep, seconds):
    here = present(two, clock, keep=keep)
    assert not here.reading().cached
    clock.move(seconds)
    assert not here.reading().cached
    assert two.reads == 2


def test_the_clock_is_asked_before_the_pointer(two):
    order = []

    class Watched(MemoryRepository):
        def pointer(self):
            order.append("pointer")
            return two.pointer()

    def clock():
        order.append("clock")
        return START

    present(Watched(), clock).reading(fresh=True)
    assert order == ["clock", "pointer"]


def test_what_another_clock_may_have_reached_is_known(two, clock):
    assert present(two, clock).reading().reached == 2
    assert present(two, clock, allowance=0.5).reading().reached == 1


def test_threads_get_readings_that_are_whole(two):
    clock = Clock()
    here = present(two, clock, keep=0.001)

    def ask(n: int) -> bool:
        clock.move(0.0005)
        reading = here.reading(fresh=n % 7 == 0)
        return reading.entry == reading.pointer.at(reading.instant)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(2000)))


def test_a_slow_clock_does_not_unpublish(clock):
    """The pointer still names what was in effect for as long as clocks may differ."""
    repository = MemoryRepository()
    for n in range(5):
        effective = START + timedelta(seconds=n)
        repository.publish({A: capture(f"http://{n}/")}, effective, effective)
    clock.move(0.5)
    assert present(repository, clock).reading().entry.snapshot == 1
    clock.move(3)
    assert present(repository, clock).reading().entry.snapshot == 4


def test_a_pointer_that_vanished_is_a_store_out_of_reach(two, clock):
    """A folder that was moved, or whose disk is gone, is not one that was never published to."""
    present = AsOf(two, clock, 0, 5)
    before = present.reading()
    two.current = Pointer()
    clock.move(60)
    assert present.reading().entry == before.entry
    assert present.reading().response_date == before.response_date
    with pytest.raises(StoreUnavailable):
        present.reading(fresh=True)
    clock.move(600)
    with pytest.raises(StoreUnavailable):
        present.reading()
    with pytest.raises(NothingPublished):
        AsOf(two, clock, 0, 5).reading()
