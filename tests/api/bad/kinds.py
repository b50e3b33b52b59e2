"""Kinds that are not ours."""

from api.bad.table import bad

KINDS = (
    bad(
        "a misspelt kind",
        {"kind": "BenchmarkRunn"},
        'no matches for kind "BenchmarkRunn" in version "accelbench.dev/v1alpha1"',
    ),
    bad(
        "a version to come",
        {"apiVersion": "accelbench.dev/v1"},
        'no matches for kind "BenchmarkRun" in version "accelbench.dev/v1"',
    ),
    bad(
        "a group that is not ours",
        {"apiVersion": "accelbnch.dev/v1alpha1"},
        'no matches for kind "BenchmarkRun" in version "accelbnch.dev/v1alpha1"',
    ),
)
