"""Test that outputs of every type that holds numbers can be compared, and that others are refused."""

import pytest

from launch.inside import inside

CONVERTED = """
from accelbench_runner.frameworks.adapter import export_numbers
from accelbench.catalogue.workload_checks import InvalidWorkloadError
adapter, _, _ = prepare("matmul-chain", {use!r}, {{"size": 8, "length": 1}}, precision="float64")

def step():
    pass

def become(values):
    found = {{}}
    for name, value in values.items():
        try:
            array = export_numbers(adapter, step, {{"y": value}})["y"]
            found[name] = list(map(float, array.real.ravel())) if array.size else list(array.shape)
        except InvalidWorkloadError as error:
            found[name] = str(error)
    return found
"""
JAX = """
import jax, ml_dtypes, numpy as np
import jax.numpy as jnp
from jax.experimental import sparse
numbers = {"bool": jnp.array([True]), "empty": jnp.zeros((0, 3)), "scalar": jnp.float32(2), "numpy": np.float32(2)}
for name in ("int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
    numbers[name] = jnp.array([2], name)
for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "bfloat16", "float16", "float32", "float64"):
    numbers[name] = jnp.array([2], name)
for name in ("complex64", "complex128"):
    numbers[name] = jnp.array([2], name)
others = {
    "BCOO": sparse.BCOO.fromdense(jnp.eye(300)),
    "BCSR": sparse.BCSR.fromdense(jnp.eye(300)),
    "key": jax.random.key(0),
    "float0": jax.grad(lambda x: 1.0 * x.sum(), allow_int=True)(jnp.arange(3)),
    "shape": jax.ShapeDtypeStruct((3,), "float32"),
    "text": np.array(["a"]),
    "masked": np.ma.masked_array([1.0], [True]),
}
print(json.dumps([become(numbers), become(others)]))
"""
PYTORCH = """
import numpy as np, torch
x = torch.tensor([2.0], dtype=torch.float32)
numbers = {"empty": torch.zeros(0, 3), "scalar": x[0], "parameter": torch.nn.Parameter(x), "numpy": x.numpy()}
for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
    numbers[name] = torch.tensor([2]).to(getattr(torch, name))
for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16", "float32", "float64"):
    numbers[name] = x.to(getattr(torch, name))
for name in ("complex32", "complex64", "complex128"):
    numbers[name] = x.to(getattr(torch, name))
numbers["conjugate"] = torch.tensor([2 + 1j]).conj()
numbers["negative"] = torch.tensor([1 - 2j]).conj().imag
others = {
    "coo": torch.eye(3).to_sparse(),
    "csr": torch.eye(3).to_sparse_csr(),
    "bsr": torch.eye(4).to_sparse_bsr((2, 2)),
    "nested": torch.nested.nested_tensor([x, x.new_zeros(2)]),
    "jagged": torch.nested.nested_tensor([x, x.new_zeros(2)], layout=torch.jagged),
    "quantised": torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "mkldnn": x.to_mkldnn(),
    "meta": torch.zeros(3, device="meta"),
    "masked": torch.masked.masked_tensor(x, torch.tensor([True])),
    "nibbles": torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "type": type("Layer", (), {"dtype": torch.float32})(),
}
from torch._subclasses import FakeTensorMode
with FakeTensorMode() as mode:
    others["fake"] = torch.zeros(3)
print(json.dumps([become(numbers), become(others)]))
"""
NUMPY = """
import ml_dtypes, numpy as np
import scipy.sparse
numbers = {"scalar": np.float64(2), "empty": np.zeros((0, 3)), "matrix": np.matrix([[2]])}
for name in ("bool", "int8", "uint64", "float16", "longdouble", "complex64", "clongdouble"):
    numbers[name] = np.array([2], name)
for name in ("bfloat16", "float8_e4m3fn", "int4"):
    numbers[name] = np.array([2], getattr(ml_dtypes, name))
others = {
    "sparse": scipy.sparse.eye_array(3).tocsr(),
    "masked": np.ma.masked_array([1.0], [True]),
    "objects": np.array([1.0, None]),
    "texts": np.array(["a", "b"]),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "records": np.zeros(2, [("a", "f4"), ("b", "i4")]),
}
print(json.dumps([become(numbers), become(others)]))
"""
SAID_BY_JAX = {
    "BCOO": "a sparse array; return its values, or todense()",
    "BCSR": "a sparse array; return its values, or todense()",
    "key": "random keys; return jax.random.key_data() of them",
    "float0": "the derivative of integers, which has no numbers (float0); leave it out",
    "shape": "a ShapeDtypeStruct; it has to be an array of numbers",
    "text": "an array of texts (<U1); it has to be an array of numbers",
    "masked": "a masked array; return filled(NUMBER), with a number for each masked element",
}
SAID_BY_PYTORCH = {
    "coo": "a sparse array; return its values(), or to_dense()",
    "csr": "a sparse array; return its values(), or to_dense()",
    "bsr": "a sparse array; return its values(), or to_dense()",
    "nested": "a nested tensor; return its values(), or to_padded_tensor(0)",
    "jagged": "a nested tensor; return its values(), or to_padded_tensor(0)",
    "quantised": "a quantised tensor; return int_repr(), or dequantize()",
    "mkldnn": "a tensor in oneDNN's layout; return to_dense()",
    "meta": "a tensor on the meta device, which has no numbers; return one that was computed",
    "masked": "a masked tensor; return to_tensor(), with a number for each one that is masked",
    "nibbles": "a tensor of torch.float4_e2m1fn_x2, which cannot be converted to NumPy",
    "type": "a Layer; return a tensor, or an array of NumPy",
    "fake": "a fake tensor, which has no numbers; return one that was computed",
}
SAID_BY_NUMPY = {
    "sparse": "a sparse array; return its values, or toarray()",
    "masked": "a masked array; return filled(NUMBER), with a number for each masked element",
    "objects": "an array of objects (object); it has to be an array of numbers",
    "texts": "an array of texts (<U1); it has to be an array of numbers",
    "dates": "an array of dates (datetime64[D]); it has to be an array of numbers",
    "records": "an array of records ([('a', '<f4'), ('b', '<i4')]); it has to be an array of numbers",
}


@pytest.mark.parametrize(
    ("use", "code", "expected_text"),
    [
        pytest.param("jax/jit", JAX, SAID_BY_JAX, marks=pytest.mark.slow),
        pytest.param("pytorch/eager", PYTORCH, SAID_BY_PYTORCH, marks=pytest.mark.slow),
        ("numpy/eager", NUMPY, SAID_BY_NUMPY),
    ],
)
def test_numeric_outputs_are_converted_and_others_are_refused_with_the_remedy(
    use: str, code: str, expected_text: dict[str, str]
) -> None:
    numbers, others = inside(use.partition("/")[0], CONVERTED.format(use=use) + code)
    assert numbers.pop("empty") == [0, 3]
    assert numbers.pop("bool") == [1.0]
    assert set(map(tuple, numbers.values())) == {(2.0,)}
    assert others.keys() == expected_text.keys()
    for name, sentence in expected_text.items():
        assert others[name].startswith(f"program.py, line 24: step() returned {sentence}")
