from typing import Any

import pytest

from accelbench.api import labels
from accelbench.api.case import OVERTIME_SECONDS, Case
from accelbench.api.profiles import Profiles, parse_profiles
from accelbench.plan.names import attempt_name, claim_template_name
from accelbench_operator.runs.accept import Plan, accept
from accelbench_operator.runs.job import build_job
from operator_world.builders import IMAGE, NAME, UID, make_plan, run_manifest


def job(attempt: int = 1, profiles: Profiles | None = None, **run: Any) -> Any:
    plan = make_plan(profiles=profiles, **run)
    return build_job(plan.run, plan.cases[0], attempt, plan.runner)


def pod_of(manifest: Any) -> Any:
    return manifest["spec"]["template"]["spec"]


def runner_of(manifest: Any) -> Any:
    (container,) = pod_of(manifest)["containers"]
    return container


def test_a_job_has_the_name_of_its_attempt_and_belongs_to_the_run() -> None:
    case = make_plan().cases[0].name
    manifest = job(attempt=2)

    assert manifest["metadata"]["name"] == attempt_name(NAME, UID, case, 2)
    (owner,) = manifest["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "name": NAME,
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_job_and_pod_carry_the_labels_that_the_operator_selects_by() -> None:
    manifest = job()
    expected = {labels.MANAGED_BY: labels.MANAGER, labels.RUN_UID: UID, labels.ATTEMPT: "1", labels.RUN: NAME}

    assert expected.items() <= manifest["metadata"]["labels"].items()
    assert expected.items() <= manifest["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("name", ["a" * 63 + ".b", "x." * 60 + "y", "run-" * 20 + "z"])
def test_every_label_is_valid_even_if_the_runs_name_is_long(name: str) -> None:
    plan = make_plan()
    metadata = plan.run.metadata.model_copy(update={"name": name})
    manifest = build_job(plan.run.model_copy(update={"metadata": metadata}), plan.cases[0], 1, plan.runner)

    for value in manifest["metadata"]["labels"].values():
        assert len(value) <= 63
        assert value[0].isalnum()
        assert value[-1].isalnum()
    assert len(manifest["metadata"]["name"]) <= 60  # of an Indexed Job the API server takes no longer one


def test_the_pod_stays_out_of_service_meshes_and_is_not_evicted_by_autoscalers() -> None:
    template = job(podTemplate={"metadata": {"labels": {"sidecar.istio.io/inject": "true"}}})["spec"]["template"]
    annotations = template["metadata"]["annotations"]

    assert template["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"
    assert annotations["sidecar.istio.io/inject"] == "false"
    assert annotations["linkerd.io/inject"] == "disabled"
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert annotations["karpenter.sh/do-not-disrupt"] == "true"


def test_the_job_controller_does_not_retry() -> None:
    spec = job()["spec"]

    assert spec["backoffLimit"] == 0
    assert spec["podReplacementPolicy"] == "Failed"
    assert pod_of({"spec": spec})["restartPolicy"] == "Never"
    assert spec["podFailurePolicy"]["rules"][0]["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert "ttlSecondsAfterFinished" not in spec
    assert "activeDeadlineSeconds" not in spec


DAY = 86400


@pytest.mark.parametrize(
    ("policy", "start"), [({}, DAY), ({"startDeadlineSeconds": 60}, DAY), ({"startDeadlineSeconds": 2 * DAY}, 2 * DAY)]
)
def test_the_pods_own_deadline_is_later_than_those_of_its_start_and_its_runner(policy: Any, start: int) -> None:
    assert pod_of(job(runPolicy=policy))["activeDeadlineSeconds"] == start + 60 + OVERTIME_SECONDS


def test_the_disk_space_of_a_pod_is_requested_and_limited() -> None:
    more = {"spec": {"containers": [{"name": "runner", "resources": {"limits": {"ephemeral-storage": "20Gi"}}}]}}
    for manifest, amount in ((job(), "8Gi"), (job(podTemplate=more), "20Gi")):
        resources = runner_of(manifest)["resources"]
        assert resources["requests"]["ephemeral-storage"] == resources["limits"]["ephemeral-storage"] == amount
        scratch = [volume["emptyDir"] for volume in pod_of(manifest)["volumes"] if "emptyDir" in volume]
        assert scratch == [{"sizeLimit": amount}] * 2


def test_a_pod_runs_on_linux_and_on_the_architecture_of_its_image() -> None:
    assert pod_of(job())["os"] == {"name": "linux"}
    assert pod_of(job())["nodeSelector"] == {"kubernetes.io/os": "linux"}
    arm = Profiles(parse_profiles("cpu: {platform: cpu, arch: arm64}", "values"))
    assert pod_of(job(profiles=arm))["nodeSelector"] == {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}


def test_the_pod_passes_the_restricted_pod_security_standard_and_holds_no_token() -> None:
    pod = pod_of(job())

    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert runner_of(job())["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_case_document_reaches_the_runner_by_the_downward_api() -> None:
    manifest = job(attempt=3)
    annotation = manifest["spec"]["template"]["metadata"]["annotations"][labels.CASE_ANNOTATION]
    case = Case.model_validate_json(annotation)
    volume = next(volume for volume in pod_of(manifest)["volumes"] if volume["name"] == "accelbench-case")
    mount = next(mount for mount in runner_of(manifest)["volumeMounts"] if mount["name"] == "accelbench-case")
    (item,) = volume["downwardAPI"]["items"]

    assert case.origin.attempt == 3
    assert case.origin.uid == UID
    assert item["fieldRef"]["fieldPath"] == f"metadata.annotations['{labels.CASE_ANNOTATION}']"
    assert f"{mount['mountPath']}/{item['path']}" == labels.CASE_FILE
    assert runner_of(manifest)["args"] == [labels.CASE_FILE]


def test_the_runner_writes_to_volumes_of_its_pod() -> None:
    runner = runner_of(job())
    environment = {variable["name"]: variable["value"] for variable in runner["env"]}
    mounts = {mount["mountPath"] for mount in runner["volumeMounts"]}

    assert environment["ACCELBENCH_WORK_DIRECTORY"] in mounts
    assert environment["HOME"] in mounts
    assert "/tmp" in mounts
    assert environment["ACCELBENCH_TERMINATION_LOG"] == runner["terminationMessagePath"]


def test_a_script_is_mounted_from_its_config_map_at_the_path_that_the_runner_gets() -> None:
    reference = {"name": "my-workloads", "key": "my_chain.py"}
    manifest = job(workload={"script": {"configMapKeyRef": reference}}, sweep=[])
    volume = next(volume for volume in pod_of(manifest)["volumes"] if volume["name"] == "accelbench-script")
    mount = next(mount for mount in runner_of(manifest)["volumeMounts"] if mount["name"] == "accelbench-script")
    environment = {variable["name"]: variable["value"] for variable in runner_of(manifest)["env"]}
    annotation = manifest["spec"]["template"]["metadata"]["annotations"][labels.CASE_ANNOTATION]

    assert volume["configMap"] == {"name": "my-workloads", "items": [{"key": "my_chain.py", "path": "my_chain.py"}]}
    assert (mount["readOnly"], mount["subPath"]) == (True, "my_chain.py")
    assert environment["ACCELBENCH_SCRIPT"] == mount["mountPath"]
    assert Case.model_validate_json(annotation).workload == "my-chain"


def test_a_workload_of_the_catalogue_mounts_no_script() -> None:
    manifest = job()
    assert all("configMap" not in volume for volume in pod_of(manifest)["volumes"])
    assert all(variable["name"] != "ACCELBENCH_SCRIPT" for variable in runner_of(manifest)["env"])


@pytest.mark.parametrize(("template", "image"), [({}, IMAGE), ({"image": "mine:2"}, "mine:2")])
def test_the_runner_gets_the_name_of_its_image(template: dict[str, str], image: str) -> None:
    fragment = {"spec": {"containers": [{"name": "runner"} | template]}}
    container = runner_of(job(podTemplate=fragment))
    assert container["image"] == image
    assert {"name": "ACCELBENCH_IMAGE", "value": image} in container["env"]


def test_requests_equal_limits_and_the_processors_are_whole() -> None:
    profiles = Profiles(parse_profiles("big: {platform: cuda, resource: example.com/gpu, cpu: 8, memory: 32Gi}", "x"))
    accelerator = {"profile": "big"}
    resources = runner_of(job(profiles=profiles, accelerator=accelerator))["resources"]

    assert resources["requests"] == {
        "cpu": "8",
        "memory": "32Gi",
        "ephemeral-storage": "8Gi",
        "example.com/gpu": "1",
    }
    assert resources["limits"] == resources["requests"]


def test_resources_of_the_pod_template_keep_the_pod_guaranteed() -> None:
    fragment = {"spec": {"containers": [{"name": "runner", "resources": {"limits": {"memory": "64Gi"}}}]}}
    resources = runner_of(job(podTemplate=fragment))["resources"]

    assert resources["limits"]["memory"] == "64Gi"
    assert resources["limits"] == resources["requests"]


def test_the_profile_selects_the_nodes() -> None:
    text = """
    a100:
      platform: cuda
      resource: nvidia.com/gpu
      nodeSelector: {kind: a100}
      tolerations: [{key: gpu, effect: NoSchedule}]
      runtimeClassName: nvidia
      env: {NCCL_DEBUG: WARN}
    """
    manifest = job(profiles=Profiles(parse_profiles(text, "x")), accelerator={"profile": "a100"})
    pod = pod_of(manifest)

    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "kind": "a100"}
    assert pod["tolerations"] == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert pod["runtimeClassName"] == "nvidia"
    assert {"name": "NCCL_DEBUG", "value": "WARN"} in runner_of(manifest)["env"]


def test_a_queue_label_is_copied_and_the_job_waits_to_be_admitted() -> None:
    queue = {"kueue.x-k8s.io/queue-name": "research", "team": "a"}
    manifest = job(labels=queue)

    assert manifest["spec"]["suspend"] is True
    assert manifest["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    assert "team" not in manifest["metadata"]["labels"]
    assert job(labels={"kueue.x-k8s.io/queue-name": ""})["spec"]["suspend"] is False


def test_the_pod_template_is_merged_over_ours() -> None:
    fragment = {
        "metadata": {"labels": {"cost": "42", labels.CASE: "forged"}},
        "spec": {
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "mine"}],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "accelbench-case", "emptyDir": {}}],
            "containers": [
                {
                    "name": "runner",
                    "image": "mine:2",
                    "env": [{"name": "XLA_FLAGS", "value": "--x"}],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
        },
    }
    manifest = job(podTemplate=fragment, accelerator={"profile": "nvidia"})
    pod, runner = pod_of(manifest), runner_of(manifest)

    assert manifest["spec"]["template"]["metadata"]["labels"]["cost"] == "42"
    assert manifest["spec"]["template"]["metadata"]["labels"][labels.CASE] != "forged"
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "zone": "a"}
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["nvidia.com/gpu", "mine"]
    assert runner["image"] == "mine:2"
    assert {"name": "XLA_FLAGS", "value": "--x"} in runner["env"]
    assert {"name": "data", "mountPath": "/data"} in runner["volumeMounts"]
    assert "downwardAPI" in next(volume for volume in pod["volumes"] if volume["name"] == "accelbench-case")
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_a_job_is_the_same_each_time_it_is_built() -> None:
    assert job() == job()


def test_claims_spread_and_group_come_from_the_pod_template_and_isolation_stays() -> None:
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    claims = [{"name": "gpu", "resourceClaimName": "mine"}]
    container = {"name": "runner", "resources": {"claims": [{"name": "gpu"}]}}
    fragment = {
        "spec": {
            "resourceClaims": claims,
            "topologySpreadConstraints": spread,
            "securityContext": {"fsGroup": 2000},
            "containers": [container],
        }
    }
    manifest = job(podTemplate=fragment)
    pod = pod_of(manifest)
    assert (pod["resourceClaims"], pod["topologySpreadConstraints"]) == (claims, spread)
    assert pod["securityContext"]["fsGroup"] == 2000
    assert pod["securityContext"]["runAsNonRoot"] is True
    resources = runner_of(manifest)["resources"]
    assert resources["claims"] == [{"name": "gpu"}]
    assert resources["requests"] == resources["limits"]


DEFAULTS = {
    "metadata": {"labels": {"team": "platform", "cost": "0", labels.CASE: "forged"}},
    "spec": {
        "nodeSelector": {"kind": "other", "disk": "fast"},
        "tolerations": [{"key": "benchmarks", "operator": "Exists"}],
        "priorityClassName": "low",
        "runtimeClassName": "sandbox",
        "imagePullSecrets": [{"name": "registry"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}},
        "securityContext": {"fsGroup": 2000},
        "containers": [
            {
                "name": "runner",
                "image": "other:1",
                "env": [
                    {"name": "HTTPS_PROXY", "value": "proxy"},
                    {"name": "NCCL_DEBUG", "value": "OFF"},
                    {"name": "HOME", "value": "/"},
                ],
                "resources": {"limits": {"memory": "1Gi", "example.com/rdma": "1"}},
            }
        ],
    },
}
CLEAR = """
gpu:
  platform: cuda
  resource: nvidia.com/gpu
  nodeSelector: {kind: a100}
  runtimeClassName: nvidia
  env: {NCCL_DEBUG: WARN}
"""


def with_defaults(**run: Any) -> Any:
    profiles = Profiles(parse_profiles(CLEAR, "x"))
    plan = accept(run_manifest(accelerator={"profile": "gpu"}, **run), profiles, IMAGE, pod_template=DEFAULTS)
    assert isinstance(plan, Plan)
    return build_job(plan.run, plan.cases[0], 1, plan.runner)


def variables(manifest: Any) -> dict[str, str]:
    return {each["name"]: each["value"] for each in runner_of(manifest)["env"]}


def test_an_administrators_defaults_apply_to_fields_that_neither_run_nor_profile_sets() -> None:
    manifest = with_defaults()
    pod, marks = pod_of(manifest), manifest["spec"]["template"]["metadata"]["labels"]

    assert (marks["team"], pod["nodeSelector"]["disk"], pod["priorityClassName"]) == ("platform", "fast", "low")
    assert pod["tolerations"] == [{"key": "benchmarks", "operator": "Exists"}]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["securityContext"]["fsGroup"] == 2000
    assert variables(manifest)["HTTPS_PROXY"] == "proxy"
    assert runner_of(manifest)["resources"]["limits"]["example.com/rdma"] == "1"
    assert runner_of(manifest)["resources"]["requests"] == runner_of(manifest)["resources"]["limits"]


def test_a_profile_overrides_the_defaults_and_isolation_overrides_all() -> None:
    manifest = with_defaults()
    pod, runner = pod_of(manifest), runner_of(manifest)

    assert (pod["nodeSelector"]["kind"], pod["runtimeClassName"]) == ("a100", "nvidia")
    assert (runner["image"], runner["resources"]["limits"]["memory"]) == (IMAGE, "4Gi")
    assert (variables(manifest)["NCCL_DEBUG"], variables(manifest)["HOME"]) == ("WARN", "/var/lib/accelbench")
    assert manifest["spec"]["template"]["metadata"]["labels"][labels.CASE] != "forged"
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_a_run_overrides_the_defaults() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    wanted = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    fragment = {
        "metadata": {"labels": {"cost": "42"}},
        "spec": {
            "priorityClassName": "high",
            "affinity": wanted,
            "containers": [{"name": "runner", "env": [{"name": "HTTPS_PROXY", "value": "mine"}]}],
        },
    }
    manifest = with_defaults(podTemplate=fragment)
    pod = pod_of(manifest)

    assert manifest["spec"]["template"]["metadata"]["labels"]["cost"] == "42"
    assert (pod["priorityClassName"], pod["affinity"]) == ("high", wanted)
    assert variables(manifest)["HTTPS_PROXY"] == "mine"


def test_a_pod_asks_for_every_chip_of_its_slice() -> None:
    profiles = Profiles(parse_profiles("v5e: {preset: gke-v5e-2x4}", "x"))
    jax = [{"use": "jax/jit"}, {"use": "jax/op-by-op"}]
    manifest = job(profiles=profiles, accelerator={"profile": "v5e"}, variants=jax)
    assert runner_of(manifest)["resources"]["limits"]["google.com/tpu"] == "8"


def test_a_device_is_claimed_in_addition_to_the_runs_own_claims() -> None:
    profiles = Profiles(parse_profiles("dra: {preset: dra-nvidia}", "x"))
    container = {"name": "runner", "resources": {"claims": [{"name": "nic"}]}}
    fragment = {"spec": {"resourceClaims": [{"name": "nic", "resourceClaimName": "mine"}], "containers": [container]}}
    manifest = job(profiles=profiles, accelerator={"profile": "dra"}, podTemplate=fragment)
    template = claim_template_name(NAME, UID)

    assert pod_of(manifest)["resourceClaims"] == [
        {"name": "accelbench-device", "resourceClaimTemplateName": template},
        {"name": "nic", "resourceClaimName": "mine"},
    ]
    assert runner_of(manifest)["resources"]["claims"] == [{"name": "accelbench-device"}, {"name": "nic"}]
    assert not anti_affinity(manifest)


def anti_affinity(manifest: Any) -> Any:
    affinity = pod_of(manifest).get("affinity", {})
    return affinity.get("podAntiAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])


def test_a_case_on_processors_has_its_node_to_itself_among_all_cases_of_all_namespaces() -> None:
    [term] = anti_affinity(job())
    assert (term["topologyKey"], term["namespaceSelector"]) == ("kubernetes.io/hostname", {})
    marks = job()["spec"]["template"]["metadata"]["labels"]
    assert term["labelSelector"]["matchLabels"].items() <= marks.items()
    assert {each["key"] for each in term["labelSelector"]["matchExpressions"]} <= marks.keys()


@pytest.mark.parametrize(
    ("profile", "whole"),
    [
        ("{platform: cuda, resource: nvidia.com/gpu}", False),
        ("{platform: cuda, resource: nvidia.com/gpu, exclusive: Node}", True),
        ("{platform: cpu}", True),
        ("{platform: cpu, exclusive: Device}", False),
    ],
)
def test_the_profile_decides_what_a_case_has_to_itself(profile: str, whole: bool) -> None:
    profiles = Profiles(parse_profiles(f"kind: {profile}", source="test"))
    assert bool(anti_affinity(job(profiles=profiles, accelerator={"profile": "kind"}))) == whole


def test_a_run_is_found_by_its_whole_name() -> None:
    plan = make_plan()
    dotted = plan.run.model_copy(update={"metadata": plan.run.metadata.model_copy(update={"name": "nightly.2026"})})
    assert build_job(dotted, plan.cases[0], 1, plan.runner)["metadata"]["labels"][labels.RUN] == "nightly.2026"
