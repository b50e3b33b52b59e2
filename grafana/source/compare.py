"""Compare JAX with PyTorch: one case of a series over time, the series over sizes, and the cost of starting up."""

from colours import OTHER
from frame import dashboard as new_dashboard
from frame import field, namespaces, repeated_choice, single_choice, to_dashboard, verdicts_that_changed
from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Lines
from grafana_foundation_sdk.models import common as style
from grafana_foundation_sdk.models import dashboard as model
from overrides import in_framework_colours, linked, one_colour, unit_of, verdict_cells
from panels import FULL, Bars, bars, lines
from queries import RUNS, VARIANT, instant, labelled, over_time, rows
from tables import height_for_rows, merged_table, with_widths

SERIES = f'{RUNS}, series=~"$series"'
CASE = f'{SERIES}, case=~"$case"'
BY = "max by (namespace, variant)"
NUMBER_WIDTHS = {"Speedup": 84, "Lower": 84, "Upper": 84}
"""Width of columns of numbers, in pixels."""
NO_ROOFLINE = "No share of a roofline: the workload declares no cost, or the device's limits are unknown."


def dashboard() -> build.Dashboard:
    """Build the dashboard, with five rows."""
    board = new_dashboard(
        "Compare",
        "One case of a series: the speedup with its interval over time and over sizes, phases, break-even, roofline.",
        namespaces(),
        single_choice("series", "Series", f"label_values(accelbench_run_info{{{RUNS}}}, series)"),
        single_choice("case", "Case", f"label_values(accelbench_run_info{{{SERIES}}}, case)"),
        repeated_choice("variant", "Variant", f"label_values(accelbench_comparison_rounds{{{CASE}}}, variant)"),
    )
    board = board.annotations([verdicts_that_changed(CASE)])
    board = board.with_row(build.Row("Verdict")).with_panel(verdicts())
    board = board.with_row(build.Row("Over time")).with_panel(speedup()).with_panel(step_time()).with_panel(roofline())
    board = board.with_row(build.Row("Over sizes")).with_panel(speedup_over_sizes()).with_panel(time_over_sizes())
    board = board.with_row(build.Row("What it takes")).with_panel(rate()).with_panel(memory())
    return board.with_row(build.Row("What starting up costs")).with_panel(phases()).with_panel(break_even())


def verdicts() -> Table:
    """Build the table of the latest verdicts."""
    columns = {
        "namespace": "Namespace",
        "variant": "Variant",
        "baseline": "Baseline",
        "verdict": "Verdict",
        "Value #speedup": "Speedup",
        "Value #lower": "Lower",
        "Value #upper": "Upper",
        "Value #rounds": "Rounds",
        "run": "Run",
    }
    info = f"max by (namespace, run, baseline) (accelbench_run_info{{{CASE}}})"
    table = (
        merged_table(
            "Verdict",
            "Each variant against the baseline, from the latest result. Above 1 the variant is faster; lower and upper "
            "are the ends of the confidence interval. The run links to its measurements.",
            columns,
            ("Value #verdict",),
            rows(
                "verdict",
                f"max by (namespace, variant, verdict) (accelbench_verdict{{{CASE}}} == 1) "
                f"* on (namespace) group_left (run, baseline) {info}",
            ),
            rows("speedup", f"{BY} (accelbench_speedup_ratio{{{CASE}}})"),
            rows("lower", f"{BY} (accelbench_speedup_lower_ratio{{{CASE}}})"),
            rows("upper", f"{BY} (accelbench_speedup_upper_ratio{{{CASE}}})"),
            rows("rounds", f"{BY} (accelbench_comparison_rounds{{{CASE}}})"),
            order=("Namespace", "Variant"),
        )
        .height(height_for_rows(4))
        .override_by_regexp("/^(Speedup|Lower|Upper)$/", unit_of("suffix:x", 2))
        .override_by_name("Verdict", verdict_cells())
        .override_by_name(
            "Run", linked("What it measured", to_dashboard("run", namespace=field("Namespace"), run=field("Run")))
        )
    )
    return with_widths(table, NUMBER_WIDTHS | {"Rounds": 84})


def speedup() -> Lines:
    """Build the panel of a variant's speedup with its interval and the equivalence margin."""
    selector = f'{CASE}, variant=~"$variant"'
    hidden_in_legend = model.DynamicConfigValue("custom.hideFrom", {"legend": True, "tooltip": False, "viz": False})
    interval_end = [*one_colour(OTHER), model.DynamicConfigValue("custom.lineWidth", 0)]
    # The interval is drawn as the area from its upper end down to its lower end, whose line is invisible.
    interval_band = [
        model.DynamicConfigValue("custom.fillBelowTo", "lower"),
        model.DynamicConfigValue("custom.fillOpacity", 25),
        model.DynamicConfigValue("custom.lineWidth", 1),
    ]
    margin_line = [
        *one_colour(OTHER),
        model.DynamicConfigValue("custom.lineWidth", 1),
        model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [3, 5]}),
    ]
    margin = f"max(accelbench_equivalence_margin_ratio{{{CASE}}})"
    return (
        in_framework_colours(
            lines(
                "Speedup of $variant",
                "Baseline seconds divided by variant seconds; above 1 the variant is faster. Shaded: the confidence "
                "interval. Dashed: the margin within which the two count as equivalent. Vertical marks: a verdict "
                "changed.",
                "suffix:x",
                over_time(
                    labelled(f"max by (case, variant, framework) (accelbench_speedup_ratio{{{selector}}})"),
                    VARIANT,
                ),
                over_time(f"max(accelbench_speedup_lower_ratio{{{selector}}})", "lower"),
                over_time(f"max(accelbench_speedup_upper_ratio{{{selector}}})", "interval"),
                over_time(f"1 + {margin}", "margin"),
                over_time(f"1 / (1 + {margin})", "margin below"),
            )
        )
        .repeat("variant")
        .repeat_direction("h")  # type: ignore[arg-type]
        .span(FULL)
        .decimals(2)
        .line_interpolation(style.LineInterpolation.STEP_AFTER)
        .override_by_regexp("/^(lower|interval)$/", interval_end)
        .override_by_name("interval", interval_band)
        .override_by_regexp("/^margin/", margin_line)
        .override_by_regexp("/^(lower|margin below)$/", [hidden_in_legend])
    )


def step_time() -> Lines:
    """Build the panel of seconds per unit of work."""
    return in_framework_colours(
        lines(
            "Step time",
            "Steady seconds per unit of work, the geometric mean over launches. Logarithmic, because variants can be "
            "far apart.",
            "s",
            over_time(labelled(f"max by (case, variant, framework) (accelbench_step_seconds{{{CASE}}})"), VARIANT),
        )
        .scale_distribution(common.ScaleDistributionConfig().type(style.ScaleDistribution.LOG).log(10))
        .line_interpolation(style.LineInterpolation.STEP_AFTER)
    )


def roofline() -> Lines:
    """Build the panel of the share of the hardware's limit."""
    return in_framework_colours(
        lines(
            "Share of the roofline",
            "The rate as a share of what the binding limit, compute or memory, allows: 1 is the roofline.",
            "percentunit",
            over_time(
                labelled(f"max by (case, variant, framework) (accelbench_roofline_share_ratio{{{CASE}}})"),
                VARIANT,
            ),
            empty=NO_ROOFLINE,
        )
        .min(0)
        .line_interpolation(style.LineInterpolation.STEP_AFTER)
    )


def rate() -> Lines:
    """Build the panel of operations per second."""
    return in_framework_colours(
        lines(
            "Rate",
            "Floating-point operations per second: the workload's own count divided by the time of a unit.",
            "flops",
            over_time(
                labelled(f"max by (case, variant, framework) (accelbench_flops_per_second{{{CASE}}})"),
                VARIANT,
            ),
            empty="No rate: the workload declares no operations.",
        )
        .min(0)
        .line_interpolation(style.LineInterpolation.STEP_AFTER)
    )


def memory() -> Lines:
    """Build the panel of a launch's peak memory."""
    return in_framework_colours(
        lines(
            "Peak memory",
            "The most memory that a launch held: on a GPU its live arrays, on a CPU the process, above its level "
            "before setup.",
            "bytes",
            over_time(
                labelled(f"max by (case, variant, framework) (accelbench_memory_peak_bytes{{{CASE}}})"),
                VARIANT,
            ),
        )
        .min(0)
        .line_interpolation(style.LineInterpolation.STEP_AFTER)
    )


def speedup_over_sizes() -> Table:
    """Build the table of every case's speedup, with its interval and rounds."""
    columns = {
        "namespace": "Namespace",
        "case": "Case",
        "variant": "Variant",
        "verdict": "Verdict",
        "Value #speedup": "Speedup",
        "Value #lower": "Lower",
        "Value #upper": "Upper",
        "Value #margin": "Margin",
    }
    by = "max by (namespace, case, variant)"
    margin = f"max by (namespace, case) (accelbench_equivalence_margin_ratio{{{SERIES}}})"
    table = (
        merged_table(
            "Speedup over sizes",
            "Every case of the series, one for each value of its sweep: the latest speedup over the baseline, between "
            "the ends of its confidence interval. Above 1 the variant is faster. Margin: the difference within "
            "which the two count as equivalent. A case links to its course over time.",
            columns,
            ("Value #verdict",),
            rows("verdict", f"max by (namespace, case, variant, verdict) (accelbench_verdict{{{SERIES}}} == 1)"),
            rows("speedup", f"{by} (accelbench_speedup_ratio{{{SERIES}}})"),
            rows("lower", f"{by} (accelbench_speedup_lower_ratio{{{SERIES}}})"),
            rows("upper", f"{by} (accelbench_speedup_upper_ratio{{{SERIES}}})"),
            rows("margin", f"{by} (accelbench_verdict{{{SERIES}}}) * on (namespace, case) group_left () {margin}"),
            order=("Namespace", "Case", "Variant"),
        )
        .span(16)
        .height(12)
        .override_by_regexp("/^(Speedup|Lower|Upper)$/", unit_of("suffix:x", 2))
        .override_by_name("Margin", unit_of("percentunit", 0))
        .override_by_name("Verdict", verdict_cells())
        .override_by_name(
            "Case",
            linked(
                "This case over time",
                to_dashboard("compare", namespace=field("Namespace"), series="$series", case=field("Case")),
            ),
        )
    )
    return with_widths(table, NUMBER_WIDTHS | {"Namespace": 92, "Case": 184, "Verdict": 120, "Margin": 84})


def time_over_sizes() -> Bars:
    """Build the bars of every case's step time."""
    return in_framework_colours(
        bars(
            "Step time over sizes",
            "Steady seconds per unit of work in every case of the series.",
            "s",
            instant(
                f"sort({labelled(f'max by (case, variant, framework) (accelbench_step_seconds{{{SERIES}}})')})",
                f"{{{{swept}}}} {VARIANT}",
            ),
        )
        .span(8)
        .height(12)
    )


def phases() -> Bars:
    """Build the panel of a launch's phases before it is steady."""
    return in_framework_colours(
        bars(
            "Phases before steady state",
            "Seconds for import, compilation and the first step in a fresh process, the median over launches.",
            "s",
            instant(
                "sort_desc("
                + labelled(
                    "max by (case, variant, framework, phase) "
                    f'(accelbench_phase_seconds{{{CASE}, phase=~"import|compile|first-step"}}) > 0.001'
                )
                + ")",
                f"{{{{phase}}}} {VARIANT}",
            ),
        ).height(13)
    )


def break_even() -> Table:
    """Build the table of break-even steps."""
    columns = {
        "variant": "Variant",
        "answer": "Pays back",
        "Value #steps": "Steps",
        "Value #compile": "Compile",
        "Value #first": "First step",
    }
    answers = {
        "at-once": model.ValueMappingResult(text="from the first step"),
        "after": model.ValueMappingResult(text="after so many steps"),
        "until": model.ValueMappingResult(text="ahead for so many steps"),
        "never": model.ValueMappingResult(text="never"),
    }
    return (
        merged_table(
            "Break-even",
            "After how many steps a variant's first call has paid for itself against the baseline, and what that call "
            "costs.",
            columns,
            (),
            rows("steps", f"max by (variant, answer) (accelbench_pays_back_steps{{{CASE}}})"),
            rows("compile", f'max by (variant) (accelbench_phase_seconds{{{CASE}, phase="compile"}})'),
            rows("first", f'max by (variant) (accelbench_phase_seconds{{{CASE}, phase="first-step"}})'),
            order=("Variant",),
            paged=False,
        )
        .span(12)
        .height(13)
        .override_by_name("Pays back", [model.DynamicConfigValue("mappings", [model.ValueMap(options=answers)])])
        .override_by_regexp("/Steps|Compile|First step/", [model.DynamicConfigValue("custom.width", 96)])
        .override_by_regexp("/Compile|First step/", unit_of("s", 2))
        .override_by_name("Steps", unit_of("locale", 0))
    )
