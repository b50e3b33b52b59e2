"""Expand a run's sweep into cases, at most 256, always in the same order."""

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
    """Return the number of a run's cases: targets times combinations of swept values."""
    count = max(1, len(run.spec.accelerator.targets or ()))
    for axis in run.spec.sweep:
        count *= len(axis.values)
    return count


def with_target(run: BenchmarkRun, target: str | None) -> BenchmarkRun:
    """Return the run with its profile's compile target. If the run names targets, it keeps them."""
    accelerator = run.spec.accelerator
    if target is None or accelerator.targets:
        return run
    accelerator = accelerator.model_copy(update={"targets": (target,)})
    return run.model_copy(update={"spec": run.spec.model_copy(update={"accelerator": accelerator})})


def plan_cases(run: BenchmarkRun, platform: str = "cpu", price_per_hour: str | None = None) -> tuple[Case, ...]:
    """Return a case for each combination of compile target and swept values.

    `run` must be valid. `price_per_hour` is, for example, `11.06 USD`.

    Raises:
        TooManyCasesError: There are more than `MAXIMUM_CASES`.
    """
    count = count_cases(run)
    if count > MAXIMUM_CASES:
        raise TooManyCasesError(
            f"spec.sweep: {count} cases, at most {MAXIMUM_CASES}: split the sweep over several runs"
        )
    axis_names = [axis.name for axis in run.spec.sweep]
    combinations = itertools.product(*(axis.values for axis in run.spec.sweep))
    swept_values = [dict(zip(axis_names, combination, strict=True)) for combination in combinations]
    accelerator = CaseAccelerator(
        profile=run.spec.accelerator.profile,
        platform=platform,
        devices=run.spec.accelerator.devices_per_node,
        price_per_hour=price_per_hour,
    )
    accelerators = [accelerator]
    if targets := run.spec.accelerator.targets:  # compiling for a target uses no device, so it has no price
        accelerators = [accelerator.model_copy(update={"target": target, "price_per_hour": None}) for target in targets]
    return tuple(_make_case(run, swept, count, accelerator) for accelerator in accelerators for swept in swept_values)


def _make_case(
    run: BenchmarkRun, swept: dict[str, ParameterValue], case_count: int, accelerator: CaseAccelerator
) -> Case:
    """Return the case with these swept values, one of `case_count` cases."""
    spec = run.spec
    identity = dict(swept)
    if accelerator.target:
        # Without the target in the name, results of one series for several targets would replace each other.
        identity["target"] = accelerator.target
    return Case(
        name=case_name(identity),
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
        # At least 1 with a single variant, because the run's error probability is divided by this number.
        comparisons_in_run=max(1, case_count * (len(spec.variants) - 1)),
        measurement=_convert_measurement(spec.measurement),
        accelerator=accelerator,
    )


def _convert_measurement(measurement: Measurement) -> CaseMeasurement:
    """Convert a run's measurement settings to those of a case."""
    return CaseMeasurement(
        **{name: getattr(measurement, name) for name in MeasurementSettings.model_fields},
        rounds_min=measurement.rounds.min,
        rounds_max=measurement.rounds.max,
        target_relative_error=to_fraction(measurement.target_relative_error),
        confidence=to_fraction(measurement.confidence),
        equivalence_margin=to_fraction(measurement.equivalence_margin),
        time_limit_seconds=measurement.time_limit_seconds,
    )


def to_fraction(percentage: str) -> str:
    """Convert a percentage to a decimal fraction: `1%` becomes `0.01`."""
    return format((Decimal(percentage.removesuffix("%")) / 100).normalize(), "f")
