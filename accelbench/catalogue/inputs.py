"""Generate a workload's data from a seed: the same bits for every variant, every launch and the reference."""

import hashlib
from typing import TYPE_CHECKING, Any

from accelbench.catalogue.workload_checks import call_method
from accelbench.workload import Array, Arrays, NamedArrays, Workload

if TYPE_CHECKING:
    from numpy.random import Generator

MAXIMUM_CHANGE = 0.05
"""Maximum relative change of an array that is the same for every seed; signs and magnitudes stay the same.

An array of zeros gets the same small number everywhere, so that it affects the outputs.
"""


def generate(workload: Workload, parameters: Any, seed: int) -> Arrays:
    """Return state and batches in NumPy, drawn from `seed` alone; raises InvalidWorkloadError."""
    import numpy as np

    return call_method(workload.arrays, Arrays, parameters, np.random.default_rng(seed))


def generate_unseen(workload: Workload, parameters: Any, seen: Arrays, seed: int) -> Arrays:
    """Return arrays with the names, types and shapes of `seen` and other numbers, from a seed that no program knows.

    A workload may draw all its arrays from the seed, or none of them. An array of floats that is the same for both
    seeds is multiplied by a number, or, if it is all zeros, has one added, so that symmetric or sorted arrays stay so.
    Integers may be labels and stay unchanged.

    Raises:
        InvalidWorkloadError: `arrays` returned no Arrays.
        ValueError: The arrays' names, types or shapes depend on the seed.
    """
    import numpy as np

    other = generate(workload, parameters, seed)
    if layout(other) != layout(seen):
        raise ValueError("another seed gives arrays of other names, types or shapes")
    rng = np.random.default_rng(seed)
    return Arrays(
        state=_scale_constants(other.state, seen.state, rng),
        batches=tuple(_scale_constants(*pair, rng) for pair in zip(other.batches, seen.batches, strict=True)),
    )


def _scale_constants(other: NamedArrays, seen: NamedArrays, rng: "Generator") -> NamedArrays:
    """Return `other` with every array of floats that equals that of `seen` scaled, or shifted if it is all zeros."""
    import numpy as np

    def scale_if_equal(array: Array, original: Array) -> Array:
        array = np.asarray(array)
        if not np.issubdtype(array.dtype, np.inexact) or not np.array_equal(array, original, equal_nan=True):
            return array
        share = MAXIMUM_CHANGE * rng.uniform(0.2, 1)
        with np.errstate(all="ignore"):
            return np.asarray(array * (1 + share) if array.any() else array + share, dtype=array.dtype)

    return {name: scale_if_equal(array, seen[name]) for name, array in other.items()}


def layout(arrays: Arrays) -> list[dict[str, tuple[str, tuple[int, ...]]]]:
    """Return the name, type and shape of every array: those of the state, then of each batch."""
    import numpy as np

    return [
        {name: (np.asarray(array).dtype.str, np.shape(array)) for name, array in named.items()}
        for named in (arrays.state, *arrays.batches)
    ]


def digest(arrays: Arrays) -> str:
    """Return the SHA-256 of every array's name, type, shape and bytes, in hexadecimal."""
    import numpy as np

    total = hashlib.sha256()
    for place, named in [("state", arrays.state), *((f"batch {i}", batch) for i, batch in enumerate(arrays.batches))]:
        for name in sorted(named):
            array = np.ascontiguousarray(named[name])
            total.update(f"{place}/{name} {array.dtype.str} {array.shape};".encode())
            total.update(array.tobytes())
    return total.hexdigest()


def working_set(arrays: Arrays, float_bytes: int) -> int:
    """Return the bytes of state and batches, without temporaries; a floating-point number takes `float_bytes`."""
    import numpy as np

    named = [*arrays.state.values(), *(array for batch in arrays.batches for array in batch.values())]
    return sum(
        array.size * (float_bytes if np.issubdtype(array.dtype, np.floating) else array.itemsize)
        for array in map(np.asarray, named)
    )
