"""Expand a run's sweep into cases: pure, in a stable order, at most 256."""

import itertools
from decimal import Decimal

from accelbench.api.case import (
    Case,
    CaseAccelerator,
    CaseMeasurement,
    CaseOrigin,
    CaseVariant,
    MeasurementSettings,
    ParameterValue,
)
from accelbench.api.run import MAXIMUM_CASES, BenchmarkRun, Measurement
from accelbench.plan.names import case_name


class TooManyCasesError(ValueError):
    """Report a sweep with more cases than a run may have."""


def count_cases(run: BenchmarkRun) -> int:
    """Return the number of cases of the sweep, targets included."""
    count = max(1, len(run.spec.accelerator.targets or ()))
    for axis in run.spec.sweep:
        count *= len(axis.values)
    return count


def with_target(run: BenchmarkRun, target: str | None) -> BenchmarkRun:
    """Return the run with its profile's target; the run's own targets take precedence."""
    accelerator = run.spec.accelerator
    if target is None or accelerator.targets:
        return run
    accelerator = accelerator.model_copy(update={"targets": (target,)})
    return run.model_copy(update={"spec": run.spec.model_copy(update={"accelerator": accelerator})})


def plan_cases(run: BenchmarkRun, platform: str = "cpu", price_per_hour: str | None = None) -> tuple[Case, ...]:
    """Return the run's cases, the last axis varying fastest; one set for each compile target.

    Args:
        run: A valid run.
        platform: The profile's platform.
        price_per_hour: The profile's price, as `11.06 USD`.

    Raises:
        TooManyCasesError: There are more than `MAXIMUM_CASES`.
    """
    count = count_cases(run)
    if count > MAXIMUM_CASES:
        raise TooManyCasesError(
            f"spec.sweep: {count} cases, at most {MAXIMUM_CASES}: split the sweep over several runs"
        )
    names = [axis.name for axis in run.spec.sweep]
    combinations = itertools.product(*(axis.values for axis in run.spec.sweep))
    accelerator = CaseAccelerator(
        profile=run.spec.accelerator.profile,
        platform=platform,
        devices=run.spec.accelerator.devices_per_node,
        price_per_hour=price_per_hour,
    )
    swept = [dict(zip(names, values, strict=True)) for values in combinations]
    if targets := run.spec.accelerator.targets:
        compiled = [accelerator.model_copy(update={"target": target, "price_per_hour": None}) for target in targets]
        return tuple(_case(run, values, count, target) for target in compiled for values in swept)
    return tuple(_case(run, values, count, accelerator) for values in swept)


def _case(run: BenchmarkRun, swept: dict[str, ParameterValue], cases: int, accelerator: CaseAccelerator) -> Case:
    """Return the case with these swept values; `cases` is the number of cases of the run."""
    spec = run.spec
    return Case(
        # The target is part of the name: results of one series for several targets must not replace each other.
        name=case_name(swept | ({"target": accelerator.target} if accelerator.target else {})),
        origin=CaseOrigin(
            run=run.metadata.name, series=run.series, namespace=run.metadata.namespace, uid=run.metadata.uid
        ),
        workload=spec.workload.label,
        script=spec.workload.script,
        parameters=spec.workload.parameters | swept,
        swept=swept,
        variants=tuple(
            CaseVariant(name=variant.label, use=variant.use, options=variant.options) for variant in spec.variants
        ),
        baseline=run.baseline,
        comparisons_in_run=max(1, cases * (len(spec.variants) - 1)),
        measurement=_measurement(spec.measurement),
        accelerator=accelerator,
    )


def _measurement(measurement: Measurement) -> CaseMeasurement:
    """Convert a run's measurement to a case's: percentages become decimals."""
    return CaseMeasurement(
        **{name: getattr(measurement, name) for name in MeasurementSettings.model_fields},
        rounds_min=measurement.rounds.min,
        rounds_max=measurement.rounds.max,
        target_relative_error=ratio(measurement.target_relative_error),
        confidence=ratio(measurement.confidence),
        equivalence_margin=ratio(measurement.equivalence_margin),
        time_limit_seconds=measurement.time_limit_seconds,
    )


def ratio(percentage: str) -> str:
    """Convert a percentage to a decimal: `1%` is `0.01`."""
    return format((Decimal(percentage.removesuffix("%")) / 100).normalize(), "f")
