"""Results of every kind, for the golden files of the renderers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.api.case import Arrivals, CaseAccelerator, CaseMeasurement
from accelbench.api.numbers import Numbers
from accelbench.api.operation_times import OperationTime, OperationTimes
from accelbench.api.result import (
    Certificate,
    Check,
    Comparison,
    LaunchSummary,
    PhaseTime,
    Quarantined,
    Result,
    VariantResult,
)
from accelbench.api.run import Expectation
from accelbench.verdict.expectations import ExpectationOutcome, evaluate
from report import sample

DATA = Path(__file__).parents[1] / "data" / "compiled"
ADVISED = ("parity", "throttled", "autocorrelated")


def _check(name: str, outcome: str = "failed", use: str | None = "jax/jit", reading: str = "9 s") -> Check:
    return Check(name=name, outcome=outcome, reading=reading, threshold="0", variant=use)


def _certificate(*checks: Check) -> Certificate:
    return Certificate(checks=(*sample.CHECKS, *checks))


def measured() -> Result:
    """Everything that a report can show of a case that went well: prices, warm caches, programs, untested checks."""
    first, second, third = sample.result().variants
    warm = (PhaseTime(phase="first-step", median_seconds="0.02", min_seconds="0.02", max_seconds="0.02"),)
    numbers = second.numbers.model_copy(
        update={"price_per_unit": "0.0000614", "kernels_per_call": 1200, "aliased_bytes": 0}
    )
    return sample.result(
        case=sample.case(accelerator=CaseAccelerator(price_per_hour="11.06 USD")),
        variants=(first, second.model_copy(update={"warm_phases": warm, "numbers": numbers}), third),
        certificate=_certificate(_check("autocorrelated", "untested", "jax/jit", "6 rounds")),
    )


def explained() -> Result:
    """A fused program against one of 30 operations: the numbers explain the verdict."""
    limits = {"limit_bytes_per_second": "20000000000", "units_per_call": 1}
    passes = Numbers(dispatched_per_call=30, dispatched_bytes=960_000_000, **limits)
    fused = Numbers(kernels_per_call=1, kernels=1, accessed_bytes=32_000_000, **limits)
    return sample.result(
        case=sample.case(sample.USES[:2]),
        variants=(
            sample.variant("pytorch/eager", "0.0305").model_copy(update={"numbers": passes, "bound": None}),
            sample.variant("jax/jit", "0.0016").model_copy(update={"numbers": fused, "bound": None}),
        ),
        comparisons=(sample.comparison("jax/jit", "faster", "19.06", "18.9", "19.3"),),
        certificate=Certificate(checks=sample.PARITY),
    )


def profiled() -> Result:
    """A sort that one framework makes slowly: a profile of each side shows it. The profiler slows down the second."""
    sorts = (
        OperationTime(name="aten::sort", source="rows.py:21", runs="1", seconds="0.0653"),
        OperationTime(name="aten::tanh", source="rows.py:22", runs="1", seconds="0.0031"),
    )
    sorts_slowly = (
        OperationTime(name="sort", source="rows.py:12", runs="1", seconds="0.351"),
        OperationTime(name="fusion of tanh, mul", source="rows.py:13-14", merged=True, runs="1", seconds="0.0006"),
    )
    products = tuple(OperationTime(name=f"dot_{size}", runs="12.5", seconds="0.02") for size in (8, 16, 32))
    third = sample.variant("jax/op-by-op", "0.4")
    return sample.result(
        variants=(
            _profiled("pytorch/eager", "0.071", "0.0712", sorts),
            _profiled("jax/jit", "0.352", "0.354", sorts_slowly),
            third.model_copy(
                update={
                    "operation_times": OperationTimes(
                        seconds_per_call="0.6", calls=3, busy_share="0.11", operations=products, left_out=4
                    )
                }
            ),
        ),
        comparisons=(sample.comparison("jax/jit", "slower", "0.2017", "0.2", "0.203"),),
        certificate=Certificate(checks=sample.PARITY),
    )


def _profiled(name: str, seconds: str, profiled_seconds: str, operations: tuple[OperationTime, ...]) -> VariantResult:
    """A variant with the operations that take most of its call."""
    times = OperationTimes(seconds_per_call=profiled_seconds, calls=2, operations=operations)
    return sample.variant(name, seconds).model_copy(
        update={"numbers": Numbers(units_per_call=1), "bound": None, "operation_times": times}
    )


def troubled() -> Result:
    """A variant failed, a check failed for two others, rounds were discarded, time ran out, notes hold markup."""
    return sample.result(
        complete=False,
        stopped="TimeLimitReached",
        variants=(
            sample.variant("pytorch/eager", "0.00117"),
            sample.variant("jax/jit", "0.000574"),
            sample.failed("jax/op-by-op"),
        ),
        comparisons=(sample.invalid("jax/jit", "parity"),),
        certificate=_certificate(
            *(_check(name, use=use, reading="`x` is off: 3e-3 > 7e-5") for name in ADVISED for use in sample.USES[:2]),
            _check("work-present", "untested", reading="nobody counted"),
            _check("phase-of-the-moon", use=None, reading="full"),
        ),
        quarantined=tuple(
            Quarantined(round=number, reasons=(f"shared-device of jax/jit: {sample.CROWDED}",)) for number in (2, 3)
        ),
        notes=("<script>alert(1)</script> is text", "[bold]not ours[/bold] *x* a|b `code`\nnext"),
    )


def undecided() -> Result:
    """No interval decides, launches are not alike, one side has fewer rounds, and one comparison has no interval."""
    first, second, third = sample.result().variants
    fewer = tuple(
        LaunchSummary(round=number, seconds=f"0.0005{number}", blocks=9, units_per_block=9) for number in range(1, 5)
    )
    unsettled = Comparison(variant="jax/op-by-op", baseline=sample.USES[0], rounds=1, confidence="0.95", sentence="")
    return sample.result(
        stopped="MaximumRoundsReached",
        variants=(
            sample.variant(first.name, "0.00117", spread=0.56),
            second.model_copy(update={"launches": fewer}),
            third,
        ),
        comparisons=(
            sample.comparison("jax/jit", "inconclusive", "1.01", "0.9", "1.2").model_copy(update={"rounds": 4}),
            unsettled,
        ),
    )


def slowest_calls() -> Result:
    """The protocol is latency: the 99th percentile has a verdict of its own."""

    def launches(p99: str) -> tuple[LaunchSummary, ...]:
        return tuple(
            LaunchSummary(round=n, seconds="0.001", p99_seconds=p99, blocks=1000, units_per_block=1)
            for n in range(1, 7)
        )

    variants = tuple(
        sample.variant(use, "0.001").model_copy(update={"launches": launches(p99)})
        for use, p99 in zip(sample.USES, ("0.004", "0.008", "0.004"), strict=True)
    )
    tail = sample.comparison("jax/jit", "slower", "0.5", "0.4", "0.6").model_copy(update={"quantity": "p99"})
    return sample.result(variants=variants, tail_comparisons=(tail,), protocol="latency")


def requests() -> Result:
    """The protocol is arrivals: one variant answers in time, one is saturated."""
    arrivals = Arrivals(rate_per_second=455)

    def answered(use: str, seconds: str, p99: str) -> VariantResult:
        measured = sample.variant(use, seconds)
        numbers = {
            "requests_per_second": arrivals.rate_per_second,
            "utilisation": "0.5",
            "p99_seconds": p99,
            "service_seconds": "0.001",
            "service_p99_seconds": "0.00127",
        }
        launches = tuple(launch.model_copy(update={"p99_seconds": p99}) for launch in measured.launches)
        own_interval = {"lower_p99_seconds": "0.0311", "upper_p99_seconds": "0.0702"}
        spread = measured.spread.model_copy(update=own_interval) if measured.spread else None
        changes = {"numbers": Numbers(**numbers), "launches": launches, "spread": spread}
        return measured.model_copy(update=changes)

    baseline, variant, slow = sample.USES
    tail = sample.comparison(variant, "inconclusive", "0.99", "0.4", "2.6").model_copy(update={"quantity": "p99"})
    middle = sample.comparison(variant, "faster", "1.58", "1.51", "1.66").model_copy(
        update={
            "quantity": "p50",
            "pays_back": None,
            "sentence": f"p50: {variant} is 1.58 times as fast as {baseline}.",
        }
    )
    reading = "busy for 96 % of the time at 455 requests a second; at most 426 a second would do"
    return sample.result(
        case=sample.case(measurement=CaseMeasurement(rounds_max=8, protocol="arrivals", arrivals=arrivals)),
        unit="request",
        variants=(
            answered(baseline, "0.00221", "0.0493"),
            answered(variant, "0.0014", "0.0498"),
            sample.failed(slow).model_copy(update={"failure": None}),
        ),
        comparisons=(middle, sample.invalid(slow, "saturated")),
        tail_comparisons=(tail, sample.invalid(slow, "saturated")),
        certificate=_certificate(_check("saturated", use=slow, reading=reading)),
        protocol="arrivals",
    )


def many() -> Result:
    """More comparisons than sentences."""
    uses = ("pytorch/nn", "a/a", "b/b", "c/c", "d/d")
    return sample.result(
        case=sample.case(uses),
        variants=tuple(sample.variant(use, "0.001") for use in uses),
        comparisons=(
            sample.comparison("a/a", "faster", "2", "1.9", "2.1", "pytorch/nn"),
            sample.comparison("b/b", "slower", "0.5", "0.4", "0.6", "pytorch/nn"),
            sample.comparison("c/c", "faster", "26", "25", "27", "pytorch/nn"),
            sample.comparison("d/d", "equivalent", "1", "0.99", "1.01", "pytorch/nn"),
        ),
        certificate=Certificate(checks=sample.PARITY),
    )


def alone() -> Result:
    """One variant, compared with nothing, of which nothing but the time is known."""
    only = sample.variant("jax/jit", "0.001").model_copy(update={"numbers": Numbers(), "spread": None, "phases": ()})
    certificate = Certificate(checks=sample.PARITY)
    return sample.result(case=sample.case(("jax/jit",)), variants=(only,), comparisons=(), certificate=certificate)


def interrupted() -> Result:
    """No round was complete."""
    return sample.result(
        complete=False,
        stopped="Interrupted",
        rounds=0,
        variants=tuple(VariantResult(name=use, use=use) for use in sample.USES),
        comparisons=(),
        certificate=Certificate(),
        fingerprint={},
        overhead={},
    )


def no_valid_round() -> Result:
    """All time was used, and no round counts."""
    unknown = tuple(
        Comparison(variant=use, baseline=sample.USES[0], rounds=0, confidence="0.95", sentence=f"{use}: no round yet.")
        for use in sample.USES[1:]
    )
    changes = {"complete": True, "stopped": "TimeLimitReached", "comparisons": unknown}
    return interrupted().model_copy(update=changes)


def long_names() -> Result:
    """Names of variants and times are long."""
    uses = ("pytorch/nn", "pytorch/no-optimizer")
    return sample.result(
        case=sample.case(uses),
        variants=tuple(sample.variant(use, "0.000801", spread=0.18) for use in uses),
        comparisons=(sample.comparison(uses[1], "inconclusive", "0.0621", "0.0233", "0.101", uses[0]),),
        certificate=Certificate(checks=sample.PARITY),
    )


def compiled() -> Result:
    """Compiled for a target."""
    path = min(DATA.glob("**/*.result.json"))
    return Result.model_validate_json(path.read_text())


SCENARIOS: Mapping[str, Result] = {
    "measured": measured(),
    "explained": explained(),
    "profiled": profiled(),
    "noisy": sample.noisy(),
    "troubled": troubled(),
    "undecided": undecided(),
    "slowest calls": slowest_calls(),
    "requests": requests(),
    "many": many(),
    "alone": alone(),
    "observing": sample.observing(),
    "interrupted": interrupted(),
    "no valid round": no_valid_round(),
    "long names": long_names(),
    "compiled": compiled(),
}


def expected(result: Result) -> tuple[ExpectationOutcome, ...]:
    """Two expectations, where the case has what they ask for."""
    if result.observations:
        return evaluate((Expectation(observation="raised", variant=sample.USES[0], equals="KeyReuseError"),), result)
    names = [variant.name for variant in result.variants][1:3]
    return evaluate([Expectation(metric="speedup", variant=name, at_least="2") for name in names], result)


def _undecided_because(stopped: str, **changes: Any) -> Result:
    comparison = sample.comparison("jax/jit", "inconclusive", "1.01", "0.9", "1.2")
    return sample.result(comparisons=(comparison,), stopped=stopped, **changes)


def _discarded(*reasons: str, **changes: Any) -> Result:
    rounds = tuple(Quarantined(round=number, reasons=(reason,)) for number, reason in enumerate(reasons, start=2))
    decided = sample.comparison("jax/jit", "faster", "2", "1.9", "2.1")
    return sample.result(quarantined=rounds, **{"comparisons": (decided,), **changes})


BUSY = f"shared-device of jax/jit: {sample.CROWDED}"
STOLEN = "throttled for jax/jit: Hypervisor steal: 7 % (limit 5 %)"
INVALID = (sample.invalid("jax/jit", "shared-device"),)
VIRTUAL = sample.FINGERPRINT | {"cores": "1", "cpuVectors": "avx2, amx_bf16", "virtualMachine": "yes"}
DEVICE = {"device.platform": "cuda", "device.name": "NVIDIA H100", "memoryLimitBytes": str(4 * 2**30)}

SUMMARIES: Mapping[str, Result] = {
    "undecided at the time limit": _undecided_because("TimeLimitReached"),
    "undecided without time for a round": _undecided_because("NoTimeForRound", overhead={"total": "34"}),
    "undecided at the maximum of rounds": _undecided_because("MaximumRoundsReached"),
    "undecided at the target": _undecided_because("TargetMet"),
    "interrupted while undecided": _undecided_because("Interrupted", complete=False, rounds=1),
    "a checkpoint": sample.result(complete=False, stopped=None, rounds=2),
    "a round was discarded": _discarded(BUSY),
    "rounds were discarded": _discarded(BUSY, STOLEN, BUSY),
    "discarded rounds left no verdict": _discarded(BUSY, comparisons=INVALID),
    "discarded rounds took all time": _discarded(STOLEN, stopped="TimeLimitReached"),
    "every round was discarded": _discarded(
        BUSY,
        comparisons=INVALID,
        certificate=Certificate(checks=(_check("shared-device", reading=sample.CROWDED),)),
    ),
    "every comparison is invalid": many().model_copy(
        update={
            "comparisons": (
                sample.invalid("a/a", "throttled", "parity"),
                *(sample.invalid(use, "throttled") for use in ("b/b", "c/c", "d/d")),
            )
        }
    ),
    "an untested check": sample.result(certificate=_certificate(_check("independence", "untested", None))),
    "a failed check": sample.result(certificate=_certificate(_check("clock", use=None)), comparisons=()),
    "no check": sample.result(certificate=Certificate(), comparisons=()),
    "a virtual machine": sample.result(fingerprint=VIRTUAL),
    "a GPU": sample.result(fingerprint=sample.FINGERPRINT | DEVICE),
}
"""Results that one part of a report is about."""
