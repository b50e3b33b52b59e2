"""A comparison of releases is a run whose variants are the releases; what cannot be compared is refused at once."""

from typing import Any

import pytest

from accelbench.api.manifest import parse_run
from accelbench.api.run import BenchmarkRun
from accelbench.local.errors import InvalidSpecError, UsageError
from accelbench.local.versions import directory_name, plan_targets, read_releases
from accelbench.plan.versions import NotInReleasesError, compare_releases


def run(*variants: dict[str, Any], **spec: Any) -> BenchmarkRun:
    manifest = {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "demo"},
        "spec": {"workload": {"name": "matmul-chain"}, "variants": list(variants), **spec},
    }
    return parse_run(manifest, "demo")


JIT, EAGER = {"use": "jax/jit"}, {"use": "pytorch/eager"}


def test_each_release_is_a_variant_in_an_environment_of_its_own_and_the_first_is_the_baseline() -> None:
    releases = read_releases(["jax==0.9.2", "jax==0.12.0.1 python3.12"])
    (asked,) = compare_releases(run(EAGER, JIT, baseline="pytorch/eager"), releases)
    assert [(variant.use, variant.label, variant.environment) for variant in asked.spec.variants] == [
        ("jax/jit", "jax-0.9.2", "jax-0-9-2"),
        ("jax/jit", "jax-0.12.0.1", "jax-0-12-0-1"),
    ]
    old, new = asked.spec.environments
    assert (old.name, old.requirements, old.python) == ("jax-0-9-2", ("jax==0.9.2",), None)
    assert (new.requirements, new.python) == (("jax==0.12.0.1",), "3.12")
    assert (asked.metadata.name, asked.baseline) == ("demo", "jax-0.9.2")


def test_a_release_may_bring_other_packages_and_two_of_one_version_are_told_apart_by_them() -> None:
    releases = read_releases(["jax==0.9.2 flax==0.12.6", "jax==0.9.2 flax==0.12.8"])
    assert [release.label for release in releases] == ["jax-0.9.2-flax-0.12.6", "jax-0.9.2-flax-0.12.8"]
    assert releases[0].requirements == ("jax==0.9.2", "flax==0.12.6")


def test_every_variant_of_the_framework_is_a_question_of_its_own() -> None:
    options = {"mode": "max-autotune-no-cudagraphs"}
    compiled = {"use": "pytorch/compile", "options": options, "name": "tuned"}
    releases = read_releases(["torch==2.14.1", "torch==2.15.0"])
    eager, tuned = compare_releases(run(EAGER, JIT, compiled), releases)
    assert (eager.metadata.name, tuned.metadata.name) == ("demo-pytorch-eager", "demo-tuned")
    assert [variant.label for variant in tuned.spec.variants] == ["torch-2.14.1", "torch-2.15.0"]
    assert {tuple(variant.options.items()) for variant in tuned.spec.variants} == {tuple(options.items())}


def test_a_release_has_the_time_that_a_variant_had_and_other_settings_stay() -> None:
    measurement = {"timeLimitSeconds": 300, "rounds": {"min": 4, "max": 7}}
    expectation = {"metric": "speedup", "variant": "jax/jit", "atLeast": "2"}
    releases = read_releases(["jax==0.8.3", "jax==0.9.2", "jax==0.10.2"])
    question = run(
        EAGER, JIT, measurement=measurement, expectations=[expectation], sweep=[{"name": "size", "values": [8, 16]}]
    )
    (asked,) = compare_releases(question, releases)
    assert asked.spec.measurement.time_limit_seconds == 450
    assert asked.spec.measurement.rounds.max == 7
    assert asked.spec.sweep == question.spec.sweep
    assert asked.spec.expectations == ()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["jax==0.9.2"], "compare 2 to 16 releases"),
        (
            ["jaxx==0.9.2", "jax==0.10.2"],
            "jaxx is not the package of a framework, which has to come first; did you mean jax?",
        ),
        (["pytorch==2.14.1", "torch==2.15.0"], "did you mean torch?"),
        (["flax==0.12.6 jax==0.9.2", "jax==0.10.2"], "flax is not the package of a framework"),
        (["jax==0.9.2", "torch==2.15.0"], "torch==2.15.0: is PyTorch, and the first release is JAX"),
        (["jax==0.6.2", "jax==0.9.2"], "jax==0.6.2: it has JAX 0.6.2, and accelbench measures JAX from 0.7"),
        (["torch==2.9.1", "torch==2.15.0"], "measures PyTorch from 2.10"),
        (["jax==0.9.2 python3.10", "jax==0.10.2"], "accelbench measures in Python 3.11 to 3.13"),
        (["python3.12", "jax==0.10.2"], "write the framework's package first"),
        (["jax==0.9.2", "jax==0.9.2"], "jax==0.9.2: is given twice"),
        (["jax==0.9.2", "jax===0.9.2"], "is given twice"),
        (["jax==0.9.2", "JAX==0.9.2"], "jax==0.9.2: is given twice"),
    ],
)
def test_releases_that_cannot_be_compared_are_refused_before_anything_is_installed(
    texts: list[str], message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read_releases(texts)
    assert message in str(refused.value)


def test_a_range_is_not_refused_by_the_numbers_in_it() -> None:
    assert [release.label for release in read_releases(["jax>0.6,<0.9", "jax"])] == ["jax-0.6-0.9", "jax"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (run(EAGER), "none of them is of JAX"),
        (run(JIT, accelerator={"targets": ["h100x8"]}), "remove spec.accelerator.targets"),
        (
            run({**JIT, "environment": "own"}, environments=[{"name": "own", "requirements": ["jax"]}]),
            "remove spec.environments",
        ),
    ],
)
def test_a_question_that_releases_cannot_answer_is_refused(question: BenchmarkRun, message: str) -> None:
    with pytest.raises(NotInReleasesError, match=message):
        compare_releases(question, read_releases(["jax==0.9.2", "jax==0.10.2"]))


def test_a_workload_is_planned_with_its_variant_of_the_framework_or_with_a_chosen_one() -> None:
    releases = read_releases(["jax==0.9.2", "jax==0.10.2"])
    (default,) = plan_targets(["matmul-chain"], [], ["size=8"], releases)
    assert [variant.use for variant in default.run.spec.variants] == ["jax/jit", "jax/jit"]
    assert default.run.spec.workload.parameters == {"size": 8}
    assert default.run.spec.measurement.time_limit_seconds == 240
    (chosen,) = plan_targets(["matmul-chain"], ["jax/scan"], [], releases)
    assert {variant.use for variant in chosen.run.spec.variants} == {"jax/scan"}
    assert directory_name(releases) == "jax-0.9.2-jax-0.10.2"


def test_a_chosen_variant_of_another_framework_is_refused() -> None:
    with pytest.raises(InvalidSpecError) as refused:
        plan_targets(["matmul-chain"], ["pytorch/eager"], [], read_releases(["jax==0.9.2", "jax==0.10.2"]))
    assert "it compares pytorch/eager, and none of them is of JAX" in refused.value.explanation()


def test_the_same_workload_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="give each workload once"):
        plan_targets(["matmul-chain"] * 2, [], [], read_releases(["jax==0.9.2", "jax==0.10.2"]))
