"""Define the metrics: the latest result of every series and case, running cases, and the operator's health.

A scrape turns one `Snapshot` into samples. To add a metric, add a `Metric` to the table of the object that it
describes; `telemetry` counts events. Metrics use base units, with the unit in the name. Labels of results never hold a
UID, pod, node or commit, because each run would start a new series: only `accelbench_run_info` has them. Metrics of
running cases have the run's name and end with it.
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
from accelbench.api.number import Number
from accelbench.api.number_registry import NUMBERS
from accelbench.api.numbers import MEASURED
from accelbench.api.result import Comparison, Payback, SpeedupEstimate, Verdict
from accelbench.stats.summary import TIME
from accelbench_operator.metrics.snapshot import LiveCase, Snapshot
from accelbench_operator.runs.summary import Summary, VariantSummary

T = TypeVar("T")
Labels = tuple[str, ...]
Family = GaugeMetricFamily | CounterMetricFamily

MAXIMUM_LABEL_CHARACTERS = 253
"""Most characters of a label value: as long as the name of a Kubernetes object can be."""

RESULT_LABELS: Labels = ("namespace", "series", "case", "workload", "accelerator", "noisy")
VARIANT_LABELS: Labels = (*RESULT_LABELS, "variant", "framework")
LIVE_LABELS: Labels = ("namespace", "run", "case")
LIVE_VARIANT_LABELS: Labels = (*LIVE_LABELS, "variant")

VERDICTS: Labels = (*get_args(Verdict), "failed", "invalid", "noisy", "none")
"""Values of the label `verdict`: `invalid` if a check failed, `noisy` if disturbed rounds were accepted, `none` without
complete rounds."""


@dataclass(frozen=True)
class Metric(Generic[T]):
    """Define a metric: its name, its HELP text, and how to read its value from an object.

    `read` returns a number or None; a metric with labels of its own (`by`) returns a number for each combination of
    their values.
    """

    name: str
    help: str
    read: Callable[[T], Mapping[Labels, float | None] | float | None]
    by: Labels = ()
    type: Literal["gauge", "counter"] = "gauge"

    def family(self, labels: Labels, labelled_objects: Iterable[tuple[Labels, T]]) -> Family:
        """Return the metric with the samples that are read from the objects.

        Args:
            labels: The names of the labels that all samples have; the metric adds those in `by`.
            labelled_objects: Objects to read a value from, each with its values of `labels`, already truncated.
        """
        family_class = CounterMetricFamily if self.type == "counter" else GaugeMetricFamily
        family = family_class(self.name, self.help, labels=(*labels, *self.by))
        samples: dict[Labels, float] = {}
        for label_values, measured_object in labelled_objects:
            reading = self.read(measured_object)
            # Only a metric with labels in `by` reads a mapping; any other reads one number.
            values = reading if isinstance(reading, Mapping) else {(): reading}
            for by_values, value in values.items():
                if value is None:
                    continue
                sample_labels = (*label_values, *_truncate(by_values)) if by_values else label_values
                # Prometheus rejects a scrape with duplicate samples, so only the first of them counts.
                samples.setdefault(sample_labels, value)
        for sample_labels, value in samples.items():
            family.add_metric(sample_labels, value)
        return family


def _truncate(label_values: Labels) -> Labels:
    """Cut each value to the maximum length. A result written by hand may have longer texts."""
    return tuple(value[:MAXIMUM_LABEL_CHARACTERS] for value in label_values)


def _export_number(field: str, number: Number) -> Metric[VariantSummary]:
    """Return the metric that exports the number `field` of each variant."""
    return Metric(number.metric, number.meaning, lambda variant: variant.numbers.get(field))


def _count_failed_checks(result: Summary) -> Mapping[Labels, float | None]:
    """Return how often each failed check failed, labelled with its name; 0 with an empty name if none failed."""
    if not result.failed_checks:
        return {("",): 0}
    return {(check,): count for check, count in Counter(result.failed_checks).items()}


RESULT_METRICS: tuple[Metric[Summary], ...] = (
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
        "When the latest result was finished and stored, by the API server's clock, in seconds since 1970.",
        lambda result: result.created_timestamp,
    ),
    Metric(
        "accelbench_result_checks_failed",
        "How often a validity check failed in the latest result: one sample per failed check, or 0 without a name.",
        _count_failed_checks,
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

VARIANT_METRICS: tuple[Metric[VariantSummary], ...] = (
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
        "accelbench_step_p99_lower_seconds",
        "Lower end of the interval of a variant's own 99th percentile, over its launches, where calls or requests are "
        "timed one by one.",
        lambda variant: variant.lower_p99,
    ),
    Metric(
        "accelbench_step_p99_upper_seconds",
        "Upper end of the interval of a variant's own 99th percentile, over its launches.",
        lambda variant: variant.upper_p99,
    ),
    Metric(
        "accelbench_phase_seconds",
        "Seconds that a phase of a launch takes: the median over the launches of the latest result.",
        lambda variant: {(phase,): seconds for phase, seconds in variant.phase_seconds.items()},
        by=("phase",),
    ),
    *(_export_number(field, number) for field, number in MEASURED.items() if number.metric),
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


def _to_float(text: str | None) -> float | None:
    """Convert a decimal string to a number; return None for None."""
    return None if text is None else float(text)


def _pays_back_steps(payback: Payback | None) -> Mapping[Labels, float | None]:
    """Return the break-even steps of compiling, labelled with the `answer`: 0 for at once, infinity for never.

    Return no sample if the steps are unknown (`payback` is None).
    """
    if payback is None:
        return {}
    steps: float | None = payback.steps
    if steps is None and payback.answer == "at-once":
        steps = 0.0
    elif steps is None and payback.answer == "never":
        steps = math.inf
    return {(payback.answer,): steps}


COMPARISON_METRICS: tuple[Metric[Compared], ...] = (
    Metric(
        NUMBERS["speedup"].metric,
        "Baseline seconds divided by variant seconds; above 1 the variant is faster.",
        lambda compared: _to_float(compared.comparison.speedup),
    ),
    Metric(
        "accelbench_speedup_lower_ratio",
        "Lower bound of the speedup's confidence interval.",
        lambda compared: _to_float(compared.comparison.lower),
    ),
    Metric(
        "accelbench_speedup_upper_ratio",
        "Upper bound of the speedup's confidence interval.",
        lambda compared: _to_float(compared.comparison.upper),
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

LIVE_CASE_METRICS: tuple[Metric[LiveCase], ...] = (
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

LIVE_COMPARISON_METRICS: tuple[Metric[SpeedupEstimate], ...] = (
    Metric(
        "accelbench_live_speedup_ratio",
        "The speedup so far of a running case: baseline seconds over variant seconds. It is no verdict.",
        lambda estimate: _to_float(estimate.speedup),
    ),
    Metric(
        "accelbench_live_speedup_lower_ratio",
        "Lower bound of the confidence interval of the speedup so far.",
        lambda estimate: _to_float(estimate.lower),
    ),
    Metric(
        "accelbench_live_speedup_upper_ratio",
        "Upper bound of the confidence interval of the speedup so far.",
        lambda estimate: _to_float(estimate.upper),
    ),
)

OPERATOR_METRICS: tuple[Metric[Snapshot], ...] = (
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
        "accelbench_runs_omitted",
        "Runs that have not finished and are not in accelbench_run_cases, because there are too many; namespaces share "
        "the places equally.",
        lambda operator: operator.runs_omitted,
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
        "How many cases of series are exported at most: the newest results of each namespace, in equal shares.",
        lambda operator: operator.limit,
    ),
    Metric(
        "accelbench_operator_leading",
        "1 if this replica leads, else 0. Only the leader writes to the cluster and exports results.",
        lambda operator: operator.leading,
    ),
    Metric(
        "accelbench_operator_namespace_unlisted",
        "1 for each namespace of the operator's settings where the API server refuses a list, because the namespace is "
        "gone or a Role is. Nothing is reconciled there.",
        lambda operator: {(namespace,): 1 for namespace in operator.unlisted_namespaces},
        by=("namespace",),
    ),
    Metric(
        "accelbench_operator_objects",
        "Objects that the operator holds in memory, by kind.",
        lambda operator: {(kind,): count for kind, count in operator.stored_objects.items()},
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
        lambda operator: {
            (kind.verb, kind.resource, str(kind.code)): count for kind, count in operator.requests.items()
        },
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
    """Return the baseline, which all comparisons share; empty without comparisons."""
    return result.comparisons[0].baseline if result.comparisons else ""


def operator_families(snapshot: Snapshot) -> Iterator[Family]:
    """Yield the metrics of the operator and of running cases."""
    no_labels: Labels = ()
    for metric in OPERATOR_METRICS:
        yield metric.family(no_labels, [(no_labels, snapshot)])
    labelled_cases = [(_truncate((case.namespace, case.run, case.case)), case) for case in snapshot.live]
    for case_metric in LIVE_CASE_METRICS:
        yield case_metric.family(LIVE_LABELS, labelled_cases)
    labelled_estimates: list[tuple[Labels, SpeedupEstimate]] = []
    for case_labels, case in labelled_cases:
        for estimate in case.comparisons:
            estimate_labels = (*case_labels, *_truncate((estimate.variant,)))
            labelled_estimates.append((estimate_labels, estimate))
    for estimate_metric in LIVE_COMPARISON_METRICS:
        yield estimate_metric.family(LIVE_VARIANT_LABELS, labelled_estimates)


def result_families(summaries: Iterable[Summary]) -> Iterator[Family]:
    """Yield the metrics of results, of variants and of comparisons."""
    labelled_results = [(_result_labels(result), result) for result in summaries]
    for result_metric in RESULT_METRICS:
        yield result_metric.family(RESULT_LABELS, labelled_results)
    labelled_variants: list[tuple[Labels, VariantSummary]] = []
    labels_by_variant: dict[Labels, Labels] = {}
    for result_labels, result in labelled_results:
        for variant in result.variants:
            name, framework = _truncate((variant.name, variant.framework))
            variant_labels = (*result_labels, name, framework)
            labelled_variants.append((variant_labels, variant))
            labels_by_variant[*result_labels, name] = variant_labels
    for variant_metric in VARIANT_METRICS:
        yield variant_metric.family(VARIANT_LABELS, labelled_variants)
    labelled_comparisons: list[tuple[Labels, Compared]] = []
    for result_labels, result in labelled_results:
        for comparison in result.comparisons:
            # A comparison names its variant without the framework, which is one of the labels: look up the labels.
            variant_key = (*result_labels, *_truncate((comparison.variant,)))
            # A result that was written by hand may compare a variant that it does not list: skip that comparison.
            if variant_key in labels_by_variant:
                labelled_comparisons.append((labels_by_variant[variant_key], Compared(result, comparison)))
    for comparison_metric in COMPARISON_METRICS:
        yield comparison_metric.family(VARIANT_LABELS, labelled_comparisons)


def series_labels(result: Summary) -> Labels:
    """Return the labels namespace, series and case. One result is exported for each such triple."""
    return _truncate((result.namespace, result.series, result.case))


def _result_labels(result: Summary) -> Labels:
    """Return the values of `RESULT_LABELS` for a result."""
    noisy = "true" if result.noisy else "false"
    return (*series_labels(result), *_truncate((result.workload, result.accelerator, noisy)))


class Families(Collector):
    """Offer complete metric families to the Prometheus client."""

    def __init__(self, families: Iterable[metrics_core.Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[metrics_core.Metric]:
        """Return the families, for the Prometheus client."""
        return self._families


def process_registry() -> CollectorRegistry:
    """Return a registry with the memory, CPU time and garbage collections of this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
