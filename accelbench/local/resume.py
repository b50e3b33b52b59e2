"""Find the complete results of a run, whose cases need not be measured again."""

import functools
from collections.abc import Callable

from accelbench import catalogue
from accelbench.api.result import Result
from accelbench.local.directory import RunDirectory, RunRecord
from accelbench.local.errors import UnreadableResultError
from accelbench.machine import fingerprint

SOURCE = "workloadSource"
"""Entry of a fingerprint with the digest of the workload's source."""


def complete_results(
    directory: RunDirectory,
    *,
    is_same_run: Callable[[RunRecord], bool],
    has_other_source: Callable[[Result], bool],
    on_unreadable: Callable[[UnreadableResultError], None],
) -> dict[str, Result]:
    """Return the complete results in the directory that are of the same run and source, by case name.

    Args:
        directory: The directory of a run; it need not exist.
        is_same_run: Returns True if a record is of the run whose results are wanted.
        has_other_source: Returns True for a result whose workload's source has changed since.
        on_unreadable: Called with the error if the directory cannot be read; there is then no result.
    """
    if not directory.has_record:
        return {}
    try:
        record, results = directory.load()
    except UnreadableResultError as error:
        on_unreadable(error)
        return {}
    if not is_same_run(record):
        return {}
    return {result.case.name: result for result in results if result.complete and not has_other_source(result)}


@functools.cache
def source_digest(workload: str) -> str | None:
    """Return the digest of a workload's source, as it is at the first call; None if the source cannot be read."""
    return fingerprint.of_source(type(catalogue.find(workload))).get(SOURCE)
