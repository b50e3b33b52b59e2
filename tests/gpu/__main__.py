"""What checks on a GPU found, in one file: `ACCELBENCH_GPU_CHECKS=DIR make test-gpu`, then, on the same machine,
`PYTHONPATH=tests python -m gpu DIR > checks.json`. `benchmarks/targets_against_gpu.py` reads it.
"""

import json
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


def condensed(directory: Path) -> dict[str, Any]:
    """By variant: the outcome of each check, and the numbers of its program. A check that said nothing is left out."""
    kept = [json.loads(file.read_text()) for file in sorted(directory.glob("*.json"))]
    found = {each["asked"]: json.loads(each["found"])[0]["variants"][0] for each in kept if each["found"]}
    return {
        asked: {
            "checks": {check["name"]: check["outcome"] for check in variant["checks"]},
            "compiled": variant["compiled"] or {},
        }
        for asked, variant in found.items()
    }


def device() -> dict[str, str]:
    """What they were found on: the first GPU, its driver, and the frameworks."""
    import pynvml  # of the extra `cuda`, which only a machine with a GPU has
    import torch

    pynvml.nvmlInit()
    return {
        "device": pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)),
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "python": platform.python_version(),
        "jax": version("jax"),
        "torch": torch.__version__,
        "cudnn": str(torch.backends.cudnn.version()),
        "day": datetime.now(UTC).date().isoformat(),
    }


if __name__ == "__main__":
    json.dump({**device(), "checked": condensed(Path(sys.argv[1]))}, sys.stdout, indent=1)
