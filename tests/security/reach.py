"""Fields of a pod that a user of BenchmarkRuns may try: refused, or allowed and documented."""

from __future__ import annotations

from typing import Any

from api.good import GPU_POD, RUNNER
from api.manifests import runner

__all__ = ["ALLOWED", "EVERYTHING", "REFUSED_BY_THE_API_SERVER", "REFUSED_BY_THE_OPERATOR"]

Template = dict[str, Any]


def pod(**fields: Any) -> Template:
    return {"spec": fields}


def volume(**source: Any) -> Template:
    return pod(volumes=[{"name": "data", **source}])


def secured(**fields: Any) -> Template:
    return runner(securityContext=fields)


def variable(source: str, **fields: Any) -> Template:
    return runner(env=[{"name": "VALUE", "valueFrom": {source: fields}}])


REFUSED_BY_THE_API_SERVER: dict[str, Template] = {
    # The node.
    "a path of the node": volume(hostPath={"path": "/"}),
    "the node's network": pod(hostNetwork=True),
    "the node's processes": pod(hostPID=True),
    "the node's IPC": pod(hostIPC=True),
    "the node's users": pod(hostUsers=True),
    "a port of the node": runner(ports=[{"containerPort": 80, "hostPort": 80}]),
    "a node by its name": pod(nodeName="control-plane"),
    "a device of the node": runner(volumeDevices=[{"name": "data", "devicePath": "/dev/sda"}]),
    "mounts that reach the node": runner(
        volumeMounts=[{"name": "data", "mountPath": "/data", "mountPropagation": "Bidirectional"}]
    ),
    # Privilege.
    "a privileged container": secured(privileged=True),
    "capabilities": secured(capabilities={"add": ["SYS_ADMIN"]}),
    "more privileges later": secured(allowPrivilegeEscalation=True),
    "root in the container": secured(runAsUser=0),
    "root in the pod": pod(securityContext={"runAsUser": 0}),
    "root allowed": pod(securityContext={"runAsNonRoot": False}),
    "all of /proc": secured(procMount="Unmasked"),
    "a root that can be written to": secured(readOnlyRootFilesystem=False),
    "system calls without a filter": pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
    "no AppArmor": pod(securityContext={"appArmorProfile": {"type": "Unconfined"}}),
    "another SELinux label": pod(securityContext={"seLinuxOptions": {"type": "spc_t"}}),
    "a host process on Windows": pod(securityContext={"windowsOptions": {"hostProcess": True}}),
    "kernel parameters": pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    "groups": pod(securityContext={"supplementalGroups": [0]}),
    # Who it is.
    "another service account": pod(serviceAccountName="operator"),
    "the same by its old name": pod(serviceAccount="operator"),
    "the account's token": pod(automountServiceAccountToken=True),
    "a token as a volume": volume(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}),
    "the pod's own fields as a volume": volume(downwardAPI={"items": []}),
    "the pod's own fields as a variable": variable("fieldRef", fieldPath="spec.serviceAccountName"),
    # Other containers and other programs.
    "a container before": pod(initContainers=[{"name": "first", "image": "a"}]),
    "a container in the running pod": pod(ephemeralContainers=[{"name": "debugger", "image": "a"}]),
    "processes in common": pod(shareProcessNamespace=True),
    "another program": runner(command=["sh"]),
    "other arguments": runner(args=["-c", "true"]),
    "a program of the lifecycle": runner(lifecycle={"postStart": {"exec": {"command": ["sh"]}}}),
    "a terminal": runner(stdin=True, tty=True),
    "all of a Secret as variables": runner(envFrom=[{"secretRef": {"name": "a"}}]),
    # Storage by which a pod reaches what its namespace does not have.
    "storage of the network": volume(nfs={"server": "10.0.0.1", "path": "/"}),
    "a driver's volume": volume(csi={"driver": "secrets-store.csi.k8s.io"}),
    "an image as a volume": volume(image={"reference": "a"}),
    "a repository": volume(gitRepo={"repository": "https://example.com"}),
    # Names and times.
    "names of its own": pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["kubernetes.default.svc"]}]),
    "a server of names": pod(dnsConfig={"nameservers": ["10.0.0.1"]}),
    "a priority as a number": pod(priority=2_000_000_000),
    "no deadline": pod(activeDeadlineSeconds=10**6),
    "an overhead that is not counted": pod(overhead={"cpu": "1m"}),
}
"""With `Forbidden: not for a run to set`, for every client."""

REFUSED_BY_THE_OPERATOR: dict[str, Template] = {
    "no AppArmor by its old name": {
        "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/runner": "unconfined"}}
    },
    "a file over the runner's own": runner(volumeMounts=[{"name": "data", "mountPath": "/etc/accelbench/case.json"}]),
    "the same by a way round": runner(volumeMounts=[{"name": "data", "mountPath": "/tmp/../etc/accelbench/case.json"}]),
}
"""With `Accepted: False`: of these the API server's rules could not tell."""

ALLOWED: dict[str, Template] = {
    "a Secret as a variable": variable("secretKeyRef", name="token", key="token"),
    "a Secret as files": volume(secret={"secretName": "token"}),
    "a ConfigMap as a variable": variable("configMapKeyRef", name="settings", key="a"),
    "a ConfigMap as files": volume(configMap={"name": "settings"}),
    "a PersistentVolumeClaim": volume(persistentVolumeClaim={"claimName": "data"}),
    "a ResourceClaim": pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
    "an image": runner(image="example.com/anything:1"),
    "a pull secret": pod(imagePullSecrets=[{"name": "registry"}]),
    "nodes by labels and taints": pod(
        nodeSelector={"node-role.kubernetes.io/control-plane": ""}, tolerations=[{"operator": "Exists"}]
    ),
    "a PriorityClass": pod(priorityClassName="benchmarks"),
    "a RuntimeClass": pod(runtimeClassName="nvidia"),
    "a scheduler": pod(schedulerName="other"),
    "a group for files": pod(securityContext={"fsGroup": 0}),
    "labels and annotations": {"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}},
}
"""What docs/operations/security.md says that whoever may create a BenchmarkRun can have, each in a row of its table."""

EVERYTHING: dict[str, Any] = {
    "metadata": GPU_POD["metadata"],
    "spec": {
        **GPU_POD["spec"],
        **runner(**RUNNER | {"resources": {"limits": {"memory": "8Gi"}, "claims": [{"name": "gpu"}]}})["spec"],
        "schedulerName": "default-scheduler",
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        "securityContext": {"fsGroup": 0, "fsGroupChangePolicy": "OnRootMismatch"},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
    },
}
"""Each field of a pod that a run may set."""
