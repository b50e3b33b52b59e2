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
from accelbench.launch.fact import value_or_none
from accelbench.launch.record import LaunchRecord
from accelbench.machine import cgroup, memory
from accelbench.machine.source import code_of

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
"""Instruction sets that determine how fast a CPU multiplies, by Linux's names."""

ENVIRONMENT_PREFIXES = (
    "XLA_", "JAX_", "TF_XLA_", "TORCH", "PYTORCH_", "TRITON_", "INDUCTOR_", "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_",
    "NVIDIA_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_", "LD_PRELOAD", "PYTHONOPTIMIZE", "LIBTPU_",
)  # fmt: skip
"""Variables that change what frameworks compute, or how fast."""


_VARIANT = "variant"
"""Beginning of the names of entries that belong to a variant."""


def of_host(
    environment: Mapping[str, str] = os.environ, *, root: Path = Path("/"), threads: int | None = None
) -> dict[str, str]:
    """Return the fingerprint's entries about the machine, the container and this Python, without unknown ones.

    `root` is the directory that contains proc and sys; `threads` is how many CPUs a launch may use.
    """
    cpus = _read_cpus(root / "proc/cpuinfo")
    first_cpu = cpus[0]  # without fields if the file cannot be read
    flags = (first_cpu.get("flags") or first_cpu.get("Features") or "").split()  # the fields of x86 and of Arm
    entries = {
        "cpu": first_cpu.get("model name") or first_cpu.get("CPU implementer") or platform.machine(),
        "cpuFlags": _digest(" ".join(sorted(flags))),
        "cpuVectors": ", ".join(name for name in VECTORS if name in flags),
        "virtualMachine": "yes" if "hypervisor" in flags else "",
        "cpus": str(os.cpu_count() or ""),
        "cores": _count_cores(cpus),
        "turbo": _turbo_setting(root / "sys/devices/system/cpu"),
        "cpusUsed": str(threads or ""),
        "cpuLimit": _format_number(cgroup.cpu_quota(cgroup.find("cpu", root / "proc/self"))),
        "numaNodes": str(len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or ""),
        "governor": _read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memoryBytes": _format_number(memory.installed_bytes(root)),
        "memoryLimitBytes": _format_number(cgroup.memory_limit(cgroup.find("memory", root / "proc/self"))),
        "transparentHugePages": _selected_setting(_read(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "accelbench": _accelbench_version(),
        "image": environment.get("ACCELBENCH_IMAGE", ""),
    }
    entries |= {
        f"env.{name}": value for name, value in sorted(environment.items()) if name.startswith(ENVIRONMENT_PREFIXES)
    }
    return {name: value[:MAXIMUM_VALUE_CHARACTERS] for name, value in entries.items() if value}


def of_launches(case: Case, launches: Iterable[LaunchRecord]) -> dict[str, str]:
    """Return the fingerprint's entries about versions, devices and device settings, as launches reported them.

    Versions of a variant in an environment of its own belong to the variant: `variant.NAME.version.jax`. If launches
    report different values of an entry, the values are joined: `1.0 | 1.1`.
    """
    merged: dict[str, set[str]] = {}
    for launch in launches:
        facts = launch.facts
        device = value_or_none(facts.device)
        versions = value_or_none(facts.versions) or {}
        device_values: dict[str, Any] = dict(value_or_none(facts.device_settings) or {})
        if device:
            device_values |= device.model_dump()
        has_own_environment = case.environment_of(launch.variant) is not None
        version_prefix = f"{_VARIANT}.{launch.variant}.version" if has_own_environment else "version"
        for prefix, values in ((version_prefix, versions), ("device", device_values)):
            for name, value in values.items():
                merged.setdefault(f"{prefix}.{name}", set()).add(str(value))
    return {name: " | ".join(sorted(values))[:MAXIMUM_VALUE_CHARACTERS] for name, values in sorted(merged.items())}


def of_environments(case: Case) -> dict[str, str]:
    """Return a fingerprint entry for each variant with an environment of its own: the digest of the lock."""
    environments = ((variant.name, case.environment_of(variant.name)) for variant in case.variants)
    return {
        f"{_VARIANT}.{name}.lock": environment.lock_digest
        for name, environment in environments
        if environment is not None and environment.lock_digest
    }


def of_case(case: Case, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprint's entries about a case: its precision, its seed and all parameters, as text."""
    entries = {"precision": case.measurement.precision, "seed": str(case.measurement.seed)}
    entries |= {f"parameter.{name}": str(value) for name, value in parameters.items()}
    return {name: value[:MAXIMUM_VALUE_CHARACTERS] for name, value in entries.items()}


def of_source(workload: type) -> dict[str, str]:
    """Return the fingerprint's entry about a workload: a digest of its module's code and of the helpers it imports.

    Helpers are the private modules of `accelbench.workloads`. Comments and docstrings do not count. The result is empty
    if the source is not available.
    """
    try:
        module = sys.modules[workload.__module__]
        modules = (module, *_private_modules(module))
        codes = [code_of(inspect.getsource(source_module)) for source_module in modules]
    except (OSError, KeyError, TypeError):
        return {}
    return {"workloadSource": _digest("\n".join(codes))}


def _private_modules(module: ModuleType) -> list[ModuleType]:
    """Return the private modules of `accelbench.workloads` that a module imports, directly or through others."""
    private_prefix = f"{workloads.__name__}._"
    private_modules: dict[str, ModuleType] = {}
    unvisited = [module]
    while unvisited:
        for member in vars(unvisited.pop()).values():
            # The member is a module, or a function or class from one.
            module_name = member.__name__ if inspect.ismodule(member) else getattr(member, "__module__", None)
            if not isinstance(module_name, str) or not module_name.startswith(private_prefix):
                continue
            if module_name not in private_modules:
                private_modules[module_name] = sys.modules[module_name]
                unvisited.append(private_modules[module_name])
    return [private_modules[name] for name in sorted(private_modules)]


def _digest(text: str) -> str:
    """Return a short hash of the text; empty for an empty text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def _accelbench_version() -> str:
    """Return the version of accelbench; empty if accelbench is not installed as a package."""
    try:
        return version("accelbench")
    except PackageNotFoundError:
        return ""


def _read_cpus(cpuinfo: Path) -> list[dict[str, str]]:
    """Return a mapping of fields for each CPU in /proc/cpuinfo; one empty mapping if the file cannot be read."""
    cpus = []
    for paragraph in _read(cpuinfo).split("\n\n"):
        fields = {}
        for line in paragraph.splitlines():
            name, _, value = line.partition(":")
            fields[name.strip()] = value.strip()
        cpus.append(fields)
    return cpus


def _count_cores(cpus: Iterable[Mapping[str, str]]) -> str:
    """Return the number of physical cores as text; empty if the kernel does not list them."""
    # A physical id is a socket's. The sockets of a machine use the same core ids, so a core is identified by both.
    cores = {(fields.get("physical id", ""), fields["core id"]) for fields in cpus if "core id" in fields}
    return str(len(cores) or "")


def _turbo_setting(cpu_directory: Path) -> str:
    """Return `on` if CPUs may exceed their base clock, else `off`; empty if unknown."""
    no_turbo = _read(cpu_directory / "intel_pstate/no_turbo")
    if no_turbo:
        return "off" if no_turbo == "1" else "on"
    boost = _read(cpu_directory / "cpufreq/boost")
    return {"0": "off", "1": "on"}.get(boost, "")


def _selected_setting(text: str) -> str:
    """Return the selected setting of a kernel's file, which is in brackets: `madvise` for `always [madvise] never`."""
    _, _, after_bracket = text.partition("[")
    setting, _, _ = after_bracket.partition("]")
    return setting


def _format_number(value: float | None) -> str:
    """Format a number without trailing zeros; return an empty text for None."""
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _read(path: Path) -> str:
    """Return a file's text without space at its ends; empty if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
