"""What colours mean: a framework has one everywhere, a verdict another, and colour-blind eyes tell them apart.

Each stands out from Grafana's light and its dark background (3:1 and more), so no theme needs colours of its own. A
verdict has a sign beside its colour, too. Colours of one group are at least 20 apart (CIE76), whatever the eyes:
tests/grafana/test_colours.py holds them to that.
"""

FRAMEWORKS = {"jax": "#2E86D1", "pytorch": "#C4600A", "numpy": "#41864F"}
"""Of a line or a bar; several variants of a framework are shades of it."""
OTHER = "#808591"
"""Of frameworks that are not ours, and of what belongs to none."""
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
"""A sign and a colour for everything that can be said of a comparison."""
GOOD, BAD, NEUTRAL = "#00784B", "#B42D87", "#2E86D1"
PHASES = {
    "Succeeded": GOOD,
    "Running": "#785AD2",
    "Queued": "#E17800",
    "Pending": "#78964B",
    "Suspended": "#6996D2",
    "Failed": BAD,
}
"""Of the phases that runs are in."""
QUANTILES = {"half of them": "#6996D2", "9 of 10": "#785AD2", "99 of 100": "#E17800"}
KINDS = {"BenchmarkRun": "#785AD2", "BenchmarkResult": GOOD, "Job": "#6996D2", "Pod": "#E17800"}
"""Of the objects that the operator holds."""
