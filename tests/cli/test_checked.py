"""What `accelbench check` says of a result, in words and as an exit code."""

import io

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


def shown(found: Result) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(checked.report(found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


GOOD = (check("parity", "passed"), check("work-present", "passed", "jax/jit"))


def test_what_passed_failed_and_was_not_checked_is_said_with_the_same_weight() -> None:
    text = shown(result(*GOOD, check("precision", "untested", "jax/jit"), check("threads", "failed", "pytorch/eager")))
    assert "pytorch/eager: 1 passed, 1 failed" in text
    assert "  failed  threads: the reading of threads" in text
    assert "jax/jit: 2 passed, 1 untested" in text
    assert "  untested  precision: the reading of precision" in text
    assert "  passed    parity, work-present" in text
    assert "compiled  kernels in a call: 1, operations given to the compiler: 5" in text
    assert "Failed: pytorch/eager." in text


def test_a_variant_that_failed_has_passed_nothing() -> None:
    failure = Failure(reason="Raised", message="ValueError: mine (my_filter.py, line 12)", round=1, phase="compile")
    text = shown(result(*GOOD, failure=failure))
    assert "pytorch/eager: failed\n" in text
    assert "Raised in phase compile: ValueError: mine (my_filter.py, line 12)" in text
    assert "jax/jit: 2 passed" in text


@pytest.mark.parametrize(
    ("checks", "sentence", "code"),
    [
        (GOOD, "Every check passed.", Exit.SUCCESS),
        (
            (*GOOD, check("work-skipped", "untested")),
            "Nothing failed, but not everything could be checked.",
            Exit.SUCCESS,
        ),
        ((), "Nothing failed, but not everything could be checked.", Exit.SUCCESS),
        ((*GOOD, check("threads", "failed", "jax/jit")), "Failed: jax/jit.", Exit.INVALID_MEASUREMENT),
    ],
    ids=["all passed", "one untested", "nothing checked", "one failed"],
)
def test_the_last_line_and_the_exit_code_agree(checks: tuple[Check, ...], sentence: str, code: Exit) -> None:
    found = result(*checks)
    assert shown(found).rstrip().endswith(sentence)
    assert checked.exit_for(checked.checked(found)) is code


def test_a_failed_variant_decides_the_exit_code() -> None:
    failure = Failure(reason="Raised", message="ValueError: mine", round=1)
    found = result(*GOOD, check("threads", "failed", "jax/jit"), failure=failure)
    assert checked.exit_for(checked.checked(found)) is Exit.VARIANT_FAILED
