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
    """Hold the estimate and a sentence about it; the sentence is empty if the first calls hardly differ."""

    document: Payback
    sentence: str


def payback(
    baseline: Mapping[int, LaunchRecord], variant: Mapping[int, LaunchRecord], alpha: float
) -> PaybackFinding | None:
    """Estimate after how many steps the variant's slower first call has paid for itself; None with too few rounds.

    `baseline` and `variant` are their launches by round. The confidence interval has the level 1 - `alpha`.
    """
    baseline_costs_by_round = _known_costs(baseline)
    variant_costs_by_round = _known_costs(variant)
    rounds = sorted(baseline_costs_by_round.keys() & variant_costs_by_round.keys())
    baseline_costs = [baseline_costs_by_round[round_number] for round_number in rounds]
    variant_costs = [variant_costs_by_round[round_number] for round_number in rounds]
    estimate = estimate_payback(_match_geometric_mean(baseline_costs), _match_geometric_mean(variant_costs), alpha)
    if estimate is None:
        return None
    first_call_seconds = statistics.mean(cost.first_call for cost in variant_costs)
    name, unit = _variant_and_unit(variant.values())
    return PaybackFinding(
        document=_payback_document(estimate, first_call_seconds),
        sentence=payback_sentence(estimate, name, unit),
    )


def _known_costs(launches: Mapping[int, LaunchRecord]) -> dict[int, LaunchCost]:
    """Return the costs of launches by round; leave out launches whose cost is unknown."""
    costs = {round_number: cost_of(launch) for round_number, launch in launches.items()}
    return {round_number: cost for round_number, cost in costs.items() if cost is not None}


def _variant_and_unit(launches: Iterable[LaunchRecord]) -> tuple[str, str]:
    """Return the variant's name and the name of its unit of work, such as `step`, from its launches."""
    launch = next(iter(launches))
    unit = launch.facts.unit
    return launch.variant, "step" if isinstance(unit, Unreadable) else unit


def _match_geometric_mean(costs: Sequence[LaunchCost]) -> list[LaunchCost]:
    """Replace each step time x by g (1 + log(x / g)), where g is the geometric mean of all step times.

    Reports show g, and the estimate uses arithmetic means. The arithmetic mean of the new times is g, and the variance
    of g follows from their variance (delta method).
    """
    if not costs:
        return []
    mean_step = geometric_mean(cost.step for cost in costs)
    return [replace(cost, step=mean_step * (1 + math.log(cost.step / mean_step))) for cost in costs]


def cost_of(launch: LaunchRecord) -> LaunchCost | None:
    """Return how long a launch's first call took beyond its steps, and how long a step takes; None if unknown."""
    if launch.protocol == "arrivals":
        return None  # the rate decides how many requests there are, so faster ones save no time in total
    phase_seconds: dict[str, float] = {phase.phase: phase.seconds for phase in launch.phases}
    step_seconds = launch.seconds()
    if step_seconds is None or not all(phase in phase_seconds for phase in FIRST_CALL):
        return None
    units_per_call = launch.facts.units_per_call
    steps_in_call = 1 if isinstance(units_per_call, Unreadable) else units_per_call
    first_call_seconds = sum(phase_seconds[phase] for phase in FIRST_CALL)
    # The first call does some steps too. Only the rest of its time is the cost of compiling.
    return LaunchCost(first_call=first_call_seconds - steps_in_call * step_seconds, step=step_seconds)


def _payback_document(estimate: PaybackEstimate, first_call_seconds: float) -> Payback:
    """Convert an estimate to the form that results contain, with whole numbers of steps."""
    steps = estimate.steps if estimate.answer in {"after", "until"} else None  # the others name no number of steps
    return Payback(
        answer=estimate.answer,
        steps=None if steps is None else whole_steps(steps),
        lower=None if estimate.lower is None else whole_steps(estimate.lower),
        upper=None if estimate.upper is None else whole_steps(estimate.upper),
        first_call_seconds=first_call_seconds,
        extra_seconds=estimate.extra_seconds,
    )
