"""A single variant, compared with nothing: it is measured where it has a time."""

import pytest

from accelbench.local.exits import Exit
from accelbench.local.run import CaseOutcome, exit_for
from report import sample


@pytest.mark.parametrize(("timed", "code"), [(True, Exit.SUCCESS), (False, Exit.INVALID_MEASUREMENT)])
def test_it_is_valid_where_it_has_a_time(timed: bool, code: Exit) -> None:
    use = sample.USES[0]
    alone = sample.variant(use, "0.001")
    variant = alone if timed else alone.model_copy(update={"seconds": None})
    found = sample.result(case=sample.case((use,)), variants=(variant,), comparisons=())
    assert (found.valid, exit_for([CaseOutcome(found.case, found)])) == (timed, code)
