"""Compare XLA's programs on a real GPU with those compiled for it without one.

`python benchmarks/targets_against_gpu.py [CHECKS]`, with the extra `targets-gpu`: by default the checks of an H100 in
`docs/results/gpu`. Programs differ between versions of JAX, so use the version of the GPU's run.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax

from accelbench import catalogue, frameworks, targets
from accelbench.catalogue import inputs
from accelbench.launch.facts import ExecutableSize
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import AdapterSettings
from accelbench_runner.frameworks.work import Work

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from workloads.small import SMALL  # noqa: E402 - the sizes that were checked on the GPU

CHECKS = ROOT / "docs" / "results" / "gpu" / "nvidia-h100-80gb-hbm3" / "checks.json"
NUMBERS = ("kernels_per_call", "temporary_bytes", "aliased_bytes", "program_size")


def compiled(name: str, use: str, precision: Any, target: targets.Target) -> ExecutableSize | None:
    """Compile a variant, in the small size of the tests, for the target, and return the size of its executable."""
    workload = catalogue.find(name)
    kind = workload.variants()[use]
    parameters = catalogue.parse_parameters(workload, dict(SMALL[name][0]))
    settings = AdapterSettings(
        mode=kind.adapter_mode,
        options=catalogue.parse_options(kind, {}),
        platform="cpu",
        precision=precision,
        threads=1,
        differentiates=workload.measure(parameters).differentiates,
    )
    adapter = frameworks.find(kind.framework).load_adapter()(settings)
    adapter.initialise()

    def set_up() -> tuple[Program, Work]:
        arrays = inputs.generate(workload, parameters, seed=1)
        program = getattr(workload, kind.method)(parameters, arrays, adapter)
        return program, adapter.prepare(program)

    adapter.targets.compile(*adapter.targets.build_abstract(set_up), target)
    size: ExecutableSize | None = adapter.accounting.executable_size()
    return size


def main() -> None:
    """Print a row of Markdown for each program; differences read `without a device, with it`."""
    gpu_run = json.loads((Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKS).read_text())
    print(f"JAX {jax.__version__} here, {gpu_run['jax']} on the {gpu_run['device']}.\n")
    print(f"| program | {' | '.join(name.replace('_', ' ') for name in NUMBERS)} |")
    print(f"|---|{'---:|' * len(NUMBERS)}")
    programs = same = 0
    for key, checked in gpu_run["checked"].items():
        name, use, precision = key.split()
        if not (use.startswith("jax/") and checked["compiled"]):
            continue
        size = compiled(name, use, precision, targets.find("h100"))
        estimated = {number: getattr(size, number) for number in NUMBERS}
        actual = {number: checked["compiled"].get(number) for number in NUMBERS}
        cells = []
        for number in NUMBERS:
            is_equal = estimated[number] == actual[number]
            cells.append(str(actual[number]) if is_equal else f"**{estimated[number]}, {actual[number]}**")
        print(f"| {key} | {' | '.join(cells)} |", flush=True)
        programs, same = programs + 1, same + (estimated == actual)
    print(f"\n{same} of {programs} programs are the same in all of these.")


if __name__ == "__main__":
    main()
