"""Every launch had the same number of threads, the number it was asked to use."""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    threads = launch.facts.threads
    if isinstance(threads, Unreadable):
        return failed(threads)
    asked = threads.requested
    if threads.affinity != asked:
        return failed(f"{asked} threads asked for, {threads.affinity} processors allowed")
    if threads.framework not in {asked, None}:
        return failed(f"{asked} threads asked for, the framework uses {threads.framework}")
    return passed(f"{asked} threads")


CHECK = LaunchCheck(
    name="threads",
    threshold="as many as asked for",
    reason="one framework uses all processors by default, another half of them",
    evaluate=_evaluate,
    remedy="leave the number of threads to accelbench: take the line that sets it out of the variant's code",
    observed=True,
)
