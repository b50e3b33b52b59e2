"""The overview: what is faster and how sure it is, how that moved, what starting up costs, and is the operator well."""

from grafana_foundation_sdk.builders import bargauge, common
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Lines
from grafana_foundation_sdk.models import common as style
from grafana_foundation_sdk.models import dashboard as model
from panels import (
    DATASOURCE,
    HALF,
    OPERATOR,
    RESULTS,
    RUNS,
    coloured,
    lines,
    merged_table,
    now,
    number,
    over_time,
    rows,
    unit_of,
    variables,
)

# A result outlives the operator's pod: whichever instance is scraped says the same of it.
COMPARED = "max by (namespace, series, case, variant)"
CASE = "max by (namespace, series, case)"
VARIANT = "{{series}} {{case}} {{variant}}"
VERDICT_COLOURS = {
    "faster": "green",
    "slower": "red",
    "equivalent": "blue",
    "inconclusive": "orange",
    "failed": "purple",
    "invalid": "dark-red",
    "noisy": "yellow",
    "none": "text",
}


def dashboard() -> build.Dashboard:
    """The dashboard, with five rows."""
    made = (
        build.Dashboard("accelbench / Overview")
        .uid("accelbench-overview")
        .description("Verdicts of BenchmarkRuns, how they moved over time, and the operator's own health.")
        .tags(["accelbench", "benchmark"])
        .readonly()
        .time("now-7d", "now")
        .refresh("1m")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
    )
    for variable in variables():
        made = made.with_variable(variable)
    made = made.with_row(build.Row("Verdicts")).with_panel(verdicts())
    made = made.with_row(build.Row("Over time")).with_panel(speedup()).with_panel(step_time())
    made = (
        made.with_row(build.Row("What starting up costs"))
        .with_panel(phases())
        .with_panel(memory())
        .with_panel(accessed())
    )
    made = made.with_row(build.Row("Runs and results")).with_panel(runs()).with_panel(validity())
    made = made.with_row(build.Row("Operator"))
    for panel in operator_now():
        made = made.with_panel(panel)
    return made.with_panel(reconciles()).with_panel(process())


def verdicts() -> Table:
    """A row for each comparison."""
    columns = {
        "namespace": "Namespace",
        "series": "Series",
        "case": "Case",
        "variant": "Variant",
        "verdict": "Verdict",
        "Value #speedup": "Speedup",
        "Value #lower": "Lower bound",
        "Value #upper": "Upper bound",
        "Value #rounds": "Rounds",
    }
    return (
        merged_table(
            "Verdicts",
            "Each variant against its run's baseline, from the latest result. Above 1 the variant is faster; the "
            "bounds are those of the confidence interval. Invalid comparisons have no speedup, noisy ones no verdict.",
            columns,
            ("Value #verdict",),
            rows(
                "verdict", f"max by (namespace, series, case, variant, verdict) (accelbench_verdict{{{RESULTS}}} == 1)"
            ),
            rows("speedup", f"{COMPARED} (accelbench_speedup_ratio{{{RESULTS}}})"),
            rows("lower", f"{COMPARED} (accelbench_speedup_lower_ratio{{{RESULTS}}})"),
            rows("upper", f"{COMPARED} (accelbench_speedup_upper_ratio{{{RESULTS}}})"),
            rows("rounds", f"{COMPARED} (accelbench_comparison_rounds{{{RESULTS}}})"),
        )
        .unit("short")
        .override_by_regexp("Speedup|Lower bound|Upper bound", unit_of("suffix:x", 3))
        .override_by_name("Verdict", coloured(VERDICT_COLOURS))
    )


def speedup() -> Lines:
    """The speedup, between the bounds of its interval."""
    bound = [
        model.DynamicConfigValue("custom.lineWidth", 1),
        model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [4, 4]}),
        model.DynamicConfigValue("custom.hideFrom", {"legend": True, "tooltip": False, "viz": False}),
    ]
    return (
        lines(
            "Speedup with its interval",
            "Baseline seconds over variant seconds: above 1 the variant is faster. Dashed: the confidence interval.",
            "suffix:x",
            over_time(f"{COMPARED} (accelbench_speedup_ratio{{{RESULTS}}})", VARIANT),
            over_time(f"{COMPARED} (accelbench_speedup_lower_ratio{{{RESULTS}}})", f"{VARIANT} lower"),
            over_time(f"{COMPARED} (accelbench_speedup_upper_ratio{{{RESULTS}}})", f"{VARIANT} upper"),
        )
        .decimals(3)
        .line_interpolation(style.LineInterpolation.STEP_AFTER)
        .override_by_regexp("/ (lower|upper)$/", bound)
    )


def step_time() -> Lines:
    """Seconds per unit of work."""
    return lines(
        "Step time",
        "Steady seconds per unit of work, the geometric mean over launches. Logarithmic, as variants may be far apart.",
        "s",
        over_time(f"{COMPARED} (accelbench_step_seconds{{{RESULTS}}})", VARIANT),
    ).scale_distribution(common.ScaleDistributionConfig().type(style.ScaleDistribution.LOG).log(10))


def phases() -> bargauge.Panel:
    """What a launch spends before it is steady."""
    return (
        bargauge.Panel()
        .title("Phases before steady state")
        .description("Seconds that each phase of a fresh process takes, the median over launches.")
        .datasource(DATASOURCE)
        .unit("s")
        .min(0)
        .height(10)
        .span(HALF)
        .orientation(style.VizOrientation.HORIZONTAL)
        .display_mode(style.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .with_target(
            now(
                "max by (namespace, series, case, variant, phase) "
                f'(accelbench_phase_seconds{{{RESULTS}, phase!="steady"}})',
                "{{series}} {{case}} {{variant}}: {{phase}}",
            ).ref_id("A")
        )
    )


def memory() -> Lines:
    """The most that a launch held."""
    return lines(
        "Peak memory",
        "Most memory that a launch held.",
        "bytes",
        over_time(f"{COMPARED} (accelbench_memory_peak_bytes{{{RESULTS}}})", VARIANT),
    ).height(10)


def accessed() -> Lines:
    """What compiled programs read and write."""
    return lines(
        "Bytes read and written in a call",
        "By XLA's estimate of the optimised program: what is fused is counted once.",
        "bytes",
        over_time(f"{COMPARED} (accelbench_executable_accessed_bytes{{{RESULTS}}})", VARIANT),
    ).height(10)


def runs() -> Lines:
    """Where the runs are."""
    return (
        lines(
            "Runs by phase",
            "BenchmarkRuns in the cluster, by the phase they are in.",
            "short",
            over_time(f"sum by (phase) (max by (namespace, phase) (accelbench_runs{{{RUNS}}}))", "{{phase}}"),
        )
        .stacking(common.StackingConfig().mode(style.StackingMode.NORMAL))
        .fill_opacity(30)
    )


def validity() -> Table:
    """What stands behind a verdict that is missing."""
    columns = {
        "namespace": "Namespace",
        "series": "Series",
        "case": "Case",
        "Value #valid": "Valid",
        "Value #failed": "Variants failed",
        "Value #checks": "Checks failed",
        "Value #unmet": "Expectations not met",
        "Value #finished": "Finished",
    }
    return (
        merged_table(
            "Validity of the latest results",
            "A result is valid when it is complete, no variant failed, and no comparison is invalid.",
            columns,
            (),
            rows("valid", f"{CASE} (accelbench_result_valid{{{RESULTS}}})"),
            rows(
                "failed",
                "sum by (namespace, series, case) "
                f"(max by (namespace, series, case, variant) (accelbench_variant_failed{{{RESULTS}}}))",
            ),
            rows(
                "checks",
                "sum by (namespace, series, case) "
                f"(max by (namespace, series, case, check) (accelbench_result_checks_failed{{{RESULTS}}}))",
            ),
            rows("unmet", f"{CASE} (accelbench_result_expectations_not_met{{{RESULTS}}})"),
            rows("finished", f"{CASE} (accelbench_result_finished_timestamp_seconds{{{RESULTS}}}) * 1000"),
        )
        .span(HALF)
        .height(8)
        .unit("short")
        .override_by_name("Valid", unit_of("bool_yes_no"))
        .override_by_name("Finished", unit_of("dateTimeAsIso"))
    )


def operator_now() -> tuple[build.Panel, ...]:
    """How the operator is, in four numbers."""
    return (
        number(
            "Version",
            "The version of accelbench that serves these metrics.",
            "short",
            now(f"max by (version) (accelbench_build_info{{{OPERATOR}}})", "{{version}}"),
        ).text_mode(style.BigValueTextMode.NAME),
        number(
            "Leaders",
            "Replicas that lead: one is right, none means that nothing is done.",
            "short",
            now(f"sum(accelbench_operator_leading{{{OPERATOR}}})"),
        ),
        number(
            "Oldest run waiting",
            "How long the oldest run that is due has waited for a worker.",
            "s",
            now(f"max(accelbench_operator_queue_oldest_seconds{{{OPERATOR}}})"),
        ),
        number(
            "Event loop lag",
            "How late the event loop last woke from a timer.",
            "s",
            now(f"max(accelbench_operator_loop_lag_seconds{{{OPERATOR}}})"),
        ),
    )


def reconciles() -> Lines:
    """What it does, how much of it fails, and what waits."""
    return lines(
        "Reconciles",
        "How often runs are looked at, how often that fails and is tried again, and how many runs wait.",
        "ops",
        over_time(f"sum(rate(accelbench_operator_reconciles_total{{{OPERATOR}}}[$__rate_interval]))", "reconciles"),
        over_time(
            f"sum(rate(accelbench_operator_reconcile_failures_total{{{OPERATOR}}}[$__rate_interval]))", "failures"
        ),
        over_time(f"sum(accelbench_operator_queue_depth{{{OPERATOR}}})", "runs waiting"),
    ).override_by_name("runs waiting", unit_of("short"))


def process() -> Lines:
    """What it takes."""
    return lines(
        "Memory and objects",
        "Resident memory of the operator, and the objects that it holds.",
        "bytes",
        over_time(f"max by (instance) (process_resident_memory_bytes{{{OPERATOR}}})", "{{instance}}"),
        over_time(f"max by (kind) (accelbench_operator_objects{{{OPERATOR}}})", "{{kind}}"),
    ).override_by_regexp("/^[A-Z]/", [*unit_of("short"), model.DynamicConfigValue("custom.axisPlacement", "right")])
