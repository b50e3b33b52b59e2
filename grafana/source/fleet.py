"""Show the machines: which profiles measure, what waits for them, and what disturbs their measurements."""

from colours import BAD, PHASES
from frame import dashboard as new_dashboard
from frame import multiple_choice, namespaces
from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders.stat import Panel as Number
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Lines
from grafana_foundation_sdk.models import common as style
from overrides import in_colours, thresholds, unit_of
from panels import NO_RESULT, Bars, bars, lines, number
from queries import OPERATOR, RUNS, instant, labelled, or_zero, over_time, rows
from tables import MOMENT, height_for_rows, merged_table, with_widths

ON_ACCELERATORS = f'{RUNS}, accelerator=~"$accelerator"'
"""Selector of the metrics of the chosen accelerators."""
LATEST = "max by (namespace, series, case, accelerator)"
"""Aggregation to one value for each case if several instances of the operator export the same result."""
NO_KUBE = "No node metrics. Install kube-state-metrics: this panel shows its kube_node_status_allocatable."
NO_DCGM = "No GPU metrics. Install NVIDIA's dcgm-exporter: this panel shows its DCGM_FI_DEV_* metrics."
LOST = f'increase(accelbench_attempts_lost_total{{{OPERATOR}, retried="%s"}}[$__range])'
"""PromQL: attempts lost in the time range; replace `%s` by `true` for those that were tried again, else `false`."""
DEVICES = 'resource=~".*(gpu|tpu|npu).*"'
"""Selector of the accelerators among a node's resources."""


def dashboard() -> build.Dashboard:
    """Build the dashboard, with four rows."""
    board = new_dashboard(
        "Fleet",
        "Profiles and devices, what waits for them, and what throttles or disturbs them.",
        namespaces(),
        multiple_choice("accelerator", "Accelerator", f"label_values(accelbench_run_info{{{RUNS}}}, accelerator)"),
    )
    board = board.with_row(build.Row("Now"))
    for panel in queue_numbers():
        board = board.with_panel(panel)
    board = board.with_row(build.Row("Profiles")).with_panel(profiles()).with_panel(devices())
    board = board.with_row(build.Row("Queue")).with_panel(queue()).with_panel(starts())
    board = board.with_row(build.Row("Disturbance")).with_panel(discarded()).with_panel(failed_attempts())
    return board.with_panel(clocks()).with_panel(temperatures())


def queue_numbers() -> tuple[Number, ...]:
    """Build the numbers of waiting, running and disturbed cases."""
    runs_in_phases = or_zero(f"sum(max by (namespace, phase) (accelbench_runs{{{RUNS}, phase=~%s}}))")
    return (
        number("Queued", "BenchmarkRuns that wait.", "short", instant(runs_in_phases % '"Queued|Pending"')),
        number("Running", "BenchmarkRuns that are measured.", "short", instant(runs_in_phases % '"Running"')),
        number(
            "Rounds discarded",
            "Share of the latest results' rounds that were disturbed and measured again.",
            "percentunit",
            instant(
                f"sum({LATEST} (accelbench_result_rounds_quarantined{{{ON_ACCELERATORS}}})) / "
                f"sum({LATEST} (accelbench_result_rounds{{{ON_ACCELERATORS}}}) "
                f"+ {LATEST} (accelbench_result_rounds_quarantined{{{ON_ACCELERATORS}}}))"
            ),
            empty=NO_RESULT,
        ).decimals(1),
        number(
            "Attempts lost",
            "Attempts that the cluster lost in this time range: a node failed, or a pod was preempted.",
            "short",
            instant(or_zero(f"sum(increase(accelbench_attempts_lost_total{{{OPERATOR}}}[$__range]))")),
        )
        .decimals(0)
        .thresholds(thresholds((1, BAD))),
    )


def profiles() -> Table:
    """Build the table of profiles."""
    columns = {
        "accelerator": "Profile",
        "Value #results": "Results",
        "Value #valid": "Valid",
        "Value #discarded": "Rounds discarded",
        "Value #checks": "Checks failed",
        "Value #throttled": "Throttled",
        "Value #last": "Last measured (UTC)",
    }
    by = "sum by (accelerator)"
    table = (
        merged_table(
            "Profiles",
            "What was measured on each kind of accelerator, by the latest result of every series and case. Throttled: "
            "results of which a variant was rejected because the device was slowed down.",
            columns,
            (),
            rows("results", f"count by (accelerator) ({LATEST} (accelbench_result_valid{{{ON_ACCELERATORS}}}))"),
            rows("valid", f"{by} ({LATEST} (accelbench_result_valid{{{ON_ACCELERATORS}}}))"),
            rows("discarded", f"{by} ({LATEST} (accelbench_result_rounds_quarantined{{{ON_ACCELERATORS}}}))"),
            rows(
                "checks",
                f"{by} (max by (namespace, series, case, accelerator, check) "
                f"(accelbench_result_checks_failed{{{ON_ACCELERATORS}}}))",
            ),
            rows(
                "throttled",
                f"{by} (max by (namespace, series, case, accelerator) "
                f'(accelbench_result_checks{{{ON_ACCELERATORS}, check="throttled", outcome="failed"}}) > bool 0) '
                f"or 0 * count by (accelerator) ({LATEST} (accelbench_result_valid{{{ON_ACCELERATORS}}}))",
            ),
            rows(
                "last",
                f"max by (accelerator) (accelbench_result_finished_timestamp_seconds{{{ON_ACCELERATORS}}}) * 1000",
            ),
            order=("Profile",),
        )
        .span(15)
        .height(height_for_rows(7))
        .override_by_name("Last measured (UTC)", unit_of(MOMENT))
    )
    widths = {"Results": 76, "Valid": 72, "Rounds discarded": 150, "Checks failed": 112, "Throttled": 92}
    return with_widths(table, widths | {"Last measured (UTC)": 158})


def devices() -> Table:
    """Build the table of the nodes' devices."""
    columns = {
        "resource": "Resource",
        "Value #there": "Allocatable",
        "Value #taken": "Requested",
    }
    return (
        merged_table(
            "Devices",
            "Accelerators that the nodes offer, and how many of them pods that are not finished have requested. From "
            "kube-state-metrics.",
            columns,
            (),
            rows("there", f"sum by (resource) (kube_node_status_allocatable{{{DEVICES}}})"),
            rows(
                "taken",
                f"sum by (resource) (kube_pod_container_resource_requests{{{DEVICES}}} "
                'and on (namespace, pod) kube_pod_status_phase{phase=~"Pending|Running"} == 1)',
            ),
            order=("Resource",),
            paged=False,
            empty=NO_KUBE,
        )
        .span(9)
        .height(height_for_rows(7))
    )


def queue() -> Lines:
    """Build the panel of waiting runs."""
    panel = (
        lines(
            "Runs by phase",
            "BenchmarkRuns that are not finished, by phase.",
            "short",
            over_time(
                "sum by (phase) (max by (namespace, phase) "
                f'(accelbench_runs{{{RUNS}, phase=~"Queued|Pending|Running|Suspended"}}))',
                "{{phase}}",
            ),
        )
        .stacking(common.StackingConfig().mode(style.StackingMode.NORMAL))
        .fill_opacity(30)
        .min(0)
        .decimals(0)
    )
    return in_colours(panel, PHASES)


def starts() -> Bars:
    """Build the panel of the time until a case is measured: the median and the 90th percentile of both parts."""
    buckets = f"sum by (le) (increase(accelbench_case_%s_seconds_bucket{{{OPERATOR}}}[$__range]))"
    return (
        bars(
            "Time until a case is measured",
            "Over this time range. In the queue: from a case's Job until its pod. Starting: from the pod until its "
            "container runs, including a new node and pulling the image.",
            "s",
            instant(f"histogram_quantile(0.5, {buckets % 'queue'})", "in the queue: half of them"),
            instant(f"histogram_quantile(0.9, {buckets % 'queue'})", "in the queue: 9 of 10"),
            instant(f"histogram_quantile(0.5, {buckets % 'start'})", "starting: half of them"),
            instant(f"histogram_quantile(0.9, {buckets % 'start'})", "starting: 9 of 10"),
            empty="No case has started in this time range.",
        )
        .decimals(0)
        .height(8)
    )


def discarded() -> Bars:
    """Build the bars of the results with the most discarded rounds."""
    discarded_rounds = labelled(
        f"max by (series, case, accelerator) (accelbench_result_rounds_quarantined{{{ON_ACCELERATORS}}}) > 0"
    )
    return (
        bars(
            "Rounds discarded",
            "Rounds of the latest results that throttling or other load disturbed, and that were measured again: by "
            "profile, series and case, the six results with most of them.",
            "short",
            instant(f"topk(6, {discarded_rounds})", "{{accelerator}}: {{series}} {{swept}}"),
            empty="No round of the latest results was discarded, if there is any result.",
        )
        .decimals(0)
        .height(8)
    )


def failed_attempts() -> Bars:
    """Build the panel of attempts that the cluster lost, by reason."""
    return (
        bars(
            "Attempts lost",
            "Attempts that were lost in this time range, by reason. A case is tried again if the run allows it.",
            "short",
            instant(f"sum by (reason) ({LOST % 'true'}) > 0", "{{reason}}"),
            instant(f"sum by (reason) ({LOST % 'false'}) > 0", "{{reason}}, not tried again"),
            empty="No attempt was lost in this time range.",
        )
        .decimals(0)
        .height(8)
    )


def clocks() -> Lines:
    """Build the panel of the devices' clocks."""
    return lines(
        "GPU clocks",
        "Clock of the multiprocessors: a drop while a device is busy is throttling. From NVIDIA's DCGM exporter.",
        "hertz",
        over_time('max by (Hostname, gpu) (DCGM_FI_DEV_SM_CLOCK{Hostname=~".+"}) * 1e6', "{{Hostname}} GPU {{gpu}}"),
        empty=NO_DCGM,
    ).min(0)


def temperatures() -> Lines:
    """Build the panel of the devices' temperatures."""
    return lines(
        "GPU temperatures",
        "Temperature of each device. From NVIDIA's DCGM exporter.",
        "celsius",
        over_time('max by (Hostname, gpu) (DCGM_FI_DEV_GPU_TEMP{Hostname=~".+"})', "{{Hostname}} GPU {{gpu}}"),
        empty=NO_DCGM,
    )
