"""Read the outputs that a launch has written, and describe how their names and shapes differ from the right ones."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from accelbench.launch.record import MISMATCH, ParityReading
from accelbench.workload import NamedArrays

MAXIMUM_NAMES = 5
"""Maximum number of names that a message lists."""


def read_outputs(directory: Path, file_name: str = "outputs.npz") -> NamedArrays:
    """Return the arrays that a launch exported to a file in `directory`."""
    with (directory / file_name).open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def describe_layout(outputs: NamedArrays, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Describe how the outputs' names or shapes differ from the right ones; empty if they do not.

    An output that holds no numbers or booleans is described too. `shapes` has the right shapes, by name.
    """
    lacking = shapes.keys() - outputs.keys()
    unexpected = outputs.keys() - shapes.keys()
    if lacking or unexpected:
        sentences = []
        if lacking:
            sentences.append(f"it returns no {_list_names(lacking)}, which the reference has")
        if unexpected:
            sentences.append(f"it returns {_list_names(unexpected)}, which the reference lacks")
        return "; ".join(sentences)
    for name, shape in shapes.items():
        output = np.asarray(outputs[name])
        if output.shape != shape:
            return f"{name} has shape {output.shape}, the reference {shape}"
        if not (np.issubdtype(output.dtype, np.number) or output.dtype == np.bool_):
            return f"{name} holds {output.dtype}, not numbers"
    return ""


def _list_names(names: Iterable[str]) -> str:
    """Join names in alphabetical order, such as `a, b, c, d, e and 3 more`."""
    ordered = sorted(names)
    more = f" and {len(ordered) - MAXIMUM_NAMES} more" if len(ordered) > MAXIMUM_NAMES else ""
    return ", ".join(ordered[:MAXIMUM_NAMES]) + more


def mismatch(units: int, detail: str) -> ParityReading:
    """Return a failed comparison of outputs after `units` units of work; `detail` is the reason of the failure."""
    return ParityReading(units=units, finite=True, worst_ratio=MISMATCH, worst_array="", detail=detail)
