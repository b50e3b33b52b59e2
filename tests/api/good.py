"""Manifests that are accepted, each with what makes it worth a row."""

from typing import Any

from api.bad.table import axis, expectation, observation, rounds
from api.manifests import ABSENT, runner

GPU_POD: dict[str, Any] = {
    "metadata": {"labels": {"team": "vision"}, "annotations": {"owner": "nobody in particular"}},
    "spec": {
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "benchmarks", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}}
                ],
            }
        },
        "priorityClassName": "benchmarks",
        "runtimeClassName": "nvidia",
        "imagePullSecrets": [{"name": "registry"}],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
            {"name": "settings", "configMap": {"name": "settings", "optional": True}},
            {"name": "token", "secret": {"secretName": "token"}},
        ],
    },
}
RUNNER: dict[str, Any] = {
    "image": "example.com/runner:1",
    "imagePullPolicy": "IfNotPresent",
    "env": [
        {"name": "XLA_FLAGS", "value": "--xla_dump_to="},
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "token"}}},
    ],
    "resources": {"limits": {"cpu": 4, "memory": "16Gi", "nvidia.com/gpu": 1}, "requests": {"cpu": "3500m"}},
    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
}

GOOD_CHANGES: dict[str, dict[str, Any]] = {
    "the least there is": {},
    "one variant alone": {"spec.variants": [{"use": "jax/jit"}]},
    "sixteen variants": {"spec.variants": [{"use": "jax/jit", "name": f"v{number}"} for number in range(16)]},
    "one use under two names": {
        "spec.variants": [{"use": "pytorch/compile"}, {"use": "pytorch/compile", "name": "tuned"}],
        "spec.baseline": "tuned",
    },
    "options": {"spec.variants[1].options": {"mode": "max-autotune", "level": 3}},
    "parameters of both types": {"spec.workload.parameters": {"size": 512, "kind": "dense"}},
    "a parameter that only looks like a number": {"spec.workload.parameters": {"size": "1e3", "tag": "0x10"}},
    "a parameter below zero": {"spec.workload.parameters": {"shift": -3}},
    "a whole fraction": {"spec.workload.parameters": {"size": 512.0}},
    "a sweep": {"spec.sweep": [{"name": "size", "values": [256, 512, 1024]}]},
    "a sweep over both types": {"spec.sweep": [{"name": "size", "values": [1, "1"]}]},
    "256 cases of one axis": {"spec.sweep": [axis("size", 256)]},
    "256 cases of four axes": {"spec.sweep": [axis(name, 4) for name in "abcd"]},
    "a sweep beside other parameters": {"spec.workload.parameters": {"length": 1}, "spec.sweep": [axis("size", 2)]},
    "a series": {"spec.series": "nightly-matmul"},
    "exactly so many rounds": rounds(7, 7),
    "one bound of the rounds": {"spec.measurement.rounds": {"max": 9}},
    "percentages at their ends": {
        "spec.measurement": {"targetRelativeError": "0.0001%", "confidence": "99.99%", "equivalenceMargin": "0%"}
    },
    "another precision": {"spec.measurement": {"precision": "bfloat16", "seed": 2147483647}},
    "noise accepted": {"spec.measurement.acceptNoise": True},
    "calls timed one by one": {"spec.measurement.protocol": "latency"},
    "requests that arrive": {"spec.measurement": {"protocol": "arrivals", "arrivals": {"ratePerSecond": 100}}},
    "requests that take just the time there is": {
        "spec.measurement": {
            "protocol": "arrivals",
            "arrivals": {"ratePerSecond": 10, "process": "constant", "requests": 500},
            "timeLimitSeconds": 500,
        }
    },
    "a profile": {"spec.accelerator": {"profile": "nvidia-h100", "devicesPerNode": 1}},
    "an expectation between two bounds": expectation(atLeast="9.5", atMost="10"),
    "an expectation of exactly one value": expectation(atLeast="2", atMost="2.0"),
    "seconds of the baseline": expectation(metric="seconds", variant="pytorch/eager", atMost="0.5"),
    "an observation that equals something": observation(equals="1, 0, 1"),
    "an observation between two bounds": observation(atLeast="1", atMost="3"),
    "an observation of the baseline": observation(variant="pytorch/eager", equals="0"),
    "an observation beside a speedup": {
        "spec.expectations": [
            {"observation": "raised", "variant": "jax/jit", "equals": "nothing"},
            {"metric": "speedup", "variant": "jax/jit", "atLeast": "2"},
        ]
    },
    "what compiling costs": {
        "spec.expectations": [
            {"metric": metric, "variant": "jax/jit", "atMost": "1"}
            for metric in ("compileSeconds", "warmCompileSeconds", "compileRatio", "firstCallRatio", "paysBackSteps")
        ]
    },
    "what the baseline has of its own": {
        "spec.expectations": [
            {"metric": metric, "variant": "pytorch/eager", "atMost": "1"}
            for metric in ("firstCallRatio", "parity", "launchSpread", "productsPerCall")
        ]
    },
    "what was compiled": {
        "spec.expectations": [
            {"metric": metric, "variant": variant, "atMost": "1"}
            for metric in ("kernelsPerCall", "programSize", "aliasedBytes", "temporaryBytes")
            for variant in ("jax/jit", "pytorch/eager")
        ]
    },
    "a script": {
        "spec.workload": {"script": {"configMapKeyRef": {"name": "my-workloads", "key": "my_filter.py"}}},
    },
    "a run policy": {
        "spec.runPolicy": {
            "suspend": True,
            "parallelism": 4,
            "infrastructureRetries": 0,
            "startDeadlineSeconds": 600,
            "activeDeadlineSeconds": 7200,
            "ttlSecondsAfterFinished": 0,
        }
    },
    "nulls where nothing is meant": {
        "spec.baseline": None,
        "spec.sweep": None,
        "spec.measurement": None,
        "spec.podTemplate": None,
        "spec.runPolicy": {"startDeadlineSeconds": None, "suspend": None},
    },
    "a pod template": {"spec.podTemplate": {"spec": {**GPU_POD["spec"], **runner(**RUNNER)["spec"]}}},
    "devices by claims, spread over zones, with files of a group": {
        "spec.podTemplate": {
            "spec": {
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": {"accelbench.dev/series": "nightly"}},
                    }
                ],
                "securityContext": {"fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch"},
                **runner(resources={"claims": [{"name": "gpu"}]})["spec"],
            }
        }
    },
    "a pod's metadata": {"spec.podTemplate.metadata": GPU_POD["metadata"]},
    "an empty pod template": {"spec.podTemplate": {}},
    "labels and annotations": {
        "metadata.labels": {"kueue.x-k8s.io/queue-name": "", "team": "vision"},
        "metadata.annotations": {"note": "anything goes: even this"},
    },
    "a status, which is not the user's to give": {"status": {"phase": "Succeeded"}},
    "a generated name": {"metadata.name": ABSENT, "metadata.generateName": "matmul-"},
}
