"""A level-triggered queue of keys: a key is worked on by one worker at a time, and again if it was added meanwhile.

Adding says only that something may have changed; however often that is said, the key is worked on once. What the
worker returns is when to look again at the latest. A key whose work raises comes back after a delay of its own, which
doubles, is spread at random, and is no shorter than what the server asked for.
"""

import asyncio
import contextlib
import heapq
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from accelbench.cluster_api.errors import ApiError

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 120.0
END_SECONDS = 4.0
"""For what is being worked on when all is to end: a request that is cut off may have been carried out. kopf waits 5."""
HEAP_SLACK = 64
"""For so many entries it is not worth it to look through them."""
SPREAD = (0.75, 1.25)
"""Keys that failed together do not come back together."""


class RetryError(Exception):
    """Something outside refused the work: nothing to trace, and it may say when to come back."""

    retry_after_seconds: float = 0.0


def retry_delay(failures: int, error: Exception) -> float:
    """Seconds until a key is tried again that has failed so often in a row, this time with `error`."""
    delay = min(FIRST_DELAY_SECONDS * (1 << min(failures - 1, 10)), LONGEST_DELAY_SECONDS)
    asked = error.retry_after_seconds if isinstance(error, RetryError | ApiError) else 0.0
    return asked + delay * random.uniform(*SPREAD)  # noqa: S311 - spreads load, keeps no secret


class KeyedQueue(Generic[Key]):
    """Keys and when they are due. `clock` counts seconds, `work` returns after how many to look again, or None."""

    def __init__(self, work: Callable[[Key], Awaitable[float | None]], clock: Callable[[], float]) -> None:
        self._work = work
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._pushed = 0
        self._working: dict[Key, float] = {}
        self._began: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()
        self._ending = False
        self.worked_total = 0
        self.failed_total = 0

    def add(self, key: Key, after: float = 0.0) -> None:
        """Have the key worked on in `after` seconds, or earlier where that is already wanted."""
        due = self._clock() + after
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        self._pushed += 1
        heapq.heappush(self._heap, (due, self._pushed, key))
        if len(self._heap) > 2 * len(self._due) + HEAP_SLACK:
            # What became due earlier, or not at all, would stay until its time.
            self._heap = [(due, number, key) for number, (key, due) in enumerate(self._due.items())]
            heapq.heapify(self._heap)
        self._changed.set()

    def discard(self, key: Key) -> None:
        """Not to be worked on unless it is added anew; what is being worked on is finished."""
        self._due.pop(key, None)
        self._failures.pop(key, None)

    @property
    def depth(self) -> int:
        """How many keys are due and wait."""
        now = self._clock()
        return sum(due <= now for due in self._due.values())

    @property
    def oldest_seconds(self) -> float:
        """How long the oldest key has been due, waiting or being worked on; 0.0 with none."""
        now = self._clock()
        oldest = min((*self._due.values(), *self._working.values()), default=now)
        return max(0.0, now - oldest)

    @property
    def longest_work_seconds(self) -> float:
        """How long ago the key that is slowest took its last step; 0.0 where none is worked on."""
        now = self._clock()
        return max(0.0, now - min(self._began.values(), default=now))

    def stepped(self, key: Key) -> None:
        """The key is worked on, and has taken a step."""
        if key in self._began:
            self._began[key] = self._clock()

    async def run(self, workers: int) -> None:
        """Work until cancelled; what is being worked on then is finished, for as long as `END_SECONDS`."""
        tasks = [asyncio.create_task(self._worker()) for _ in range(workers)]
        try:
            # Not gather, which would cancel what it waits for.
            failed, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in failed:
                task.result()
        finally:
            self._ending = True
            self._changed.set()
            _, late = await asyncio.wait(tasks, timeout=END_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _worker(self) -> None:
        while not self._ending:
            key = await self._take()
            if key is None:
                return
            try:
                after = await self._work(key)
            except Exception as error:
                # Whatever it was, the other keys go on, and this one is tried again.
                self.failed_total += 1
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                after = retry_delay(failures, error)
                known = isinstance(error, RetryError | ApiError)
                said = "%s: %s: %s; again in %.1f s"
                logger.warning(said, key, type(error).__name__, error, after, exc_info=not known)
            else:
                self._failures.pop(key, None)
            finally:
                self._working.pop(key, None)
                self._began.pop(key, None)
                self.worked_total += 1
                # A key that came back meanwhile may be due: someone has to look.
                self._changed.set()
            if after is not None:
                self.add(key, after)
            # Most looks at a run find nothing to do, and await nothing: a thousand of them would be one step.
            await asyncio.sleep(0)

    async def _take(self) -> Key | None:
        while not self._ending:
            now = self._clock()
            wait, held = None, []
            while self._heap:
                due, _, key = self._heap[0]
                if self._due.get(key) != due:
                    heapq.heappop(self._heap)
                elif due > now:
                    wait = due - now
                    break
                elif key in self._working:
                    held.append(heapq.heappop(self._heap))
                else:
                    heapq.heappop(self._heap)
                    self._requeue(held)
                    del self._due[key]
                    self._working[key] = due
                    self._began[key] = now
                    return key
            self._requeue(held)
            self._changed.clear()
            await self._sleep(wait)
        return None

    def _requeue(self, entries: list[tuple[float, int, Key]]) -> None:
        for entry in entries:
            heapq.heappush(self._heap, entry)

    async def _sleep(self, seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
