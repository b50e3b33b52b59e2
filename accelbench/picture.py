"""Describe a picture of what a case computes, which a workload offers to HTML reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from numpy import ndarray

Numbers: TypeAlias = "ndarray[Any, Any]"
"""NumPy array."""


@dataclass(frozen=True)
class Panel:
    """Describe one panel: an image, or curves and points over one axis.

    Attributes:
        title: What the panel shows.
        x: Label of the horizontal axis, with its unit; empty for an image without axes.
        y: Label of the vertical axis, with its unit.
        curves: Horizontal and vertical positions of each curve's points, by the curve's name in the legend.
        points: The same for numbers that are drawn as points, such as those that curves of a closed form predict.
        image: Numbers (rows, columns), drawn in colours; or red, green, blue and opacity
            (rows, columns, 4), from 0 to 1.
        colours: Label of an image's scale of colours, with its unit; empty for no scale.
        legend: False if readers do not need the names of curves and points, as those of samples.
        logarithmic: Which axes are logarithmic: none, the vertical one, or both.
    """

    title: str
    x: str = ""
    y: str = ""
    curves: Mapping[str, tuple[Numbers, Numbers]] = field(default_factory=dict)
    points: Mapping[str, tuple[Numbers, Numbers]] = field(default_factory=dict)
    legend: bool = True
    image: "Numbers | None" = None
    colours: str = ""
    logarithmic: Literal["", "y", "both"] = ""


@dataclass(frozen=True)
class Picture:
    """Describe a picture of panels side by side, with a caption of one or two sentences."""

    caption: str
    panels: Sequence[Panel]
