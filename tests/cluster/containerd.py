"""The node's container runtime: a containerd of our own, that shares nothing with one the machine may have."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cluster.errors import ClusterError, ToolMissingError

__all__ = ["PAUSE_IMAGE", "SOCKET_NAME", "import_image", "name_image", "write_configuration"]

SOCKET_NAME = "containerd.sock"
PAUSE_IMAGE = "localhost/pod:pause"
PLUGIN_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))

CONFIGURATION = """\
version = 2
root = "{directory}/containerd"
state = "/run/containerd"

[grpc]
address = "{directory}/{socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause_image}"
# The kubelet asks for negative scores, which takes a capability that a container or a restricted machine lacks.
restrict_oom_score_adj = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{directory}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def write_configuration(directory: Path) -> Path:
    """Write the configuration of a containerd that lives in this directory, and return its path."""
    plugins = next((path for path in PLUGIN_DIRECTORIES if (path / "bridge").exists()), None)
    if plugins is None:
        raise ToolMissingError("a node needs the CNI plugins (Debian: containernetworking-plugins)")
    path = directory / "containerd.toml"
    path.write_text(
        CONFIGURATION.format(directory=directory, socket=SOCKET_NAME, pause_image=PAUSE_IMAGE, plugins=plugins)
    )
    return path


def import_image(socket: Path, archive: Path) -> None:
    """Give containerd an image from an archive; raise `ClusterError` where it refuses it."""
    _images(socket, f"containerd refused {archive.name}", "import", archive)


def name_image(socket: Path, image: str, name: str) -> None:
    """Give an image of containerd's one more name; raise `ClusterError` where it has no such image."""
    _images(socket, f"containerd has no {image}", "tag", "--force", image, name)


def _images(socket: Path, failed: str, *arguments: str | Path) -> None:
    command = ["ctr", f"--address={socket}", "--namespace=k8s.io", "images", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{failed}:\n{done.stderr}")
