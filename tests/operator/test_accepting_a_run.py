from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.profiles import Profiles, parse_profiles
from accelbench_operator.runs.accept import Plan, Refused, accept
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
def test_a_run_that_cannot_be_run_is_refused_with_the_remedy(spec: dict[str, Any], message: str) -> None:
    refused = accept(run_manifest(**spec), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert message in refused.message


def test_a_script_by_its_path_is_refused_with_the_remedy_even_if_an_older_crd_accepts_it() -> None:
    refused = accept(run_manifest(workload={"script": {"file": "mine.py"}}), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert "spec.workload.script.file: file works only on a laptop" in refused.message


def test_environments_are_refused_even_if_an_older_crd_accepts_them() -> None:
    environments = [{"name": "before", "requirements": ["jax==0.9.2"]}]
    variants = [{"use": "jax/jit"}, {"use": "jax/jit", "name": "before", "environment": "before"}]
    refused = accept(run_manifest(environments=environments, variants=variants), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert "spec.environments: environments work only on a laptop" in refused.message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"measurement": {"precision": "tf32"}}, "spec.measurement.precision: tf32 is a format of NVIDIA GPUs"),
        ({"measurement": {"precision": "default"}}, "spec.measurement.precision: default is float32 arrays with"),
        (
            {"variants": [{"use": "jax/jit"}, {"use": "pytorch/eager"}]},
            "spec.variants[1].use: PyTorch computes on cpu, cuda, and not on tpu",
        ),
    ],
)
def test_an_option_that_the_profiles_devices_lack_is_refused(spec: dict[str, Any], message: str) -> None:
    profiles = Profiles(parse_profiles("v5e: {platform: tpu, resource: google.com/tpu}", "x"))
    refused = accept(run_manifest(accelerator={"profile": "v5e"}, **spec), profiles, IMAGE)

    assert isinstance(refused, Refused)
    assert message in refused.message


@pytest.mark.parametrize(
    ("workload", "variant", "message"),
    [
        (
            "matmul-chain",
            {"use": "pytorch/compile", "options": {"mode": "reduce-overhead"}},
            "spec.variants[0].options: mode reduce-overhead is torch.compile's default with CUDA graphs",
        ),
        (
            "cifar-cnn",
            {"use": "pytorch/compile-step", "options": {"mode": "reduce-overhead"}},
            "spec.variants[0].options: mode reduce-overhead",
        ),
        (
            "cifar-cnn",
            {"use": "pytorch/eager", "options": {"cudnn_benchmark": "true"}},
            "spec.variants[0].options: cudnn_benchmark is a setting of a GPU's convolutions",
        ),
    ],
)
def test_an_option_of_a_gpu_is_refused_on_a_cpu_and_accepted_on_a_gpu(
    workload: str, variant: dict[str, Any], message: str
) -> None:
    profiles = Profiles(parse_profiles("gpu: {platform: cuda, resource: nvidia.com/gpu}", "x"))
    spec: dict[str, Any] = {"workload": {"name": workload}, "variants": [variant, {"use": "jax/jit"}]}
    refused = accept(run_manifest(**spec), profiles, IMAGE)
    accepted = accept(run_manifest(**spec, accelerator={"profile": "gpu"}), profiles, IMAGE)

    assert isinstance(refused, Refused)
    assert message in refused.message
    assert not isinstance(accepted, Refused), accepted.message


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


def test_a_profile_of_other_namespaces_is_refused_with_their_names() -> None:
    profiles = Profiles(parse_profiles("shared: {platform: cpu, namespaces: [ml, vision]}", "x"))
    refused = accept(run_manifest(accelerator={"profile": "shared"}), profiles, IMAGE)

    assert isinstance(refused, Refused)
    assert "spec.accelerator.profile: shared is for runs in ml, vision, but this run is in team" in refused.message


def test_a_profile_of_the_runs_namespace_is_accepted_and_the_status_names_no_other_namespace() -> None:
    profiles = Profiles(parse_profiles("shared: {platform: cpu, namespaces: [payroll, team]}", "x"))
    plan = accept(run_manifest(accelerator={"profile": "shared"}), profiles, IMAGE)
    assert isinstance(plan, Plan)
    assert "payroll" not in plan.runner.to_json()


def test_an_accepted_run_keeps_the_defaults_and_the_image_that_it_was_accepted_with() -> None:
    profiles = Profiles(parse_profiles("amd: {preset: amd, image: rocm:1}", "x"))
    jax = [{"use": "jax/jit"}, {"use": "jax/op-by-op"}]
    manifest = run_manifest(accelerator={"profile": "amd"}, variants=jax)
    first = accept(manifest, profiles, IMAGE, pod_template={"spec": {"priorityClassName": "low"}})
    assert isinstance(first, Plan)
    later = accept(manifest, Profiles(), IMAGE, first.runner, pod_template={})
    assert isinstance(later, Plan)
    assert (later.runner.image, later.runner.pod_template) == ("rocm:1", {"spec": {"priorityClassName": "low"}})


def test_the_profiles_price_is_in_every_case() -> None:
    profiles = Profiles(parse_profiles("cpu: {platform: cpu, pricePerHour: 0.40 EUR}", "x"))
    plan = accept(run_manifest(sizes=(1, 2)), profiles, IMAGE)
    assert isinstance(plan, Plan)
    assert [case.accelerator.price_per_hour for case in plan.cases] == ["0.40 EUR", "0.40 EUR"]


def test_a_refused_run_has_its_time_to_live() -> None:
    refused = accept(run_manifest(workload={"name": "x"}, runPolicy={"ttlSecondsAfterFinished": 7}), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert refused.retention.ttl == timedelta(seconds=7)


HUNGRY = {"workload": {"name": "inplace-update"}, "sweep": [{"name": "size", "values": [1024, 2**31]}]}
"""17.2 GB in float64, of its second case."""


def test_a_case_that_cannot_fit_into_its_pod_is_refused_with_the_estimate() -> None:
    refused = accept(run_manifest(**HUNGRY), Profiles(), IMAGE)

    assert isinstance(refused, Refused)
    assert "case size-2147483648-" in refused.message
    assert " needs at least 17.2 GB of memory" in refused.message
    assert "may use only 4.3 GB" in refused.message
    assert "profile cpu, or spec.podTemplate's limits" in refused.message


def test_a_memory_limit_of_the_pod_template_replaces_the_profiles() -> None:
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


def test_defaults_for_pods_are_read_and_are_those_of_a_pod_template(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("spec: {priorityClassName: benchmarks}\n")
    given = {"ACCELBENCH_RUNNER_IMAGE": "r", "ACCELBENCH_POD_TEMPLATE": str(file)}
    assert read_settings(given).pod_template == {"spec": {"priorityClassName": "benchmarks"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spec: {hostNetwork: true}", "spec.hostNetwork: Forbidden: not for a run to set"),
        ("spec: {priorityClass: x}", "spec.priorityClass"),
        (
            "spec: {containers: [{name: runner, volumeMounts: [{name: a, mountPath: /etc/accelbench/x}]}]}",
            "that directory is the runner's own",
        ),
        ("[", "not YAML"),
        ("- a", "must be of type object"),
    ],
)
def test_defaults_that_no_run_could_ask_for_are_refused_at_the_start(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as raised:
        read_settings({"ACCELBENCH_RUNNER_IMAGE": "r", "ACCELBENCH_POD_TEMPLATE": str(file)})
    assert str(file) in str(raised.value)
    assert message in str(raised.value)


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
