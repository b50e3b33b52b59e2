"""Expand a run's sweep into cases, at most 256, always in the same order.

A case is a function of its run and its index, so cases need not be stored.
"""

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
from accelbench.api.environment import CaseEnvironment
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
    """Return the run with its profile's compile `target`; unchanged if `target` is None or the run names targets."""
    accelerator = run.spec.accelerator
    if target is None or accelerator.targets:
        return run
    accelerator = accelerator.model_copy(update={"targets": (target,)})
    return run.model_copy(update={"spec": run.spec.model_copy(update={"accelerator": accelerator})})


def plan_cases(
    run: BenchmarkRun,
    platform: str = "cpu",
    price_per_hour: str | None = None,
    environments: tuple[CaseEnvironment, ...] = (),
) -> tuple[Case, ...]:
    """Return a case for each combination of compile target and swept values.

    `run` must be valid. `platform` and `price_per_hour`, such as `11.06 USD`, are of the run's profile. `environments`
    are the run's environments, as they are installed where it is measured.

    Raises:
        TooManyCasesError: There are more than `MAXIMUM_CASES`.
    """
    return tuple(plan_case(run, index, platform, price_per_hour, environments) for index in case_indices(run))


def case_indices(run: BenchmarkRun) -> range:
    """Return the indices of a run's cases; raise TooManyCasesError if there are more than `MAXIMUM_CASES`."""
    count = count_cases(run)
    if count > MAXIMUM_CASES:
        raise TooManyCasesError(
            f"spec.sweep: {count} cases, at most {MAXIMUM_CASES}: split the sweep over several runs"
        )
    return range(count)


def plan_case(
    run: BenchmarkRun,
    index: int,
    platform: str = "cpu",
    price_per_hour: str | None = None,
    environments: tuple[CaseEnvironment, ...] = (),
) -> Case:
    """Return the case that measures the run's combination of compile target and swept values with this index.

    The other arguments are those of `plan_cases`.
    """
    spec = run.spec
    swept, target = _combination(run, index)
    accelerator = CaseAccelerator(
        profile=spec.accelerator.profile,
        platform=platform,
        devices=spec.accelerator.devices_per_node,
        target=target,
        # Compiling for a target uses no device, so it has no price.
        price_per_hour=None if target else price_per_hour,
    )
    return Case(
        name=_name_case(swept, target),
        origin=CaseOrigin(
            run=run.metadata.name, series=run.series, namespace=run.metadata.namespace, uid=run.metadata.uid
        ),
        workload=spec.workload.label,
        script=spec.workload.script,
        parameters=spec.workload.parameters | swept,
        swept=swept,
        variants=tuple(
            CaseVariant(name=variant.label, use=variant.use, options=variant.options, environment=variant.environment)
            for variant in spec.variants
        ),
        environments=environments,
        baseline=run.baseline,
        # A single variant has no comparison, but the run's error probability is divided by this number: at least 1.
        comparisons_in_run=max(1, count_cases(run) * (len(spec.variants) - 1)),
        measurement=_convert_measurement(spec.measurement),
        accelerator=accelerator,
    )


def case_names(run: BenchmarkRun) -> tuple[str, ...]:
    """Return the names of a run's cases, in order; raise TooManyCasesError as `case_indices` does."""
    return tuple(_name_case(*_combination(run, index)) for index in case_indices(run))


def _combination(run: BenchmarkRun, index: int) -> tuple[dict[str, ParameterValue], str | None]:
    """Return the swept values and the compile target of the case with this index; the target is None without targets.

    The last axis varies fastest, and the target slowest.
    """
    values: list[ParameterValue] = []
    for axis in reversed(run.spec.sweep):
        index, position = divmod(index, len(axis.values))
        values.append(axis.values[position])
    names = [axis.name for axis in run.spec.sweep]
    swept = dict(zip(names, reversed(values), strict=True))
    # After the divisions, `index` is that of the target.
    targets = run.spec.accelerator.targets
    return swept, targets[index] if targets else None


def _name_case(swept: dict[str, ParameterValue], target: str | None) -> str:
    """Return the name of the case with these swept values and this compile target."""
    # Without the target in the name, results of one series for several targets would replace each other.
    identity = {**swept, "target": target} if target else swept
    return case_name(identity)


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
