"""Colours: a framework has one everywhere, and colour-blind eyes tell them apart on both of Grafana's backgrounds."""

from __future__ import annotations

import itertools
import runpy
from typing import TYPE_CHECKING

import pytest

from grafana.dashboards import ALL, GRAFANA

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS = runpy.run_path(str(GRAFANA / "source" / "colours.py"))
FRAMEWORKS: dict[str, str] = COLOURS["FRAMEWORKS"]
VERDICTS: dict[str, tuple[str, str]] = COLOURS["VERDICTS"]
DARK, LIGHT = "#181B1F", "#FFFFFF"
CONTRAST = 3.0
"""What WCAG asks of graphics."""
APART = 20.0
"""CIE76; 2.3 is just noticeable."""
# Machado, Oliveira and Fernandes (2009), full severity, of linear RGB.
SEEN = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


def linear(colour: str) -> list[float]:
    """Red, green and blue, 0 to 1, in proportion to light."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]


def times(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def lab(light: Sequence[float]) -> list[float]:
    """CIE Lab under D65."""
    to_xyz = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.072175), (0.0193339, 0.119192, 0.9503041))
    white = (0.95047, 1.0, 1.08883)
    x, y, z = (
        share ** (1 / 3) if share > 0.008856 else 7.787 * share + 16 / 116
        for share in (max(0.0, part) / whole for part, whole in zip(times(to_xyz, light), white, strict=True))
    )
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


def luminance(colour: str) -> float:
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


def contrast(one: str, other: str) -> float:
    darker, brighter = sorted((luminance(one), luminance(other)))
    return (brighter + 0.05) / (darker + 0.05)


GROUPS: dict[str, list[str]] = {
    "frameworks": [*FRAMEWORKS.values(), COLOURS["OTHER"]],
    "verdicts": [colour for _, colour in VERDICTS.values()],
    "phases": list(COLOURS["PHASES"].values()),
    "quantiles": list(COLOURS["QUANTILES"].values()),
    "kinds": list(COLOURS["KINDS"].values()),
}
"""What stands together in a panel."""


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("group", GROUPS)
def test_adjacent_colours_can_be_distinguished(group: str, seen: str) -> None:
    for one, other in itertools.combinations(GROUPS[group], 2):
        a, b = (lab(times(SEEN[seen], linear(colour))) for colour in (one, other))
        assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 >= APART, (one, other)


@pytest.mark.parametrize("background", [DARK, LIGHT])
def test_every_colour_stands_out_from_both_backgrounds(background: str) -> None:
    used = {COLOURS["GOOD"], COLOURS["BAD"], COLOURS["NEUTRAL"], *itertools.chain(*GROUPS.values())}
    assert not {colour: contrast(colour, background) for colour in used if contrast(colour, background) < CONTRAST}


def test_a_verdict_has_a_sign_in_addition_to_its_colour() -> None:
    signs = {sign for sign, _ in VERDICTS.values()}
    assert len(signs) == len(VERDICTS)
    assert "" not in signs
    (panel,) = (each for each in ALL["overview"].panels if each["title"] == "Comparisons by verdict")
    shown = {
        override["matcher"]["options"]: each["value"]
        for override in panel["fieldConfig"]["overrides"]
        for each in override["properties"]
        if each["id"] == "displayName"
    }
    assert shown == {verdict: f"{sign} {verdict}" for verdict, (sign, _) in VERDICTS.items()}


def test_a_framework_has_the_same_colour_in_every_panel_that_names_it() -> None:
    for dashboard in ALL.values():
        for panel in dashboard.panels:
            legends = " ".join(target.get("legendFormat", "") for target in panel.get("targets", []))
            if "{{framework}}/" in legends:
                given = {
                    override["matcher"]["options"]: each["value"]["fixedColor"]
                    for override in panel["fieldConfig"]["overrides"]
                    for each in override["properties"]
                    if each["id"] == "color"
                }
                expected = {rf"/\b{name}\//": colour for name, colour in FRAMEWORKS.items()}
                assert given.items() >= expected.items(), panel["title"]
