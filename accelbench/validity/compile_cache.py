"""A launch compiles everything itself; a warm probe, on the caches that the launch has left, nothing."""

from pydantic.types import NonNegativeInt

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested
from accelbench.validity.evidence import Fact, Launch, Unreadable, fact, readable


class Cache(Fact):
    """What a framework counted of its compile cache on disk, up to the end of the first step."""

    hits: NonNegativeInt
    misses: NonNegativeInt
    before: NonNegativeInt = 0
    """Files that the cache held when the process began."""


def _look(_case: Case, launch: Launch) -> Finding:
    if "compileCache" not in launch.facts:
        return passed("nothing is compiled")
    cold = fact(launch, "compileCache", Cache)
    if isinstance(cold, Unreadable):
        return untested(cold)
    found = f"cold: {cold.hits} hits, {cold.misses} misses"
    if cold.before or (cold.hits and not cold.misses):
        return failed(f"{found}, {cold.before} files in its cache beforehand")
    if launch.warm is None:
        return passed(found)
    warm = readable("the warm probe's compileCache", launch.warm.cache, Cache)
    if launch.warm.failure or isinstance(warm, Unreadable):
        return untested(
            f"{found}; accelbench's own warm probe failed: {launch.warm.failure or 'it reported no counts'}"
        )
    found += f"; warm: {warm.hits} hits, {warm.misses} misses"
    return passed(found) if answered(launch.warm.cache) else untested(f"{found}: its times are not those of a hit")


def answered(counts: object) -> bool:
    """Whether a probe that reported these counts found all it needed in the cache."""
    warm = readable("the warm probe's compileCache", counts, Cache)
    return not isinstance(warm, Unreadable) and warm.hits > 0 and not warm.misses


CHECK = LaunchCheck(
    name="compile-cache",
    threshold="a launch begins with an empty cache and misses; its warm probe has no miss",
    reason=(
        "a compile time that a cache has answered is another quantity, and often a hundred times shorter; small "
        "programs that are alike may hit what the launch itself has just compiled, and do so wherever they run"
    ),
    look=_look,
)
