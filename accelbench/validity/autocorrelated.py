"""Check that rounds are independent: correlated rounds carry less information than the interval assumes."""

from collections.abc import Iterator

from accelbench.stats.independence import MINIMUM_ROUNDS, correlation_limit, lag_one_correlation
from accelbench.stats.interval import log_speedups
from accelbench.validity.check import CaseCheck, VariantFinding, failed, passed, untested
from accelbench.validity.evidence import Evidence


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Fail each variant if its log-speedups correlate too strongly from round to round.

    Untested with fewer than `MINIMUM_ROUNDS` rounds.
    """
    case = evidence.case
    baseline_seconds = _seconds_by_round(evidence, case.baseline)
    for variant in case.variants:
        if variant.name == case.baseline:  # it has no speedups
            continue
        seconds = _seconds_by_round(evidence, variant.name)
        rounds = sorted(baseline_seconds.keys() & seconds.keys())
        if len(rounds) < MINIMUM_ROUNDS:
            yield variant.name, untested(f"needs {MINIMUM_ROUNDS} rounds, has {len(rounds)}")
            continue
        log_ratios = log_speedups(
            [baseline_seconds[round_number] for round_number in rounds],
            [seconds[round_number] for round_number in rounds],
        )
        correlation, limit = lag_one_correlation(log_ratios), correlation_limit(len(log_ratios))
        reading = f"lag-1 correlation {correlation:.2f}, limit {limit:.2f} at {len(log_ratios)} rounds"
        yield variant.name, passed(reading) if correlation <= limit else failed(reading)


def _seconds_by_round(evidence: Evidence, variant: str) -> dict[int, float]:
    """Return the variant's seconds per unit of work, by number of the round."""
    seconds = {}
    for launch in evidence.launches_of(variant):
        launch_seconds = launch.seconds()
        if launch_seconds is not None:
            seconds[launch.round] = launch_seconds
    return seconds


CHECK = CaseCheck(
    name="autocorrelated",
    threshold=f"lag-1 correlation below the 99th percentile of independent rounds; needs {MINIMUM_ROUNDS} rounds",
    reason="at a lag-1 correlation of 0.7, a 95 % interval covers only 58 %",
    evaluate=_evaluate,
    measured_only=True,
    noise=True,
    remedy=(
        "something on the machine drifts, as neighbouring rounds resemble each other: measure again when it is idle, "
        "or leave it some processors (--processors 1 on a laptop). Fewer rounds would only hide it"
    ),
    rounds=MINIMUM_ROUNDS,
)
