"""Copy a tensor that a program returned to NumPy, or raise an error that names its kind if it has no plain numbers."""

from typing import Any

import numpy as np
import torch

from accelbench.catalogue.numbers import NotNumbersError, to_numbers
from accelbench.workload import Array

SUBCLASSES = {
    "DTensor": ("a distributed tensor", "return full_tensor()"),
    "FakeTensor": ("a fake tensor, which has no numbers", "return one that was computed"),
    "FunctionalTensor": ("a functional tensor, which has no numbers", "return one that was computed"),
    "MaskedTensor": ("a masked tensor", "return to_tensor(), with a number for each one that is masked"),
}
"""Kind of a subclass of tensors, and advice on what to return instead, by the name of the class, which may not be
imported."""


def host_array(value: Any) -> Array:
    """Copy a tensor to the host as a NumPy array; floats become float64.

    The result is always a copy, because later calls may change a tensor that the program exports. Raises
    NotNumbersError for a value that is not an array of numbers.
    """
    if isinstance(value, np.ndarray | np.generic):
        array = to_numbers(value)
        return array.astype(np.float64 if np.issubdtype(array.dtype, np.floating) else array.dtype)
    if not isinstance(value, torch.Tensor):
        raise NotNumbersError(f"a {type(value).__name__}", "return a tensor, or an array of NumPy")
    _refuse_special(value)
    dtype = torch.float64 if value.is_floating_point() else value.dtype
    if dtype == torch.complex32:  # NumPy has no such type
        dtype = torch.complex64
    try:
        tensor = value.detach().to("cpu", dtype, copy=True)
        converted: Array = tensor.resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise NotNumbersError(f"a tensor of {value.dtype}, which cannot be converted to NumPy ({error})") from error
    return converted


def _refuse_special(tensor: torch.Tensor) -> None:
    """Raise NotNumbersError, with advice, for a tensor that is not a plain array of numbers."""
    for base_class in type(tensor).__mro__:
        if base_class.__name__ in SUBCLASSES:
            raise NotNumbersError(*SUBCLASSES[base_class.__name__])
    if tensor.is_meta:
        raise NotNumbersError("a tensor on the meta device, which has no numbers", "return one that was computed")
    if tensor.is_nested:
        raise NotNumbersError("a nested tensor", "return its values(), or to_padded_tensor(0)")
    if tensor.is_quantized:
        raise NotNumbersError("a quantised tensor", "return int_repr(), or dequantize()")
    if tensor.is_mkldnn:
        raise NotNumbersError("a tensor in oneDNN's layout", "return to_dense()")
    if tensor.layout != torch.strided:
        raise NotNumbersError("a sparse array", "return its values(), or to_dense()")
