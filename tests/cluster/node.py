"""The node: a kubelet and a container runtime that really run pods, on the machine that the tests run on."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from cluster.cgroups import create_cgroups, remove_cgroups
from cluster.containerd import PAUSE_IMAGE, SOCKET_NAME, import_image, write_configuration
from cluster.image import archive_from_files
from cluster.kubeconfig import write_kubeconfig
from cluster.network import create_network, remove_network
from cluster.ports import free_port
from cluster.sandbox import check_machine, enter, start_sandbox

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.build import Binaries
    from cluster.control_plane import ControlPlane
    from cluster.processes import Processes

__all__ = ["NODE_NAME", "mark_of", "prepare_node", "remove_node_traces", "start_node"]

# The API server dials the kubelet by its node's name; this one leads to 127.0.0.1 on every machine.
NODE_NAME = "localhost"


def prepare_node(directory: Path) -> str:
    """Create the pods' network, and return this machine's address there: that of the API server, so pods reach it.

    Raises `ToolMissingError` where this machine cannot run a node.
    """
    check_machine(directory)
    return create_network(directory, mark_of(directory))


def start_node(directory: Path, programs: Binaries, processes: Processes, control_plane: ControlPlane) -> None:
    """Start the node that was prepared; it joins the control plane, and is ready some seconds later.

    Raises `ToolMissingError` without the CNI plugins, `ComponentError` with the log of what failed.
    """
    mark = mark_of(directory)
    configuration = write_configuration(directory)
    command = ["containerd", f"--config={configuration}"]
    first = start_sandbox("containerd", command, directory, processes)
    create_cgroups(mark)
    pause = archive_from_files(
        directory / "pause.tar", name=PAUSE_IMAGE, files={"/pod": programs.pod}, entrypoint=["/pod"]
    )
    socket = directory / SOCKET_NAME
    processes.wait_for("containerd", socket.exists, what="containerd to listen")
    import_image(socket, pause)
    _start_kubelet(directory, programs, processes, control_plane, first=first, mark=mark)


def remove_node_traces(directory: Path) -> None:
    """Remove what a node leaves outside its directory, once its processes have ended; it need not have existed."""
    mark = mark_of(directory)
    remove_cgroups(mark)
    remove_network(mark)


def mark_of(directory: Path) -> str:
    """Return the name of what the node has on the machine; short, as an interface's name may have 15 characters."""
    return f"bench-{hashlib.sha256(bytes(directory.resolve())).hexdigest()[:8]}"


def _start_kubelet(
    directory: Path, programs: Binaries, processes: Processes, control_plane: ControlPlane, *, first: int, mark: str
) -> None:
    authority = control_plane.authority
    kubeconfig = write_kubeconfig(
        directory / "pki" / "kubelet.kubeconfig",
        server=control_plane.server,
        authority=authority.certificate,
        user=authority.client(f"system:node:{NODE_NAME}", "system:nodes"),
    )
    configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": free_port(),
        "readOnlyPort": 0,
        "healthzPort": free_port(),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{directory / SOCKET_NAME}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{mark}",
        "failCgroupV1": False,
        "failSwapOn": False,
        # The machine's rules for packets and names are none of the pods' business.
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        # A development machine's disk is often nearly full, and no image here could be fetched again.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 1000,
        "kubeAPIBurst": 2000,
        "registerWithTaints": [],
        # Tests end containers again and again, and the usual wait between two starts grows to five minutes.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
    }
    path = directory / "kubelet.json"
    path.write_text(json.dumps(configuration, indent=1))
    command: list[str | Path] = [programs.kubelet, f"--config={path}", f"--kubeconfig={kubeconfig}"]
    processes.start("kubelet", [*enter(first), *command, f"--hostname-override={NODE_NAME}"])
