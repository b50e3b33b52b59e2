"""Test the report and the exit code of `accelbench check`."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from accelbench.api.numbers import Numbers
from accelbench.api.result import Certificate, Check, CheckOutcome, Failure, Result, VariantResult
from accelbench.cli import checked
from accelbench.local.exits import Exit
from report import sample


def check(name: str, outcome: CheckOutcome, variant: str | None = None) -> Check:
    return Check(name=name, outcome=outcome, reading=f"the reading of {name}", threshold="", variant=variant)


def result(*checks: Check, failure: Failure | None = None) -> Result:
    numbers = Numbers(kernels_per_call=1, program_size=5)
    return sample.result(
        variants=(
            VariantResult(name="pytorch/eager", use="pytorch/eager", failure=failure),
            VariantResult(name="jax/jit", use="jax/jit", numbers=numbers),
        ),
        comparisons=(),
        certificate=Certificate(checks=checks),
    )


def shown(checks: Result) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(checked.report(checks))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


GOOD = (check("parity", "passed"), check("work-present", "passed", "jax/jit"))


FAILURE = Failure(reason="Raised", message="ValueError: mine (my_filter.py, line 12)", round=1, phase="compile")
CASES = {
    "all passed": (result(*GOOD), Exit.SUCCESS),
    "one untested": (result(*GOOD, check("work-skipped", "untested")), Exit.SUCCESS),
    "nothing checked": (result(), Exit.SUCCESS),
    "one failed": (
        result(*GOOD, check("precision", "untested", "jax/jit"), check("threads", "failed", "pytorch/eager")),
        Exit.INVALID_MEASUREMENT,
    ),
    "a variant failed": (result(*GOOD, check("threads", "failed", "jax/jit"), failure=FAILURE), Exit.VARIANT_FAILED),
}


def test_the_words_of_the_report(golden: Callable[[str, str], None]) -> None:
    golden("check.txt", "\n".join(f"== {name}\n{shown(checks)}" for name, (checks, _) in CASES.items()))


@pytest.mark.parametrize(("checks", "code"), CASES.values(), ids=CASES)
def test_the_exit_code_is_that_of_the_worst_outcome(checks: Result, code: Exit) -> None:
    assert checked.exit_code(checked.checked_variants(checks)) is code


def test_a_failed_variant_has_passed_nothing() -> None:
    [eager, jit] = checked.checked_variants(result(*GOOD, failure=FAILURE))
    assert (eager.has_failed, eager.checks) == (True, ())
    assert (jit.has_failed, len(jit.checks)) == (False, 2)
