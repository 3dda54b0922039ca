"""Thread pool for blocking calls of an event loop."""

import asyncio
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_MOMENT = 0.5  # seconds
_Call = tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]


class Threads:
    """Runs `count` calls at a time.

    Unlike those of concurrent.futures, the threads do not delay the end of the process: a call that
    waits for a dead disk would delay it forever.
    """

    def __init__(self, count: int) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"sheaf-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, call: Callable[..., T], *arguments: Any) -> T:
        """Return the result of the call, or raise its exception, except StopIteration."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put((future, call, arguments))
        return await future

    def close(self) -> None:
        """End each thread after its call; wait a moment for idle threads."""
        for _ in self._threads:
            self._calls.put(None)
        until = time.monotonic() + _MOMENT
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        while (task := self._calls.get()) is not None:
            future, call, arguments = task
            result, failure = None, None
            try:
                result = call(*arguments)
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                failure = error
            try:
                future.get_loop().call_soon_threadsafe(_settle, future, result, failure)
            except RuntimeError:
                return  # the loop has ended


def _settle(future: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if future.done():
        return  # abandoned
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
