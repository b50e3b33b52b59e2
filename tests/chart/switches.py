"""Every switch of the chart, turned: values by the name of what a user wants."""

from __future__ import annotations

from typing import Any

__all__ = ["EVERYTHING", "SWITCHES"]

RELABELING = [{"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}]
SELECTOR = {"matchLabels": {"dashboards": "grafana"}}
MONITOR = {
    "enabled": True,
    "interval": "15s",
    "scrapeTimeout": "10s",
    "labels": {"release": "prometheus"},
    "annotations": {"note": "of a monitor"},
    "relabelings": RELABELING,
    "metricRelabelings": [{"sourceLabels": ["__name__"], "regex": "python_.*", "action": "drop"}],
}
ON_ARM = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]}
            ]
        }
    }
}

SWITCHES: dict[str, dict[str, Any]] = {
    "a registry for all charts": {
        "global": {"imageRegistry": "registry.example.com", "imagePullSecrets": [{"name": "a"}]}
    },
    "pull secrets": {"images": {"registry": "registry.example.com/ml", "pullSecrets": [{"name": "registry"}]}},
    "digests": {"images": {"operatorDigest": f"sha256:{'a' * 64}", "runnerDigest": f"sha256:{'b' * 64}"}},
    "definitions elsewhere": {"crds": {"enabled": False}},
    "definitions that go": {"crds": {"keep": False, "annotations": {"note": "of a definition"}}},
    "profiles": {"profiles": {"h100": {"preset": "gke-nvidia-h100", "pricePerHour": "11.06 USD"}}},
    "defaults for pods": {"podTemplate": {"spec": {"priorityClassName": "benchmarks"}}},
    "some namespaces": {"namespaces": ["team-a", "team-b"]},
    "namespaces by their labels": {"namespaceLabels": {"accelbench.dev/runs": "allowed", "stage": "production"}},
    "nothing of the cluster's": {
        "namespaces": ["team-a"],
        "crds": {"enabled": False},
        "rbac": {"userRoles": False},
        "admissionPolicy": {"enabled": False},
    },
    "no admission policy": {"admissionPolicy": {"enabled": False}},
    "benchmarks for all who may edit": {"rbac": {"aggregate": True}},
    "another class": {"className": "second"},
    "replicas": {"replicas": 3, "podDisruptionBudget": {"minAvailable": 2}},
    "replicas by share": {"replicas": 3, "podDisruptionBudget": {"maxUnavailable": "40%"}},
    "no budget": {"replicas": 2, "podDisruptionBudget": {"enabled": False}},
    "resources": {"resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "1Gi"}}},
    "security contexts": {
        "podSecurityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
        "securityContext": {"readOnlyRootFilesystem": True, "seLinuxOptions": {"level": "s0:c1,c2"}},
    },
    "placement": {
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "affinity": ON_ARM,
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "priorityClassName": "system-cluster-critical",
        "runtimeClassName": "gvisor",
    },
    "labels and annotations": {
        "commonLabels": {"team": "ml"},
        "commonAnnotations": {"owner": "nobody in particular"},
        "deploymentAnnotations": {"reloader": "true"},
        "podAnnotations": {"scrape": "true"},
        "podLabels": {"sidecar": "false"},
    },
    "environment and volumes": {
        "extraEnv": [{"name": "NO_PROXY", "value": "10.0.0.0/8"}],
        "extraEnvFrom": [{"secretRef": {"name": "proxy"}}],
        "extraVolumes": [{"name": "authority", "configMap": {"name": "authority"}}],
        "extraVolumeMounts": [{"name": "authority", "mountPath": "/etc/ssl/authority", "readOnly": True}],
    },
    "the node's network": {"hostNetwork": True},
    "an end and a history": {"terminationGracePeriodSeconds": 5, "revisionHistoryLimit": 0},
    "an account that is there": {"serviceAccount": {"create": False, "name": "mine"}},
    "a workload identity": {"serviceAccount": {"annotations": {"iam.example.com/role": "none"}}},
    "no roles": {"rbac": {"create": False, "userRoles": False}},
    "ports": {"metrics": {"port": 9191}, "health": {"port": 8181}},
    "a service": {
        "metrics": {
            "service": {
                "labels": {"scraped": "true"},
                "annotations": {"prometheus.io/scrape": "true"},
                "ipFamilyPolicy": "PreferDualStack",
            }
        }
    },
    "a ServiceMonitor": {"metrics": {"serviceMonitor": MONITOR}},
    "a PodMonitor": {"metrics": {"podMonitor": MONITOR}},
    "metrics over TLS": {
        "metrics": {
            "series": 100,
            "tls": {"secretName": "metrics", "clientCA": "scrapers"},
            "authorization": True,
            "serviceMonitor": {
                "enabled": True,
                "tlsConfig": {"serverName": "accelbench-metrics"},
                "authorization": {"credentials": {"name": "prometheus", "key": "token"}},
            },
        }
    },
    "rules": {
        "metrics": {
            "prometheusRule": {
                "enabled": True,
                "labels": {"release": "prometheus"},
                "alertLabels": {"team": "ml"},
                "runbookUrl": "https://docs.example.com/alerts",
            }
        }
    },
    "network policies": {"networkPolicy": {"enabled": True}, "namespaces": ["team-a"]},
    "network policies that say where": {
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            "apiServer": {"ports": [6443], "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]},
        }
    },
    "dashboards in a folder": {"dashboards": {"annotations": {"grafana_folder": "Benchmarks"}}},
    "no dashboards": {"dashboards": {"enabled": False}},
    "the Grafana operator": {
        "dashboards": {
            "enabled": False,
            "grafanaOperator": {
                "enabled": True,
                "instanceSelector": SELECTOR,
                "allowCrossNamespaceImport": False,
                "folder": "Benchmarks",
                "resyncPeriod": "10m",
            },
        }
    },
    "other names": {"nameOverride": "bench", "fullnameOverride": "bench"},
}


def _merged(values: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    both = {
        name: _merged(values[name], more[name]) for name in values.keys() & more.keys() if isinstance(more[name], dict)
    }
    return {**values, **more, **both}


EVERYTHING: dict[str, Any] = {}
"""As many of them at once as do not contradict each other."""
for _name, _values in SWITCHES.items():
    if _name not in {
        "definitions elsewhere",
        "namespaces by their labels",
        "nothing of the cluster's",
        "no admission policy",
        "replicas by share",
        "no budget",
        "the node's network",
        "an account that is there",
        "no roles",
        "a PodMonitor",
        "no dashboards",
    }:
        EVERYTHING = _merged(EVERYTHING, _values)
EVERYTHING["dashboards"]["enabled"] = True
