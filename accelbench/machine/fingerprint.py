"""Fingerprint everything a measurement depends on besides the case: hardware, kernel, limits, versions, source.

Two results may be compared over time only if the relevant parts of their fingerprints agree
(`accelbench.history.comparability`). Values are short strings; unreadable ones are left out. The host is read once,
before the first launch, so that reading it disturbs nothing.
"""

import hashlib
import inspect
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from accelbench import workloads
from accelbench.api.case import Case
from accelbench.launch.fact import known
from accelbench.launch.facts import Facts
from accelbench.machine import cgroup, memory

MAXIMUM_VALUE_CHARACTERS = 200
VECTORS = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "sve",
    "sve2",
)
"""Instruction sets that determine how fast a processor multiplies, by Linux's names."""

ENVIRONMENT_PREFIXES = (
    "XLA_", "JAX_", "TF_XLA_", "TORCH", "PYTORCH_", "TRITON_", "INDUCTOR_", "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_",
    "NVIDIA_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_", "LD_PRELOAD", "PYTHONOPTIMIZE", "LIBTPU_",
)  # fmt: skip
"""Variables that change what frameworks compute, or how fast."""


def of_host(
    environment: Mapping[str, str] = os.environ, *, root: Path = Path("/"), threads: int | None = None
) -> dict[str, str]:
    """Describe the machine, the container and this Python.

    Args:
        environment: This process's environment variables.
        root: Directory that has /proc and /sys.
        threads: Processors that each launch may use.
    """
    cpuinfo = _first_processor(root / "proc/cpuinfo")
    flags = (cpuinfo.get("flags") or cpuinfo.get("Features") or "").split()
    entries = {
        "cpu": cpuinfo.get("model name") or cpuinfo.get("CPU implementer") or platform.machine(),
        "cpuFlags": _digest(" ".join(sorted(flags))),
        "cpuVectors": ", ".join(name for name in VECTORS if name in flags),
        "virtualMachine": "yes" if "hypervisor" in flags else "",
        "cpus": str(os.cpu_count() or ""),
        "cores": _count_cores(root / "proc/cpuinfo"),
        "turbo": _turbo(root / "sys/devices/system/cpu"),
        "cpusUsed": str(threads or ""),
        "cpuLimit": _format_number(cgroup.processor_quota(cgroup.find("cpu", root / "proc/self"))),
        "numaNodes": str(len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or ""),
        "governor": _read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memoryBytes": _format_number(memory.installed(root)),
        "memoryLimitBytes": _format_number(cgroup.memory_limit(cgroup.find("memory", root / "proc/self"))),
        "transparentHugePages": _bracketed_word(_read(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "accelbench": _own_version(),
        "image": environment.get("ACCELBENCH_IMAGE", ""),
    }
    entries |= {
        f"env.{name}": value for name, value in sorted(environment.items()) if name.startswith(ENVIRONMENT_PREFIXES)
    }
    return {name: value[:MAXIMUM_VALUE_CHARACTERS] for name, value in entries.items() if value}


def of_launches(launches: Iterable[Facts]) -> dict[str, str]:
    """Describe the versions and the device that launches reported; different values are joined by ` | `."""
    merged: dict[str, set[str]] = {}
    for facts in launches:
        device = known(facts.device)
        kinds = {
            "version": known(facts.versions) or {},
            "device": (known(facts.device_settings) or {}) | (device.model_dump() if device else {}),
        }
        for kind, values in kinds.items():
            for name, value in values.items():
                merged.setdefault(f"{kind}.{name}", set()).add(str(value))
    return {name: " | ".join(sorted(values))[:MAXIMUM_VALUE_CHARACTERS] for name, values in sorted(merged.items())}


def of_case(case: Case, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Describe the request: precision, seed, and all `parameters` of the workload, including defaults."""
    entries = {"precision": case.measurement.precision, "seed": str(case.measurement.seed)}
    entries |= {f"parameter.{name}": str(value) for name, value in parameters.items()}
    return {name: value[:MAXIMUM_VALUE_CHARACTERS] for name, value in entries.items()}


def of_source(workload: type) -> dict[str, str]:
    """Return the digest of the workload's source file and of the modules it shares; empty without source."""
    try:
        module = sys.modules[workload.__module__]
        return {"workloadSource": _digest("".join(map(inspect.getsource, [module, *_shared_modules(module)])))}
    except (OSError, KeyError, TypeError):
        return {}


def _shared_modules(module: ModuleType) -> list[ModuleType]:
    """Return the private modules in `workloads` that `module` imports, directly or not, sorted by name."""
    modules: dict[str, ModuleType] = {}
    todo = [module]
    while todo:
        for member in vars(todo.pop()).values():
            name = member.__name__ if inspect.ismodule(member) else getattr(member, "__module__", None)
            if isinstance(name, str) and name.startswith(f"{workloads.__name__}._") and name not in modules:
                modules[name] = sys.modules[name]
                todo.append(modules[name])
    return [modules[name] for name in sorted(modules)]


def _digest(text: str) -> str:
    """Return the first 16 hexadecimal digits of the text's SHA-256; empty for an empty text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def _own_version() -> str:
    """Return accelbench's version; empty if it is not installed as a distribution."""
    try:
        return version("accelbench")
    except PackageNotFoundError:
        return ""


def _first_processor(cpuinfo: Path) -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo."""
    lines = (line.partition(":") for line in _read(cpuinfo).split("\n\n", 1)[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def _count_cores(cpuinfo: Path) -> str:
    """Count the physical cores in /proc/cpuinfo; empty if it has no core ids."""
    cores = set()
    for processor in _read(cpuinfo).split("\n\n"):
        lines = (line.partition(":") for line in processor.splitlines())
        fields = {name.strip(): value.strip() for name, _, value in lines}
        if "core id" in fields:
            cores.add((fields.get("physical id", ""), fields["core id"]))
    return str(len(cores) or "")


def _turbo(processors: Path) -> str:
    """Return `on` if processors may exceed their base clock, else `off`; empty if no driver reports it."""
    if intel := _read(processors / "intel_pstate/no_turbo"):
        return "off" if intel == "1" else "on"
    return {"0": "off", "1": "on"}.get(_read(processors / "cpufreq/boost"), "")


def _bracketed_word(text: str) -> str:
    """Return the selected setting: `madvise` for `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0]


def _format_number(value: float | None) -> str:
    """Format an integer, or a fraction without trailing zeros; empty for None."""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _read(path: Path) -> str:
    """Return the file's content without surrounding space; empty if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
