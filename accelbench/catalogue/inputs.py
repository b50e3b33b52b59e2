"""A workload's data from a seed: the same bits for every variant, every launch and the reference."""

import hashlib
from typing import TYPE_CHECKING, Any

from accelbench.catalogue.workload_checks import returned
from accelbench.workload import Array, Arrays, NamedArrays, Workload

if TYPE_CHECKING:
    from numpy.random import Generator

CHANGE = 0.05
"""By up to this share an array is changed that every seed gives alike: signs and sizes stay what they were.

Zeros become as small a number, the same throughout: what they are multiplied with can be seen then.
"""


def generate(workload: Workload, parameters: Any, seed: int) -> Arrays:
    """State and batches in NumPy, drawn from `seed` alone; raises InvalidWorkloadError where they are none."""
    import numpy as np

    return returned(workload.arrays, Arrays, parameters, np.random.default_rng(seed))


def unseen(workload: Workload, parameters: Any, seen: Arrays, seed: int) -> Arrays:
    """Other numbers in arrays like `seen`, from a seed that no program has been told.

    A workload may draw all its arrays from the seed, or none of them. An array of floats that comes out as it was is
    multiplied by a number, or, where it is zeros, has one added, so that what is symmetric or sorted stays so; integers
    may be labels, and are left alone.
    Raises InvalidWorkloadError, and ValueError where the seed decides about the arrays' names, types or shapes.
    """
    import numpy as np

    other = generate(workload, parameters, seed)
    if layout(other) != layout(seen):
        raise ValueError("another seed gives arrays of other names, types or shapes")
    rng = np.random.default_rng(seed)
    return Arrays(
        state=_changed(other.state, seen.state, rng),
        batches=tuple(_changed(*pair, rng) for pair in zip(other.batches, seen.batches, strict=True)),
    )


def _changed(other: NamedArrays, seen: NamedArrays, rng: "Generator") -> NamedArrays:
    import numpy as np

    def changed(array: Array, before: Array) -> Array:
        array = np.asarray(array)
        if not np.issubdtype(array.dtype, np.inexact) or not np.array_equal(array, before, equal_nan=True):
            return array
        share = CHANGE * rng.uniform(0.2, 1)
        with np.errstate(all="ignore"):
            return np.asarray(array * (1 + share) if array.any() else array + share, dtype=array.dtype)

    return {name: changed(array, seen[name]) for name, array in other.items()}


def layout(arrays: Arrays) -> list[dict[str, tuple[str, tuple[int, ...]]]]:
    """Name, type and shape of every array, the state's before those of each batch."""
    import numpy as np

    return [
        {name: (np.asarray(array).dtype.str, np.shape(array)) for name, array in named.items()}
        for named in (arrays.state, *arrays.batches)
    ]


def digest(arrays: Arrays) -> str:
    """SHA-256 over every array's name, type, shape and bytes, in hexadecimal."""
    import numpy as np

    total = hashlib.sha256()
    for place, named in [("state", arrays.state), *((f"batch {i}", batch) for i, batch in enumerate(arrays.batches))]:
        for name in sorted(named):
            array = np.ascontiguousarray(named[name])
            total.update(f"{place}/{name} {array.dtype.str} {array.shape};".encode())
            total.update(array.tobytes())
    return total.hexdigest()


def working_set(arrays: Arrays, float_bytes: int) -> int:
    """Bytes of state and batches, where a floating-point number takes `float_bytes`; temporaries come on top."""
    import numpy as np

    named = [*arrays.state.values(), *(array for batch in arrays.batches for array in batch.values())]
    return sum(
        array.size * (float_bytes if np.issubdtype(array.dtype, np.floating) else array.itemsize)
        for array in map(np.asarray, named)
    )
