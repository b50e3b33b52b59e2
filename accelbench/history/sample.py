"""Collect the times of a variant's launches on one side of a comparison, from the results that count. Pure.

A result counts for a variant if `collect_sample` does not exclude it.
"""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from accelbench.api.result import Certificate, Check, Result, VariantResult
from accelbench.history.comparability import parameters
from accelbench.stats.summary import Quantity, geometric_mean
from accelbench.verdict.rule import checks_against_verdict

ComparedQuantity = Quantity | Literal["relative"]
"""Statistic of a launch; `relative`: its seconds divided by the baseline's in the same round."""


class CaseKey(NamedTuple):
    """Identify a case in the results of several runs."""

    workload: str
    swept: tuple[tuple[str, str], ...]
    """Name and value of each parameter that any of the compared results swept."""


@dataclass(frozen=True)
class Side:
    """Hold one side of a comparison: its name, its results, and where they were read from."""

    name: str
    results: tuple[Result, ...]
    path: str = ""

    def results_by_case(self, *others: "Side") -> Mapping[CaseKey, tuple[Result, ...]]:
        """Return the results of each case, in order of time.

        Results with different values of a parameter are different cases if this or another side of the comparison
        (`others`) swept the parameter.
        """
        all_results = [result for side in (self, *others) for result in side.results]
        swept = {(result.case.workload, name) for result in all_results for name in result.case.swept}
        results_by_key: dict[CaseKey, list[Result]] = {}
        for result in sorted(self.results, key=lambda result: result.started):
            results_by_key.setdefault(_case_key(result, swept), []).append(result)
        return {key: tuple(results_by_key[key]) for key in sorted(results_by_key)}


def _case_key(result: Result, swept: Collection[tuple[str, str]]) -> CaseKey:
    """Return the key of a result's case: its workload, and its values of the parameters that any run swept.

    `swept` has pairs (workload, parameter).
    """
    workload, values = result.case.workload, parameters(result)
    return CaseKey(workload, tuple((name, values[name]) for name in sorted(values) if (workload, name) in swept))


def describe_case(key: CaseKey) -> str:
    """Return the case as text: `matmul-chain (size 512)`."""
    return f"{key.workload} ({_format_parameters(key.swept)})" if key.swept else key.workload


def short_label(key: CaseKey, keys: Collection[CaseKey]) -> str:
    """Return what distinguishes a case from the others in `keys`, such as `size 512`; empty if there are no others."""
    if len(set(keys)) == 1:
        return ""
    has_one_workload = len({other.workload for other in keys}) == 1
    return _format_parameters(key.swept) if has_one_workload else describe_case(key)


def _format_parameters(swept: Iterable[tuple[str, str]]) -> str:
    """Return the names and values of swept parameters as text: `size 512, depth 4`."""
    return ", ".join(f"{name} {value}" for name, value in swept)


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
        """Return the logarithms of all launches in one tuple, whichever result a launch belongs to."""
        return tuple(log for result_logarithms in self.logarithms_by_result for log in result_logarithms)

    @property
    def result_logarithms(self) -> tuple[float, ...]:
        """Return one number for each result: the mean of the logarithms of its launches."""
        return tuple(statistics.fmean(launch_logarithms) for launch_logarithms in self.logarithms_by_result)

    @property
    def seconds(self) -> float | None:
        """Return the variant's time, the geometric mean over the results; None without results.

        For `relative`, it is the time divided by the baseline's.
        """
        return geometric_mean(map(math.exp, self.result_logarithms)) if self.logarithms_by_result else None


def collect_sample(side: Side, results: Sequence[Result], variant: str, quantity: ComparedQuantity) -> Sample:
    """Collect a variant's launches from the results of one case on one side of a comparison.

    A result is excluded if it is noisy. It is also excluded if the variant (for `relative`, the variant or its
    baseline) is missing, failed, has a failed check, or has no time in any round.
    """
    label = f"{variant} p99 in {side.name}" if quantity == "p99" else f"{variant} in {side.name}"
    if quantity == "relative":
        label += f", relative to {results[0].case.baseline},"  # the comma belongs before the sentence's verb
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
            # A check of the variant None is one of the whole case. The verdict looks for checks of the variant `label`.
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
    """Return a sentence on how many of a variant's results were excluded, and why; empty if none was.

    `reasons` has one entry for each excluded result; `result_count` is the number of all results.
    """
    if not reasons:
        return ""
    if len(reasons) == result_count:
        finding = f"No result of {label} counts"
    else:
        verb = "was" if len(reasons) == 1 else "were"
        finding = f"{len(reasons)} of {result_count} results of {label} {verb} excluded"
    return f"{finding} ({'; '.join(dict.fromkeys(reasons))})."


def _launch_logarithms(variants: Sequence[VariantResult], quantity: ComparedQuantity) -> tuple[float, ...]:
    """Return log(seconds) of each round of a variant; for two variants, log(first / second) of each common round."""
    first = _logarithms_by_round(variants[0], quantity)
    if len(variants) == 1:
        return tuple(first[number] for number in sorted(first))
    second = _logarithms_by_round(variants[1], quantity)
    return tuple(first[number] - second[number] for number in sorted(first.keys() & second.keys()))


def _logarithms_by_round(variant: VariantResult, quantity: ComparedQuantity) -> dict[int, float]:
    """Return log(seconds) of each launch of a variant, by round; leave out launches without this quantity.

    For `relative`, the seconds are the variant's own: the caller divides them by the baseline's.
    """
    logarithms = {}
    for launch in variant.launches:
        seconds = launch.p99_seconds if quantity == "p99" else launch.seconds
        if seconds is not None and float(seconds) > 0:
            logarithms[launch.round] = math.log(float(seconds))
    return logarithms
