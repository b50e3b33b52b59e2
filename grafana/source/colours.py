"""What colours mean: a framework has one everywhere, a verdict another, and colour-blind eyes tell them apart.

Each stands out from Grafana's light and its dark background (3:1 and more), so no theme needs colours of its own. A
verdict has a sign beside its colour, too.
"""

FRAMEWORKS = {"jax": "#2E86D1", "pytorch": "#C4600A", "numpy": "#41864F"}
"""Of a line or a bar; several variants of a framework are shades of it."""
OTHER = "#808591"
"""Of frameworks that are not ours, and of what belongs to none."""
VERDICTS = {
    "faster": ("↑", "#0F8F86"),
    "slower": ("↓", "#C8407A"),
    "equivalent": ("=", "#2E86D1"),
    "inconclusive": ("?", "#8A7400"),
    "noisy": ("~", "#6E7F3A"),
    "invalid": ("×", "#B5501B"),
    "failed": ("×", "#B84A46"),
    "none": ("–", "#808591"),
}
"""A sign and a colour for everything that can be said of a comparison."""
GOOD, BAD, NEUTRAL = "#0F8F86", "#C8407A", "#2E86D1"
PHASES = {
    "Succeeded": GOOD,
    "Running": NEUTRAL,
    "Queued": "#8A7400",
    "Pending": "#8A7400",
    "Suspended": OTHER,
    "Failed": BAD,
}
"""Of the phases that runs are in."""
QUANTILES = {"half of them": OTHER, "9 of 10": NEUTRAL, "99 of 100": BAD}
KINDS = {"BenchmarkRun": OTHER, "BenchmarkResult": GOOD, "Job": NEUTRAL, "Pod": "#8A7400"}
"""Of the objects that the operator holds."""
