"""Show the operator itself: leadership, backlog, API requests, resources."""

from colours import BAD, KINDS, NEUTRAL, QUANTILES
from frame import dashboard as new_dashboard
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders.stat import Panel as Number
from grafana_foundation_sdk.builders.timeseries import Panel as Lines
from grafana_foundation_sdk.models import common as style
from grafana_foundation_sdk.models import dashboard as model
from overrides import dashed, in_colours, one_colour, thresholds
from panels import NO_OPERATOR, THIRD, lines, number
from queries import OPERATOR, instant, over_time

UNLISTED = (
    f"count(max by (namespace) (accelbench_operator_namespace_unlisted{{{OPERATOR}}})) "
    f"or 0 * max(accelbench_operator_leading{{{OPERATOR}}})"
)
"""PromQL: how many namespaces the operator cannot list; no sample without an operator."""

RATE = f"{{{OPERATOR}}}[$__rate_interval]"
"""Selector and range of a counter of the operator, for the function `rate`."""
SHARES = (0.5, 0.9, 0.99)
"""Quantiles, in the order of `QUANTILES`."""


def dashboard() -> build.Dashboard:
    """Build the dashboard, with three rows."""
    board = new_dashboard("Operator", "Whether the operator leads and keeps up, its API requests, and what it uses.")
    board = board.time("now-24h", "now").with_row(build.Row("Now"))
    for panel in current_numbers():
        board = board.with_panel(panel)
    board = board.with_row(build.Row("Keeping up"))
    for panel in (reconciles(), reconcile_time(), lag(), waiting(), oldest()):
        board = board.with_panel(panel)
    board = board.with_row(build.Row("API server")).with_panel(requests()).with_panel(request_time())
    board = board.with_row(build.Row("What it takes"))
    for panel in (memory(), processor(), objects()):
        board = board.with_panel(panel)
    return board


def current_numbers() -> tuple[Number, ...]:
    """Build the panels of six current numbers, such as the version and the number of leaders."""
    panels = (
        number(
            "Version",
            "The version of accelbench that serves these metrics.",
            "short",
            instant(f"max by (version) (accelbench_build_info{{{OPERATOR}}})", "{{version}}"),
        ).text_mode(style.BigValueTextMode.NAME),
        number(
            "Leaders",
            "Replicas that lead. One is right; with none, nothing happens.",
            "short",
            instant(f"sum(accelbench_operator_leading{{{OPERATOR}}})"),
        ).thresholds(_exactly_one_is_right()),
        number(
            "Oldest run waiting",
            "How long the oldest run that is due has waited for a worker.",
            "s",
            instant(f"max(accelbench_operator_queue_oldest_seconds{{{OPERATOR}}})"),
        ).thresholds(thresholds((60, BAD))),
        number(
            "Event loop lag",
            "How late the event loop last woke from a timer.",
            "s",
            instant(f"max(accelbench_operator_loop_lag_seconds{{{OPERATOR}}})"),
        ).thresholds(thresholds((1, BAD))),
        number(
            "Left out",
            "Results: cases of series whose latest result is not exported, because there are more than the limit; no "
            "dashboard shows them. In progress: cases that are measured and show no progress, because too many are. "
            "Runs: those that have not finished and whose cases are not counted, because there are too many. "
            "Namespaces: those where the API server refuses a list, so that no run is reconciled.",
            "short",
            instant(f"sum(accelbench_series_omitted{{{OPERATOR}}})", "results"),
        )
        .with_target(instant(f"sum(accelbench_live_cases_omitted{{{OPERATOR}}})", "in progress").ref_id("B"))
        .with_target(instant(f"sum(accelbench_runs_omitted{{{OPERATOR}}})", "runs").ref_id("C"))
        .with_target(instant(UNLISTED, "namespaces").ref_id("D"))
        .thresholds(thresholds((1, BAD))),
        number(
            "Cases at most",
            "How many cases of series are exported at most: the newest of each namespace, in equal shares.",
            "short",
            instant(f"max(accelbench_series_limit{{{OPERATOR}}})"),
        ),
    )
    return tuple(panel.span(THIRD) for panel in panels)


def _exactly_one_is_right() -> build.ThresholdsConfig:
    """Return thresholds that mark every number but 1 as bad."""
    return (
        build.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps(
            [
                model.Threshold(value=None, color=BAD),
                model.Threshold(value=1, color=NEUTRAL),
                model.Threshold(value=2, color=BAD),
            ]
        )
    )


def reconciles() -> Lines:
    """Build the panel of reconciles and failures."""
    return (
        lines(
            "Reconciles",
            "How often runs are reconciled, and how often that fails and is retried.",
            "ops",
            over_time(f"sum(rate(accelbench_operator_reconciles_total{RATE}))", "reconciles"),
            over_time(f"sum(rate(accelbench_operator_reconcile_failures_total{RATE}))", "failures"),
            empty=NO_OPERATOR,
        )
        .span(THIRD)
        .min(0)
        .override_by_name("reconciles", one_colour(NEUTRAL))
        .override_by_name("failures", one_colour(BAD))
    )


def reconcile_time() -> Lines:
    """Build the panel of durations of reconciles."""
    text = "How long reconciling a run takes."
    return _quantiles("Time of a reconcile", text, "accelbench_operator_reconcile_seconds").span(THIRD)


def request_time() -> Lines:
    """Build the panel of durations of API requests."""
    text = "How long the API server takes to answer, except for the Lease and kopf's watch of runs."
    return _quantiles("Time of a request", text, "accelbench_operator_api_request_seconds")


def _quantiles(title: str, description: str, metric: str) -> Lines:
    """Build the panel of the median and the 90th and 99th percentile of a histogram of seconds."""
    panel = lines(
        title,
        f"{description} Each line: the time that this share of them stays below.",
        "s",
        *(
            over_time(f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{RATE})))", name)
            for share, name in zip(SHARES, QUANTILES, strict=True)
        ),
        empty=NO_OPERATOR,
    )
    return in_colours(panel.min(0), QUANTILES)


def waiting() -> Lines:
    """Build the panel of the number of runs that wait for a worker."""
    return (
        lines(
            "Runs waiting for a worker",
            "Runs that are due and that no worker has taken up yet.",
            "short",
            over_time(f"sum(accelbench_operator_queue_depth{{{OPERATOR}}})", "runs"),
            empty=NO_OPERATOR,
        )
        .min(0)
        .decimals(0)
        .override_by_name("runs", one_colour(NEUTRAL))
    )


def oldest() -> Lines:
    """Build the panel of how long the oldest run has waited for a worker."""
    return (
        lines(
            "Wait of the oldest run",
            "How long the oldest run that is due has waited for a worker.",
            "s",
            over_time(f"max(accelbench_operator_queue_oldest_seconds{{{OPERATOR}}})", "the oldest"),
            empty=NO_OPERATOR,
        )
        .min(0)
        .override_by_name("the oldest", one_colour(NEUTRAL))
    )


def lag() -> Lines:
    """Build the panel of the event loop's lag."""
    return (
        lines(
            "Event loop lag",
            "How late the event loop woke from a timer: above a second, something blocks it.",
            "s",
            over_time(f"max by (instance) (accelbench_operator_loop_lag_seconds{{{OPERATOR}}})", "{{instance}}"),
            empty=NO_OPERATOR,
        )
        .span(THIRD)
        .min(0)
    )


def requests() -> Lines:
    """Build the panel of API requests."""
    return lines(
        "Requests",
        "Requests to the API server by verb and resource, except for the Lease and kopf's watch of runs.",
        "reqps",
        over_time(
            f"sum by (verb, resource) (rate(accelbench_operator_api_requests_total{RATE}))", "{{verb}} {{resource}}"
        ),
        empty=NO_OPERATOR,
    ).min(0)


def memory() -> Lines:
    """Build the panel of memory."""
    return (
        lines(
            "Memory",
            "Resident memory of the operator's process.",
            "bytes",
            over_time(f"max by (instance) (process_resident_memory_bytes{{{OPERATOR}}})", "{{instance}}"),
            empty=NO_OPERATOR,
        )
        .span(THIRD)
        .min(0)
    )


def processor() -> Lines:
    """Build the panel of processor use."""
    return (
        lines(
            "Processor",
            "Share of one processor that the operator uses.",
            "percentunit",
            over_time(f"sum by (instance) (rate(process_cpu_seconds_total{RATE}))", "{{instance}}"),
            empty=NO_OPERATOR,
        )
        .span(THIRD)
        .min(0)
    )


def objects() -> Lines:
    """Build the panel of objects in memory."""
    panel = (
        lines(
            "Objects held",
            "Objects that the operator holds in memory, by kind.",
            "short",
            over_time(f"max by (kind) (accelbench_operator_objects{{{OPERATOR}}})", "{{kind}}"),
            empty=NO_OPERATOR,
        )
        .span(THIRD)
        .min(0)
    )
    # A Job usually has one pod: dashes keep the line below visible.
    return in_colours(panel, KINDS).override_by_name("Pod", dashed(10, 6))
