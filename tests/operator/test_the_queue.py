import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench_operator.engine.fair_slots import FairSlots
from accelbench_operator.engine.queue import (
    FIRST_DELAY_SECONDS,
    JITTER,
    LONGEST_DELAY_SECONDS,
    KeyedQueue,
    RetryError,
    retry_delay,
)


@contextlib.asynccontextmanager
async def working(queue: KeyedQueue[str], workers: int = 4) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(workers))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def new_queue(work: Callable[[str], Awaitable[float | None]]) -> KeyedQueue[str]:
    return KeyedQueue(work, asyncio.get_running_loop().time)


async def test_a_key_added_many_times_is_worked_on_once() -> None:
    seen: Counter[str] = Counter()
    done = asyncio.Event()

    async def work(key: str) -> None:
        seen[key] += 1
        if key == "last":
            done.set()

    queue = new_queue(work)
    for _ in range(100):
        queue.add("a")
    queue.add("last")
    async with working(queue, workers=1):
        await done.wait()

    assert seen == {"a": 1, "last": 1}


async def test_a_key_is_never_worked_on_twice_at_once_but_again_if_it_was_added_meanwhile() -> None:
    at_work, most, times = 0, 0, 0
    again = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal at_work, most, times
        at_work, times = at_work + 1, times + 1
        most = max(most, at_work)
        if times == 1:
            queue.add(key)
        for _ in range(10):
            await asyncio.sleep(0)
        at_work -= 1
        if times == 2:
            again.set()

    queue = new_queue(work)
    queue.add("a")
    async with working(queue):
        await again.wait()

    assert most == 1


async def test_other_tasks_run_between_two_keys_without_work() -> None:
    turns: list[str] = []
    done = asyncio.Event()

    async def work(key: str) -> None:
        turns.append(key)
        if key == "last":
            done.set()

    async def other() -> None:
        while not done.is_set():
            turns.append("other")
            await asyncio.sleep(0)

    queue = new_queue(work)
    for key in ("a", "b", "c", "last"):
        queue.add(key)
    async with working(queue, workers=1), asyncio.TaskGroup() as group:
        group.create_task(other())
        await done.wait()

    assert not [pair for pair in itertools.pairwise(turns) if "other" not in pair], turns


async def test_different_keys_are_worked_on_concurrently() -> None:
    both = asyncio.Barrier(3)

    async def work(key: str) -> None:
        await both.wait()

    queue = new_queue(work)
    queue.add("a")
    queue.add("b")
    async with working(queue), asyncio.timeout(5):
        await both.wait()

    assert both.n_waiting == 0


async def test_a_group_with_many_keys_does_not_delay_the_others() -> None:
    turns: list[str] = []
    done = asyncio.Event()

    async def work(key: str) -> None:
        turns.append(key)
        await asyncio.sleep(0)
        if len(turns) == 102:
            done.set()

    queue = KeyedQueue(work, asyncio.get_running_loop().time, lambda key: key[0])
    for number in range(100):
        queue.add(f"a{number}")
    queue.add("b")
    queue.add("c")
    async with working(queue, workers=2):
        await done.wait()

    assert {"b", "c"} <= set(turns[:4])
    assert [key for key in turns if key[0] == "a"] == [f"a{number}" for number in range(100)]


async def test_groups_that_wait_for_a_slot_take_turns() -> None:
    slots: FairSlots[str] = FairSlots(2)
    order: list[str] = []
    at_work = most = 0

    async def task(group: str) -> None:
        nonlocal at_work, most
        async with slots.slot(group):
            at_work += 1
            most = max(most, at_work)
            order.append(group)
            await asyncio.sleep(0)
            at_work -= 1

    async with asyncio.TaskGroup() as group:
        cancelled = [group.create_task(task("a")) for _ in range(50)][5::10]
        group.create_task(task("b"))
        await asyncio.sleep(0)
        for each in cancelled:
            each.cancel()
    assert (most, order.count("a"), "b" in order[:4]) == (2, 45, True)
    async with asyncio.timeout(5), slots.slot("a"), slots.slot("a"):
        pass


async def test_a_key_is_due_again_when_its_worker_asked_for_it() -> None:
    times: list[float] = []
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work(key: str) -> float | None:
        times.append(loop.time())
        if len(times) == 2:
            done.set()
            return None
        return 0.05

    queue = new_queue(work)
    queue.add("a")
    async with working(queue):
        await done.wait()

    assert times[1] - times[0] >= 0.05


async def test_an_earlier_time_wins_over_a_later_one() -> None:
    worked = asyncio.Event()

    async def work(key: str) -> None:
        worked.set()

    queue = new_queue(work)
    queue.add("a", after=3600)
    queue.add("a", after=0)
    queue.add("a", after=3600)
    async with working(queue), asyncio.timeout(5):
        await worked.wait()

    assert queue.depth == 0


async def test_work_that_raises_is_repeated_after_a_delay_and_does_not_delay_other_keys() -> None:
    fine = asyncio.Event()

    async def work(key: str) -> None:
        if key == "bad":
            raise ValueError("no")
        fine.set()

    queue = new_queue(work)
    queue.add("bad")
    queue.add("good", after=0.01)
    async with working(queue, workers=1), asyncio.timeout(5):
        await fine.wait()

    assert queue.failed_total == 1
    assert queue.depth == 0


async def test_the_age_of_the_oldest_key_includes_waiting_and_working_but_not_keys_due_later() -> None:
    now = 100.0

    async def work(key: str) -> None:
        await asyncio.Event().wait()

    queue = KeyedQueue(work, lambda: now)
    queue.add("later", after=50)
    assert queue.oldest_seconds == 0
    queue.add("a")
    now = 107.0
    assert (queue.oldest_seconds, queue.depth) == (7, 1)
    async with working(queue, workers=1):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        now = 110.0
        assert (queue.oldest_seconds, queue.depth) == (10, 0)


class BusyError(RetryError):
    retry_after_seconds = 30.0


@given(st.integers(1, 100))
def test_delays_double_up_to_two_minutes_with_jitter(failures: int) -> None:
    wanted = min(FIRST_DELAY_SECONDS * 2 ** (failures - 1), LONGEST_DELAY_SECONDS)
    found = [retry_delay(failures, ValueError("no")) for _ in range(8)]
    assert all(JITTER[0] * wanted <= delay <= JITTER[1] * wanted for delay in found)
    assert len(set(found)) > 1


def test_a_retry_waits_for_the_time_that_the_server_gave() -> None:
    assert retry_delay(1, BusyError("later")) > 30


@pytest.mark.parametrize(("error", "traced"), [(ValueError("no"), True), (RetryError("later"), False)])
async def test_a_refusal_is_logged_in_one_line_and_a_bug_with_its_traceback(
    error: Exception, traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    failed = asyncio.Event()

    async def work(key: str) -> None:
        if key == "after":
            failed.set()
            return
        raise error

    queue = new_queue(work)
    queue.add("a")
    queue.add("after", after=0.01)
    with caplog.at_level(logging.WARNING):
        async with working(queue, workers=1):
            await failed.wait()
    [record] = caplog.records
    assert bool(record.exc_info) == traced


async def test_only_work_that_takes_long_counts_as_a_hang_and_not_waiting() -> None:
    now = 0.0

    async def work(key: str) -> None:
        await asyncio.Event().wait()

    queue = KeyedQueue(work, lambda: now)
    queue.add("a")
    now = 700.0
    assert (queue.oldest_seconds, queue.longest_step_seconds) == (700, 0)
    async with working(queue, workers=1):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        now = 710.0
        assert queue.longest_step_seconds == 10


async def test_a_shutdown_finishes_the_work_in_progress_and_starts_no_other() -> None:
    begun: list[str] = []
    going, may_end, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(key: str) -> None:
        begun.append(key)
        going.set()
        await may_end.wait()
        finished.set()

    queue = new_queue(work)
    task = asyncio.create_task(queue.run(1))
    queue.add("a")
    await going.wait()
    task.cancel()
    queue.add("b")
    await asyncio.sleep(0)
    may_end.set()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert finished.is_set()
    assert begun == ["a"]


async def test_a_key_with_many_steps_does_not_count_as_a_hang() -> None:
    now = 0.0
    at_work = asyncio.Event()

    async def work(key: str) -> None:
        at_work.set()
        await asyncio.Event().wait()

    queue = KeyedQueue(work, lambda: now)
    queue.add("a")
    task = asyncio.create_task(queue.run(1))
    await at_work.wait()
    now = 500.0
    queue.record_step("a")
    now = 700.0
    assert queue.longest_step_seconds == 200
    task.cancel()
