"""Compute NumPy programs in the arithmetic of a precision policy, such as bfloat16 or tf32.

The policy's type is the one in which variants keep their arrays; for tf32, that is float32. A reference is a NumPy
program. Given arrays of `Noisy`, it computes in float64, and every operation changes its result at random by up to one
ulp (unit in the last place) of the policy's type, or rounds it to a type that NumPy lacks. The spread of several such
runs shows what the roundings inside a program do to its outputs.

Parker, "Monte Carlo Arithmetic" (1997); Higham, "Accuracy and Stability of Numerical Algorithms" (2002), chapters 1
to 3, for how roundings add up.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accelbench.api.case import Precision
from accelbench.workload import Array, Arrays

EPSILON: Mapping[Precision, float] = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "tf32": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
}
"""The distance from 1 to the next number of the policy's type; for TF32, of the type of a product's operands."""

SMALLEST: Mapping[Precision, float] = {
    "float64": 2.0**-1022,
    "float32": 2.0**-126,
    "tf32": 2.0**-126,
    "bfloat16": 2.0**-126,
    "float16": 2.0**-23,
}
"""The smallest normal number of the type, because smaller ones may be flushed to zero. For float16, which is never
flushed, twice the smallest subnormal number."""

NARROW = frozenset({"bfloat16", "float16"})
"""Policies whose arrays have fewer bits than float32."""
EXACT_OPERATIONS = frozenset(
    {"maximum", "minimum", "fmax", "fmin", "clip", "negative", "positive", "absolute", "fabs", "sign"}
    | {"floor", "ceil", "rint", "trunc", "conjugate", "copysign"}
)
"""Operations whose results need no rounding."""
PRODUCTS = frozenset({"matmul", "dot", "vdot", "inner", "tensordot", "einsum"})
"""Operations whose operands TF32 rounds to ten bits."""
COMPUTING_MODULES = ("numpy.linalg", "numpy.fft")
"""Modules whose functions compute in C."""
PART_ELEMENTS = 2**18
"""Number of elements that get noise at once, so that temporary arrays take little memory."""
TF32_DROPPED_BITS = 13
"""Bits by which a float32's fraction is longer than that of TF32."""
_FRACTION_OF_HASH = 2.0**-52
"""Scale of a hash's upper 53 bits, so that they become a number from 0 to 2."""


def is_float(array: Array) -> bool:
    """Return True for an array of real floating-point numbers."""
    return bool(np.issubdtype(array.dtype, np.floating))


def round_arrays(arrays: Arrays, precision: Precision) -> Arrays:
    """Round the floats of all arrays to `precision`, as programs get them, and return them as float64."""
    return map_arrays(arrays, lambda array: round_array(array, precision))


def root_mean_square(value: Array) -> float:
    """Return the root mean square of the finite elements; 0 without any."""
    finite = value[np.isfinite(value)].astype(np.float64)
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0


def map_arrays(arrays: Arrays, convert: Callable[[Array], Array]) -> Arrays:
    """Return the state and the batches with every array converted by `convert`."""
    return Arrays(
        state={name: convert(array) for name, array in arrays.state.items()},
        batches=tuple({name: convert(array) for name, array in batch.items()} for batch in arrays.batches),
    )


def round_array(array: Array, precision: Precision) -> Array:
    """Round each float to `precision` (half to even), and return it as float64."""
    if np.iscomplexobj(array):
        # Frameworks have no complex types narrower than complex64.
        part_precision: Precision = "float64" if precision == "float64" else "float32"
        return round_array(array.real, part_precision) + 1j * round_array(array.imag, part_precision)
    if not is_float(array) or precision == "float64":
        return array
    with np.errstate(over="ignore"):
        if precision == "float16":
            return array.astype(np.float16).astype(np.float64)
        single = array.astype(np.float32)
        # A bfloat16 has the upper 16 bits of a float32.
        rounded = _drop_bits(single, 16) if precision == "bfloat16" else single
        return rounded.astype(np.float64)


def _drop_bits(single: Array, count: int) -> Array:
    """Round float32 numbers to a shorter fraction, half to even, so that their last `count` bits are zero.

    Infinity and NaN stay unchanged.
    """
    bits = np.ascontiguousarray(single).view(np.uint32)
    # Adding almost half of the last remaining bit, or exactly half if that bit is set, and then cutting off the lower
    # bits rounds half to even.
    last_bit = (bits >> np.uint32(count)) & np.uint32(1)
    almost_half = np.uint32((1 << (count - 1)) - 1)
    kept_bits = np.uint32((0xFFFFFFFF << count) & 0xFFFFFFFF)
    rounded = (bits + almost_half + last_bit) & kept_bits
    result: Array = np.where(np.isfinite(single), rounded, bits).astype(np.uint32).view(np.float32)
    return result.reshape(single.shape)


def round_to_tf32(array: Array) -> Array:
    """Round the operand of a product as TF32 does: ten bits of a float32's fraction remain."""
    return _drop_bits(array.astype(np.float32), TF32_DROPPED_BITS).astype(np.float64)


class Noisy(np.ndarray[Any, Any]):
    """Hold float64 or complex128 numbers; every NumPy operation on them rounds as a precision policy does.

    With a `salt`, results also get noise: they move up or down by up to one ulp. The noise is a hash of the number and
    the salt, so equal numbers stay equal and runs can be repeated.
    """

    precision: Precision = "float32"
    salt: int = 0
    """0: no noise."""
    ulps: float = 1.0
    """Largest noise, in ulp."""

    def __array_finalize__(self, other: Any) -> None:
        """Copy precision and noise from the array that this one is made from; NumPy calls this for every new array."""
        self.precision = getattr(other, "precision", "float32")
        self.salt = getattr(other, "salt", 0)
        self.ulps = getattr(other, "ulps", 1.0)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        """Call `ufunc.method` in float64, then round the result to the policy's type, with noise if there is a salt.

        NumPy calls this in place of each ufunc of which an operand, or an array in `out`, is a `Noisy`.
        """
        # The first Noisy operand determines the policy; all of a program have the same.
        noisy = next(value for value in (*inputs, *(out or ())) if isinstance(value, Noisy))
        operands = [noisy.round_constant(_as_ordinary(value)) for value in inputs]
        if ufunc.__name__ in PRODUCTS and noisy.precision == "tf32":
            operands = [_as_tf32(value) for value in operands]
        if out is not None:
            kwargs["out"] = tuple(_as_ordinary(value) for value in out)
        result = getattr(ufunc, method)(*operands, **kwargs)
        is_exact = ufunc.__name__ in EXACT_OPERATIONS
        if out is None:
            return noisy.rounded(result, exact=is_exact)
        for array in out:
            if isinstance(array, Noisy):
                computed = _as_ordinary(array)  # a view: writing to it changes `array`
                computed[...] = noisy.rounded(computed.copy(), exact=is_exact)
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        """Call a function of NumPy and round its result; NumPy calls this for functions that are no ufuncs."""
        if function.__name__ in PRODUCTS:  # written in C: no ufunc is called inside
            operands = [_as_ordinary(value) for value in arguments]
            if self.precision == "tf32":
                operands = [_as_tf32(value) for value in operands]
            keywords = {name: _as_ordinary(value) for name, value in keywords.items()}
            return self.rounded(function(*operands, **keywords), exact=False)
        # Functions written in C, such as an FFT, compute without noise inside, so their results get it. Other functions
        # call ufuncs, which have given noise already, or only rearrange numbers.
        is_exact = not str(getattr(function, "__module__", "")).startswith(COMPUTING_MODULES)
        return self.rounded(super().__array_function__(function, types, arguments, keywords), exact=is_exact)

    def round_constant(self, operand: Any) -> Any:
        """Return an operand, rounded if it is a Python float, as JAX rounds constants to the type of the array.

        Runs with noise leave constants unchanged, as PyTorch does, so both ways are among the runs. Nothing else is
        rounded here, and nothing at all unless the policy's type is narrow.
        """
        if isinstance(operand, float) and self.precision in NARROW and not self.salt:
            return float(round_array(np.array(operand), self.precision))
        return operand

    def rounded(self, result: Any, *, exact: bool) -> Any:
        """Return the result of an operation as a `Noisy` with this array's policy, rounded and with noise.

        There is no noise without a salt, or if the result is `exact`. Tuples and lists are rounded item by item; values
        that are no floating-point or complex numbers are returned unchanged.
        """
        if isinstance(result, tuple):
            parts = [self.rounded(part, exact=exact) for part in result]
            return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
        if isinstance(result, list):
            return [self.rounded(part, exact=exact) for part in result]
        if not isinstance(result, np.ndarray | np.inexact):
            return result
        array = _as_ordinary(np.asarray(result))
        if array.dtype.kind not in "fc":
            return result
        array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False)
        if (exact or not self.salt) and self.precision not in NARROW:
            return _view(array, self)
        rounded = np.empty_like(array, order="C")
        source, target = array.reshape(-1), rounded.reshape(-1)
        for start in range(0, array.size, PART_ELEMENTS):
            part = slice(start, start + PART_ELEMENTS)
            target[part] = self._round(source[part], exact=exact)
        return _view(rounded, self)

    def _round(self, array: Array, *, exact: bool) -> Array:
        """Return results of an operation with noise, unless they are exact, and rounded if the policy's type is narrow.

        A salt of 0 stands for no noise.
        """
        if self.salt and not exact:
            # A number that the policy's type can hold was probably not rounded, so it gets no noise.
            with_noise = add_noise(array, self.salt, self.ulps * EPSILON[self.precision])
            array = np.where(_needs_rounding(array, self.precision), with_noise, array)
        return round_array(array, self.precision) if self.precision in NARROW else array


def _view(array: Array, like: Noisy) -> Noisy:
    """Return a view of the array as a `Noisy` with the precision and noise of `like`."""
    noisy = array.view(Noisy)
    noisy.precision, noisy.salt, noisy.ulps = like.precision, like.salt, like.ulps
    return noisy


def _as_ordinary(value: Any) -> Any:
    """Return a view of a `Noisy` as an ordinary array, also inside a list or a tuple; other values unchanged."""
    if isinstance(value, Noisy):
        return value.view(np.ndarray)
    is_named_tuple = hasattr(value, "_fields")  # takes its items as separate arguments, so it is returned unchanged
    if isinstance(value, list | tuple) and not is_named_tuple:
        return type(value)(_as_ordinary(item) for item in value)
    return value


def _needs_rounding(array: Array, precision: Precision) -> Array:
    """Return True for each number that the policy's type cannot hold; in float64, for each that is not an integer.

    The numbers are float64, which holds all of them, so integers stand for results that needed no rounding.
    """
    rounded = np.rint(array) if precision == "float64" else round_array(array, precision)
    return np.asarray(rounded != array)


def _as_tf32(value: Any) -> Any:
    """Return an operand of a product rounded to TF32 if it is an array of floats; else return it unchanged."""
    return round_to_tf32(value) if isinstance(value, np.ndarray) and is_float(value) else value


def add_noise(array: Array, salt: int, step: float) -> Array:
    """Move each number up or down by up to `step` times its size; a hash of the number and `salt` decides how far."""
    if np.iscomplexobj(array):
        size = np.abs(array)
        real_noise, imaginary_noise = _hashed(array.real, salt), _hashed(array.imag, salt + 1)
        # Each part moves by at most the size / sqrt(2), so that the number moves by at most `step` times its size.
        return np.asarray(array + step * size * (real_noise + 1j * imaginary_noise) / np.sqrt(2))
    return np.asarray(array * (1 + step * _hashed(array, salt)))


def _hashed(array: Array, salt: int) -> Array:
    """Return a number from -1 to 1 for each number of the array: a hash of it and `salt`."""
    bits = np.ascontiguousarray(array, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):  # the multiplications wrap around on purpose (the finaliser of splitmix64)
        mixed = (bits ^ np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    from_minus_one_to_one: Array = (mixed >> np.uint64(11)) * _FRACTION_OF_HASH - 1
    return from_minus_one_to_one.reshape(np.shape(array))


def as_noisy(array: Array, precision: Precision, salt: int, ulps: float = 1.0) -> Array:
    """Return the array as a `Noisy` that shares its numbers; arrays of integers and booleans are returned unchanged."""
    if array.dtype.kind not in "fc":
        return array
    view = np.asarray(array, dtype=np.complex128 if array.dtype.kind == "c" else np.float64).view(Noisy)
    view.precision, view.salt, view.ulps = precision, salt, ulps
    return view
