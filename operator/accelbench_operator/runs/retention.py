"""Delete the oldest stored results beyond the limits of the history, so that etcd never fills up.

A result stays when its run is deleted, unless the run sets otherwise. The newest results of each series and case are
kept, and in total as many as etcd can store (ADR 27 has the arithmetic). Results of unfinished runs are never deleted.
"""

import asyncio
import heapq
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.cluster_api.errors import ApiError, UnauthorizedError
from accelbench_operator.engine.kinds import Key
from accelbench_operator.runs.summary import Summary

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 600.0
"""Seconds between two rounds of deletions."""


@dataclass(frozen=True)
class Retention:
    """Hold the limits of the history of results."""

    per_case: int = 100
    """Maximum number of results of each series and case in a namespace."""
    total: int = 10_000
    """Maximum number of results of all series, in all namespaces of the operator."""
    maximum_age: timedelta | None = None
    """Maximum time since a result was stored; None for no limit."""


def results_to_delete(
    results: Iterable[Summary], retention: Retention, now: datetime, in_progress: Collection[str]
) -> tuple[Summary, ...]:
    """Return the results to delete, oldest first.

    `in_progress` has the UIDs of runs that have not finished; their results count, but are never deleted.
    """
    newest_first = sorted(results, key=lambda result: (-result.created_timestamp, result.namespace, result.name))
    kept_per_case: Counter[tuple[str, str, str]] = Counter()
    kept_by_namespace: defaultdict[str, list[Summary]] = defaultdict(list)
    to_delete = []
    for result in newest_first:
        case = (result.namespace, result.series, result.case)
        age = timedelta(seconds=max(0.0, now.timestamp() - result.created_timestamp))
        is_too_old = retention.maximum_age is not None and age > retention.maximum_age
        case_is_full = kept_per_case[case] >= retention.per_case
        if result.run_uid not in in_progress and (is_too_old or case_is_full):
            to_delete.append(result)
        else:
            kept_per_case[case] += 1
            kept_by_namespace[result.namespace].append(result)
    to_delete += _results_over_total(retention.total, kept_by_namespace, in_progress)
    return tuple(sorted(to_delete, key=lambda result: (result.created_timestamp, result.namespace, result.name)))


def _results_over_total(
    maximum_total: int, results_by_namespace: Mapping[str, list[Summary]], in_progress: Collection[str]
) -> Iterator[Summary]:
    """Yield results to delete: always the oldest of the namespace with the most results, until `maximum_total` remain.

    So a namespace with few results keeps its history. Results of runs in progress count, but are never deleted, so more
    may remain. The results of each namespace must be sorted, newest first.
    """
    deletable: dict[str, list[Summary]] = {}
    for namespace, results in results_by_namespace.items():
        deletable[namespace] = [result for result in results if result.run_uid not in in_progress]
    # A heap returns its smallest entry first; with negative counts, that is the namespace with the most results.
    namespaces = [
        (-len(results), namespace) for namespace, results in results_by_namespace.items() if deletable[namespace]
    ]
    heapq.heapify(namespaces)
    surplus_count = sum(map(len, results_by_namespace.values())) - maximum_total
    for _ in range(surplus_count):
        if not namespaces:
            return
        negative_count, namespace = heapq.heappop(namespaces)
        yield deletable[namespace].pop()  # the oldest: each list begins with the newest
        if deletable[namespace]:
            heapq.heappush(namespaces, (negative_count + 1, namespace))


async def keep_deleting(find: Callable[[], Awaitable[Iterable[Key]]], delete: Callable[[Key], Awaitable[None]]) -> None:
    """Delete the results and runs that `find` returns, every `PERIOD_SECONDS`, until cancelled."""
    while True:
        await asyncio.sleep(PERIOD_SECONDS)
        try:
            await _delete_all(await find(), delete)
        except Exception:
            # An error here must not end the process, which also reconciles runs.
            logger.exception("The history could not be shortened; trying again in %.0f s", PERIOD_SECONDS)


async def _delete_all(keys: Iterable[Key], delete: Callable[[Key], Awaitable[None]]) -> None:
    """Delete the objects; stop at an error that would make the next deletions fail too."""
    for key in keys:
        try:
            await delete(key)
        except ApiError as error:
            logger.warning("%s cannot be deleted: %s", key, error)
            # A temporary error or a refused token concerns all requests. Other errors may concern this object only, for
            # example if RBAC differs between namespaces.
            affects_all_requests = error.is_temporary or isinstance(error, UnauthorizedError)
            if affects_all_requests:
                return
        else:
            logger.info("%s was deleted: it is beyond the limits of the history", key)
