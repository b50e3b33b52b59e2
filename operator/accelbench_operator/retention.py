"""Which stored results have to go, so that a history is kept and etcd never fills: pure, but for the loop around it.

A result outlives its run unless the run says otherwise. Of each series and case the newest are kept, and of all of them
so many that they fit into etcd (ADR 27 has the arithmetic). What a run in progress has measured is never taken.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench_operator.kubernetes_api import ApiError
from accelbench_operator.snapshot import Summary

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 600.0


@dataclass(frozen=True)
class Retention:
    """How much history is kept."""

    per_case: int = 100
    """Results of each series and case, in a namespace."""
    total: int = 10_000
    """Results of all series, in all namespaces of the operator."""
    maximum_age: timedelta | None = None
    """Since a result was finished; None: however old."""


def surplus(
    results: Iterable[Summary], retention: Retention, now: datetime, in_progress: Collection[str]
) -> tuple[Summary, ...]:
    """The results that have to go, oldest first; `in_progress` has the UIDs of runs that have not finished."""
    newest = sorted(results, key=lambda result: (-result.finished_timestamp, result.namespace, result.name))
    counted: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    gone, kept = [], 0
    for result in newest:
        series = (result.namespace, result.series, result.case)
        age = now - datetime.fromtimestamp(result.finished_timestamp, tz=now.tzinfo)
        is_old = retention.maximum_age is not None and age > retention.maximum_age
        is_surplus = is_old or counted[series] >= retention.per_case or kept >= retention.total
        if is_surplus and result.run_uid not in in_progress:
            gone.append(result)
        else:
            counted[series] += 1
            kept += 1
    return tuple(reversed(gone))


async def keep_deleting(find: Callable[[], Iterable[Summary]], delete: Callable[[Summary], Awaitable[None]]) -> None:
    """Delete what `find` finds, again and again, until cancelled; what cannot be deleted now is found again."""
    while True:
        await asyncio.sleep(PERIOD_SECONDS)
        for result in find():
            try:
                await delete(result)
            except ApiError as error:
                logger.warning("BenchmarkResult %s/%s cannot be deleted: %s", result.namespace, result.name, error)
                break
            logger.info("BenchmarkResult %s/%s was deleted: there are newer ones", result.namespace, result.name)
