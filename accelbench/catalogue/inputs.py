"""Generate a workload's data from a seed: the same bits for every variant, every launch and the reference.

Unseen data are drawn from another seed. A program that has computed its results in advance, from the data that it has
seen, gives wrong results for them.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from accelbench.catalogue.workload_checks import InvalidWorkloadError, call_method, location, numbers_by_name, type_of
from accelbench.workload import Array, Arrays, NamedArrays, Workload

if TYPE_CHECKING:
    from numpy.random import Generator

MAXIMUM_CHANGE = 0.05
"""Maximum relative change of an array that is the same for every seed; signs stay the same.

It is the maximum absolute change of an array of zeros.
"""


def generate(workload: Workload, parameters: Any, seed: int) -> Arrays:
    """Return the workload's NumPy arrays drawn from `seed`; raises InvalidWorkloadError."""
    import numpy as np

    # In a copy of the context: if the workload calls `numpy.seterr`, that does not change how accelbench computes.
    arrays = copy_context().run(call_method, workload.arrays, Arrays, parameters, np.random.default_rng(seed))
    if not workload.hand_written:  # made from functions: its `arrays` has converted the values to numbers
        return arrays
    return Arrays(
        state=_numbers(workload.arrays, "state", arrays.state),
        batches=tuple(_numbers(workload.arrays, "a batch", batch) for batch in arrays.batches),
    )


def _numbers(method: Callable[..., Any], part: str, values: object) -> NamedArrays:
    """Return the values, which a workload's method returned, as arrays of numbers by name; raises InvalidWorkloadError.

    `part` describes the values in an error message: `state` or `a batch`.
    """
    if not isinstance(values, Mapping):
        raise InvalidWorkloadError(
            f"{location(method)} returned {type_of(values)} as {part}; it has to be a dictionary of arrays"
        )
    return numbers_by_name(method, values)


def generate_unseen(workload: Workload, parameters: Any, seen: Arrays, seed: int) -> Arrays:
    """Return arrays with other values than `seen`, but the same names, types and shapes.

    Arrays of integers that are the same for every seed keep their values. Raises ValueError if names, types or shapes
    depend on the seed.
    """
    import numpy as np

    unseen = generate(workload, parameters, seed)
    if layout(unseen) != layout(seen):
        raise ValueError("another seed gives arrays of other names, types or shapes")
    # Arrays of floats that are the same for every seed get other values too.
    rng = np.random.default_rng(seed)
    state = _scale_constants(unseen.state, seen.state, rng)
    batches = tuple(
        _scale_constants(unseen_batch, seen_batch, rng)
        for unseen_batch, seen_batch in zip(unseen.batches, seen.batches, strict=True)
    )
    return Arrays(state=state, batches=batches)


def _scale_constants(unseen: NamedArrays, seen: NamedArrays, rng: "Generator") -> NamedArrays:
    """Return `unseen` with slightly changed values for each array that equals the one of that name in `seen`.

    Such an array does not depend on the seed, so a program could have computed with its values in advance.
    """
    import numpy as np

    def scale_if_equal(array: Array, seen_array: Array) -> Array:
        """Return the array, with slightly changed values if it has floats and equals the seen array."""
        array = np.asarray(array)
        has_floats = np.issubdtype(array.dtype, np.inexact)
        if not has_floats:  # integers may be labels
            return array
        depends_on_seed = not np.array_equal(array, seen_array, equal_nan=True)
        if depends_on_seed:
            return array
        # One number for all elements, from 1 % to 5 %, keeps an array symmetric or sorted.
        change = MAXIMUM_CHANGE * rng.uniform(0.2, 1)
        with np.errstate(all="ignore"):  # numbers near the maximum of their type overflow
            changed = array * (1 + change) if array.any() else array + change  # zeros cannot be scaled
            is_whole = array == np.rint(array)
            if not is_whole.all():  # whole numbers among fractions may be structure, such as a leading coefficient
                changed = np.where(is_whole, array, changed)
            return np.asarray(changed, dtype=array.dtype)

    return {name: scale_if_equal(array, seen[name]) for name, array in unseen.items()}


def layout(arrays: Arrays) -> list[dict[str, tuple[str, tuple[int, ...]]]]:
    """Return the type and shape of every array by name, first of the state, then of each batch."""
    import numpy as np

    return [
        {name: (np.asarray(array).dtype.str, np.shape(array)) for name, array in named_arrays.items()}
        for named_arrays in (arrays.state, *arrays.batches)
    ]


def digest(arrays: Arrays) -> str:
    """Return a SHA-256 of the names, types, shapes and bytes of all arrays, in hexadecimal."""
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
    """Return the number of bytes of the state and all batches, without temporary arrays of the program.

    Real floating-point numbers take `float_bytes` each.
    """
    import numpy as np

    total_bytes = 0
    for named_arrays in (arrays.state, *arrays.batches):
        for array in map(np.asarray, named_arrays.values()):
            is_real = np.issubdtype(array.dtype, np.floating)
            total_bytes += array.size * (float_bytes if is_real else array.itemsize)
    return total_bytes
