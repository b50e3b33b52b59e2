"""Queue keys of objects that may have changed, and have workers handle them.

The queue is level-triggered: adding a key several times has the same effect as once. Only one worker at a time handles
a key; if the key is added meanwhile, it is handled again. After an exception, the key is retried with exponential
backoff and jitter, not before the `Retry-After` of the server. Groups of keys take turns: a namespace with thousands of
keys that are due does not hold up the others.
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
"""Delay before the first retry of a key; it doubles with each failure."""
LONGEST_DELAY_SECONDS = 120.0
MAXIMUM_DOUBLINGS = 10
"""More than enough to reach `LONGEST_DELAY_SECONDS`, and few enough that the power of two stays small."""
END_SECONDS = 4.0
"""Maximum time for work to finish at shutdown, because a request that is cut off may have been carried out. kopf waits
for 5 s."""
HEAP_SLACK = 64
"""Number of entries by which the heap may exceed twice the number of keys, before its stale entries are removed."""
JITTER = (0.75, 1.25)
"""Minimum and maximum factor of a delay: keys that failed together are not retried together."""


class RetryError(Exception):
    """Report that the work was refused for a reason outside the operator; the queue logs no traceback."""

    retry_after_seconds: float = 0.0
    """Minimum time until the next try."""


def retry_delay(failures: int, error: Exception) -> float:
    """Return the seconds until a failed key is retried: they double with each failure, with random jitter.

    Args:
        failures: The number of failures in a row, at least 1.
        error: The last failure; its `retry_after_seconds`, if any, are added.
    """
    doublings = min(failures - 1, MAXIMUM_DOUBLINGS)
    delay_seconds = min(FIRST_DELAY_SECONDS * 2.0**doublings, LONGEST_DELAY_SECONDS)
    minimum_seconds = error.retry_after_seconds if isinstance(error, RetryError | ApiError) else 0.0
    return minimum_seconds + delay_seconds * random.uniform(*JITTER)  # noqa: S311 - spreads load, keeps no secret


class KeyedQueue(Generic[Key]):
    """Queue keys, each with the time when it is due."""

    def __init__(
        self,
        work: Callable[[Key], Awaitable[float | None]],
        clock: Callable[[], float],
        group_of: Callable[[Key], Hashable] = lambda _: None,
    ) -> None:
        """Create an empty queue.

        Args:
            work: Handles a key; returns the seconds until the key is due again, or None.
            clock: Returns seconds of a monotonic clock.
            group_of: Returns the group of a key; groups take turns.
        """
        self._group_of = group_of
        self._due: dict[Hashable, dict[Key, None]] = {}
        """The keys that are due, in order, by group; the group that was served last is at the end."""
        self._work = work
        self._clock = clock
        self._due_at: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        """Due time, number of the push, and key. An entry is stale if `_due_at` has another time for the key."""
        self._push_count = 0
        self._in_work: dict[Key, float] = {}
        """When each of the keys that workers handle now became due."""
        self._step_began: dict[Key, float] = {}
        """When the current step of each of these keys began."""
        self._failures: dict[Key, int] = {}
        """Number of failures in a row, by key."""
        self._wake = asyncio.Event()
        self._ending = False
        self.handled_total = 0
        self.failed_total = 0

    def add(self, key: Key, after: float = 0.0) -> None:
        """Make the key due `after` seconds from now, or keep an earlier time."""
        due_at = self._clock() + after
        if key in self._due_at and self._due_at[key] <= due_at:
            return
        self._due_at[key] = due_at
        self._push_count += 1
        heapq.heappush(self._heap, (due_at, self._push_count, key))
        if len(self._heap) > 2 * len(self._due_at) + HEAP_SLACK:
            # Rebuild the heap without the entries of keys that became due earlier or were discarded: each would stay
            # in the heap until its time.
            self._heap = [
                (queued_due_at, number, queued_key)
                for number, (queued_key, queued_due_at) in enumerate(self._due_at.items())
            ]
            heapq.heapify(self._heap)
        self._wake.set()

    def discard(self, key: Key) -> None:
        """Remove the key from the queue. A worker that already handles the key continues."""
        self._due_at.pop(key, None)
        self._failures.pop(key, None)
        self._take_out(key)

    @property
    def depth(self) -> int:
        """Return the number of keys that are due and wait for a worker."""
        now = self._clock()
        return sum(due_at <= now for due_at in self._due_at.values())

    @property
    def oldest_seconds(self) -> float:
        """Return how long the oldest key has been due, including keys that workers handle now."""
        now = self._clock()
        earliest = min((*self._due_at.values(), *self._in_work.values()), default=now)
        return max(0.0, now - earliest)

    @property
    def longest_step_seconds(self) -> float:
        """Return the longest time for which a worker has been busy with its current step."""
        now = self._clock()
        earliest_step = min(self._step_began.values(), default=now)
        return max(0.0, now - earliest_step)

    def record_step(self, key: Key) -> None:
        """Record that the worker of this key begins its next step now; do nothing if no worker handles the key."""
        if key in self._step_began:
            self._step_began[key] = self._clock()

    async def run(self, workers: int) -> None:
        """Run `workers` workers until cancelled; then let them finish their keys for `END_SECONDS` at most."""
        tasks = [asyncio.create_task(self._worker()) for _ in range(workers)]
        try:
            # Unlike gather, wait does not cancel the workers when this task is cancelled.
            ended_tasks, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended_tasks:
                task.result()  # raises the error of a worker
        finally:
            self._ending = True
            self._wake.set()
            _, unfinished_tasks = await asyncio.wait(tasks, timeout=END_SECONDS)
            for task in unfinished_tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _worker(self) -> None:
        """Handle due keys until the queue ends."""
        while not self._ending:
            key = await self._next_due_key()
            if key is None:
                return
            try:
                delay_seconds = await self._work(key)
            except Exception as error:  # noqa: BLE001 - logged and retried
                # One key's error must not stop the work on other keys.
                delay_seconds = self._record_failure(key, error)
            else:
                self._failures.pop(key, None)
            finally:
                self._in_work.pop(key, None)
                self._step_began.pop(key, None)
                self.handled_total += 1
                # Wake another worker: the key may have been added again meanwhile.
                self._wake.set()
            if delay_seconds is not None:
                self.add(key, delay_seconds)
            # Most reconciles await nothing; without this, a thousand of them would block the event loop.
            await asyncio.sleep(0)

    def _record_failure(self, key: Key, error: Exception) -> float:
        """Count and log a failure; return the seconds until the retry."""
        self.failed_total += 1
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay_seconds = retry_delay(failures, error)
        is_expected = isinstance(error, RetryError | ApiError)
        message = "%s: %s: %s; retrying in %.1f s"
        logger.warning(message, key, type(error).__name__, error, delay_seconds, exc_info=not is_expected)
        return delay_seconds

    async def _next_due_key(self) -> Key | None:
        """Wait for a due key, and assign it to the worker that calls this; return None once the queue ends."""
        while not self._ending:
            seconds_until_due = self._collect_due()
            key = self._choose_due()
            if key is not None:
                self._take_out(key)
                self._in_work[key] = self._due_at.pop(key)
                self._step_began[key] = self._clock()
                return key
            self._wake.clear()
            await self._sleep(seconds_until_due)
        return None

    def _collect_due(self) -> float | None:
        """Move the keys that are due from the heap to their groups; return the seconds until the next one is due.

        Returns None if no other key waits.
        """
        now = self._clock()
        while self._heap:
            due_at, _, key = self._heap[0]
            is_stale = self._due_at.get(key) != due_at  # the key became due earlier, or was discarded
            if due_at > now and not is_stale:
                return due_at - now
            heapq.heappop(self._heap)
            if not is_stale:
                self._due.setdefault(self._group_of(key), {})[key] = None
        return None

    def _choose_due(self) -> Key | None:
        """Return the first due key that no worker handles now, from the group whose turn it is; None if there is none.

        A group is passed over if workers handle all its due keys.
        """
        for keys in self._due.values():
            for key in keys:
                # Only one worker at a time may handle a key.
                if key not in self._in_work:
                    return key
        return None

    def _take_out(self, key: Key) -> None:
        """Remove a key from the due keys, and move its group to the end, so that groups take turns."""
        group = self._group_of(key)
        keys = self._due.pop(group, {})
        keys.pop(key, None)
        if keys:  # a group without due keys takes no turn
            self._due[group] = keys

    async def _sleep(self, seconds: float | None) -> None:
        """Wait until the queue changes, but at most `seconds`; None means no limit."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
