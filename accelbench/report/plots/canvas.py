"""Turn matplotlib figures into SVG that uses the page's font and colours, in light and dark, with real text.

matplotlib has one colour for a line, a page has one for each colour scheme. Plots are therefore drawn in placeholder
colours (`Ink`), which are replaced by CSS variables. Text stays text, so that it can be read aloud and searched.

A plot is drawn twice, for a desktop and for a phone, because scaled text would be too small. matplotlib is imported
only when something is drawn.
"""

import io
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = 760
"""Width in pixels of a drawing for desktops."""
NARROW = 340
"""Width in pixels of a drawing for phones."""
FONT_SIZE = 12
POINTS_PER_INCH = 72
"""Points in an inch of a matplotlib figure; one point is one unit of the SVG, called a pixel here."""
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"


class Ink(Enum):
    """Name the colours of plots; the value is the placeholder that matplotlib draws with."""

    TEXT = "#010000"
    MUTED = "#010001"
    RULE = "#010002"
    BAND = "#010003"
    FASTER = "#010010"
    SLOWER = "#010011"
    EQUIVALENT = "#010012"
    INCONCLUSIVE = "#010013"
    BAD = "#010014"
    SERIES_1 = "#010021"
    SERIES_2 = "#010022"
    SERIES_3 = "#010023"
    SERIES_4 = "#010024"
    SERIES_5 = "#010025"
    SERIES_6 = "#010026"
    SERIES_7 = "#010027"
    SERIES_8 = "#010028"
    GREY = "#010029"
    PAPER = "#010030"

    @property
    def css_variable(self) -> str:
        """Return the name of the CSS variable with this colour in the page's style sheet: `--series-1`."""
        return f"--{self.name.lower().replace('_', '-')}"


SERIES = tuple(ink for ink in Ink if ink.name.startswith("SERIES_"))
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.5)))
"""Line styles; series after the eighth repeat the colours with the next style."""


def series_style(index: int) -> tuple[str, Any]:
    """Return the colour and the line style that distinguish the series with this index, from 0, in a plot."""
    colour = SERIES[index % len(SERIES)].value
    dashes = DASHES[index // len(SERIES) % len(DASHES)]
    return colour, dashes


@dataclass(frozen=True)
class Plot:
    """Hold a drawing for each width and a description in words for readers who do not see it."""

    name: str
    wide: str
    narrow: str
    description: str


def draw(name: str, description: str, make_figure: Callable[[int], "Figure"]) -> Plot:
    """Draw a plot in two widths, for desktops and phones; `make_figure` draws it for a width in pixels.

    The ids in the SVG begin with `name`, because they must be unique on the page.
    """
    with _matplotlib_settings():
        wide = _to_svg(make_figure(WIDE), f"{name}-{WIDE}", description)
        narrow = _to_svg(make_figure(NARROW), f"{name}-{NARROW}", description)
    return Plot(name=name, wide=wide, narrow=narrow, description=description)


def standalone(plot: Plot) -> str:
    """Return the wide drawing as the text of an SVG file, which has the colours of the page's style sheet."""
    css = files("accelbench.report").joinpath("page", "report.css").read_text(encoding="utf-8")
    colours = css[: css.index("* {")]  # the style sheet begins with the definitions of the colours
    style = f"<style>{colours}text {{ font-family: var(--font) }}</style>"
    root = '<svg xmlns="http://www.w3.org/2000/svg" style="background: var(--paper)" '
    # Insert the style after the tag `<svg ...>`, which the first `><` ends.
    return plot.wide.replace("<svg ", root, 1).replace("><", f">{style}<", 1) + "\n"


def figure(width: int, height: float) -> "Figure":
    """Return an empty figure of this size in pixels."""
    # Unlike pyplot, Figure keeps no global state.
    from matplotlib.figure import Figure

    return Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH), facecolor="none")


def place(target: "Figure", *, left: float, top: float, right: float, bottom: float) -> "Axes":
    """Add axes to the figure, with these margins in pixels between the axes and the edges of the figure."""
    width, height = target.get_size_inches() * POINTS_PER_INCH
    axes = target.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    )
    axes.set_facecolor("none")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(Ink.RULE.value)
    axes.tick_params(colors=Ink.MUTED.value, labelcolor=Ink.MUTED.value, width=1, length=3)
    return axes


def text_width(text: str) -> float:
    """Estimate the width of a text in pixels, too wide rather than too narrow, because the reader's font is unknown."""
    # In most fonts, an average character is narrower than 0.62 of the font size.
    return 0.62 * FONT_SIZE * len(text)


def _matplotlib_settings() -> AbstractContextManager[None]:
    """Return a context manager with settings under which matplotlib draws the same on every machine."""
    import matplotlib as mpl

    return mpl.rc_context(
        {
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],  # matplotlib ships it, so widths are the same on every machine
            "font.size": FONT_SIZE,
            "svg.fonttype": "none",  # text stays text, without the outlines of its letters
            "svg.hashsalt": "accelbench",  # without it, the ids would differ from drawing to drawing
            "path.simplify": False,  # keep outliers
            "text.parse_math": False,  # a name may contain `$`
            "text.color": Ink.TEXT.value,
            "axes.labelcolor": Ink.MUTED.value,
            "axes.unicode_minus": True,
            "text.usetex": False,
        }
    )


def _to_svg(drawing: "Figure", name: str, description: str) -> str:
    """Return the drawing as SVG for an HTML page; see `_adapt_to_page` for `name` and `description`."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    # Without metadata such as the date, so that equal drawings have equal text.
    FigureCanvasSVG(drawing).print_svg(buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ET.fromstring(buffer.getvalue())  # noqa: S314 - drawn one line above
    return _adapt_to_page(root, name, description)


def _adapt_to_page(root: ET.Element, name: str, description: str) -> str:
    """Return the SVG as text, with the page's colours and font, and with ids that begin with `name`.

    `description` becomes the label that screen readers read aloud.
    """
    _remove_metadata(root)
    referenced_ids: set[str] = set()
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)  # HTML needs no XML namespace
        referenced_ids |= _rename_references(element, name)
        # Remove rotations by 0 degrees, which do nothing.
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
        if (path := element.get("d")) is not None:
            element.set("d", re.sub(r"-?\d+\.\d+", _round_to_tenths, path))
        if (style := element.get("style")) is not None:
            element.set("style", _page_style(style))
    # Rename the ids that an element refers to, and remove the others.
    for element in root.iter():
        original_id = element.attrib.pop("id", None)
        if original_id in referenced_ids:
            element.set("id", f"{name}-{original_id}")
    for attribute in ("width", "height", "version"):  # the page's style sheet sets the size
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    root.set("aria-label", description)
    text = ET.tostring(root, encoding="unicode")
    return re.sub(r">\s+<", "><", text)  # remove white space between elements


def _remove_metadata(root: ET.Element) -> None:
    """Remove the metadata and the style sheet that matplotlib writes into an SVG."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{SVG}metadata", f"{SVG}style"}:
                parent.remove(child)


def _round_to_tenths(match: re.Match[str]) -> str:
    """Round a coordinate to a tenth of a pixel, to shorten the page."""
    return f"{float(match[0]):.1f}".removesuffix(".0")


def _rename_references(element: ET.Element, name: str) -> set[str]:
    """Add the prefix `name` to the ids that this element refers to; return the original ids."""
    original_ids = set()
    link = element.attrib.pop(LINK, "")
    if link.startswith("data:"):  # the pixels of an image, which refer to nothing
        element.set("href", link)
    elif target_id := link.removeprefix("#"):
        element.set("href", f"#{name}-{target_id}")
        original_ids.add(target_id)
    clip_path = element.get("clip-path", "")
    if clip_id := clip_path.removeprefix("url(#").removesuffix(")"):
        element.set("clip-path", f"url(#{name}-{clip_id})")
        original_ids.add(clip_id)
    return original_ids


def _page_style(style: str) -> str:
    """Adapt an element's CSS to the page: replace placeholder colours by CSS variables, and remove the font."""
    for ink in Ink:
        style = style.replace(ink.value, f"var({ink.css_variable})")
    return re.sub(r"font-family: [^;]*; ?", "", style)
