import subprocess
from pathlib import Path

import pytest

from accelbench.api.environment import CaseEnvironment
from accelbench.api.manifest import load_manifests
from accelbench.local.manifests import read
from accelbench.plan.cases import plan_cases
from accelbench.report import reproduce
from report import sample

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


def piped(command: str) -> str:
    """Return the text that a shell passes to `accelbench run -`."""
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


def test_the_command_of_a_result_asks_for_the_versions_of_its_environments() -> None:
    locked = CaseEnvironment(
        name="before",
        requirements=("jax<0.10",),
        python="3.11",
        interpreter="/cache/venv/bin/python",
        packages={"jax": "0.9.2", "numpy": "2.4.6"},
    )
    own = CaseEnvironment(
        name="own", python="/own/bin/python", interpreter="/own/bin/python", packages={"jax": "0.10.2"}
    )
    plain = sample.case()
    first, *others = plain.variants
    variants = (
        *(first.model_copy(update={"name": name, "environment": name}) for name in ("before", "own")),
        first,
        *others,
    )
    case = plain.model_copy(update={"environments": (locked, own), "variants": variants})
    [run] = load_manifests(piped(reproduce.command(reproduce.manifest_of_case(case))), "again")
    again, again_own = run.spec.environments
    assert (again.requirements, again.python) == (("jax==0.9.2", "numpy==2.4.6"), "3.11")
    assert (again_own.requirements, again_own.python) == ((), "/own/bin/python")
    assert [variant.environment for variant in run.spec.variants[:3]] == ["before", "own", None]


@pytest.mark.parametrize(
    ("fingerprint", "processors"),
    [
        ({"cpus": "8", "cpusUsed": "2"}, 2),
        ({"cpus": "8", "cpusUsed": "8"}, None),
        ({"cpus": "8", "cpusUsed": "2", "cpuLimit": "2"}, None),
        ({}, None),
    ],
)
def test_the_command_repeats_the_requested_processors(fingerprint: dict[str, str], processors: int | None) -> None:
    result = sample.result().model_copy(update={"fingerprint": fingerprint})
    assert reproduce.processors_option(result) == processors
    command = reproduce.command(reproduce.manifest_of_case(result.case), reproduce.processors_option(result))
    assert command.partition("\n")[0].startswith(
        "accelbench run - --processors 2 <<" if processors else "accelbench run - <<"
    )
