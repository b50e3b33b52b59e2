"""Summarize a fingerprint in a line. Pure."""

from collections.abc import Iterable, Mapping

from accelbench import frameworks
from accelbench.api.result import Result

BYTES_PER_GIBIBYTE = 2**30
VERSION = "version."
"""Prefix of a fingerprint's entries with versions of packages."""
SHOWN = frozenset(
    {
        "device.platform",
        "device.name",
        "cpu",
        "cpuVectors",
        "cpus",
        "cpusUsed",
        "cores",
        "virtualMachine",
        "memoryBytes",
        "memoryLimitBytes",
        "kernel",
        "python",
    }
)
"""Entries of a fingerprint that a description shows, next to versions."""


def describe(fingerprint: Mapping[str, str]) -> str:
    """Describe the machine in one line: device, CPUs, memory, kernel, and the versions in accelbench's environment."""
    texts = [_device(fingerprint), _cpus(fingerprint)]
    # A container's memory limit replaces the memory of the machine.
    memory = fingerprint.get("memoryLimitBytes") or fingerprint.get("memoryBytes") or ""
    if memory.isdecimal():
        texts.append(f"{float(memory) / BYTES_PER_GIBIBYTE:.0f} GiB")
    if kernel := fingerprint.get("kernel"):
        texts.append(f"Linux {'.'.join(kernel.split('.')[:2])}")
    if python := fingerprint.get("python"):
        texts.append(python.replace("CPython", "Python"))
    texts += _framework_versions(fingerprint, VERSION)
    return ", ".join(filter(None, texts))


def describe_all(fingerprints: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Describe each machine with its software once, in the order of the fingerprints.

    Two fingerprints are of one machine if they agree in each shown entry that both have: a result of PyTorch alone has
    no version of JAX.
    """
    machines: list[dict[str, str]] = []
    for fingerprint in fingerprints:
        entries = {name: text for name, text in fingerprint.items() if name in SHOWN or name.startswith(VERSION)}
        for machine in machines:
            if all(machine.get(name, text) == text for name, text in entries.items()):
                machine.update(entries)
                break
        else:
            machines.append(entries)
    return tuple(filter(None, map(describe, machines)))


def describe_environments(result: Result) -> tuple[str, ...]:
    """Return a line for each variant with an environment of its own: versions, and the digest of its lock."""
    lines = []
    for variant in result.case.variants:
        environment = result.case.environment_of(variant.name)
        if environment is not None and environment.lock_digest:  # one that cannot be used has no lock
            versions = _framework_versions(result.fingerprint, f"variant.{variant.name}.version.")
            texts = [f"Python {environment.python_version}", *versions, f"lock {environment.lock_digest}"]
            lines.append(f"{variant.name} in environment {environment.name}: {', '.join(texts)}")
    return tuple(lines)


def _framework_versions(fingerprint: Mapping[str, str], prefix: str) -> list[str]:
    """Return the title and version of each framework whose version is in the fingerprint.

    The entry of a framework is named by `prefix` and the framework's package, such as `version.jax`.
    """
    versions = ((framework.title, fingerprint.get(f"{prefix}{framework.package}")) for framework in frameworks.every())
    return [f"{title} {version}" for title, version in versions if version]


def _device(fingerprint: Mapping[str, str]) -> str:
    """Return the name of the accelerator; empty without one, because `_cpus` describes the CPU."""
    if fingerprint.get("device.platform", "cpu") == "cpu":
        return ""
    return fingerprint.get("device.name", "")


def _cpus(fingerprint: Mapping[str, str]) -> str:
    """Describe the CPUs: model, vector extensions, how many are used, and whether this is a virtual machine.

    Empty if the model is unknown.
    """
    text = fingerprint.get("cpu", "")
    if not text:
        return ""
    if vectors := fingerprint.get("cpuVectors"):
        text += f" with {vectors}"
    details = []
    used, installed = fingerprint.get("cpusUsed"), fingerprint.get("cpus")
    if used and installed:
        details.append(f"{used} of {installed} processors used")
    if cores := fingerprint.get("cores"):
        details.append(f"{cores} cores" if cores != "1" else "1 core")
    if fingerprint.get("virtualMachine"):
        details.append("a virtual machine")
    return f"{text} ({', '.join(details)})" if details else text
