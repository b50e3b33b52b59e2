"""A launch compiles everything itself; a warm probe, on the caches that the launch has left, nothing."""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable, is_reported
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    cold = launch.facts.compile_cache
    if not is_reported(cold):
        return passed("nothing is compiled")
    if isinstance(cold, Unreadable):
        return untested(cold)
    found = f"cold: {cold.hits} hits, {cold.misses} misses"
    if cold.before or (cold.hits and not cold.misses):
        return failed(f"{found}, {cold.before} files in its cache beforehand")
    if launch.warm is None:
        return passed(found)
    warm = launch.warm.cache
    if launch.warm.failure or isinstance(warm, Unreadable):
        return untested(
            f"{found}; accelbench's own warm probe failed: {launch.warm.failure or 'it reported no counts'}"
        )
    found += f"; warm: {warm.hits} hits, {warm.misses} misses"
    return passed(found) if launch.warm.answered else untested(f"{found}: its times are not those of a hit")


CHECK = LaunchCheck(
    name="compile-cache",
    threshold="a launch begins with an empty cache and misses; its warm probe has no miss",
    reason=(
        "a compile time from a cache is a different quantity, and often a hundred times shorter; small similar "
        "programs may hit what the launch itself has just compiled, and do so wherever they run"
    ),
    evaluate=_evaluate,
    measured_only=True,
)
