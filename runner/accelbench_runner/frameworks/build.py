"""Build a workload's program for a framework."""

import functools
from typing import Any

from accelbench.catalogue import workload_checks
from accelbench.workload import Arrays, Program, VariantKind, Workload
from accelbench_runner.frameworks.adapter import Adapter
from accelbench_runner.frameworks.captured import find_places


def build_program(workload: Workload, kind: VariantKind, parameters: Any, arrays: Arrays, adapter: Adapter) -> Program:
    """Build the program of one variant, and check that the workload's method returned one.

    The author of a workload class (`hand_written`) makes arrays and modules in the type of the precision policy. A
    workload made of functions may capture some of another type, which `convert_captured` converts.
    """
    build = getattr(workload, kind.method)
    program = workload_checks.call_method(build, Program, parameters, arrays, adapter)
    return program if workload.hand_written else adapter.convert_captured(program)


def rebuild_program(
    workload: Workload, kind: VariantKind, parameters: Any, arrays: Arrays, adapter: Adapter
) -> Program:
    """Build the program again after a change of the precision, and clear the caches of the functions that it captures.

    `functools.cache` would return results that were computed in the earlier precision.
    """
    program = build_program(workload, kind, parameters, arrays, adapter)
    if not workload.hand_written:  # made of functions, which may be cached
        for place in find_places(program.step, _is_cached):
            place.value.cache_clear()
    return program


def _is_cached(value: Any) -> bool:
    """Return True for a function with `functools.cache` or `functools.lru_cache`."""
    return isinstance(value, functools._lru_cache_wrapper)  # noqa: SLF001 - its type has no other name
