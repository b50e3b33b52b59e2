"""Define the colours of frameworks, verdicts and phases, which colour-blind readers can distinguish too.

Each has a contrast of at least 3:1 with Grafana's light and dark background, so both themes share them. A verdict also
has a sign. Colours of one group differ by at least 20 (CIE76), with any kind of colour vision:
tests/grafana/test_colours.py checks that.
"""

FRAMEWORKS = {"jax": "#2E86D1", "pytorch": "#C4600A", "numpy": "#41864F"}
"""Colour of a framework's lines and bars; its variants are shades of it."""
OTHER = "#808591"
"""Colour of other packages' frameworks, and of anything without a framework."""
VERDICTS = {
    "faster": ("↑", "#00784B"),
    "slower": ("↓", "#B42D87"),
    "equivalent": ("=", "#785AD2"),
    "inconclusive": ("?", "#E17800"),
    "noisy": ("~", "#78964B"),
    "invalid": ("×", "#C32D0F"),
    "failed": ("!", "#D27896"),
    "none": ("–", "#6996D2"),
}
"""Sign and colour of each verdict."""
GOOD, BAD, NEUTRAL = "#00784B", "#B42D87", "#2E86D1"
PHASES = {
    "Succeeded": GOOD,
    "Running": "#785AD2",
    "Queued": "#E17800",
    "Pending": "#78964B",
    "Suspended": "#6996D2",
    "Failed": BAD,
}
"""Colours of the phases of runs."""
QUANTILES = {"half of them": "#6996D2", "9 of 10": "#785AD2", "99 of 100": "#E17800"}
KINDS = {"BenchmarkRun": "#785AD2", "BenchmarkResult": GOOD, "Job": "#6996D2", "Pod": "#E17800"}
"""Colours of the kinds of objects that the operator holds."""
