"""What one side of a comparison knows of a variant: the results that count, and a number for each unit of randomness.

Pure. A result counts where nothing stands between the variant and a verdict; what does not count is said.
"""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Literal

from accelbench.api.result import Certificate, Check, LaunchSummary, Result, VariantResult
from accelbench.history.comparability import parameters
from accelbench.stats.summary import geometric_mean
from accelbench.verdict.rule import unclean

Key = tuple[str, tuple[tuple[str, str], ...]]
"""What tells cases apart: the workload, and its parameters that some case here swept, with their values."""
Quantity = Literal["median", "p50", "p99", "relative"]
"""What of a launch: the median of its blocks, quantiles of its calls; `relative`: over its round's baseline, in which
what slows a whole run cancels."""


@dataclass(frozen=True)
class Side:
    """One of the two: what it is called, its results, and where they were read from."""

    name: str
    results: tuple[Result, ...]
    path: str = ""

    def cases(self, *beside: "Side") -> Mapping[Key, tuple[Result, ...]]:
        """The results of each case, in the order of time; where nothing was swept, a workload is one case.

        What a side `beside` it swept tells cases apart here, too: the other may have said the same value without a
        sweep.
        """
        swept = {
            (each.case.workload, name) for side in (self, *beside) for each in side.results for name in each.case.swept
        }
        keyed = [(_key(result, swept), result) for result in self.results]
        ordered = sorted(keyed, key=lambda each: (each[0], each[1].started))
        return {key: tuple(result for _, result in group) for key, group in groupby(ordered, key=itemgetter(0))}


def _key(result: Result, swept: Collection[tuple[str, str]]) -> Key:
    """The case that a result is of, where each workload's parameters in `swept` tell cases apart."""
    workload, values = result.case.workload, parameters(result)
    return workload, tuple((name, values[name]) for name in sorted(values) if (workload, name) in swept)


def label(key: Key) -> str:
    """The case in a few words: `matmul-chain (size 512)`."""
    workload, swept = key
    return f"{workload} ({', '.join(f'{name} {value}' for name, value in swept)})" if swept else workload


def told_apart(key: Key, keys: Collection[Key]) -> str:
    """What tells the case from the others of `keys`: `size 512`; empty where there is no other."""
    if len(set(keys)) == 1:
        return ""
    of_one_workload = len({workload for workload, _ in keys}) == 1
    return ", ".join(f"{name} {value}" for name, value in key[1]) if of_one_workload else label(key)


@dataclass(frozen=True)
class Sample:
    """A variant on one side. Without a number there is no result that counts."""

    logs: tuple[tuple[float, ...], ...]
    """Logarithms of seconds per unit, or of their ratio to the baseline's: of each result that counts, each launch."""
    started: tuple[str, ...]
    """When each of those results began."""
    certificate: Certificate
    """The checks of those results that concern the variant, under the name of `about`."""
    about: str
    """The variant on this side: `jax/jit in results/old`."""
    invalid: tuple[str, ...] = ()
    """Checks for which results do not count."""
    left_out: str = ""
    """Which results do not count, in a sentence; empty where all do."""

    @property
    def launches(self) -> tuple[float, ...]:
        """Every launch alike."""
        return tuple(value for result in self.logs for value in result)

    @property
    def results(self) -> tuple[float, ...]:
        """One number a result: the mean over its launches."""
        return tuple(statistics.fmean(result) for result in self.logs)

    @property
    def seconds(self) -> float | None:
        """The geometric mean over launches of each result, and then over results, or its ratio; None without any."""
        return geometric_mean(map(math.exp, self.results)) if self.logs else None


def sample(side: Side, results: Sequence[Result], variant: str, quantity: Quantity) -> Sample:
    """What `results` of one case, which are `side`'s, know of a variant."""
    about = f"{variant}{' p99' if quantity == 'p99' else ''} in {side.name}"
    if quantity == "relative":
        about += f", relative to {results[0].case.baseline},"
    logs: list[tuple[float, ...]] = []
    checks: list[Check] = []
    started: list[str] = []
    invalid: list[str] = []
    reasons: list[str] = []
    for result in results:
        concerned = (variant, result.case.baseline) if quantity == "relative" else (variant,)
        variants = {each.name: each for each in result.variants}
        found = [variants[name] for name in concerned if name in variants]
        failures = [each.failure.reason for each in found if each.failure is not None]
        broken = unclean(result.certificate, *concerned)
        if len(found) < len(concerned):
            reasons.append("not measured")
        elif failures:
            reasons.append(f"failed: {failures[0]}")
        elif result.noisy:
            reasons.append("noisy: other load disturbed it, and noise was accepted")
        elif broken:
            invalid += broken
            reasons.append(f"invalid: {', '.join(broken)}")
        elif values := _logs(found, quantity):
            logs.append(values)
            started.append(result.started)
            own = (check for check in result.certificate.checks if check.variant in {None, *concerned})
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


def _logs(found: Sequence[VariantResult], quantity: Quantity) -> tuple[float, ...]:
    """One number for each round that all of `found` have: the first's, less the second's where there is one."""
    by_round = [
        {launch.round: math.log(seconds) for launch in each.launches if (seconds := _seconds(launch, quantity)) > 0}
        for each in found
    ]
    first, others = by_round[0], by_round[1:]
    rounds = sorted(number for number in first if all(number in other for other in others))
    return tuple(first[number] - math.fsum(other[number] for other in others) for number in rounds)


def _seconds(launch: LaunchSummary, quantity: Quantity) -> float:
    return float((launch.p99_seconds if quantity == "p99" else launch.seconds) or 0)
