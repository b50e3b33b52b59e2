from typing import Any

import pytest

from accelbench.api.profiles import Profiles, parse_profiles
from accelbench_operator.accept import Plan, Refused, accept
from accelbench_operator.settings import Settings, SettingsError, read_settings
from operator_world.builders import IMAGE, run_manifest


def test_an_accepted_run_is_planned_for_the_profiles_platform() -> None:
    profiles = Profiles(parse_profiles("v5e: {platform: tpu, resource: google.com/tpu}", "x"))
    jax = [{"use": "jax/jit"}, {"use": "jax/op-by-op"}]
    plan = accept(run_manifest(sizes=(1, 2), accelerator={"profile": "v5e"}, variants=jax), profiles, IMAGE)

    assert isinstance(plan, Plan)
    assert [case.accelerator.platform for case in plan.cases] == ["tpu", "tpu"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"workload": {"name": "matmul-chian"}}, "did you mean matmul-chain?"),
        ({"variants": [{"use": "jax/jti"}, {"use": "pytorch/eager"}]}, "did you mean jit?"),
        (
            {"accelerator": {"profile": "nvidai"}},
            'spec.accelerator.profile: unknown profile "nvidai"; did you mean nvidia?',
        ),
        ({"variants": []}, "spec.variants"),
        ({"podTemplate": {"spec": {"hostNetwork": True}}}, "hostNetwork: Extra inputs are not permitted"),
        ({"measurement": {"rounds": {"min": "many"}}}, "spec.measurement.rounds.min"),
        (
            {
                "sweep": [
                    {"name": "size", "values": list(range(1, 18))},
                    {"name": "length", "values": list(range(1, 18))},
                ]
            },
            "256",
        ),
    ],
)
def test_a_run_that_cannot_be_run_is_refused_with_what_to_do(spec: dict[str, Any], message: str) -> None:
    refused = accept(run_manifest(**spec), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert message in refused.message


def test_a_file_that_only_a_laptop_has_is_refused_with_what_to_do_where_an_older_crd_lets_it_pass() -> None:
    refused = accept(run_manifest(workload={"script": {"file": "mine.py"}}), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert "spec.workload.script.file: a file is found on a laptop alone" in refused.message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"measurement": {"precision": "tf32"}}, "spec.measurement.precision: tf32 is a format of NVIDIA GPUs"),
        (
            {"variants": [{"use": "jax/jit"}, {"use": "pytorch/eager"}]},
            "spec.variants[1].use: PyTorch computes on cpu, cuda, and not on tpu",
        ),
    ],
)
def test_what_the_profiles_devices_do_not_have_is_refused(spec: dict[str, Any], message: str) -> None:
    profiles = Profiles(parse_profiles("v5e: {platform: tpu, resource: google.com/tpu}", "x"))
    refused = accept(run_manifest(accelerator={"profile": "v5e"}, **spec), profiles, IMAGE)

    assert isinstance(refused, Refused)
    assert message in refused.message


A100 = Profiles(parse_profiles("a100: {platform: cuda, resource: nvidia.com/gpu, nodeSelector: {gpu: a100}}", "x"))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"spec": {"nodeSelector": {"gpu": "h100"}}}, "gpu: h100: profile a100 says a100"),
        (
            {"spec": {"containers": [{"name": "runner", "resources": {"limits": {"nvidia.com/gpu": 4}}}]}},
            "nvidia.com/gpu: profile a100 reserves it",
        ),
        (
            {
                "spec": {
                    "containers": [
                        {"name": "runner", "volumeMounts": [{"name": "x", "mountPath": "/etc/accelbench/case.json"}]}
                    ]
                }
            },
            "that directory is the runner's own",
        ),
        (
            {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/runner": "unconfined"}}},
            "not for a run to set",
        ),
    ],
)
def test_a_pod_template_against_the_profile_or_the_isolation_is_refused(template: dict[str, Any], message: str) -> None:
    refused = accept(run_manifest(accelerator={"profile": "a100"}, podTemplate=template), A100, IMAGE)

    assert isinstance(refused, Refused)
    assert message in refused.message


def test_a_refused_run_has_its_time_to_live() -> None:
    refused = accept(run_manifest(workload={"name": "x"}, runPolicy={"ttlSecondsAfterFinished": 7}), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert refused.ttl_seconds == 7


HUNGRY = {"workload": {"name": "inplace-update"}, "sweep": [{"name": "size", "values": [1024, 2**31]}]}
"""17.2 GB in float64, of its second case."""


def test_a_case_that_cannot_fit_into_its_pod_is_refused_with_the_estimate() -> None:
    refused = accept(run_manifest(**HUNGRY), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert "case size-2147483648-" in refused.message
    assert " needs at least 17.2 GB of memory" in refused.message
    assert "may use 4.3 GB" in refused.message
    assert "profile cpu, or spec.podTemplate's limits" in refused.message


def test_what_the_pod_template_asks_for_counts() -> None:
    runner = {"name": "runner", "resources": {"limits": {"memory": "32Gi"}}}
    plan = accept(run_manifest(**HUNGRY, podTemplate={"spec": {"containers": [runner]}}), Profiles(), IMAGE)

    assert isinstance(plan, Plan)


def test_a_script_is_not_loaded_by_the_operator() -> None:
    script = {"script": {"configMapKeyRef": {"name": "mine", "key": "mine.py"}}, "parameters": {"anything": 1}}
    plan = accept(run_manifest(workload=script), Profiles(), IMAGE)

    assert isinstance(plan, Plan)
    assert plan.cases[0].workload == "mine"


def test_a_status_that_cannot_be_read_is_no_reason_to_refuse_the_spec() -> None:
    assert isinstance(accept(run_manifest() | {"status": {"conditions": 7}}, Profiles(), IMAGE), Plan)


def test_settings_come_from_the_environment() -> None:
    settings = read_settings({"ACCELBENCH_RUNNER_IMAGE": "runner:1", "ACCELBENCH_NAMESPACES": "a, b,"})

    assert isinstance(settings, Settings)
    assert (settings.runner_image, settings.namespaces) == ("runner:1", ("a", "b"))
    assert (settings.metrics_port, settings.health_port) == (9090, 8080)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "ACCELBENCH_RUNNER_IMAGE is not set"),
        ({"ACCELBENCH_RUNNER_IMAGE": "r", "ACCELBENCH_METRICS_PORT": "http"}, 'ACCELBENCH_METRICS_PORT="http"'),
        ({"ACCELBENCH_RUNNER_IMAGE": "r", "ACCELBENCH_HEALTH_PORT": "0"}, 'ACCELBENCH_HEALTH_PORT="0"'),
    ],
)
def test_settings_that_cannot_be_used_are_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(environment)
