"""A workload's data from a seed: the same bits for every variant, every launch and the reference."""

import hashlib
from typing import Any

from accelbench.usable import returned
from accelbench.workload import Arrays, Workload


def generate(workload: Workload, parameters: Any, seed: int) -> Arrays:
    """State and batches in NumPy, drawn from `seed` alone; raises InvalidWorkloadError where they are none."""
    import numpy as np

    return returned(workload.arrays, Arrays, parameters, np.random.default_rng(seed))


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
