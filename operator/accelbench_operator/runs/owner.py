"""What makes a run own an object: with the run, the API server deletes it."""

from typing import Any

from accelbench.api.metadata import API_VERSION
from accelbench.api.run import BenchmarkRun


def owner_reference(run: BenchmarkRun) -> dict[str, Any]:
    """The run as the controller of an object."""
    return {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkRun",
        "name": run.metadata.name,
        "uid": run.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
