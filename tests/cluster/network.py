"""The pods' network: one bridge on the machine, with a subnet of its own and no way out."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from pathlib import Path

from cluster.build import cache, locked
from cluster.errors import ClusterError

__all__ = ["create_network", "remove_network"]

CANDIDATES = ipaddress.ip_network("10.88.0.0/14").subnets(new_prefix=24)


def create_network(directory: Path, bridge: str) -> str:
    """Create the bridge on a subnet that nobody uses, and tell containerd about it in the directory's cni folder.

    Returns the machine's own address on it.
    """
    with locked(cache() / "network.lock"):
        subnet = _free_subnet()
        gateway = next(subnet.hosts())
        _ip("link", "add", bridge, "type", "bridge")
        _ip("address", "add", f"{gateway}/{subnet.prefixlen}", "dev", bridge)
        _ip("link", "set", bridge, "up")
    # It is no gateway: that would turn on forwarding for the whole machine, and a benchmark needs no network.
    plugin = {
        "type": "bridge",
        "bridge": bridge,
        "isGateway": False,
        "ipMasq": False,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": str(subnet), "gateway": str(gateway)}]]},
    }
    configuration = {"cniVersion": "0.4.0", "name": bridge, "plugins": [plugin]}
    (directory / "cni").mkdir(exist_ok=True)
    (directory / "cni" / "10-bridge.conflist").write_text(json.dumps(configuration))
    return str(gateway)


def remove_network(bridge: str) -> None:
    """Remove the bridge, if it is there; the pods' ends of it went with their namespaces."""
    if Path("/sys/class/net", bridge).exists():
        _ip("link", "delete", bridge)


def _free_subnet() -> ipaddress.IPv4Network:
    used = [
        ipaddress.ip_network(route["dst"])
        for route in json.loads(_ip("-json", "-4", "route", "show", "table", "all"))
        if route["dst"] != "default"
    ]
    for subnet in CANDIDATES:
        if not any(subnet.overlaps(other) for other in used):
            assert isinstance(subnet, ipaddress.IPv4Network)
            return subnet
    raise ClusterError("no subnet is free for the pods' network: is there a cluster that was not taken down?")


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"ip {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout
