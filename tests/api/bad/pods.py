"""Fields that would break the isolation of the runner's pod."""

from api.bad.table import bad, unmatched, unsupported
from api.manifests import runner

PODS = (
    bad(
        "the node's network",
        {"spec.podTemplate": {"spec": {"hostNetwork": True}}},
        "spec.podTemplate.spec.hostNetwork: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "the node's processes",
        {"spec.podTemplate": {"spec": {"hostPID": True}}},
        "spec.podTemplate.spec.hostPID: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "a privileged runner",
        {"spec.podTemplate": runner(securityContext={"privileged": True})},
        "spec.podTemplate.spec.containers[0].securityContext: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "an image with a space at its end",
        {"spec.podTemplate": runner(image="example.com/runner:1 ")},
        unmatched("spec.podTemplate.spec.containers[0].image", "example.com/runner:1 ", r"^\S+$"),
    ),
    bad(
        "a container before the runner",
        {"spec.podTemplate": {"spec": {"initContainers": []}}},
        "spec.podTemplate.spec.initContainers: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "a service account",
        {"spec.podTemplate": {"spec": {"serviceAccountName": "a"}}},
        "spec.podTemplate.spec.serviceAccountName: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "another command",
        {"spec.podTemplate": runner(command=["sh"])},
        "spec.podTemplate.spec.containers[0].command: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "another user",
        {"spec.podTemplate": {"spec": {"securityContext": {"runAsUser": 0, "fsGroup": 1}}}},
        "spec.podTemplate.spec.securityContext.runAsUser: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "pods to be near",
        {"spec.podTemplate": {"spec": {"affinity": {"podAffinity": {"requiredDuring": [{"any": "thing"}]}}}}},
        "spec.podTemplate.spec.affinity.podAffinity: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "nodes by their fields",
        {
            "spec.podTemplate": {
                "spec": {
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name"}]}]
                            }
                        }
                    }
                }
            }
        },
        "spec.podTemplate.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms[0].matchFields: Forbidden: not for a run to set; remove it",
    ),
    bad(
        "a claim from nowhere",
        {"spec.podTemplate": {"spec": {"resourceClaims": [{"name": "gpu"}]}}},
        "spec.podTemplate.spec.resourceClaims[0]: Invalid value: "
        "give exactly one of resourceClaimName, resourceClaimTemplateName",
    ),
    bad(
        "a container beside the runner",
        {"spec.podTemplate": {"spec": {"containers": [{"name": "runner"}, {"name": "sidecar"}]}}},
        "spec.podTemplate.spec.containers: Too many: 2: must have at most 1 item",
        unsupported("spec.podTemplate.spec.containers[1].name", "sidecar", "runner"),
    ),
    bad(
        "a directory of the node",
        {"spec.podTemplate": {"spec": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}}},
        "spec.podTemplate.spec.volumes[0].hostPath: Forbidden: not for a run to set; remove it",
        "spec.podTemplate.spec.volumes[0]: Invalid value: "
        "give exactly one of emptyDir, configMap, secret, persistentVolumeClaim",
    ),
    bad(
        "a volume from nowhere",
        {"spec.podTemplate": {"spec": {"volumes": [{"name": "data"}]}}},
        "spec.podTemplate.spec.volumes[0]: Invalid value: "
        "give exactly one of emptyDir, configMap, secret, persistentVolumeClaim",
    ),
    bad(
        "the runner's own variables",
        {"spec.podTemplate": runner(env=[{"name": "ACCELBENCH_WORK_DIRECTORY", "value": "/"}])},
        'spec.podTemplate.spec.containers[0].env[0].name: Invalid value: "ACCELBENCH_WORK_DIRECTORY": '
        "names that start with ACCELBENCH_ are the runner's own",
    ),
    bad(
        "an amount that is none",
        {"spec.podTemplate": runner(resources={"limits": {"memory": "16 GB"}})},
        unmatched(
            "spec.podTemplate.spec.containers[0].resources.limits.memory",
            "16 GB",
            r"^[0-9]+(\.[0-9]+)?(m|k|[MGTPE]|[KMGTPE]i)?$",
        ),
    ),
)
