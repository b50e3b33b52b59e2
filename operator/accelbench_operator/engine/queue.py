"""Queue keys, level-triggered: one worker at a time works on a key, and again if it was added meanwhile.

Adding a key means that its object may have changed; adding it several times has the same effect as once. The worker
returns after how many seconds to look at the key again. A key whose work raises is retried with exponential backoff and
jitter, not before the `Retry-After` of the server.
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
"""Seconds that work may take to finish at shutdown, because a request that is cut off may have been carried out. kopf
waits for 5."""
HEAP_SLACK = 64
"""Stale entries that the heap may hold before it is rebuilt."""
SPREAD = (0.75, 1.25)
"""Jitter: keys that failed together are not retried together."""


class RetryError(Exception):
    """Report that the work was refused for a reason outside the operator; the queue logs no traceback."""

    retry_after_seconds: float = 0.0
    """Minimum time until the next try."""


def retry_delay(failures: int, error: Exception) -> float:
    """Return the seconds until the next try of a key that has failed `failures` times in a row, last with `error`."""
    delay = min(FIRST_DELAY_SECONDS * (1 << min(failures - 1, 10)), LONGEST_DELAY_SECONDS)
    retry_after = error.retry_after_seconds if isinstance(error, RetryError | ApiError) else 0.0
    return retry_after + delay * random.uniform(*SPREAD)  # noqa: S311 - spreads load, keeps no secret


class KeyedQueue(Generic[Key]):
    """Hold keys and the times when they are due.

    `work` handles a key, and returns after how many seconds to handle it again, or None. `clock` returns seconds.
    """

    def __init__(self, work: Callable[[Key], Awaitable[float | None]], clock: Callable[[], float]) -> None:
        self._work = work
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._push_count = 0
        self._in_work: dict[Key, float] = {}
        self._step_began: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._wake = asyncio.Event()
        self._ending = False
        self.handled_total = 0
        self.failed_total = 0

    def add(self, key: Key, after: float = 0.0) -> None:
        """Have the key handled in `after` seconds, or earlier if it is already due earlier."""
        due = self._clock() + after
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        self._push_count += 1
        heapq.heappush(self._heap, (due, self._push_count, key))
        if len(self._heap) > 2 * len(self._due) + HEAP_SLACK:
            # Entries of keys that became due earlier, or were discarded, would stay until their time.
            self._heap = [(due, number, key) for number, (key, due) in enumerate(self._due.items())]
            heapq.heapify(self._heap)
        self._wake.set()

    def discard(self, key: Key) -> None:
        """Remove the key and its failures; work on it that has begun continues."""
        self._due.pop(key, None)
        self._failures.pop(key, None)

    @property
    def depth(self) -> int:
        """Return the number of keys that are due and wait."""
        now = self._clock()
        return sum(due <= now for due in self._due.values())

    @property
    def oldest_seconds(self) -> float:
        """Return for how many seconds the oldest key has been due, waiting or in work; 0.0 without keys."""
        now = self._clock()
        oldest = min((*self._due.values(), *self._in_work.values()), default=now)
        return max(0.0, now - oldest)

    @property
    def longest_work_seconds(self) -> float:
        """Return the longest time since a key in work took its last step, in seconds; 0.0 if none is in work."""
        now = self._clock()
        return max(0.0, now - min(self._step_began.values(), default=now))

    def record_step(self, key: Key) -> None:
        """Note that the key, which is in work, has taken a step."""
        if key in self._step_began:
            self._step_began[key] = self._clock()

    async def run(self, workers: int) -> None:
        """Run workers until cancelled, then let keys that are being handled finish, for at most `END_SECONDS`."""
        tasks = [asyncio.create_task(self._worker()) for _ in range(workers)]
        try:
            # Unlike gather, wait does not cancel the workers when this task is cancelled.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            self._ending = True
            self._wake.set()
            _, late = await asyncio.wait(tasks, timeout=END_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _worker(self) -> None:
        """Handle due keys one after the other until the queue ends."""
        while not self._ending:
            key = await self._next_due_key()
            if key is None:
                return
            try:
                after = await self._work(key)
            except Exception as error:
                # One key's error must not stop the others.
                self.failed_total += 1
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                after = retry_delay(failures, error)
                expected = isinstance(error, RetryError | ApiError)
                message = "%s: %s: %s; retrying in %.1f s"
                logger.warning(message, key, type(error).__name__, error, after, exc_info=not expected)
            else:
                self._failures.pop(key, None)
            finally:
                self._in_work.pop(key, None)
                self._step_began.pop(key, None)
                self.handled_total += 1
                # Wake a worker: the key may have been added again meanwhile.
                self._wake.set()
            if after is not None:
                self.add(key, after)
            # Most reconciles await nothing; without this, a thousand of them would block the event loop.
            await asyncio.sleep(0)

    async def _next_due_key(self) -> Key | None:
        """Wait for a key that is due and not in work, and mark it as in work; return None once the queue ends."""
        while not self._ending:
            now = self._clock()
            wait, in_work = None, []
            while self._heap:
                due, _, key = self._heap[0]
                if self._due.get(key) != due:
                    # The key became due earlier, or was discarded.
                    heapq.heappop(self._heap)
                elif due > now:
                    wait = due - now
                    break
                elif key in self._in_work:
                    # Only one worker at a time may handle a key.
                    in_work.append(heapq.heappop(self._heap))
                else:
                    heapq.heappop(self._heap)
                    self._requeue(in_work)
                    del self._due[key]
                    self._in_work[key] = due
                    self._step_began[key] = now
                    return key
            self._requeue(in_work)
            self._wake.clear()
            await self._sleep(wait)
        return None

    def _requeue(self, entries: list[tuple[float, int, Key]]) -> None:
        """Put entries back whose keys are due and in work."""
        for entry in entries:
            heapq.heappush(self._heap, entry)

    async def _sleep(self, seconds: float | None) -> None:
        """Wait until a key is added or its work ends, for at most `seconds`; None: without a limit."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
