"""Save the outputs of programs in the form in which they are compared."""

import zipfile
from pathlib import Path

from accelbench.workload import NamedArrays

UNSEEN = "unseen.npz"
"""File with the outputs for inputs that the launch had not seen."""


def as_real(arrays: NamedArrays) -> NamedArrays:
    """Return complex arrays as pairs of real numbers along a new last axis, and other arrays unchanged."""
    import numpy as np

    return {
        name: np.stack([np.real(array), np.imag(array)], axis=-1) if np.iscomplexobj(array) else array
        for name, array in arrays.items()
    }


def save(path: Path, arrays: NamedArrays) -> None:
    """Write the arrays to an archive that `numpy.load` reads; names may be any text."""
    import numpy as np

    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
