"""Kubeconfig files: where the API server is, and who is calling."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.certificates import KeyPair

__all__ = ["CONTEXT", "write_kubeconfig"]

CONTEXT = "accelbench-tests"


def write_kubeconfig(path: Path, *, server: str, authority: Path, user: KeyPair) -> Path:
    """Write a kubeconfig that holds everything it needs, so that it can be copied into a pod; JSON is YAML."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "clusters": [
            {"name": CONTEXT, "cluster": {"server": server, "certificate-authority-data": _encoded(authority)}}
        ],
        "users": [
            {
                "name": CONTEXT,
                "user": {
                    "client-certificate-data": _encoded(user.certificate),
                    "client-key-data": _encoded(user.key),
                },
            }
        ],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content, indent=1))
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
