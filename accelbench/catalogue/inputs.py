"""Generate a workload's data from a seed: the same bits for every variant, every launch and the reference."""

import hashlib
from typing import TYPE_CHECKING, Any

from accelbench.catalogue.workload_checks import call_method
from accelbench.workload import Array, Arrays, NamedArrays, Workload

if TYPE_CHECKING:
    from numpy.random import Generator

MAXIMUM_CHANGE = 0.05
"""Maximum relative change of an array that is the same for every seed; signs and magnitudes stay the same.

It is the maximum absolute change of an array of zeros.
"""


def generate(workload: Workload, parameters: Any, seed: int) -> Arrays:
    """Return the workload's state and batches as NumPy arrays drawn from `seed`.

    Raises InvalidWorkloadError if its method `arrays` has a wrong signature or result type.
    """
    import numpy as np

    return call_method(workload.arrays, Arrays, parameters, np.random.default_rng(seed))


def generate_unseen(workload: Workload, parameters: Any, seen: Arrays, seed: int) -> Arrays:
    """Return arrays drawn from `seed`, with the names, types and shapes of `seen` but other values.

    Args:
        workload: The workload whose arrays are drawn.
        parameters: The workload's parameters.
        seen: The arrays that programs have computed with.
        seed: A seed that no program knows.

    Raises:
        InvalidWorkloadError: The workload's `arrays` did not return Arrays.
        ValueError: The names, types or shapes of the arrays depend on the seed.
    """
    import numpy as np

    unseen = generate(workload, parameters, seed)
    if layout(unseen) != layout(seen):
        raise ValueError("another seed gives arrays of other names, types or shapes")
    rng = np.random.default_rng(seed)
    state = _scale_constants(unseen.state, seen.state, rng)
    batches = tuple(
        _scale_constants(unseen_batch, seen_batch, rng)
        for unseen_batch, seen_batch in zip(unseen.batches, seen.batches, strict=True)
    )
    return Arrays(state=state, batches=batches)


def _scale_constants(unseen: NamedArrays, seen: NamedArrays, rng: "Generator") -> NamedArrays:
    """Return `unseen`, in which every array of floats that is the same in `seen` gets other values.

    Such an array does not depend on the seed. All its elements are multiplied by the same random number, so that a
    symmetric or sorted array stays so. If they are all zero, a random number is added. Integers may be labels and stay.
    """
    import numpy as np

    def scale_if_equal(array: Array, seen_array: Array) -> Array:
        """Return other values if the array has floats and equals the seen array, and otherwise the array itself."""
        array = np.asarray(array)
        is_floating = np.issubdtype(array.dtype, np.inexact)
        if not is_floating or not np.array_equal(array, seen_array, equal_nan=True):
            return array
        change = MAXIMUM_CHANGE * rng.uniform(0.2, 1)
        with np.errstate(all="ignore"):
            changed = array * (1 + change) if array.any() else array + change
            return np.asarray(changed, dtype=array.dtype)

    return {name: scale_if_equal(array, seen[name]) for name, array in unseen.items()}


def layout(arrays: Arrays) -> list[dict[str, tuple[str, tuple[int, ...]]]]:
    """Return the type and shape of every array by name, first for the state, then for each batch."""
    import numpy as np

    return [
        {name: (np.asarray(array).dtype.str, np.shape(array)) for name, array in named_arrays.items()}
        for named_arrays in (arrays.state, *arrays.batches)
    ]


def digest(arrays: Arrays) -> str:
    """Return the SHA-256 of every array's name, type, shape and bytes, in hexadecimal."""
    import numpy as np

    sha256 = hashlib.sha256()
    groups = [("state", arrays.state)]
    groups += [(f"batch {index}", batch) for index, batch in enumerate(arrays.batches)]
    for group_name, named_arrays in groups:
        for name in sorted(named_arrays):
            array = np.ascontiguousarray(named_arrays[name])
            sha256.update(f"{group_name}/{name} {array.dtype.str} {array.shape};".encode())
            sha256.update(array.tobytes())
    return sha256.hexdigest()


def working_set(arrays: Arrays, float_bytes: int) -> int:
    """Return the bytes of state and batches, without temporaries.

    A real floating-point number counts `float_bytes`, any other number as many bytes as in its NumPy array.
    """
    import numpy as np

    total_bytes = 0
    for named_arrays in (arrays.state, *arrays.batches):
        for array in map(np.asarray, named_arrays.values()):
            is_real = np.issubdtype(array.dtype, np.floating)
            total_bytes += array.size * (float_bytes if is_real else array.itemsize)
    return total_bytes
