"""What programs export, as it is compared."""

import zipfile
from pathlib import Path

from accelbench.workload import NamedArrays

UNSEEN = "unseen.npz"
"""The file of what a launch made of inputs that it had not seen."""


def as_real(arrays: NamedArrays) -> NamedArrays:
    """Complex numbers as pairs of real ones along a last axis; everything else as it is."""
    import numpy as np

    return {
        name: np.stack([np.real(array), np.imag(array)], axis=-1) if np.iscomplexobj(array) else array
        for name, array in arrays.items()
    }


def save(path: Path, arrays: NamedArrays) -> None:
    """An archive of them, as `numpy.load` reads it, whatever their names are."""
    import numpy as np

    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
