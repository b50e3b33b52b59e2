"""Name the files in which a runner keeps profilers' traces: one for each variant, in Chrome's format, for Perfetto."""

TRACE_DIRECTORY = "ACCELBENCH_TRACE_DIRECTORY"
"""Environment variable of a runner: the directory that keeps the traces; without it, they are not kept."""
TRACE_SUFFIX = ".trace.json.gz"


def trace_file(case: str, number: int, variant: str) -> str:
    """Return the name of a trace's file; `number` is the variant's place in the case, from 1.

    The number keeps `jax/jit` and `jax-jit` apart, because a file's name has no slash.
    """
    return f"{case}.{number}-{variant.replace('/', '-')}{TRACE_SUFFIX}"
