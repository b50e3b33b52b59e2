"""Build field overrides: colours, units, links, cells; and thresholds."""

from collections.abc import Mapping
from typing import TypeVar

from colours import BAD, FRAMEWORKS, GOOD, NEUTRAL, OTHER, VERDICTS
from grafana_foundation_sdk.builders import bargauge, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model

PanelType = TypeVar("PanelType", timeseries.Panel, bargauge.Panel)


def unit_of(unit: str, decimals: int | None = None) -> list[model.DynamicConfigValue]:
    """Override the unit and decimals of a field."""
    values = [model.DynamicConfigValue("unit", unit)]
    return values if decimals is None else [*values, model.DynamicConfigValue("decimals", decimals)]


def linked(title: str, url: str) -> list[model.DynamicConfigValue]:
    """Override a field so that its cells are links."""
    return [model.DynamicConfigValue("links", [{"title": title, "url": url}])]


def one_colour(colour: str) -> list[model.DynamicConfigValue]:
    """Override the colour of a field."""
    return [model.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})]


def dashed(*pixels: int) -> list[model.DynamicConfigValue]:
    """Override a line's dash pattern: pixels drawn, pixels left out."""
    return [model.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": list(pixels)})]


def in_framework_colours(panel: PanelType) -> PanelType:
    """Give every framework its colour; field names are those of `VARIANT`, such as `jax/jit`.

    Variants of a framework share its colour. In a panel of lines, those of variants that are not compiled (`eager`,
    `op-by-op`) are dashed, and those of other modes with a hyphen, such as `jit-pieces`, are dotted.
    """
    panel = panel.override_by_regexp("/\\//", one_colour(OTHER))
    for framework, colour in FRAMEWORKS.items():
        panel = panel.override_by_regexp(rf"/\b{framework}\//", one_colour(colour))
    if isinstance(panel, timeseries.Panel):
        panel = panel.override_by_regexp(r"/\/\w+-[\w-]+$/", dashed(2, 5))
        panel = panel.override_by_regexp(r"/\/(eager|op-by-op)$/", dashed(10, 6))
    return panel


def in_colours(panel: timeseries.Panel, colours: Mapping[str, str]) -> timeseries.Panel:
    """Give each field of a name in `colours` its colour."""
    for name, colour in colours.items():
        panel = panel.override_by_name(name, one_colour(colour))
    return panel


def in_verdict_colours(panel: timeseries.Panel) -> timeseries.Panel:
    """Give each verdict its colour, and put its sign before its name."""
    panel = in_colours(panel, {verdict: colour for verdict, (_, colour) in VERDICTS.items()})
    for verdict, (sign, _) in VERDICTS.items():
        panel = panel.override_by_name(verdict, [model.DynamicConfigValue("displayName", f"{sign} {verdict}")])
    return panel


def verdict_cells() -> list[model.DynamicConfigValue]:
    """Override a column of verdicts, so that each has its sign, name and colour."""
    options = {
        verdict: model.ValueMappingResult(text=f"{sign} {verdict}", color=colour)
        for verdict, (sign, colour) in VERDICTS.items()
    }
    return [
        model.DynamicConfigValue("mappings", [model.ValueMap(options=options)]),
        model.DynamicConfigValue("custom.cellOptions", {"type": "color-text", "wrapText": True}),
    ]


def yes_or_no() -> list[model.DynamicConfigValue]:
    """Override a column, so that 1 is shown as `yes` and 0 as `no`."""
    return in_words({"1": ("yes", GOOD), "0": ("× no", BAD)})


def in_words(words_and_colours: Mapping[str, tuple[str, str]]) -> list[model.DynamicConfigValue]:
    """Override a column, so that each value is shown as a word in a colour."""
    options = {
        value: model.ValueMappingResult(text=word, color=colour) for value, (word, colour) in words_and_colours.items()
    }
    return [
        model.DynamicConfigValue("mappings", [model.ValueMap(options=options)]),
        model.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
    ]


def thresholds(*steps: tuple[float, str]) -> build.ThresholdsConfig:
    """Build thresholds: values from a step's number on have its colour, and values below all steps the neutral one."""
    base = model.Threshold(value=None, color=NEUTRAL)
    coloured = [model.Threshold(value=minimum, color=colour) for minimum, colour in steps]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps([base, *coloured])
