"""Compare a workload on several kinds of accelerator: time, energy and price per unit of work.

Each accelerator's results come from separate runs, so nothing here is a verdict.
"""

from frame import dashboard as new_dashboard
from frame import multiple_choice, namespaces, single_choice
from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.text import Panel as Text
from grafana_foundation_sdk.builders.timeseries import Panel as Lines
from grafana_foundation_sdk.models import common as style
from overrides import in_framework_colours, unit_of
from panels import Bars, bars, lines, markdown_panel
from queries import RUNS, VARIANT, instant, labelled, over_time, rows
from tables import merged_table

WORKLOAD = f'{RUNS}, workload=~"$workload"'
"""Selector of the metrics of the chosen workload."""
CASE = f'{WORKLOAD}, case=~"$case", accelerator=~"$accelerator"'
"""Selector of the metrics of the chosen case on the chosen accelerators."""
LEGEND = f"{{{{accelerator}}}} {VARIANT}"
LATEST = "max by (accelerator, case, variant, framework)"
"""Aggregation to one value if several instances of the operator export the same result."""
NO_ENERGY = "No energy: neither the devices of these profiles (NVML) nor the processors (RAPL) report it."
NO_PRICE = "No price: set pricePerHour of the profiles in the chart's values."


def dashboard() -> build.Dashboard:
    """Build the dashboard, with three rows."""
    board = new_dashboard(
        "Across accelerators",
        "The same workload on several profiles: step time, energy and price of a unit of work. Unpaired.",
        namespaces(),
        single_choice("workload", "Workload", f"label_values(accelbench_step_seconds{{{RUNS}}}, workload)"),
        single_choice("case", "Case", f"label_values(accelbench_step_seconds{{{WORKLOAD}}}, case)"),
        multiple_choice(
            "accelerator",
            "Accelerator",
            f'label_values(accelbench_step_seconds{{{WORKLOAD}, case=~"$case"}}, accelerator)',
        ),
    )
    board = board.with_row(build.Row("A unit of work")).with_panel(caution()).with_panel(numbers())
    board = board.with_row(build.Row("Side by side"))
    for panel in (step_time(), price(), device_energy(), processor_energy()):
        board = board.with_panel(panel)
    board = board.with_row(build.Row("Over time"))
    for panel in trends():
        board = board.with_panel(panel)
    return board


def caution() -> Text:
    """Build the text that warns against reading verdicts from this dashboard."""
    return markdown_panel(
        "Not a verdict",
        "What these intervals are, and what they are not.",
        "Each accelerator was measured in **separate runs**. The intervals are those of each variant's own launches "
        "and share no rounds, so nothing here is a paired verdict. If two intervals overlap, they do not show which "
        "is faster.",
    ).height(4)


def numbers() -> Table:
    """Build the table of step times with their intervals, and of prices."""
    columns = {
        "accelerator": "Accelerator",
        "variant": "Variant",
        "Value #seconds": "Step time",
        "Value #lower": "Lower",
        "Value #upper": "Upper",
        "Value #price": "Price of a million",
        "currency": "Currency",
    }
    latest = "max by (accelerator, series, variant)"
    currency = f"max by (accelerator, series, currency) (accelbench_run_info{{{CASE}}})"
    return (
        merged_table(
            "Step time and price",
            "Steady seconds per unit of work, with the unpaired interval of its own launches, and what a million "
            "units cost at the profile's price per hour.",
            columns,
            ("series",),
            rows("seconds", f"{latest} (accelbench_step_seconds{{{CASE}}})"),
            rows("lower", f"{latest} (accelbench_step_lower_seconds{{{CASE}}})"),
            rows("upper", f"{latest} (accelbench_step_upper_seconds{{{CASE}}})"),
            rows(
                "price",
                f"{latest} (accelbench_step_price{{{CASE}}}) * 1e6 "
                f"* on (accelerator, series) group_left (currency) {currency}",
            ),
            order=("Accelerator", "Variant"),
        )
        .height(13)
        .override_by_regexp("/Step time|Lower|Upper/", unit_of("s", 2))
        .override_by_name("Price of a million", unit_of("none", 4))
    )


def _side_by_side(title: str, description: str, unit: str, metric: str, empty: str) -> Bars:
    """Build bars of a metric, one for each variant on each accelerator; `empty` is the text without data."""
    expression = labelled(f"{LATEST} ({metric}{{{CASE}}})")
    return in_framework_colours(
        bars(title, description, unit, instant(f"sort({expression})", LEGEND), empty=empty).height(13)
    )


def step_time() -> Bars:
    """Build the panel of step times."""
    text = "Steady seconds per unit of work: the shorter, the better. The intervals are in the table above."
    return _side_by_side("Step time", text, "s", "accelbench_step_seconds", "No result of this workload.")


def price() -> Bars:
    """Build the panel of prices."""
    text = "The profile's price per hour times the time of a million units, in its currency, without compiling."
    return _side_by_side("Price of a million units", text, "none", "1e6 * accelbench_step_price", NO_PRICE).decimals(4)


def device_energy() -> Bars:
    """Build the panel of the devices' energy."""
    text = "Mean power of the device in the steady phase, by its own count, times the time of a unit."
    return _side_by_side("Device energy", text, "joule", "accelbench_step_device_joules", NO_ENERGY).height(8)


def processor_energy() -> Bars:
    """Build the panel of the processors' energy."""
    text = "Mean power of all processors of the machine in the steady phase (RAPL), times the time of a unit."
    return _side_by_side("Processor energy", text, "joule", "accelbench_step_cpu_joules", NO_ENERGY).height(8)


def trends() -> tuple[Lines, Lines]:
    """Build the panels of step times and of prices over time."""
    panels = (
        lines(
            "Step time over time",
            "Steady seconds per unit of work on each accelerator. Logarithmic.",
            "s",
            over_time(labelled(f"{LATEST} (accelbench_step_seconds{{{CASE}}})"), LEGEND),
        ),
        lines(
            "Price of a million units over time",
            "What the time of a million units of work costs on each accelerator, in its profile's currency. "
            "Logarithmic.",
            "none",
            over_time(labelled(f"{LATEST} (accelbench_step_price{{{CASE}}}) * 1e6"), LEGEND),
            empty=NO_PRICE,
        ),
    )
    for panel in panels:
        panel.height(11).line_interpolation(style.LineInterpolation.STEP_AFTER)
        panel.scale_distribution(common.ScaleDistributionConfig().type(style.ScaleDistribution.LOG).log(10))
    return in_framework_colours(panels[0]), in_framework_colours(panels[1].decimals(4))
