"""What the operator counts as it happens, as no later look could tell: durations, and attempts that were lost."""

from collections.abc import Iterable, Iterator
from itertools import product

from prometheus_client import Counter, Histogram, metrics_core
from prometheus_client.registry import Collector

from accelbench.api.reasons import AttemptReason

REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
RECONCILE_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
WAIT_BUCKETS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400)


class Telemetry(Collector):
    """One operator's; `collect` is for the Prometheus client."""

    def __init__(self) -> None:
        self.reconcile = Histogram(
            "accelbench_operator_reconcile_seconds",
            "How long reconciling one run took once, with its requests.",
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
        self.lost = Counter(
            "accelbench_attempts_lost",
            "Attempts at a case that were lost, by reason; retried says whether the case is to be tried again.",
            labelnames=("reason", "retried"),
            registry=None,
        )
        for reason, retried in product(AttemptReason, ("false", "true")):
            # A counter that begins at 1 hides its first event from increase().
            self.lost.labels(reason, retried)

    @property
    def instruments(self) -> tuple[Histogram | Counter, ...]:
        """All of them."""
        return (self.reconcile, self.request, self.queue, self.start, self.lost)

    def collect(self) -> Iterable[metrics_core.Metric]:
        """See `Collector`."""
        return self._collected()

    def _collected(self) -> Iterator[metrics_core.Metric]:
        for instrument in self.instruments:
            yield from instrument.collect()
