"""Collect what one side of a comparison knows of a variant: the results that count, a number for each launch. Pure."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Literal

from accelbench.api.result import Certificate, Check, LaunchSummary, Result, VariantResult
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
        """Return the results of each case in the order of time; without a sweep, a workload is one case.

        A parameter that one of `others` swept also separates the cases of this side, where the same value may have
        been set without a sweep.
        """
        swept = {
            (result.case.workload, name)
            for side in (self, *others)
            for result in side.results
            for name in result.case.swept
        }
        keyed = [(_key(result, swept), result) for result in self.results]
        by_time = sorted(keyed, key=lambda pair: (pair[0], pair[1].started))
        return {key: tuple(result for _, result in group) for key, group in groupby(by_time, key=itemgetter(0))}


def _key(result: Result, swept: Collection[tuple[str, str]]) -> Key:
    workload, values = result.case.workload, parameters(result)
    return workload, tuple((name, values[name]) for name in sorted(values) if (workload, name) in swept)


def label(key: Key) -> str:
    """Return the case as text: `matmul-chain (size 512)`."""
    workload, swept = key
    return f"{workload} ({', '.join(f'{name} {value}' for name, value in swept)})" if swept else workload


def short_label(key: Key, keys: Collection[Key]) -> str:
    """Return only what distinguishes the case from the others of `keys`: `size 512`; empty if it is the only one."""
    if len(set(keys)) == 1:
        return ""
    of_one_workload = len({workload for workload, _ in keys}) == 1
    return ", ".join(f"{name} {value}" for name, value in key[1]) if of_one_workload else label(key)


@dataclass(frozen=True)
class Sample:
    """Hold a variant's launches on one side; without any, no result counts."""

    logs: tuple[tuple[float, ...], ...]
    """Natural logarithm of each launch's seconds per unit, or of their ratio to the baseline's, for each result."""
    started: tuple[str, ...]
    """Start time of each of those results."""
    certificate: Certificate
    """Checks of those results that concern the variant, under the name `about`."""
    about: str
    """The variant on this side: `jax/jit in results/old`."""
    invalid: tuple[str, ...] = ()
    """Failed checks that exclude results."""
    left_out: str = ""
    """Sentence about the excluded results; empty if all count."""

    @property
    def launches(self) -> tuple[float, ...]:
        """Return the logarithms of all launches."""
        return tuple(value for result in self.logs for value in result)

    @property
    def results(self) -> tuple[float, ...]:
        """Return the logarithm of each result: the mean over its launches."""
        return tuple(statistics.fmean(result) for result in self.logs)

    @property
    def seconds(self) -> float | None:
        """Return the geometric mean over the results, in seconds or as a ratio; None without any."""
        return geometric_mean(map(math.exp, self.results)) if self.logs else None


def sample(side: Side, results: Sequence[Result], variant: str, quantity: ComparedQuantity) -> Sample:
    """Return the sample of a variant from `results`, which belong to one case of `side`.

    A result counts if the variant has a complete round and did not fail, no check failed for it, and no disturbed round
    counts in the result. For `relative`, the same is required of the baseline.
    """
    about = f"{variant}{' p99' if quantity == 'p99' else ''} in {side.name}"
    if quantity == "relative":
        about += f", relative to {results[0].case.baseline},"
    logs: list[tuple[float, ...]] = []
    checks: list[Check] = []
    started: list[str] = []
    invalid: list[str] = []
    reasons: list[str] = []
    for result in results:
        names = (variant, result.case.baseline) if quantity == "relative" else (variant,)
        by_name = {one.name: one for one in result.variants}
        variants = [by_name[name] for name in names if name in by_name]
        failures = [one.failure.reason for one in variants if one.failure is not None]
        failed_checks = checks_against_verdict(result.certificate, *names)
        if len(variants) < len(names):
            reasons.append("not measured")
        elif failures:
            reasons.append(f"failed: {failures[0]}")
        elif result.noisy:
            reasons.append("noisy: other load disturbed it, and noise was accepted")
        elif failed_checks:
            invalid += failed_checks
            reasons.append(f"invalid: {', '.join(failed_checks)}")
        elif values := _logs(variants, quantity):
            logs.append(values)
            started.append(result.started)
            own = (check for check in result.certificate.checks if check.variant in {None, *names})
            checks += [check.model_copy(update={"variant": about}) for check in own]
        else:
            reasons.append("no complete round")
    were = "was" if len(reasons) == 1 else "were"
    discarded = f"{len(reasons)} of {len(results)} results of {about} {were} discarded"
    whole = discarded if logs else f"No result of {about} counts"
    return Sample(
        logs=tuple(logs),
        started=tuple(started),
        certificate=Certificate(checks=tuple(checks)),
        about=about,
        invalid=tuple(dict.fromkeys(invalid)),
        left_out=f"{whole} ({'; '.join(dict.fromkeys(reasons))})." if reasons else "",
    )


def _logs(variants: Sequence[VariantResult], quantity: ComparedQuantity) -> tuple[float, ...]:
    """Return a logarithm for each round that all variants have: the first's, less the second's if there are two."""
    by_round = [
        {launch.round: math.log(seconds) for launch in variant.launches if (seconds := _seconds(launch, quantity)) > 0}
        for variant in variants
    ]
    first, others = by_round[0], by_round[1:]
    rounds = sorted(number for number in first if all(number in other for other in others))
    return tuple(first[number] - math.fsum(other[number] for other in others) for number in rounds)


def _seconds(launch: LaunchSummary, quantity: ComparedQuantity) -> float:
    return float((launch.p99_seconds if quantity == "p99" else launch.seconds) or 0)
