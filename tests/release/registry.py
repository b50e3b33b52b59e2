"""Run the distribution registry on this machine."""

from __future__ import annotations

import contextlib
import json
import subprocess
import urllib.request
from typing import TYPE_CHECKING, Any

from cluster.ports import free_port
from cluster.wait import HANG_SECONDS, wait_until
from release.tools import REGISTRY, tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def running_registry(directory: Path) -> Iterator[str]:
    """The distribution registry, on this machine."""
    address = f"127.0.0.1:{free_port()}"
    configuration = directory / "registry.yaml"
    storage = {"filesystem": {"rootdirectory": str(directory / "storage")}}
    configuration.write_text(json.dumps({"version": 0.1, "storage": storage, "http": {"addr": address}}))
    quiet = subprocess.DEVNULL
    with subprocess.Popen([tool(REGISTRY), "serve", configuration], stdout=quiet, stderr=quiet) as process:
        try:
            wait_until(lambda: _answers(address), what="the registry to answer")
            yield address
        finally:
            process.terminate()


def get(address: str, accept: str = "*/*") -> Any:
    """Return the answer of a registry on this machine."""
    opener = urllib.request.build_opener()
    opener.addheaders = [("Accept", accept)]
    with opener.open(f"http://{address}", timeout=HANG_SECONDS) as answer:
        return json.load(answer)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/v2/", timeout=5):
            return True
    except OSError:
        return False
