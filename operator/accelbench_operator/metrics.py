"""What Prometheus sees: the latest result of every series and case, and how the operator itself is doing.

A scrape pulls one `Snapshot` and turns it into samples; nothing is counted, cached or pushed in between. To add a
metric, add a `Metric` to the table of what it describes. Base units, one unit a metric, the unit in the name. Labels
never hold a UID, a pod or a commit, which would start a new series with every run: those stand on
`accelbench_run_info` alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, get_args

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from accelbench import __version__
from accelbench.api.numbers import MEASURED, NUMBERS, Number
from accelbench.api.result import Verdict
from accelbench.stats.summary import TIME
from accelbench_operator.snapshot import ComparisonSummary, Snapshot, Summary, VariantSummary

T = TypeVar("T")
Labels = tuple[str, ...]
Family = GaugeMetricFamily | CounterMetricFamily

RESULT_LABELS: Labels = ("namespace", "series", "case", "workload", "accelerator", "noisy")
VARIANT_LABELS: Labels = (*RESULT_LABELS, "variant", "framework")

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
    read: Callable[[T], Mapping[Labels, float] | float | None]
    by: Labels = ()
    type: Literal["gauge", "counter"] = "gauge"

    def family(self, labels: Labels, described: Iterable[tuple[Labels, T]]) -> Family:
        """Every sample of the metric; `described` pairs values of `labels` with what has them."""
        kind = CounterMetricFamily if self.type == "counter" else GaugeMetricFamily
        family = kind(self.name, self.help, labels=(*labels, *self.by))
        for values, subject in described:
            read = self.read(subject)
            samples = read if isinstance(read, Mapping) else {(): read}
            for own, value in samples.items():
                if value is not None:
                    family.add_metric((*values, *own), value)
        return family


def _measured(field: str, number: Number) -> Metric[VariantSummary]:
    return Metric(number.metric, number.meaning, lambda variant: variant.numbers.get(field))


OF_A_RESULT: tuple[Metric[Summary], ...] = (
    Metric(
        "accelbench_result_valid",
        "Whether the latest result is complete and no comparison of it is invalid (1) or not (0).",
        lambda result: result.valid,
    ),
    Metric(
        "accelbench_result_complete",
        "Whether the latest result was measured to its end (1) or is what was kept of it (0).",
        lambda result: result.complete,
    ),
    Metric(
        "accelbench_result_rounds",
        "Complete rounds of the latest result.",
        lambda result: result.rounds,
    ),
    Metric(
        "accelbench_result_rounds_quarantined",
        "Rounds of the latest result that count for no variant, because the device was throttled or shared.",
        lambda result: result.quarantined,
    ),
    Metric(
        "accelbench_result_finished_timestamp_seconds",
        "When the latest result was finished, in seconds since 1970.",
        lambda result: result.finished_timestamp,
    ),
    Metric(
        "accelbench_result_checks_failed",
        "How often a validity check failed in the latest result: one sample a check that did, or 0 without a name.",
        lambda result: {(check,): count for check, count in Counter(result.failed_checks).items()} or {("",): 0},
        by=("check",),
    ),
    Metric(
        "accelbench_result_expectations_not_met",
        "Expectations of the run that the latest result does not meet, or leaves undecided.",
        lambda result: len(result.not_met),
    ),
    Metric(
        "accelbench_run_info",
        "Which BenchmarkRun and BenchmarkResult the latest result is from, the baseline and unit of its times, and the "
        "currency of its prices.",
        lambda result: {(result.run, result.run_uid, result.name, _baseline(result), result.unit, result.currency): 1},
        by=("run", "run_uid", "result", "baseline", "unit", "currency"),
    ),
)

OF_A_VARIANT: tuple[Metric[VariantSummary], ...] = (
    Metric(
        NUMBERS["seconds"].metric,
        f"Steady seconds per unit of work in the latest result: {TIME['steady']}.",
        lambda variant: variant.seconds,
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
        "Whether the variant failed in the latest result: 1 with the reason, or 0 without one.",
        lambda variant: {(variant.failure or "",): variant.failure is not None},
        by=("reason",),
    ),
)

OF_A_COMPARISON: tuple[Metric[ComparisonSummary], ...] = (
    Metric(
        NUMBERS["speedup"].metric,
        "Baseline seconds over variant seconds: above 1 the variant is faster.",
        lambda comparison: comparison.speedup,
    ),
    Metric(
        "accelbench_speedup_lower_ratio",
        "Lower bound of the speedup's confidence interval.",
        lambda comparison: comparison.lower,
    ),
    Metric(
        "accelbench_speedup_upper_ratio",
        "Upper bound of the speedup's confidence interval.",
        lambda comparison: comparison.upper,
    ),
    Metric(
        "accelbench_comparison_rounds",
        "Complete pairs of launches that the speedup rests on.",
        lambda comparison: comparison.rounds,
    ),
    Metric(
        "accelbench_verdict",
        "The verdict on the variant against the baseline: 1 for the one that stands, 0 for the others.",
        lambda comparison: {(verdict,): comparison.outcome == verdict for verdict in VERDICTS},
        by=("verdict",),
    ),
)

OF_THE_OPERATOR: tuple[Metric[Snapshot], ...] = (
    Metric(
        "accelbench_runs",
        "BenchmarkRuns in the cluster, by the phase they are in.",
        lambda operator: {(namespace, phase): count for (namespace, phase), count in operator.runs.items()},
        by=("namespace", "phase"),
    ),
    Metric(
        "accelbench_operator_leading",
        "Whether this replica leads (1): only the leader writes, and exports results.",
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
        "Times that a run was looked at and acted on.",
        lambda operator: operator.queue.reconciled_total,
        type="counter",
    ),
    Metric(
        "accelbench_operator_reconcile_failures_total",
        "Times that this raised, and the run was put back to be tried again.",
        lambda operator: operator.queue.failed_total,
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


class OperatorCollector(Collector):
    """All of the operator's own metrics, read off one snapshot a scrape."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Family]:
        """Every metric with its samples; those of results only where this replica leads."""
        operator = self._snapshot()
        for of_the_operator in OF_THE_OPERATOR:
            yield of_the_operator.family((), [((), operator)])
        results = [(_result_labels(result), result) for result in operator.results if operator.leading]
        for of_a_result in OF_A_RESULT:
            yield of_a_result.family(RESULT_LABELS, results)
        variants = [(_variant_labels(result, variant), variant) for _, result in results for variant in result.variants]
        for of_a_variant in OF_A_VARIANT:
            yield of_a_variant.family(VARIANT_LABELS, variants)
        labels = {values[: len(RESULT_LABELS) + 1]: values for values, _ in variants}
        comparisons = [
            (labels[*values, comparison.variant], comparison)
            for values, result in results
            for comparison in result.comparisons
            # A result that somebody wrote by hand may compare what it does not list: the others are still to be seen.
            if (*values, comparison.variant) in labels
        ]
        for of_a_comparison in OF_A_COMPARISON:
            yield of_a_comparison.family(VARIANT_LABELS, comparisons)


def _result_labels(result: Summary) -> Labels:
    noisy = "true" if result.noisy else "false"
    return (result.namespace, result.series, result.case, result.workload, result.accelerator, noisy)


def _variant_labels(result: Summary, variant: VariantSummary) -> Labels:
    return (*_result_labels(result), variant.name, variant.framework)


def new_registry(snapshot: Callable[[], Snapshot]) -> CollectorRegistry:
    """A registry with the operator's metrics and those of its process."""
    registry = CollectorRegistry()
    registry.register(OperatorCollector(snapshot))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def serve_metrics(snapshot: Callable[[], Snapshot], *, port: int, address: str = "0.0.0.0") -> Callable[[], None]:  # noqa: S104 - Prometheus scrapes the pod's address
    """Serve `/metrics` from a thread until the callable that is returned is called.

    `snapshot` is called in that thread, once a scrape; whatever it reads has to bear that.
    Raises OSError where the port is taken.
    """
    server, thread = start_http_server(port, address, new_registry(snapshot))

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
