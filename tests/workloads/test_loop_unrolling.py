"""Refusals of the loop of sines, without any framework."""

from typing import Any

import pytest

from accelbench.workload import Arrays
from accelbench.workloads.loop_unrolling import LoopUnrolling, _program


def test_a_cumsum_of_sines_is_refused() -> None:
    unused: Any = None
    with pytest.raises(ValueError, match="cumsum cannot compute sines: leave this variant out, or set body: sum"):
        _program(LoopUnrolling.Parameters(body="sine"), Arrays(state={}), unused, all_sums=unused)
