"""Every example is a manifest that can be applied, and says in its header how."""

from pathlib import Path

import pytest

from accelbench.local.manifests import read
from accelbench.plan.cases import plan_cases

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9]*.yaml"))


def test_there_are_examples() -> None:
    assert [path.name for path in EXAMPLES][:3] == ["01-matmul-chain.yaml", "02-elementwise-fusion.yaml", "03-xor.yaml"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_valid_and_plans_its_cases(path: Path) -> None:
    [run] = read(str(path))
    assert run.metadata.name in path.stem or run.metadata.generate_name
    assert plan_cases(run)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_examples_header_has_a_question_and_a_command(path: Path) -> None:
    header = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert header[0].endswith("?")
    assert f"#   accelbench run examples/{path.name}" in header
    verb = "create" if "generateName:" in path.read_text() else "apply"
    assert f"#   kubectl {verb} -f examples/{path.name}" in header


def test_xor_compares_the_eight_ways_of_the_article() -> None:
    [run] = read(str(EXAMPLES[2]))
    assert len(run.spec.variants) == 8
    assert run.baseline == "pytorch/nn"


def test_a_generated_name_has_its_prefix_on_a_laptop_and_results_one_series() -> None:
    [run] = read(str(EXAMPLES[5]))
    assert (run.metadata.name, run.series) == ("matmul-chain", "matmul-chain-nightly")
