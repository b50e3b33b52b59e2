"""Choose the stored results to delete, so that a history is kept and etcd never fills.

A result outlives its run unless the run sets otherwise. Of each series and case the newest are kept, and in all as many
as fit into etcd (ADR 27 has the arithmetic). Results of runs in progress are never deleted.
"""

import asyncio
import heapq
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.cluster_api.errors import ApiError
from accelbench_operator.runs.summary import Summary

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 600.0
REFUSED = range(400, 500)


@dataclass(frozen=True)
class Retention:
    """Limit the history that is kept."""

    per_case: int = 100
    """Results of each series and case in a namespace."""
    total: int = 10_000
    """Results of all series, in all namespaces of the operator."""
    maximum_age: timedelta | None = None
    """Time since a result was stored; None for no limit."""


def surplus(
    results: Iterable[Summary], retention: Retention, now: datetime, in_progress: Collection[str]
) -> tuple[Summary, ...]:
    """Return the results to delete, oldest first.

    If there are too many in all, the namespace with the most gives up its oldest, so that none pays for another.

    Args:
        results: All results that are held.
        retention: The limits.
        now: The API server's time.
        in_progress: UIDs of runs that may not have finished.
    """
    newest = sorted(results, key=lambda result: (-result.created_timestamp, result.namespace, result.name))
    counted: Counter[tuple[str, str, str]] = Counter()
    kept: defaultdict[str, list[Summary]] = defaultdict(list)
    gone = []
    for result in newest:
        series = (result.namespace, result.series, result.case)
        age = timedelta(seconds=max(0.0, now.timestamp() - result.created_timestamp))
        is_old = retention.maximum_age is not None and age > retention.maximum_age
        if result.run_uid not in in_progress and (is_old or counted[series] >= retention.per_case):
            gone.append(result)
        else:
            counted[series] += 1
            kept[result.namespace].append(result)
    gone += _beyond(retention.total, kept, in_progress)
    return tuple(sorted(gone, key=lambda result: (result.created_timestamp, result.namespace, result.name)))


def _beyond(total: int, kept: Mapping[str, list[Summary]], in_progress: Collection[str]) -> Iterator[Summary]:
    """Return results beyond `total`; `kept` has them by namespace, newest first."""
    free = {name: [result for result in results if result.run_uid not in in_progress] for name, results in kept.items()}
    most = [(-len(results), name) for name, results in kept.items() if free[name]]
    heapq.heapify(most)
    for _ in range(sum(map(len, kept.values())) - total):
        if not most:
            return
        count, name = heapq.heappop(most)
        yield free[name].pop()
        if free[name]:
            heapq.heappush(most, (count + 1, name))


async def keep_deleting(
    find: Callable[[], Awaitable[Iterable[Summary]]], delete: Callable[[Summary], Awaitable[None]]
) -> None:
    """Delete every few minutes what `find` returns, until cancelled; what cannot be deleted now is found again."""
    while True:
        await asyncio.sleep(PERIOD_SECONDS)
        try:
            await _delete_all(await find(), delete)
        except Exception:
            # History can wait; the runs of this process cannot.
            logger.exception("Old results could not be deleted; trying again later")


async def _delete_all(surplus: Iterable[Summary], delete: Callable[[Summary], Awaitable[None]]) -> None:
    for result in surplus:
        try:
            await delete(result)
        except ApiError as error:
            logger.warning("BenchmarkResult %s/%s cannot be deleted: %s", result.namespace, result.name, error)
            if not REFUSED.start <= error.status < REFUSED.stop:
                return  # after another error the API server is in trouble; a refusal may hold for this result only
        else:
            logger.info("BenchmarkResult %s/%s was deleted: the history is long enough", result.namespace, result.name)
