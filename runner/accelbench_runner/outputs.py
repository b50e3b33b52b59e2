"""What programs export, as it is compared."""

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
