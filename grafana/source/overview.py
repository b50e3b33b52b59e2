"""Show the overview: what ran, the verdicts, how they moved, and invalid results."""

from colours import BAD, PHASES
from frame import dashboard as new_dashboard
from frame import field, multiple_choice, namespaces, to_dashboard, verdicts_that_changed
from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders.stat import Panel as Number
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Lines
from grafana_foundation_sdk.models import common as style
from overrides import (
    in_colours,
    in_framework_colours,
    in_verdict_colours,
    linked,
    thresholds,
    unit_of,
    verdict_cells,
    yes_or_no,
)
from panels import FULL, Bars, bars, lines, number
from queries import RESULTS, RUNS, VARIANT, instant, labelled, or_zero, over_time, rows
from tables import MOMENT, height_for_rows, merged_table, with_widths

# Every instance of the operator exports the same results, so `max` merges them.
BY_COMPARISON = "max by (namespace, series, case, variant)"
BY_CASE = "max by (namespace, series, case)"
VALID = f"{BY_CASE} (accelbench_result_valid{{{RESULTS}}})"
UNMET = f"{BY_CASE} (accelbench_result_expectations_not_met{{{RESULTS}}})"
CASE_VARIABLES = {"namespace": field("Namespace"), "series": field("Series"), "case": field("Case")}
"""Variables of a dashboard that a table links to, with the values of the row's columns."""
RUN_VARIABLES = {"namespace": field("Namespace"), "run": field("Run")}


def dashboard() -> build.Dashboard:
    """Build the dashboard, with four rows."""
    board = new_dashboard(
        "Overview",
        "What ran, what the verdicts are, how they changed, and which results are not valid.",
        namespaces(),
        multiple_choice("series", "Series", f"label_values(accelbench_run_info{{{RUNS}}}, series)"),
    )
    board = board.annotations([verdicts_that_changed(RESULTS)])
    board = board.with_row(build.Row("Now"))
    for panel in (active_runs(), comparisons(), not_valid(), not_met()):
        board = board.with_panel(panel)
    board = board.with_row(build.Row("Verdicts")).with_panel(verdicts())
    board = board.with_row(build.Row("Trend"))
    for panel in (verdicts_over_time(), runs(), largest_changes()):
        board = board.with_panel(panel)
    return board.with_row(build.Row("What does not stand")).with_panel(validity())


def active_runs() -> Number:
    """Build the number of waiting and running runs."""
    return number(
        "Runs under way",
        "BenchmarkRuns that are queued or running.",
        "short",
        instant(
            or_zero(f'sum(max by (namespace, phase) (accelbench_runs{{{RUNS}, phase=~"Queued|Running|Pending"}}))')
        ),
    )


def comparisons() -> Number:
    """Build the number of comparisons with a verdict."""
    return number(
        "Comparisons with a verdict",
        "Variants that the latest results call faster, slower, equivalent or inconclusive.",
        "short",
        instant(
            or_zero(
                f"count({BY_COMPARISON} (accelbench_verdict{{{RESULTS}, "
                'verdict=~"faster|slower|equivalent|inconclusive"} == 1))'
            )
        ),
    )


def not_valid() -> Number:
    """Build the number of invalid results."""
    return number(
        "Results that are not valid",
        "Latest results that are incomplete, or have a failed variant or a comparison without a verdict.",
        "short",
        instant(or_zero(f"count({VALID} == 0)")),
    ).thresholds(thresholds((1, BAD)))


def not_met() -> Number:
    """Build the number of expectations that are not met."""
    return number(
        "Expectations not met",
        "Expectations that the latest results do not meet or leave undecided.",
        "short",
        instant(f"sum({UNMET})"),
    ).thresholds(thresholds((1, BAD)))


def verdicts() -> Table:
    """Build the table of comparisons with their verdicts and speedups."""
    columns = {
        "namespace": "Namespace",
        "series": "Series",
        "case": "Case",
        "variant": "Variant",
        "verdict": "Verdict",
        "Value #speedup": "Speedup",
        "Value #lower": "Lower",
        "Value #upper": "Upper",
    }
    table = (
        merged_table(
            "Verdicts",
            "Each variant against its run's baseline, from the latest result. Above 1 the variant is faster; lower and "
            "upper are the ends of the confidence interval. Invalid comparisons have no speedup, noisy ones no "
            "verdict. A series links to its comparison.",
            columns,
            ("Value #verdict",),
            rows(
                "verdict", f"max by (namespace, series, case, variant, verdict) (accelbench_verdict{{{RESULTS}}} == 1)"
            ),
            rows("speedup", f"{BY_COMPARISON} (accelbench_speedup_ratio{{{RESULTS}}})"),
            rows("lower", f"{BY_COMPARISON} (accelbench_speedup_lower_ratio{{{RESULTS}}})"),
            rows("upper", f"{BY_COMPARISON} (accelbench_speedup_upper_ratio{{{RESULTS}}})"),
            order=("Namespace", "Series", "Case", "Variant"),
        )
        .height(height_for_rows(12))
        .override_by_regexp("/^(Speedup|Lower|Upper)$/", unit_of("suffix:x", 2))
        .override_by_name("Verdict", verdict_cells())
        .override_by_name("Series", linked("Compare over time", to_dashboard("compare", **CASE_VARIABLES)))
    )
    return with_widths(table, {"Namespace": 104, "Speedup": 84, "Lower": 84, "Upper": 84})


def largest_changes() -> Bars:
    """Build the panel of the step times that changed most in the time range."""
    step_seconds = f"max by (series, case, variant, framework) (accelbench_step_seconds{{{RESULTS}}})"
    changes = f"max_over_time(({step_seconds})[$__range:]) / min_over_time(({step_seconds})[$__range:]) - 1"
    return in_framework_colours(
        bars(
            "Step times that moved most",
            "The longest step time in this time range divided by the shortest, minus 1: the ten variants that changed "
            "most. Compare shows when.",
            "percentunit",
            instant(f"topk(10, {labelled(changes)})", f"{{{{series}}}} {{{{swept}}}} {VARIANT}"),
        )
        .decimals(1)
        .height(14)
        .span(FULL)
    )


def verdicts_over_time() -> Lines:
    """Build the panel of comparisons by verdict."""
    panel = (
        lines(
            "Comparisons by verdict",
            "How many variants the latest results call faster, slower, equivalent or inconclusive, and how many have "
            "no verdict.",
            "short",
            over_time(
                "count by (verdict) (max by (namespace, series, case, variant, verdict) "
                f"(accelbench_verdict{{{RESULTS}}} == 1))",
                "{{verdict}}",
            ),
        )
        .stacking(common.StackingConfig().mode(style.StackingMode.NORMAL))
        .fill_opacity(45)
        .min(0)
        .decimals(0)
        .height(9)
        .line_interpolation(style.LineInterpolation.STEP_AFTER)
    )
    return in_verdict_colours(panel)


def runs() -> Lines:
    """Build the panel of runs by phase."""
    panel = (
        lines(
            "Runs by phase",
            "BenchmarkRuns in the cluster, by phase.",
            "short",
            over_time(f"sum by (phase) (max by (namespace, phase) (accelbench_runs{{{RUNS}}}))", "{{phase}}"),
        )
        .stacking(common.StackingConfig().mode(style.StackingMode.NORMAL))
        .fill_opacity(30)
        .min(0)
        .decimals(0)
        .height(9)
    )
    return in_colours(panel, PHASES)


def validity() -> Table:
    """Build the table of results that are invalid or miss an expectation."""
    columns = {
        "namespace": "Namespace",
        "series": "Series",
        "case": "Case",
        "run": "Run",
        "Value #valid": "Valid",
        "Value #failed": "Variants failed",
        "Value #checks": "Checks failed",
        "Value #unmet": "Expectations not met",
        "Value #finished": "Finished (UTC)",
    }
    has_problem = f"and on (namespace, series, case) ({VALID} == 0 or {UNMET} > 0)"
    failed = f"max by (namespace, series, case, variant) (accelbench_variant_failed{{{RESULTS}}})"
    checks = f"max by (namespace, series, case, check) (accelbench_result_checks_failed{{{RESULTS}}})"
    table = (
        merged_table(
            "Results that do not stand",
            "Latest results that are not valid or do not meet an expectation. A result is valid when it is complete, "
            "no variant failed, and every comparison has a verdict. A series links to its comparison, a run to what "
            "it measured.",
            columns,
            ("Value #run",),
            rows("valid", f"{VALID} {has_problem}"),
            rows("failed", f"sum by (namespace, series, case) ({failed}) {has_problem}"),
            rows("checks", f"sum by (namespace, series, case) ({checks}) {has_problem}"),
            rows("unmet", f"{UNMET} {has_problem}"),
            rows("run", f"max by (namespace, series, case, run) (accelbench_run_info{{{RESULTS}}}) {has_problem}"),
            rows(
                "finished",
                f"{BY_CASE} (accelbench_result_finished_timestamp_seconds{{{RESULTS}}}) * 1000 {has_problem}",
            ),
            order=("Namespace", "Series", "Case"),
            empty="Every result in this time range is valid and meets its expectations, if there is any.",
        )
        .height(height_for_rows(8))
        .override_by_name("Valid", yes_or_no())
        .override_by_name("Finished (UTC)", unit_of(MOMENT))
        .override_by_name("Series", linked("Compare over time", to_dashboard("compare", **CASE_VARIABLES)))
        .override_by_name("Run", linked("What it measured", to_dashboard("run", **RUN_VARIABLES)))
    )
    widths = {"Namespace": 104, "Case": 190, "Valid": 72, "Variants failed": 124, "Checks failed": 112}
    return with_widths(table, widths | {"Expectations not met": 164, "Finished (UTC)": 116})
