"""Count events as they happen: durations, and failed attempts. A later look at the cluster could not recover them."""

from collections.abc import Iterator
from itertools import product

from prometheus_client import Counter, Histogram, metrics_core
from prometheus_client.registry import Collector

from accelbench.api.reasons import AttemptReason

# Upper bounds of the buckets of histograms, in seconds.
REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
RECONCILE_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
WAIT_BUCKETS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400)


class Telemetry(Collector):
    """Hold the histograms and counters of one operator."""

    def __init__(self) -> None:
        """Create the metrics, without a registry because `collect` exports them."""
        self.reconcile = Histogram(
            "accelbench_operator_reconcile_seconds",
            "Duration of one reconciliation of a run, including its API requests.",
            buckets=RECONCILE_BUCKETS,
            registry=None,
        )
        self.request = Histogram(
            "accelbench_operator_api_request_seconds",
            "How long the API server took to begin its answer, watches excluded.",
            labelnames=("verb", "resource"),
            buckets=REQUEST_BUCKETS,
            registry=None,
        )
        self.queue = Histogram(
            "accelbench_case_queue_seconds",
            "Seconds from a case's Job to its pod: spent on a queue, a quota and the Job controller.",
            buckets=WAIT_BUCKETS,
            registry=None,
        )
        self.start = Histogram(
            "accelbench_case_start_seconds",
            "Seconds from a case's pod to its running container: spent on scheduling, images and the kubelet.",
            buckets=WAIT_BUCKETS,
            registry=None,
        )
        # Dashboards and alerts know failed attempts as `attempts_lost`, so the exported name stays.
        self.failed_attempts = Counter(
            "accelbench_attempts_lost",
            "Failed attempts at a case, by reason; retried says whether the case will be tried again.",
            labelnames=("reason", "retried"),
            registry=None,
        )
        for reason, retried in product(AttemptReason, ("false", "true")):
            # Create each counter at 0: Prometheus' increase() does not see the first event if it starts at 1.
            self.failed_attempts.labels(reason, retried)

    @property
    def instruments(self) -> tuple[Histogram | Counter, ...]:
        """Return all histograms and counters."""
        return (self.reconcile, self.request, self.queue, self.start, self.failed_attempts)

    def collect(self) -> Iterator[metrics_core.Metric]:
        """Yield the current values of all histograms and counters, for the Prometheus client."""
        for instrument in self.instruments:
            yield from instrument.collect()
