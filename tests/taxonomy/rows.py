"""The rows of the failure taxonomy, in order: what can become of a run without any fault of what it measures.

Each is provoked by one test in this folder, or by the one that is named here, which records what a user reads.
"""

ROWS = (
    "not enough devices",
    "no matching node",
    "quota for Jobs",
    "quota for pods",
    "no such priority",
    "admission policy",
    "image cannot be pulled",
    "invalid pod",
    "container has no configuration",
    "container cannot start",
    "out of memory",
    "evicted",
    "preempted",
    "node lost",
    "deadline of the run",
    "runner crashed",
    "result too large",
    "log lost",
    "log rotated",
    "digest mismatch",
    "Job deleted by hand",
    "pod deleted by hand",
    "result deleted by hand",
    "run deleted in the middle",
    "namespace terminating",
    "operator away for hours",
    "operator's clock ahead",
    "operator's clock behind",
)
