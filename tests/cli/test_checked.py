"""Test the report and the exit code of `accelbench check`."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from accelbench.api.numbers import Numbers
from accelbench.api.result import Certificate, Check, CheckOutcome, Failure, Result, VariantResult
from accelbench.launch.facts import Facts
from accelbench.launch.record import REFERENCE, LaunchRecord, ParityReading
from accelbench.local.exits import Exit
from accelbench.terminal import checked
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


def launch(variant: str, types: dict[str, str], captured: list[str]) -> LaunchRecord:
    facts = Facts.parse(
        {"outputTypes": types, "outputShapes": {name: [2, 3] for name in types}, "dependence": {"captured": captured}}
    )
    return LaunchRecord(variant=variant, round=1, position=0, wall_seconds=1.0, facts=facts)


LAUNCHES = (
    launch("pytorch/eager", {"y": "int64", "mask": "bool"}, []),
    launch("jax/jit", {f"y{number}": "int32" for number in range(8)}, ["w (512, 512) float32"]),
)


def without_reference(culprit: str) -> ParityReading:
    return ParityReading(
        units=2, finite=True, worst_ratio=1e9, worst_array="", detail="it raises", failed_reference=culprit
    )


def shown(checks: Result, launches: tuple[LaunchRecord, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(checked.report(checks, launches))
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
    texts = [f"== {name}\n{shown(checks)}" for name, (checks, _) in CASES.items()]
    texts.append(f"== with outputs and captured arrays\n{shown(result(*GOOD), LAUNCHES)}")
    golden("check.txt", "\n".join(texts))


def test_reports_about_scripts_have_remedies_types_and_captured_arrays() -> None:
    failed = result(*GOOD, check("threads", "failed", "jax/jit"))
    [eager, jit] = checked.as_json(failed, LAUNCHES)["variants"]
    assert eager["outputs"] == {"y": "int64 (2, 3)", "mask": "bool (2, 3)"}
    assert eager["captured"] == []
    assert jit["captured"] == ["w (512, 512) float32"]
    remedies = {check["name"]: check["remedy"] for check in jit["checks"]}
    assert remedies["threads"].startswith("What to do: remove the line that sets the number of threads")
    assert remedies["parity"] is None


@pytest.mark.parametrize(("checks", "code"), CASES.values(), ids=CASES)
def test_the_exit_code_is_that_of_the_worst_outcome(checks: Result, code: Exit) -> None:
    assert checked.exit_code(checked.checked_variants(checks)) is code


def test_a_failed_variant_has_passed_nothing() -> None:
    [eager, jit] = checked.checked_variants(result(*GOOD, failure=FAILURE))
    assert (eager.is_to_blame, eager.checks) == (True, ())
    assert (jit.is_to_blame, len(jit.checks)) == (False, 2)


def test_no_variant_is_blamed_for_a_reference_that_failed() -> None:
    launches = tuple(each.model_copy(update={"parity": without_reference(REFERENCE)}) for each in LAUNCHES)
    failed = result(check("parity", "failed"), check("threads", "failed", "jax/jit"))
    variants = checked.checked_variants(failed, launches)
    assert checked.conclusion(variants) == "Failed: reference(), jax/jit."
    assert checked.exit_code(variants) is Exit.INVALID_MEASUREMENT
    assert checked.conclusion(checked.checked_variants(failed, LAUNCHES)) == "Failed: pytorch/eager, jax/jit."


def test_a_variant_whose_environment_is_broken_is_not_blamed_for_it() -> None:
    broken = result(*GOOD, failure=Failure(reason="Environment", message="no such file", round=0))
    variants = checked.checked_variants(broken)
    assert checked.conclusion(variants) == "Not checked, as the environment cannot be used: pytorch/eager."
    assert checked.exit_code(variants) is Exit.VARIANT_FAILED
