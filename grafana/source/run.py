"""Show one run: progress, findings so far, cases, variants, validity, and its devices."""

from colours import BAD, OTHER
from frame import dashboard as new_dashboard
from frame import field, repeated_choice, single_choice, to_dashboard
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders.stat import Panel as Number
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.text import Panel as Text
from grafana_foundation_sdk.builders.timeseries import Panel as Lines
from grafana_foundation_sdk.models import common as style
from grafana_foundation_sdk.models import dashboard as model
from overrides import in_framework_colours, in_words, linked, thresholds, unit_of, yes_or_no
from panels import HALF, lines, markdown_panel, number
from queries import OPERATOR, RUNS, instant, labelled, over_time, rows
from tables import MOMENT, height_for_rows, merged_table, with_widths

from accelbench.api.numbers import MEASURED

RUN = f'{RUNS}, run=~"$run"'
CASE_WIDTH = 212
"""Width in pixels of a case's name with its digest on one line."""
OF_THE_RUN = f"and on (namespace, series, case) accelbench_run_info{{{RUN}}}"
"""End of a PromQL query that keeps only the results of the chosen run."""
KNOWN = '__name__=~"accelbench_run_info|accelbench_run_cases"'
"""Selector of metrics that name runs: of runs with results, and of runs without results that have cases."""
NUMBERS = {field: number for field, number in MEASURED.items() if number.column}
"""Numbers with a column in the table of variants, by field."""
NO_LIVE = "Not in progress: the operator shows progress until a run is finished."
NO_RESULT = "No result of this run yet, or another run of its series has replaced it: kubectl get bmres"
NO_REQUESTS = "No requests arrived: measure with protocol: arrivals and a rate in spec.measurement.arrivals."
NO_PROGRAM = "No compiled program: name targets to compile for in spec.accelerator.targets."
NO_EXCHANGE = (
    "No collectives: programs for one device exchange nothing. To see some, name targets of several devices in "
    "spec.accelerator.targets."
)
NO_DCGM = "No DCGM metrics of this node. Install NVIDIA's dcgm-exporter; other devices have no metrics here."


def dashboard() -> build.Dashboard:
    """Build the dashboard, with seven rows."""
    board = new_dashboard(
        "Run",
        "One BenchmarkRun: live progress, cases, variants, validity, and the device's telemetry.",
        single_choice("namespace", "Namespace", f"label_values({{{KNOWN}, {OPERATOR}}}, namespace)"),
        single_choice(
            "run",
            "Run",
            f"label_values({{{KNOWN}, {RUNS}}}, run)",
        ),
        repeated_choice("node", "Node", f"label_values(accelbench_run_info{{{RUN}}}, node)"),
    ).time("now-24h", "now")
    board = board.with_row(build.Row("Live"))
    for panel in cases():
        board = board.with_panel(panel)
    board = board.with_panel(live_speedup()).with_panel(active_cases())
    board = board.with_row(build.Row("What it found")).with_panel(results()).with_panel(variants())
    board = board.with_row(build.Row("Requests")).with_panel(requests())
    board = board.with_row(build.Row("What was compiled")).with_panel(programs()).with_panel(collectives())
    board = board.with_row(build.Row("Why it can be believed")).with_panel(checks())
    board = board.with_row(build.Row("Device")).with_panel(utilisation()).with_panel(clock())
    board = board.with_panel(power()).with_panel(temperature())
    return board.with_row(build.Row("Ask the cluster")).with_panel(commands())


def cases() -> tuple[Number, ...]:
    """Build the panels with the number of cases in each state."""
    total, active, measured, failed = (
        number(
            title,
            f"{description} Shown until the run is finished.",
            "short",
            instant(f'sum(accelbench_run_cases{{{RUN}, state="{state}"}})'),
            empty=NO_LIVE,
        )
        for title, state, description in (
            ("Cases", "total", "Combinations of swept parameters that the run measures."),
            ("Under way", "active", "Cases that have a Job."),
            ("Measured", "measured", "Cases that have a result."),
            ("Failed", "failed", "Cases that have no result, and no attempt left."),
        )
    )
    return total, active, measured, failed.thresholds(thresholds((1, BAD)))


def live_speedup() -> Lines:
    """Build the panel of the speedups so far, with their intervals."""
    by = "max by (case, variant)"
    end = [
        model.DynamicConfigValue("custom.lineWidth", 1),
        model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [3, 5]}),
    ]
    panel = lines(
        "Speedup so far",
        "Cases that are being measured: the interval narrows with every round. There is no verdict until the case "
        "ends.",
        "suffix:x",
        over_time(labelled(f"{by} (accelbench_live_speedup_ratio{{{RUN}}})"), "{{swept}} {{variant}}"),
        over_time(labelled(f"{by} (accelbench_live_speedup_lower_ratio{{{RUN}}})"), "{{swept}} {{variant}} lower"),
        over_time(labelled(f"{by} (accelbench_live_speedup_upper_ratio{{{RUN}}})"), "{{swept}} {{variant}} upper"),
        empty=NO_LIVE,
    ).decimals(2)
    return in_framework_colours(panel).override_by_regexp("/ (lower|upper)$/", end)


def active_cases() -> Table:
    """Build the table of cases being measured."""
    columns = {
        "case": "Case",
        "Value #rounds": "Rounds",
        "variant": "Launched now",
        "phase": "Phase",
    }
    return (
        merged_table(
            "Cases under way",
            "Complete rounds of each case that is being measured, and its current launch.",
            columns,
            ("Value #launch", "namespace"),
            rows("rounds", f"max by (namespace, case) (accelbench_live_rounds{{{RUN}}})"),
            rows("launch", f"max by (namespace, case, variant, phase) (accelbench_live_launch_info{{{RUN}}})"),
            empty=NO_LIVE,
        )
        .span(HALF)
        .height(8)
    )


def results() -> Table:
    """Build the table of cases."""
    case = "max by (namespace, series, case)"
    columns = {
        "series": "Series",
        "case": "Case",
        "Value #valid": "Valid",
        "Value #complete": "Complete",
        "Value #rounds": "Rounds",
        "Value #quarantined": "Rounds discarded",
        "Value #unmet": "Expectations not met",
        "Value #finished": "Finished (UTC)",
    }
    table = (
        merged_table(
            "Cases",
            "Results of this run that are the latest of their series and case. A series links to its comparison.",
            columns,
            ("namespace",),
            rows("valid", f"{case} (accelbench_result_valid{{{RUNS}}}) {OF_THE_RUN}"),
            rows("complete", f"{case} (accelbench_result_complete{{{RUNS}}}) {OF_THE_RUN}"),
            rows("rounds", f"{case} (accelbench_result_rounds{{{RUNS}}}) {OF_THE_RUN}"),
            rows("quarantined", f"{case} (accelbench_result_rounds_quarantined{{{RUNS}}}) {OF_THE_RUN}"),
            rows("unmet", f"{case} (accelbench_result_expectations_not_met{{{RUNS}}}) {OF_THE_RUN}"),
            rows("finished", f"{case} (accelbench_result_finished_timestamp_seconds{{{RUNS}}}) * 1000 {OF_THE_RUN}"),
            order=("Series", "Case"),
            empty=NO_RESULT,
        )
        .height(height_for_rows(4))
        .override_by_regexp("/^(Valid|Complete)$/", yes_or_no())
        .override_by_name("Finished (UTC)", unit_of(MOMENT))
        .override_by_name(
            "Series",
            linked(
                "Compare over time",
                to_dashboard("compare", namespace="$namespace", series=field("Series"), case=field("Case")),
            ),
        )
    )
    widths = {"Valid": 84, "Complete": 92, "Rounds": 84, "Rounds discarded": 150, "Expectations not met": 164}
    return with_widths(table, widths | {"Finished (UTC)": 116})


def variants() -> Table:
    """Build the table of variants of each case."""
    by = "max by (namespace, series, case, variant)"
    columns = {
        "case": "Case",
        "variant": "Variant",
        "Value #seconds": "Step time",
        "Value #lower": "Lower",
        "Value #upper": "Upper",
        "Value #speedup": "Speedup",
        **{f"Value #{field}": number.column for field, number in NUMBERS.items()},
        "Value #failed": "Failed",
        "reason": "Reason",
    }
    by_reason = "max by (namespace, series, case, variant, reason)"
    of_bytes = (number.column for number in NUMBERS.values() if number.unit == "B")
    failed = f'accelbench_variant_failed{{{RUNS}, reason=""}} or accelbench_variant_failed{{{RUNS}}} > 0'
    table = (
        merged_table(
            "Variants",
            "Steady seconds per unit of work, with the unpaired interval of the variant's own launches; the speedup "
            "over the baseline; the most memory that a launch held; the bytes that a compiled call reads and writes, "
            "by XLA's estimate; how often it was compiled again while it was timed. A variant that cannot be compiled "
            "for a target has not failed, but the reason is shown.",
            columns,
            ("namespace", "series", "Value #reason"),
            rows("seconds", f"{by} (accelbench_step_seconds{{{RUNS}}}) {OF_THE_RUN}"),
            rows("lower", f"{by} (accelbench_step_lower_seconds{{{RUNS}}}) {OF_THE_RUN}"),
            rows("upper", f"{by} (accelbench_step_upper_seconds{{{RUNS}}}) {OF_THE_RUN}"),
            rows("speedup", f"{by} (accelbench_speedup_ratio{{{RUNS}}}) {OF_THE_RUN}"),
            *(rows(field, f"{by} ({number.metric}{{{RUNS}}}) {OF_THE_RUN}") for field, number in NUMBERS.items()),
            rows("failed", f"{by} ({failed}) {OF_THE_RUN}"),
            rows("reason", f"{by_reason} (accelbench_variant_failed{{{RUNS}}}) {OF_THE_RUN}"),
            order=("Case", "Variant"),
            empty=NO_RESULT,
        )
        .height(height_for_rows(8))
        .override_by_regexp("/Step time|Lower|Upper/", unit_of("s", 2))
        .override_by_name("Speedup", unit_of("suffix:x", 2))
        .override_by_regexp(f"/{'|'.join(of_bytes)}/", unit_of("bytes", 1))
        .override_by_name("Failed", unit_of("bool_yes_no"))
    )
    widths = {"Step time": 92, "Lower": 92, "Upper": 92, "Speedup": 84, "Failed": 72}
    return with_widths(table, widths | {"Case": CASE_WIDTH, "Variant": 140})


REQUESTS = {
    "rate": ("accelbench_requests_per_second", "Rate"),
    "busy": ("accelbench_request_utilisation_ratio", "Busy"),
    "service": ("accelbench_request_service_seconds", "Service p50"),
    "service99": ("accelbench_request_service_p99_seconds", "Service p99"),
    "response": ("accelbench_step_seconds", "Response p50"),
    "response99": ("accelbench_step_p99_seconds", "Response p99"),
    "lower": ("accelbench_step_p99_lower_seconds", "p99 lower"),
    "upper": ("accelbench_step_p99_upper_seconds", "p99 upper"),
}
"""Columns of requests by the query's name: metric and heading."""


def requests() -> Table:
    """Build the table of the service times and response times of requests that arrived at a rate."""
    by = "max by (namespace, series, case, variant)"
    arrived = f"and on (namespace, series, case, variant) accelbench_requests_per_second{{{RUNS}}}"
    heads = {"case": "Case", "variant": "Variant"} | {f"Value #{name}": head for name, (_, head) in REQUESTS.items()}
    queries = (
        rows(name, f"{by} ({metric}{{{RUNS}}} {arrived}) {OF_THE_RUN}") for name, (metric, _) in REQUESTS.items()
    )
    return with_widths(
        merged_table(
            "Requests",
            "Requests that arrived at one rate for all variants. A response is the service and the wait before it; a "
            "closed loop would show the service alone. Busy is the share of time in which requests were served. The "
            "interval of the 99th percentile is over the variant's own launches.",
            heads,
            ("namespace", "series"),
            *queries,
            order=("Case", "Variant"),
            empty=NO_REQUESTS,
        )
        .height(height_for_rows(4))
        .override_by_name("Rate", unit_of("reqps", 0))
        .override_by_name("Busy", unit_of("percentunit", 0))
        .override_by_regexp("/Service|Response|p99/", unit_of("s", 2)),
        {"Case": CASE_WIDTH, "Variant": 140},
    )


PROGRAM = {
    "fits": ("accelbench_target_fits", "Fits"),
    "peak": ("accelbench_executable_peak_bytes", "Peak"),
    "device": ("accelbench_target_memory_bytes", "Of"),
    "arguments": ("accelbench_executable_argument_bytes", "Arguments"),
    "outputs": ("accelbench_executable_output_bytes", "Outputs"),
    "reused": ("accelbench_executable_aliased_bytes", "Reused"),
    "temporary": ("accelbench_executable_temporary_bytes", "Temporary"),
    "kernels": ("accelbench_executable_kernels", "Kernels"),
}
COLLECTIVES = {
    "collectives": ("accelbench_executable_collectives", "Collectives"),
    "exchanged": ("accelbench_executable_collective_bytes", "Exchanged"),
    "reduced": ("accelbench_executable_all_reduce_bytes", "All-reduce"),
    "gathered": ("accelbench_executable_all_gather_bytes", "All-gather"),
    "scattered": ("accelbench_executable_reduce_scatter_bytes", "Reduce-scatter"),
    "swapped": ("accelbench_executable_all_to_all_bytes", "All-to-all"),
    "permuted": ("accelbench_executable_collective_permute_bytes", "Permute"),
}
"""Columns of compiled programs by the query's name: metric and heading."""


def _compiled_table(title: str, description: str, columns: dict[str, tuple[str, str]], empty: str) -> Table:
    """Build a table of compiled programs, with a row for each variant and target.

    `columns` has the metric and the heading of each column, by the query's name; `empty` is the text without data.
    """
    by = "max by (namespace, series, case, accelerator, variant)"
    heads = {"case": "Case", "accelerator": "Target", "variant": "Variant"}
    heads |= {f"Value #{name}": head for name, (_, head) in columns.items()}
    queries = (rows(name, f"{by} ({metric}{{{RUNS}}}) {OF_THE_RUN}") for name, (metric, _) in columns.items())
    order = ("Case", "Target", "Variant")
    table = merged_table(title, description, heads, ("namespace", "series"), *queries, order=order, empty=empty)
    table = with_widths(table.height(height_for_rows(4)), {"Case": CASE_WIDTH, "Variant": 140})
    for metric, head in columns.values():
        if metric.endswith("_bytes"):
            table = table.override_by_name(head, unit_of("bytes", 1))
    return table


def programs() -> Table:
    """Build the table of compiled programs."""
    return _compiled_table(
        "Programs",
        "What the compiler says about each program, on one device: whether it fits the target's memory, and what "
        "it consists of. A program compiled for a target did not run, so it has no time.",
        PROGRAM,
        NO_PROGRAM,
    ).override_by_name("Fits", unit_of("bool_yes_no"))


def collectives() -> Table:
    """Build the table of collectives between devices."""
    return _compiled_table(
        "Collectives",
        "What each program exchanges between devices in a step: how many collectives, how many bytes, and with "
        "which collective. A program for one device exchanges nothing.",
        COLLECTIVES,
        NO_EXCHANGE,
    )


def checks() -> Table:
    """Build the table of checks that did not pass."""
    columns = {"series": "Series", "case": "Case", "check": "Check", "outcome": "Outcome", "Value": "Times"}
    return (
        merged_table(
            "Checks that did not pass",
            "Validity checks of the run's latest results that failed or could not be made, counted once per variant, "
            "or once for all. After a failed check there is no verdict; the result has the reading.",
            columns,
            ("namespace",),
            rows(
                "A",
                f"max by (namespace, series, case, check, outcome) (accelbench_result_checks{{{RUNS}}}) {OF_THE_RUN}",
            ),
            order=("Series", "Case", "Check"),
            empty="No check of the latest results failed or was left out. Programs that did not run have no checks.",
        )
        .height(height_for_rows(8))
        .override_by_name("Outcome", outcomes())
    )


def outcomes() -> list[model.DynamicConfigValue]:
    """Override a column of checks' outcomes, so that each is shown as words in a colour."""
    return in_words({"failed": ("× failed", BAD), "untested": ("not made", OTHER)})


def _device(title: str, description: str, unit: str, metric: str, factor: str = "") -> Lines:
    """Build the panel of a metric of the run's devices; `factor` converts it to `unit`, as ` * 1e6`."""
    return (
        lines(
            title,
            f"{description} From NVIDIA's DCGM exporter, for the nodes that the run was measured on.",
            unit,
            over_time(f'max by (Hostname, gpu) ({metric}{{Hostname=~"$node"}}){factor}', "{{Hostname}} GPU {{gpu}}"),
            empty=NO_DCGM,
        )
        .height(7)
        .line_interpolation(style.LineInterpolation.LINEAR)
    )


def utilisation() -> Lines:
    """Build the panel of the devices' utilisation."""
    return _device("Utilisation", "Share of time in which a kernel ran.", "percent", "DCGM_FI_DEV_GPU_UTIL").min(0)


def clock() -> Lines:
    """Build the panel of the devices' clocks."""
    text = "Clock of the multiprocessors: a drop while it is busy is throttling."
    return _device("Clock", text, "hertz", "DCGM_FI_DEV_SM_CLOCK", " * 1e6").min(0)


def power() -> Lines:
    """Build the panel of the devices' power."""
    return _device("Power", "Power that the device draws.", "watt", "DCGM_FI_DEV_POWER_USAGE").min(0)


def temperature() -> Lines:
    """Build the panel of the devices' temperatures."""
    return _device("Temperature", "Temperature of the device.", "celsius", "DCGM_FI_DEV_GPU_TEMP")


def commands() -> Text:
    """Build the text with the shell commands that show this run."""
    return markdown_panel(
        "The same from a shell",
        "Commands that show this run.",
        "```console\n"
        "# where it stands, and why\n"
        "kubectl describe bmr/$run -n $namespace\n"
        "# its results, each with its headline\n"
        "kubectl get bmres -n $namespace -l accelbench.dev/run=$run -o wide\n"
        "# what measures it\n"
        "kubectl get jobs,pods -n $namespace -l accelbench.dev/run=$run\n"
        "# its report, and its pods' logs (the plugin: pip install '.[kubectl]' in a checkout)\n"
        "kubectl accelbench report $run -n $namespace\n"
        "kubectl accelbench logs $run -n $namespace\n"
        "```",
    ).height(8)
