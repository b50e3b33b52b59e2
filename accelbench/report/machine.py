"""Summarize a fingerprint in a line. Pure."""

from collections.abc import Mapping

from accelbench import frameworks

GIGABYTE = 2**30
"""Bytes of a gibibyte (GiB)."""


def line(fingerprint: Mapping[str, str]) -> str:
    """Return device, processors, memory, kernel and versions, if the fingerprint has them."""
    parts = [_device(fingerprint), _processors(fingerprint)]
    memory = fingerprint.get("memoryLimitBytes") or fingerprint.get("memoryBytes") or ""
    if memory.isdecimal():
        parts.append(f"{float(memory) / GIGABYTE:.0f} GiB")
    if kernel := fingerprint.get("kernel"):
        parts.append(f"Linux {'.'.join(kernel.split('.')[:2])}")
    if python := fingerprint.get("python"):
        parts.append(python.replace("CPython", "Python"))
    versions = ((one.title, fingerprint.get(f"version.{one.package}")) for one in frameworks.every())
    parts += [f"{title} {version}" for title, version in versions if version]
    return ", ".join(part for part in parts if part)


def _device(fingerprint: Mapping[str, str]) -> str:
    name, kind = fingerprint.get("device.name", ""), fingerprint.get("device.platform", "cpu")
    return name if kind != "cpu" else ""


def _processors(fingerprint: Mapping[str, str]) -> str:
    """Return the model with vectors, processors used, cores and virtualization; empty without a model."""
    model, used, installed = (fingerprint.get(key, "") for key in ("cpu", "cpusUsed", "cpus"))
    if not model:
        return ""
    if vectors := fingerprint.get("cpuVectors"):
        model += f" with {vectors}"
    about = [f"{used} of {installed} processors used"] if used and installed else []
    if cores := fingerprint.get("cores"):
        about.append(f"{cores} cores" if cores != "1" else "1 core")
    if fingerprint.get("virtualMachine"):
        about.append("a virtual machine")
    return f"{model} ({', '.join(about)})" if about else model
