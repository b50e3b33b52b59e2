"""What Prometheus sees: the latest result of every series and case, and how the operator itself is doing.

A scrape pulls one `Snapshot` and turns it into samples. To add a metric, add a `Metric` to the table of what it
describes; what has to be counted as it happens is in `telemetry`. Base units, one unit a metric, the unit in the name.
Labels of what a result says never hold a UID, a pod, a node or a commit, which would start a new series with every run:
those stand on `accelbench_run_info` alone. Metrics of runs under way have the run's name, and go with its end.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar, get_args

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, metrics_core
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from accelbench import __version__
from accelbench.api.numbers import MEASURED, NUMBERS, Number
from accelbench.api.result import Comparison, Payback, SpeedupEstimate, Verdict
from accelbench.stats.summary import TIME
from accelbench_operator.metrics.snapshot import LiveCase, Snapshot
from accelbench_operator.runs.summary import Summary, VariantSummary

T = TypeVar("T")
Labels = tuple[str, ...]
Family = GaugeMetricFamily | CounterMetricFamily

MAXIMUM_LABEL = 253
"""Characters of a label's value: what the name of an object can have."""

RESULT_LABELS: Labels = ("namespace", "series", "case", "workload", "accelerator", "noisy")
VARIANT_LABELS: Labels = (*RESULT_LABELS, "variant", "framework")
LIVE_LABELS: Labels = ("namespace", "run", "case")
LIVE_VARIANT_LABELS: Labels = (*LIVE_LABELS, "variant")

VERDICTS: Labels = (*get_args(Verdict), "failed", "invalid", "noisy", "none")
"""What can be said of a comparison: `invalid` where a check failed, `noisy` where disturbed rounds count, `none` where
complete rounds were missing."""


@dataclass(frozen=True)
class Metric(Generic[T]):
    """One metric: its name, its HELP text, and how it is read off what it describes.

    `read` gives a number, nothing, or, where the metric has labels of its own (`by`), a number for each of their
    values.
    """

    name: str
    help: str
    read: Callable[[T], Mapping[Labels, float | None] | float | None]
    by: Labels = ()
    type: Literal["gauge", "counter"] = "gauge"

    def family(self, labels: Labels, described: Iterable[tuple[Labels, T]]) -> Family:
        """Every sample of the metric; `described` pairs values of `labels`, which are short, with what has them."""
        kind = CounterMetricFamily if self.type == "counter" else GaugeMetricFamily
        family = kind(self.name, self.help, labels=(*labels, *self.by))
        kept: dict[Labels, float] = {}
        for values, subject in described:
            read = self.read(subject)
            samples = read.items() if isinstance(read, Mapping) else (((), read),)
            for own, value in samples:
                if value is not None:
                    # A sample twice would void the scrape.
                    kept.setdefault((*values, *_short(own)) if own else values, value)
        for texts, value in kept.items():
            family.add_metric(texts, value)
        return family


def _short(texts: Labels) -> Labels:
    """Label values that can be exported: a result that somebody wrote by hand can hold any text."""
    return tuple(text[:MAXIMUM_LABEL] for text in texts)


def _measured(field: str, number: Number) -> Metric[VariantSummary]:
    return Metric(number.metric, number.meaning, lambda variant: variant.numbers.get(field))


OF_A_RESULT: tuple[Metric[Summary], ...] = (
    Metric(
        "accelbench_result_valid",
        "1 if the latest result is complete, no variant failed and every comparison has a verdict, else 0.",
        lambda result: result.valid,
    ),
    Metric(
        "accelbench_result_complete",
        "1 if the latest result was measured to its end, 0 if only a part of it was kept.",
        lambda result: result.complete,
    ),
    Metric(
        "accelbench_result_rounds",
        "Complete rounds of the latest result.",
        lambda result: result.rounds,
    ),
    Metric(
        "accelbench_result_rounds_quarantined",
        "Rounds of the latest result that were discarded, because the device was throttled or shared.",
        lambda result: result.quarantined,
    ),
    Metric(
        "accelbench_equivalence_margin_ratio",
        "The relative difference up to which the verdicts of the latest result say equivalent.",
        lambda result: result.margin,
    ),
    Metric(
        "accelbench_result_finished_timestamp_seconds",
        "When the latest result was finished, in seconds since 1970.",
        lambda result: result.finished_timestamp,
    ),
    Metric(
        "accelbench_result_checks_failed",
        "How often a validity check failed in the latest result: one sample per failed check, or 0 without a name.",
        lambda result: {(check,): count for check, count in Counter(result.failed_checks).items()} or {("",): 0},
        by=("check",),
    ),
    Metric(
        "accelbench_result_checks",
        "How often a validity check of the latest result did not pass: counted once for each variant, or once for all "
        "of them.",
        lambda result: {(check, outcome): count for check, outcome, count in result.checks_not_passed},
        by=("check", "outcome"),
    ),
    Metric(
        "accelbench_result_expectations_not_met",
        "Expectations of the run that the latest result does not meet or leaves undecided.",
        lambda result: len(result.not_met),
    ),
    Metric(
        "accelbench_run_info",
        "Which BenchmarkRun and BenchmarkResult the latest result is from, the node that it was measured on, the "
        "baseline and unit of its times, and the currency of its prices.",
        lambda result: {
            (result.run, result.run_uid, result.name, result.node, _baseline(result), result.unit, result.currency): 1
        },
        by=("run", "run_uid", "result", "node", "baseline", "unit", "currency"),
    ),
)

OF_A_VARIANT: tuple[Metric[VariantSummary], ...] = (
    Metric(
        NUMBERS["seconds"].metric,
        f"Steady seconds per unit of work in the latest result: {TIME['steady']}.",
        lambda variant: variant.seconds,
    ),
    Metric(
        "accelbench_step_lower_seconds",
        "Lower end of the interval of a variant's own step time, over its launches. It is not paired: to compare two "
        "variants, use the speedup.",
        lambda variant: variant.lower,
    ),
    Metric(
        "accelbench_step_upper_seconds",
        "Upper end of the interval of a variant's own step time, over its launches.",
        lambda variant: variant.upper,
    ),
    Metric(
        "accelbench_phase_seconds",
        "Seconds that a phase of a launch takes: the median over the launches of the latest result.",
        lambda variant: {(phase,): seconds for phase, seconds in variant.phase_seconds.items()},
        by=("phase",),
    ),
    *(_measured(field, number) for field, number in MEASURED.items() if number.metric),
    Metric(
        "accelbench_variant_failed",
        "1 with the reason if the variant failed in the latest result, else 0 without a reason. A variant that cannot "
        "be compiled for a target has not failed: 0 with the reason.",
        lambda variant: {(variant.failure or variant.not_compiled or "",): variant.failure is not None},
        by=("reason",),
    ),
)


class Compared(NamedTuple):
    """Pair a comparison with the result that it belongs to."""

    result: Summary
    comparison: Comparison


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def _pays_back_steps(payback: Payback | None) -> Mapping[Labels, float | None]:
    if payback is None:
        return {}
    steps = payback.steps if payback.steps is not None else {"at-once": 0.0, "never": math.inf}.get(payback.answer)
    return {(payback.answer,): steps}


OF_A_COMPARISON: tuple[Metric[Compared], ...] = (
    Metric(
        NUMBERS["speedup"].metric,
        "Baseline seconds divided by variant seconds; above 1 the variant is faster.",
        lambda compared: _number(compared.comparison.speedup),
    ),
    Metric(
        "accelbench_speedup_lower_ratio",
        "Lower bound of the speedup's confidence interval.",
        lambda compared: _number(compared.comparison.lower),
    ),
    Metric(
        "accelbench_speedup_upper_ratio",
        "Upper bound of the speedup's confidence interval.",
        lambda compared: _number(compared.comparison.upper),
    ),
    Metric(
        "accelbench_comparison_rounds",
        "Complete pairs of launches behind the speedup.",
        lambda compared: compared.comparison.rounds,
    ),
    Metric(
        "accelbench_pays_back_steps",
        "Break-even steps: compiling has paid back after them, or the variant is ahead until then, as the label answer "
        "says. 0: at once; +Inf: never.",
        lambda compared: _pays_back_steps(compared.comparison.pays_back),
        by=("answer",),
    ),
    Metric(
        "accelbench_verdict",
        f"The verdict on the variant against the baseline, always 1: {', '.join(VERDICTS[:-1])} or {VERDICTS[-1]}.",
        lambda compared: {(compared.result.outcome(compared.comparison),): 1},
        by=("verdict",),
    ),
)

OF_A_CASE_UNDER_WAY: tuple[Metric[LiveCase], ...] = (
    Metric(
        "accelbench_live_rounds",
        "Rounds that a running case has completed, disturbed ones included.",
        lambda case: case.round,
    ),
    Metric(
        "accelbench_live_launch_info",
        "The current launch of a running case, always 1: its variant and the phase that it has reached.",
        lambda case: {(case.variant, case.phase): 1} if case.variant else None,
        by=("variant", "phase"),
    ),
)

OF_A_COMPARISON_UNDER_WAY: tuple[Metric[SpeedupEstimate], ...] = (
    Metric(
        "accelbench_live_speedup_ratio",
        "The speedup so far of a running case: baseline seconds over variant seconds. It is no verdict.",
        lambda estimate: _number(estimate.speedup),
    ),
    Metric(
        "accelbench_live_speedup_lower_ratio",
        "Lower bound of the confidence interval of the speedup so far.",
        lambda estimate: _number(estimate.lower),
    ),
    Metric(
        "accelbench_live_speedup_upper_ratio",
        "Upper bound of the confidence interval of the speedup so far.",
        lambda estimate: _number(estimate.upper),
    ),
)

OF_THE_OPERATOR: tuple[Metric[Snapshot], ...] = (
    Metric(
        "accelbench_runs",
        "BenchmarkRuns in the cluster, by phase.",
        lambda operator: {(namespace, phase): count for (namespace, phase), count in operator.runs.items()},
        by=("namespace", "phase"),
    ),
    Metric(
        "accelbench_run_cases",
        "Cases of a run that has not finished, by state: total, active, measured, failed.",
        lambda operator: operator.cases,
        by=("namespace", "run", "state"),
    ),
    Metric(
        "accelbench_live_cases_omitted",
        "Cases that are being measured and show no progress, because only those that have run longest are followed.",
        lambda operator: operator.live_omitted,
    ),
    Metric(
        "accelbench_series_omitted",
        "Cases of series whose latest result is not exported, because there are more than accelbench_series_limit.",
        lambda operator: operator.omitted,
    ),
    Metric(
        "accelbench_series_limit",
        "How many cases of series are exported at most; the newest results come first.",
        lambda operator: operator.limit,
    ),
    Metric(
        "accelbench_operator_leading",
        "1 if this replica leads, else 0. Only the leader writes to the cluster and exports results.",
        lambda operator: operator.leading,
    ),
    Metric(
        "accelbench_operator_objects",
        "Objects that the operator holds in memory, by kind.",
        lambda operator: {(kind,): count for kind, count in operator.held.items()},
        by=("kind",),
    ),
    Metric(
        "accelbench_operator_queue_depth",
        "Runs that are due and wait for a worker.",
        lambda operator: operator.queue.depth,
    ),
    Metric(
        "accelbench_operator_queue_oldest_seconds",
        "How long the oldest run that is due has waited.",
        lambda operator: operator.queue.oldest_seconds,
    ),
    Metric(
        "accelbench_operator_loop_lag_seconds",
        "How late the event loop last woke from a timer.",
        lambda operator: operator.queue.loop_lag_seconds,
    ),
    Metric(
        "accelbench_operator_reconciles_total",
        "How often the operator reconciled a run.",
        lambda operator: operator.queue.reconciled_total,
        type="counter",
    ),
    Metric(
        "accelbench_operator_reconcile_failures_total",
        "How often reconciling a run failed and was scheduled again.",
        lambda operator: operator.queue.failed_total,
        type="counter",
    ),
    Metric(
        "accelbench_operator_api_requests_total",
        "Requests of this replica to the API server, except for its Lease and kopf's watch of runs. Code 0: no answer.",
        lambda operator: {(kind.verb, kind.resource, str(kind.code)): n for kind, n in operator.requests.items()},
        by=("verb", "resource", "code"),
        type="counter",
    ),
    Metric(
        "accelbench_build_info",
        "The version of accelbench that serves these metrics.",
        lambda _: {(__version__,): 1},
        by=("version",),
    ),
)


def _baseline(result: Summary) -> str:
    return next((comparison.baseline for comparison in result.comparisons), "")


def of_the_operator(operator: Snapshot) -> Iterator[Family]:
    """How it is doing, and what it is doing."""
    for metric in OF_THE_OPERATOR:
        yield metric.family((), [((), operator)])
    live = [(_short((case.namespace, case.run, case.case)), case) for case in operator.live]
    for of_a_case in OF_A_CASE_UNDER_WAY:
        yield of_a_case.family(LIVE_LABELS, live)
    comparisons = [((*values, *_short((each.variant,))), each) for values, case in live for each in case.comparisons]
    for of_a_comparison in OF_A_COMPARISON_UNDER_WAY:
        yield of_a_comparison.family(LIVE_VARIANT_LABELS, comparisons)


def of_results(shown: Iterable[Summary]) -> Iterator[Family]:
    """What was measured."""
    results = [(_result_labels(result), result) for result in shown]
    for of_a_result in OF_A_RESULT:
        yield of_a_result.family(RESULT_LABELS, results)
    variants = [
        ((*values, *_short((variant.name, variant.framework))), variant)
        for values, result in results
        for variant in result.variants
    ]
    for of_a_variant in OF_A_VARIANT:
        yield of_a_variant.family(VARIANT_LABELS, variants)
    labels = {values[: len(RESULT_LABELS) + 1]: values for values, _ in variants}
    comparisons = [
        (labels[named], Compared(result, comparison))
        for values, result in results
        for comparison in result.comparisons
        # A result that somebody wrote by hand may compare what it does not list: the others are still to be seen.
        if (named := (*values, *_short((comparison.variant,)))) in labels
    ]
    for of_a_comparison in OF_A_COMPARISON:
        yield of_a_comparison.family(VARIANT_LABELS, comparisons)


def series_of(result: Summary) -> Labels:
    """Namespace, series and case, as they are exported: there is one result to show of each."""
    return _short((result.namespace, result.series, result.case))


def _result_labels(result: Summary) -> Labels:
    noisy = "true" if result.noisy else "false"
    return (*series_of(result), *_short((result.workload, result.accelerator, noisy)))


class Families(Collector):
    """Families that were made already, for the client to write."""

    def __init__(self, families: Iterable[metrics_core.Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[metrics_core.Metric]:
        """See `Collector`; once."""
        return self._families


def of_the_process() -> CollectorRegistry:
    """Memory, processor time and garbage of this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
