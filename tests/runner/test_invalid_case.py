"""Test that an invalid case is refused before anything starts, with exit status 2 and a headline."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.supervision import Ended, case_of

Run = Callable[..., Ended]

FINE = case_of("fine", "fine_2")
HUGE = FINE.model_copy(update={"workload": "optimizer-step", "parameters": {"tensors": 1024, "size": 2**30}})
CASES = {
    "not json": "Invalid JSON",
    "{}": "origin: Field required",
    case_of("fine", "fine").to_json(): "two variants have the same name",
    FINE.model_copy(update={"baseline": "fin"}).to_json(): 'unknown variant "fin"; did you mean fine?',
    FINE.model_copy(update={"workload": "matmul-chian"}).to_json(): "did you mean matmul-chain?",
    FINE.model_copy(update={"parameters": {"size": 0}}).to_json(): "parameters: size: ",
    HUGE.to_json(): "optimizer-step (tensors 1024, size 1073741824) needs at least 30.8 TB of memory",
    FINE.to_json().replace("jax/jit", "jax/jitt"): 'unknown variant "jax/jitt"; did you mean jax/jit?',
}


@pytest.mark.parametrize("document", CASES)
def test_a_case_document_that_cannot_be_run_is_refused_with_the_problem(run: Run, document: str) -> None:
    ended = run(document)
    assert ended.status == 2
    assert ended.headline.state == "failed"
    assert CASES[document] in ended.headline.message
    assert CASES[document] in ended.output.decode()
    assert ended.events == []


def test_a_script_that_is_no_workload_is_refused_with_its_line(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "mine.py"
    broken.write_text("import accelbench\n\nnonsense\n")
    case = FINE.model_copy(update={"workload": "mine"})
    ended = run(case, environment={"ACCELBENCH_SCRIPT": str(broken)})
    assert ended.status == 2
    assert "mine.py, line 3: NameError: name 'nonsense' is not defined" in ended.headline.message


def test_an_exception_in_a_scripts_cost_is_reported_with_its_line(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "mine.py"
    example = Path(__file__).parents[2] / "examples" / "linear_step.py"
    cost = "Cost(flops=4.0 * numbers, bytes=2.0 * numbers * float_bytes)"
    moves = '    name = "linear-step"\n    moves_once = True'
    text = example.read_text().replace(cost, "Cost(flops=6.0 / (parameters.rows - 7), bytes=1.0)")
    broken.write_text(text.replace('    name = "linear-step"', moves))
    case = FINE.model_copy(update={"workload": "mine", "parameters": {"rows": 7}})
    ended = run(case, environment={"ACCELBENCH_SCRIPT": str(broken)})
    assert ended.status == 2
    assert "the workload's cost cannot be computed: ZeroDivisionError: float division by zero" in ended.headline.message
    assert "(mine.py, line " in ended.headline.message


def test_an_exception_in_a_scripts_measure_is_reported_with_its_line(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "mine.py"
    example = Path(__file__).parents[2] / "examples" / "linear_step.py"
    broken.write_text(example.read_text().replace("return Measure(differentiates=True)", "return 1 / 0"))
    ended = run(FINE.model_copy(update={"workload": "mine"}), environment={"ACCELBENCH_SCRIPT": str(broken)})
    assert ended.status == 2
    assert "mine.py, line 25: ZeroDivisionError: division by zero" in ended.headline.message


def test_a_missing_case_document_is_named(run: Run) -> None:
    ended = run(case_of("fine", "fine_2"), path="/nonexistent/case.json")
    assert ended.status == 2
    assert "/nonexistent/case.json" in ended.headline.message


def test_a_missing_work_directory_is_named(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    ended = run(FINE, environment={"ACCELBENCH_WORK_DIRECTORY": str(missing)})
    assert ended.status == 3
    assert str(missing) in ended.headline.message
