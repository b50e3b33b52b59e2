"""Estimate, from launches, the number of steps after which a variant's slower first call has paid for itself."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from accelbench.api.result import Payback, Phase
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.stats.payback import LaunchCost, PaybackEstimate, estimate_payback, payback_sentence, whole_steps
from accelbench.stats.summary import geometric_mean

FIRST_CALL: tuple[Phase, ...] = ("compile", "first-step")


@dataclass(frozen=True)
class PaybackFinding:
    """Hold the estimate and its sentence, which is empty if the first calls hardly differ."""

    document: Payback
    sentence: str


def payback(
    baseline: Mapping[int, LaunchRecord], variant: Mapping[int, LaunchRecord], alpha: float
) -> PaybackFinding | None:
    """Compare the launches of both sides, by round; None with fewer than two rounds of known cost."""
    costs_of_baseline = {round_number: cost for round_number, launch in baseline.items() if (cost := cost_of(launch))}
    costs_of_variant = {round_number: cost for round_number, launch in variant.items() if (cost := cost_of(launch))}
    rounds = sorted(costs_of_baseline.keys() & costs_of_variant.keys())
    variant_costs, baseline_costs = (
        _match_geometric_mean([costs[round_number] for round_number in rounds])
        for costs in (costs_of_variant, costs_of_baseline)
    )
    estimate = estimate_payback(baseline_costs, variant_costs, alpha)
    if estimate is None:
        return None
    first_call = statistics.mean(costs_of_variant[round_number].first_call for round_number in rounds)
    return PaybackFinding(
        document=_document(estimate, first_call),
        sentence=payback_sentence(estimate, *_variant_and_unit(variant.values())),
    )


def _variant_and_unit(launches: Iterable[LaunchRecord]) -> tuple[str, str]:
    """Return the variant of the launches, and their name for a unit of work."""
    launch = next(iter(launches))
    return launch.variant, "step" if isinstance(launch.facts.unit, Unreadable) else launch.facts.unit


def _match_geometric_mean(costs: Sequence[LaunchCost]) -> list[LaunchCost]:
    """Return the costs with step times whose arithmetic mean is the variant's time, a geometric mean over launches.

    Each is the tangent of the geometric mean at its launch, so that the variance of the steps is that of the geometric
    mean (the delta method). The saving per step is then the difference of the times that are shown.
    """
    if not costs:
        return []
    time = geometric_mean(cost.step for cost in costs)
    return [replace(cost, step=time * (1 + math.log(cost.step / time))) for cost in costs]


def cost_of(launch: LaunchRecord) -> LaunchCost | None:
    """Return the cost of a launch; None if it timed nothing, or did not report its first call."""
    phases: dict[str, float] = {phase.phase: phase.seconds for phase in launch.phases}
    step = launch.seconds()
    if step is None or not phases.keys() >= set(FIRST_CALL):
        return None
    units = launch.facts.units_per_call
    calls = 1 if isinstance(units, Unreadable) else units
    return LaunchCost(first_call=sum(phases[name] for name in FIRST_CALL) - calls * step, step=step)


def _document(estimate: PaybackEstimate, first_call: float) -> Payback:
    """Return the estimate as results store it; `first_call` is the mean of the variant's, in seconds."""
    estimated = estimate.answer in {"after", "until"}
    return Payback(
        answer=estimate.answer,
        steps=whole_steps(estimate.steps) if estimated and estimate.steps is not None else None,
        lower=None if estimate.lower is None else whole_steps(estimate.lower),
        upper=None if estimate.upper is None else whole_steps(estimate.upper),
        first_call_seconds=first_call,
        extra_seconds=estimate.extra_seconds,
    )
