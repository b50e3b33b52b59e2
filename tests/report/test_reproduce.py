import subprocess
from pathlib import Path

import pytest

from accelbench.api.manifest import load_manifests
from accelbench.local.manifests import read
from accelbench.plan.cases import plan_cases
from accelbench.report import reproduce
from report import sample

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


def piped(command: str) -> str:
    """What a shell hands to `accelbench run -`."""
    return subprocess.run(
        ["sh", "-c", command.replace("accelbench run -", "cat", 1)], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_command_of_a_run_measures_the_same_run(example: Path) -> None:
    [run] = read(str(example))
    [again] = load_manifests(piped(reproduce.command(reproduce.manifest_of_run(run))), "again")
    only_a_clusters = {"class_name", "pod_template", "run_policy"}
    assert again.spec.model_dump(exclude=only_a_clusters) == run.spec.model_dump(exclude=only_a_clusters)
    assert again.metadata.name == run.metadata.name


def test_the_command_of_a_single_result_measures_its_case() -> None:
    measurement = sample.case().measurement.model_copy(update={"accept_noise": True, "seed": 7})
    case = sample.case(measurement=measurement)
    [run] = load_manifests(piped(reproduce.command(reproduce.manifest_of_case(case))), "again")
    [again] = plan_cases(run, "cpu")
    for field in ("workload", "parameters", "variants", "baseline", "measurement", "accelerator"):
        assert getattr(again, field) == getattr(case, field)


@pytest.mark.parametrize(
    ("fingerprint", "processors"),
    [
        ({"cpus": "8", "cpusUsed": "2"}, 2),
        ({"cpus": "8", "cpusUsed": "8"}, None),
        ({"cpus": "8", "cpusUsed": "2", "cpuLimit": "2"}, None),
        ({}, None),
    ],
)
def test_processors_that_were_asked_for_are_asked_for_again(
    fingerprint: dict[str, str], processors: int | None
) -> None:
    result = sample.result().model_copy(update={"fingerprint": fingerprint})
    assert reproduce.processors_option(result) == processors
    command = reproduce.command(reproduce.manifest_of_case(result.case), reproduce.processors_option(result))
    assert command.partition("\n")[0].startswith(
        "accelbench run - --processors 2 <<" if processors else "accelbench run - <<"
    )
