"""Describe the machines that measured the results of claims. Pure."""

from collections.abc import Iterable, Sequence

from accelbench import figures
from accelbench.api.result import Result
from accelbench.claims.ledger import Hardware
from accelbench.claims.words import device_name
from accelbench.report import machine
from accelbench.report.markdown import escape

HARDWARE_NAMES: dict[Hardware, str] = {"cpu": "a CPU", "gpu": "a GPU", "gpus": "several GPUs", "tpu": "a TPU"}
LIBRARIES = {"flax": "Flax", "optax": "Optax", "orbax": "Orbax"}


def describe(results: Sequence[Result]) -> list[str]:
    """Return paragraphs that describe each machine and each compile target."""
    measured_results = [result for result in results if not result.compiled]
    descriptions = []
    for device in devices(measured_results):
        device_results = [result for result in measured_results if _device_of(result) == device]
        # Results from one machine can describe it differently: take the longest description.
        description = max((machine.describe(result.fingerprint) for result in device_results), key=len)
        descriptions.append(escape(f"{description}{_libraries(device_results)}"))
    paragraphs = ["\n".join(f"- {description}" for description in descriptions)] if descriptions else []
    targets = {str(result.case.accelerator.target) for result in results if result.compiled}
    if targets:
        text = f"Programs were also compiled, without the device, for: {figures.join_names(sorted(targets))}."
        paragraphs.append(escape(text))
    return paragraphs


def _libraries(results: Iterable[Result]) -> str:
    """Return text to append to a machine's description: the libraries' versions, as `, Flax 0.12, Optax 0.2`.

    The text is empty if no version is known.
    """
    versions: dict[str, str] = {}
    for result in results:
        for name, title in LIBRARIES.items():
            version = result.fingerprint.get(f"version.{name}", "")
            if version:  # empty in a result whose launches did not import the library
                versions[title] = version
    # A launch reports `unknown` for a library without a version.
    return "".join(f", {title} {version}" for title, version in versions.items() if version != "unknown")


def devices(results: Iterable[Result]) -> list[str]:
    """Return the names of the measured devices, each once."""
    return list(dict.fromkeys(_device_of(result) for result in results if not result.compiled))


def _device_of(result: Result) -> str:
    """Return the device's name; for a CPU, the model and its last vector extension."""
    if result.case.accelerator.platform != "cpu":
        return device_name(result)
    # Virtual machines can report the same name for models with different vector extensions.
    cpu_model, vectors = result.fingerprint.get("cpu", ""), result.fingerprint.get("cpuVectors", "")
    last_extension = vectors.rpartition(", ")[2]
    return f"{cpu_model} ({last_extension})" if vectors else cpu_model
