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

from accelbench.cluster_api.errors import ApiError, UnauthorizedError
from accelbench_operator.runs.summary import Summary

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 600.0
"""Pause before each round of deletions."""


@dataclass(frozen=True)
class Retention:
    """Hold the limits of the history of results."""

    per_case: int = 100
    """Maximum number of results of each series and case in a namespace."""
    total: int = 10_000
    """Maximum number of results of all series, in all namespaces of the operator."""
    maximum_age: timedelta | None = None
    """Maximum time since a result was stored; None for no limit."""


def surplus(
    results: Iterable[Summary], retention: Retention, now: datetime, in_progress: Collection[str]
) -> tuple[Summary, ...]:
    """Return the results to delete, oldest first.

    More than `retention.total` remaining results cost the namespace that has the most of them its oldest ones, so that
    a namespace with few keeps its history.

    Args:
        results: All stored results.
        retention: The limits.
        now: The API server's time.
        in_progress: UIDs of runs that may not have finished, whose results stay whatever the limits are.
    """
    newest = sorted(results, key=lambda result: (-result.created_timestamp, result.namespace, result.name))
    case_counts: Counter[tuple[str, str, str]] = Counter()
    remaining: defaultdict[str, list[Summary]] = defaultdict(list)
    to_delete = []
    for result in newest:
        case = (result.namespace, result.series, result.case)
        age = timedelta(seconds=max(0.0, now.timestamp() - result.created_timestamp))
        is_old = retention.maximum_age is not None and age > retention.maximum_age
        if result.run_uid not in in_progress and (is_old or case_counts[case] >= retention.per_case):
            to_delete.append(result)
        else:
            case_counts[case] += 1
            remaining[result.namespace].append(result)
    to_delete += _beyond_total(retention.total, remaining, in_progress)
    return tuple(sorted(to_delete, key=lambda result: (result.created_timestamp, result.namespace, result.name)))


def _beyond_total(
    total: int, by_namespace: Mapping[str, list[Summary]], in_progress: Collection[str]
) -> Iterator[Summary]:
    """Yield results to delete until `total` remain, always the oldest of the namespace with the most.

    They are fewer if the rest belong to runs in progress. `by_namespace` has the newest result first.
    """
    deletable = {
        namespace: [result for result in results if result.run_uid not in in_progress]
        for namespace, results in by_namespace.items()
    }
    # A heap has its smallest entry first, so counts are negative.
    fullest = [(-len(results), namespace) for namespace, results in by_namespace.items() if deletable[namespace]]
    heapq.heapify(fullest)
    for _ in range(sum(map(len, by_namespace.values())) - total):
        if not fullest:
            return
        count, namespace = heapq.heappop(fullest)
        yield deletable[namespace].pop()
        if deletable[namespace]:
            heapq.heappush(fullest, (count + 1, namespace))


async def keep_deleting(
    find: Callable[[], Awaitable[Iterable[Summary]]], delete: Callable[[Summary], Awaitable[None]]
) -> None:
    """Delete the results that `find` returns, every `PERIOD_SECONDS` until cancelled; log errors and continue."""
    while True:
        await asyncio.sleep(PERIOD_SECONDS)
        try:
            await _delete_all(await find(), delete)
        except Exception:
            # History can wait; the runs of this process cannot.
            logger.exception("Old results could not be deleted; trying again in %.0f s", PERIOD_SECONDS)


async def _delete_all(results: Iterable[Summary], delete: Callable[[Summary], Awaitable[None]]) -> None:
    """Delete the results; stop at an error that the next request would cause as well."""
    for result in results:
        try:
            await delete(result)
        except ApiError as error:
            logger.warning("BenchmarkResult %s/%s cannot be deleted: %s", result.namespace, result.name, error)
            # Other refusals may concern this result only: RBAC, for example, can differ between namespaces.
            if error.is_temporary or isinstance(error, UnauthorizedError):
                return
        else:
            logger.info(
                "BenchmarkResult %s/%s was deleted: it is beyond the limits of the history",
                result.namespace,
                result.name,
            )
