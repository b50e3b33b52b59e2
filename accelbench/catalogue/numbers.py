"""Convert results of a user's code to arrays of numbers; an error describes the result and what to return instead."""

from typing import TYPE_CHECKING, Any

from accelbench.workload import Array

if TYPE_CHECKING:
    from numpy import dtype

KINDS = {"O": "objects", "S": "texts", "U": "texts", "M": "dates", "m": "durations", "V": "records"}
"""What an array holds that has no numbers, by its `dtype.kind`."""
SPARSE = {"scipy.sparse": "toarray()", "jax.experimental.sparse": "todense()"}
"""Method that makes an ordinary array of a sparse array, by module. NumPy would copy some number by number."""
NUMERIC_KINDS = "biufc"
"""The `dtype.kind` of booleans, integers, unsigned integers, floats and complex numbers."""


class NotNumbersError(Exception):
    """Report a value that is not an array of numbers; the message ends a sentence: `a sparse array; return its ...`."""

    def __init__(self, kind: str, advice: str = "it has to be an array of numbers") -> None:
        """Create the error; `kind` has an article, such as `a sparse array`."""
        super().__init__(f"{kind}; {advice}")
        self.kind = kind


def to_numbers(value: Any) -> Array:
    """Return the value as a NumPy array of booleans, integers, floats or complex numbers.

    Types that NumPy lacks, such as bfloat16 and int4, become float64 or int64. Floats wider than float64 become
    float64, complex numbers wider than complex128 become complex128.

    Raises NotNumbersError.
    """
    import numpy as np

    if isinstance(value, np.ma.MaskedArray):
        raise NotNumbersError("a masked array", "return filled(NUMBER), with a number for each masked element")
    for module, to_dense in SPARSE.items():
        if any(base_class.__module__.startswith(module) for base_class in type(value).__mro__):
            raise NotNumbersError("a sparse array", f"return its values, or {to_dense}")
    try:
        array = value if isinstance(value, np.ndarray) else np.asarray(_to_host(value))
    except (TypeError, ValueError, RuntimeError) as error:  # such as lists of several lengths
        raise NotNumbersError(f"a {type(value).__name__} that NumPy cannot convert to an array ({error})") from error
    if array.dtype.kind in NUMERIC_KINDS:
        widest = {"f": np.float64, "c": np.complex128}.get(array.dtype.kind)
        is_wider = widest is not None and array.dtype.itemsize > np.dtype(widest).itemsize
        return array.astype(widest) if is_wider else array
    # Types that NumPy lacks have the kind of records, but no named fields.
    may_be_other_number = array.dtype.kind == "V" and array.dtype.names is None
    if may_be_other_number:
        return _to_numpy_type(array)
    raise NotNumbersError(_describe(value, array.dtype))


def _to_host(value: Any) -> Any:
    """Return a PyTorch tensor in a form that NumPy can convert, and any other value as it is.

    Floats become float64, because NumPy has no bfloat16.
    """
    # Recognise a tensor by its attribute, because this module must not import PyTorch.
    if not hasattr(value, "detach"):
        return value
    # PyTorch only marks a tensor as conjugate or negative, and NumPy cannot read such marks: compute the values.
    host_tensor = value.detach().cpu().resolve_conj().resolve_neg()
    return host_tensor.double() if host_tensor.is_floating_point() else host_tensor


def _to_numpy_type(array: Array) -> Array:
    """Convert an array of a number type that NumPy lacks, such as bfloat16 or int4, to float64 or int64.

    Raises NotNumbersError if that is impossible.
    """
    import numpy as np

    is_integer = array.dtype.name.startswith(("int", "uint"))
    try:
        return array.astype(np.int64 if is_integer else np.float64)
    except (TypeError, ValueError) as error:
        raise NotNumbersError(_describe(array, array.dtype)) from error


def _describe(value: Any, dtype: "dtype[Any]") -> str:
    """Describe a value that is not an array of numbers, for an error message; `dtype` is its type in NumPy."""
    import numpy as np

    # What NumPy cannot convert becomes an array of one object, of kind `O`.
    is_array = isinstance(value, np.ndarray) or (hasattr(value, "dtype") and dtype.kind != "O")
    if not is_array:
        return "None" if value is None else f"a {type(value).__name__}"
    return f"an array of {KINDS.get(dtype.kind, 'no numbers')} ({value.dtype})"
