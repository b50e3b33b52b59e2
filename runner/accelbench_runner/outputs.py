"""Save the outputs of programs in the form in which they are compared."""

import zipfile
from pathlib import Path
from typing import Any

from accelbench.machine.output import occupy_standard_descriptors
from accelbench.workload import NamedArrays

UNSEEN = "unseen.npz"
"""File with the outputs for unseen inputs, which the program got only after it was timed."""
FORMULA = "formula.npz"
"""File with the outputs of the program in float64."""


def type_name(array: Any) -> str:
    """Return the name of the type of a framework's array, such as `float32` for `torch.float32`."""
    return str(array.dtype).rpartition(".")[2]


def as_real(arrays: NamedArrays) -> NamedArrays:
    """Return the arrays; complex arrays become real, with the two parts along a new last axis of length 2."""
    import numpy as np

    real_arrays = dict(arrays)
    for name, array in arrays.items():
        if np.iscomplexobj(array):
            real_arrays[name] = np.stack([np.real(array), np.imag(array)], axis=-1)
    return real_arrays


def save(path: Path, arrays: NamedArrays) -> None:
    """Write the arrays to a file that `numpy.load` reads.

    Unlike `numpy.savez`, this accepts any string as a name.
    """
    import numpy as np

    # If the program has closed its standard output, the file would get its number, and later prints would go there.
    occupy_standard_descriptors()
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            # The size is unknown when an entry begins; only zip64 allows entries of more than 2 GiB.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
