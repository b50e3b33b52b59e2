"""Collect what one side of a comparison knows of a variant: the results that count, a number for each launch. Pure."""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from accelbench.api.result import Certificate, Check, Result, VariantResult
from accelbench.history.comparability import parameters
from accelbench.stats.summary import Quantity, geometric_mean
from accelbench.verdict.rule import checks_against_verdict

Key = tuple[str, tuple[tuple[str, str], ...]]
"""Identifies a case: the workload, and those of its parameters that any compared case swept, with their values."""
ComparedQuantity = Quantity | Literal["relative"]
"""Statistic of a launch; `relative`: its seconds divided by the baseline's in the same round."""


@dataclass(frozen=True)
class Side:
    """Hold one side of a comparison: its name, its results, and where they were read from."""

    name: str
    results: tuple[Result, ...]
    path: str = ""

    def cases(self, *others: "Side") -> Mapping[Key, tuple[Result, ...]]:
        """Return the results of each case, in order of time.

        Different values of a swept parameter make different cases.
        """
        swept = {
            (result.case.workload, name)
            for side in (self, *others)
            for result in side.results
            for name in result.case.swept
        }
        results_by_key: dict[Key, list[Result]] = {}
        for result in sorted(self.results, key=lambda result: result.started):
            results_by_key.setdefault(_case_key(result, swept), []).append(result)
        return {key: tuple(results_by_key[key]) for key in sorted(results_by_key)}


def _case_key(result: Result, swept: Collection[tuple[str, str]]) -> Key:
    """Return the workload and the values of its swept parameters.

    `swept` has pairs (workload, parameter).
    """
    workload, values = result.case.workload, parameters(result)
    return workload, tuple((name, values[name]) for name in sorted(values) if (workload, name) in swept)


def label(key: Key) -> str:
    """Return the case as text: `matmul-chain (size 512)`."""
    workload, swept = key
    return f"{workload} ({_format_parameters(swept)})" if swept else workload


def short_label(key: Key, keys: Collection[Key]) -> str:
    """Return what distinguishes a case from the others, as `size 512`."""
    if len(set(keys)) == 1:
        return ""
    one_workload = len({workload for workload, _ in keys}) == 1
    _, swept = key
    return _format_parameters(swept) if one_workload else label(key)


def _format_parameters(parameters: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters)


@dataclass(frozen=True)
class Sample:
    """Hold a variant's launches on one side; there are none if no result counts."""

    logarithms_by_result: tuple[tuple[float, ...], ...]
    """For each result, the natural logarithm of each launch's seconds per unit, or of its ratio to the baseline's."""
    started: tuple[str, ...]
    """Start time of each of these results."""
    certificate: Certificate
    """Checks of these results that concern the variant, which is renamed to `label`."""
    label: str
    """The variant on this side: `jax/jit in results/old`."""
    invalid: tuple[str, ...] = ()
    """Failed checks that exclude results."""
    exclusion_sentence: str = ""
    """Sentence about the excluded results; empty if all count."""

    @property
    def launch_logarithms(self) -> tuple[float, ...]:
        """Return the logarithms of the launches of all results in one tuple."""
        return tuple(log for result_logarithms in self.logarithms_by_result for log in result_logarithms)

    @property
    def result_logarithms(self) -> tuple[float, ...]:
        """Return the logarithm of each result: the mean over its launches."""
        return tuple(statistics.fmean(launch_logarithms) for launch_logarithms in self.logarithms_by_result)

    @property
    def seconds(self) -> float | None:
        """Return the geometric mean of all results; a ratio for `relative`."""
        return geometric_mean(map(math.exp, self.result_logarithms)) if self.logarithms_by_result else None


def sample(side: Side, results: Sequence[Result], variant: str, quantity: ComparedQuantity) -> Sample:
    """Collect a variant's launches from the results of one case.

    Failed, noisy and invalid results are excluded.
    """
    label = f"{variant}{' p99' if quantity == 'p99' else ''} in {side.name}"
    if quantity == "relative":
        label += f", relative to {results[0].case.baseline},"
    logarithms_by_result: list[tuple[float, ...]] = []
    checks: list[Check] = []
    started: list[str] = []
    invalid: list[str] = []
    exclusion_reasons: list[str] = []
    for result in results:
        names = (variant, result.case.baseline) if quantity == "relative" else (variant,)
        variants_by_name = {item.name: item for item in result.variants}
        variants = [variants_by_name[name] for name in names if name in variants_by_name]
        failures = [item.failure.reason for item in variants if item.failure is not None]
        failed_checks = checks_against_verdict(result.certificate, *names)
        if len(variants) < len(names):
            exclusion_reasons.append("not measured")
        elif failures:
            exclusion_reasons.append(f"failed: {failures[0]}")
        elif result.noisy:
            exclusion_reasons.append("noisy: other load disturbed it, and noise was accepted")
        elif failed_checks:
            invalid += failed_checks
            exclusion_reasons.append(f"invalid: {', '.join(failed_checks)}")
        elif launch_logarithms := _launch_logarithms(variants, quantity):
            logarithms_by_result.append(launch_logarithms)
            started.append(result.started)
            relevant_checks = [check for check in result.certificate.checks if check.variant in {None, *names}]
            checks += [check.model_copy(update={"variant": label}) for check in relevant_checks]
        else:
            exclusion_reasons.append("no complete round")
    return Sample(
        logarithms_by_result=tuple(logarithms_by_result),
        started=tuple(started),
        certificate=Certificate(checks=tuple(checks)),
        label=label,
        invalid=tuple(dict.fromkeys(invalid)),
        exclusion_sentence=_exclusion_sentence(label, exclusion_reasons, len(results)),
    )


def _exclusion_sentence(label: str, reasons: Sequence[str], result_count: int) -> str:
    """Describe the excluded results of a variant.

    `reasons` has one entry for each excluded result.
    """
    if not reasons:
        return ""
    if len(reasons) == result_count:
        finding = f"No result of {label} counts"
    else:
        verb = "was" if len(reasons) == 1 else "were"
        finding = f"{len(reasons)} of {result_count} results of {label} {verb} discarded"
    return f"{finding} ({'; '.join(dict.fromkeys(reasons))})."


def _launch_logarithms(variants: Sequence[VariantResult], quantity: ComparedQuantity) -> tuple[float, ...]:
    """Return log(seconds) of each round; of two variants, log(first / second)."""
    first, *others = (_logarithms_by_round(variant, quantity) for variant in variants)
    rounds = sorted(number for number in first if all(number in other for other in others))
    return tuple(first[number] - math.fsum(other[number] for other in others) for number in rounds)


def _logarithms_by_round(variant: VariantResult, quantity: ComparedQuantity) -> dict[int, float]:
    """Return the logarithm of each launch's seconds, by round."""
    logarithms = {}
    for launch in variant.launches:
        seconds = float((launch.p99_seconds if quantity == "p99" else launch.seconds) or 0)
        if seconds > 0:
            logarithms[launch.round] = math.log(seconds)
    return logarithms
