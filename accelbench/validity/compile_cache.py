"""Check that a launch compiles everything, and that its warm probe then finds everything in the cache."""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable, is_reported
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the launch's compile cache was not empty at its start.

    Untested if the cache's hits are unknown, or if accelbench's warm probe, which starts with the cache of the launch,
    failed or had to compile again.
    """
    cold = launch.facts.compile_cache
    if not is_reported(cold):
        return passed("nothing is compiled")
    if isinstance(cold, Unreadable):
        return untested(cold)
    reading = f"cold: {cold.hits} hits, {cold.misses} misses"
    # A launch may hit programs that it has compiled itself. Without a miss it has compiled none, so others filled the
    # cache.
    has_only_hits = cold.hits > 0 and cold.misses == 0
    if cold.before or has_only_hits:
        return failed(f"{reading}, {cold.before} files in its cache beforehand")
    if launch.warm is None:
        return passed(reading)
    warm = launch.warm.cache
    if launch.warm.failure or isinstance(warm, Unreadable):
        problem = launch.warm.failure or "it reported no counts"
        return untested(f"{reading}; accelbench's own warm probe failed: {problem}")
    reading += f"; warm: {warm.hits} hits, {warm.misses} misses"
    return passed(reading) if launch.warm.has_only_hits else untested(f"{reading}: its times are not those of a hit")


CHECK = LaunchCheck(
    name="compile-cache",
    threshold="a launch starts with an empty cache and has a miss; its warm probe has none",
    reason=(
        "loading from a cache is often a hundred times as fast as compiling. Small similar programs may hit what the "
        "launch itself has just compiled, on every machine"
    ),
    evaluate=_evaluate,
    measured_only=True,
    remedy=(
        "remove the lines of the variant's code that set or fill a compile cache, such as jax_compilation_cache_dir: "
        "accelbench gives each launch an empty one"
    ),
)
