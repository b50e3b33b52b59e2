import json

import pytest
from click.testing import CliRunner

from accelbench import catalogue
from accelbench.cli.main import app


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["workloads", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_workload_of_the_catalogue_is_listed() -> None:
    listed = shown()
    assert [name for name in catalogue.names() if name not in listed] == []


def test_a_narrow_terminal_breaks_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = shown()
    offered = {use for name in catalogue.names() for use in catalogue.find(name).variants()}
    assert [use for use in offered if use not in listed] == []


def test_a_pipe_gets_a_line_for_each_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert [line.split()[0] for line in shown().splitlines()[1:]] == list(catalogue.names())


def test_one_workload_is_shown_with_parameters_bounds_and_variants() -> None:
    text = shown("matmul-chain")
    assert "1 to 32768" in text
    assert "Products in one call." in text
    assert "jax/op-by-op" in text
    line = next(line for line in text.splitlines() if line.startswith("pytorch/compile"))
    assert "mode" in line


def test_schemas_are_available_as_json() -> None:
    described = json.loads(shown("matmul-chain", "--output", "json"))
    assert described["parameters"]["size"]["maximum"] == 32768
    assert described["unit"] == "product"
    assert "mode" in described["variants"]["pytorch/compile"]["options"]
    assert [each["name"] for each in json.loads(shown("--output", "json"))] == list(catalogue.names())
