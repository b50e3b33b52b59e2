"""TPU slices on GKE: how many chips a topology has, and whether they are all on one host.

Labels and sizes: cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus. GKE places a pod on a slice only where it
asks for every chip of its node.
"""

import math
import re
from collections.abc import Mapping

ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
ON_ONE_HOST: Mapping[str, tuple[str, ...]] = {
    "tpu-v5-lite-podslice": ("1x1", "2x2", "2x4"),  # v5e: ct5lp-hightpu-1t, -4t, -8t
    "tpu-v5p-slice": ("2x2x1",),  # ct5p-hightpu-4t
    "tpu-v6e-slice": ("1x1", "2x2", "2x4"),  # ct6e-standard-1t, -4t, -8t
}


def chips(node_selector: Mapping[str, str]) -> int:
    """Chips of the slice that these labels select; raises ValueError where one host does not have them all."""
    topology, accelerator = node_selector[TOPOLOGY], node_selector.get(ACCELERATOR, "")
    if accelerator not in ON_ONE_HOST:
        known = ", ".join(ON_ONE_HOST)
        raise ValueError(f"nodeSelector: {TOPOLOGY} also needs {ACCELERATOR}, one of {known}")
    if not re.fullmatch(r"[1-9][0-9]*(x[1-9][0-9]*){1,2}", topology):
        raise ValueError(f"nodeSelector: {TOPOLOGY}: {topology}: must be chips along each axis, as 2x4 or 2x2x1")
    count = math.prod(int(side) for side in topology.split("x"))
    if topology not in ON_ONE_HOST[accelerator]:
        one_host = ", ".join(ON_ONE_HOST[accelerator])
        raise ValueError(
            f"nodeSelector: {TOPOLOGY}: {topology} has {count} chips, and no host of {accelerator} has them in that "
            f"shape; a case runs on one host: take {one_host}"
        )
    return count
