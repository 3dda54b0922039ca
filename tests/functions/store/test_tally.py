"""The tally: each request and byte counted once, for whatever asked for it."""

from concurrent.futures import ThreadPoolExecutor

from functions.store import s3_request


def test_what_nobody_counts_is_not_counted() -> None:
    s3_request.add_to_tally(requests=1, size=10)
    with s3_request.count_requests() as found:
        pass
    assert (found.requests, found.bytes) == (0, 0)


def test_threads_count_for_themselves_and_what_is_carried_for_whoever_carried_it() -> None:
    def work(number: int) -> tuple[int, int]:
        with s3_request.count_requests() as mine, ThreadPoolExecutor(4) as pool:
            for _ in range(number):
                pool.submit(s3_request.carry_tally(s3_request.add_to_tally), 1, number)
            pool.submit(s3_request.add_to_tally, 1000, 1000)  # not carried: nobody's
        return mine.requests, mine.bytes

    with ThreadPoolExecutor(19) as pool:
        assert [*pool.map(work, range(1, 20))] == [(n, n * n) for n in range(1, 20)]


def test_one_within_another_is_counted_there_alone() -> None:
    with s3_request.count_requests() as outer:
        s3_request.add_to_tally(requests=1)
        with s3_request.count_requests() as inner:
            s3_request.add_to_tally(requests=2, size=5)
        s3_request.add_to_tally(requests=4)
    assert (outer.requests, outer.bytes) == (5, 0)
    assert (inner.requests, inner.bytes) == (2, 5)
