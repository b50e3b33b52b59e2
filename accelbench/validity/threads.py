"""Check that every launch used the requested number of threads."""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the process has other numbers of CPUs or threads than requested, or does not report them."""
    threads = launch.facts.threads
    if isinstance(threads, Unreadable):
        return failed(threads)
    requested = threads.requested
    if threads.affinity != requested:
        return failed(f"{requested} threads requested, {threads.affinity} processors allowed")
    if threads.framework not in {requested, None}:  # None: the framework has no such number
        return failed(f"{requested} threads requested, the framework uses {threads.framework}")
    return passed(f"{requested} threads")


CHECK = LaunchCheck(
    name="threads",
    threshold="as many as requested",
    reason="one framework uses all processors by default, another half of them",
    evaluate=_evaluate,
    remedy="remove the line that sets the number of threads from the variant's code: accelbench sets it",
    observed=True,
)
