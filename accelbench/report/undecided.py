"""What to do where measuring ended before a comparison was decided. Pure."""

from accelbench.api.reasons import StopReason
from accelbench.api.result import Comparison, Result
from accelbench.figures import percent
from accelbench.report import noise


def what_to_do(result: Result) -> tuple[str, ...]:
    """A line with what would decide it; nothing where all is decided, or where other load kept it from that."""
    if noise.advises(result) or not any(_is_undecided(each) for each in result.comparisons):
        return ()
    measurement = result.case.measurement
    match result.stopped:
        case StopReason.TIME_LIMIT_REACHED | StopReason.NO_TIME_FOR_ROUND:
            what, field = "allow time for more rounds", f"timeLimitSeconds: {measurement.time_limit_seconds}"
        case StopReason.MAXIMUM_ROUNDS_REACHED:
            what, field = "allow more rounds", f"rounds.max: {measurement.rounds_max}"
        case StopReason.TARGET_MET:
            target = percent(float(measurement.target_relative_error))
            what, field = "ask for a narrower interval", f"targetRelativeError: {target}"
        case _:
            return ()
    return (f"What to do: {what} (measurement.{field} here).",)


def _is_undecided(comparison: Comparison) -> bool:
    measured = comparison.speedup is not None and not comparison.noisy
    return comparison.verdict == "inconclusive" or (measured and comparison.verdict is None)
