"""Measure a linear layer with weights in int8, as torchao and qwix quantise it, and the layer without quantisation."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    Array,
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
)

if TYPE_CHECKING:
    from numpy.random import Generator

LEVELS = 127
"""Largest integer of a symmetric int8."""
ALLOWANCE = 2.0
"""Maximum error, as a multiple of the error of plain rounding: libraries choose other scales."""


class QuantizedLinear(Workload):
    """Compute y = x W, with W in int8 and a scale for each output (`int8-weights`), or x in int8 too (`int8-both`).

    Row 64 of the claims: "INT8, INT4 (TorchAO)" and AQT, whose maintained successor is qwix. The libraries choose
    their scales by themselves, so their results differ from each other as much as from the layer without quantisation.
    A result y is right if its error, relative to the product in float64, is at most twice the error of rounding to 255
    levels; such a y is replaced by this product before the comparison. `asks: error` times nothing, and observes the
    error and the bytes of the weights. The layer is quantised before anything is timed.
    """

    name = "quantized-linear"
    moves_once = True
    modes = {
        "jax": ("jit",),
        "jax_qwix": ("jit",),
        "pytorch": ("eager", "compile"),
        "pytorch_torchao": ("eager", "compile"),
    }
    libraries = {"jax": ("flax.nnx",), "jax_qwix": ("qwix",), "pytorch_torchao": ("torchao.quantization",)}
    extra = "quantization"
    observes = {
        "relativeError": "Error of y relative to the product in float64, to two digits.",
        "weightBytes": "Bytes of the weights and their scales.",
    }

    class Parameters(WorkloadParameters):
        """Set the layer, and choose the scheme and the question."""

        inputs: int = Field(default=1024, ge=8, le=65_536, description="Numbers in a row of x.")
        outputs: int = Field(default=1024, ge=1, le=65_536, description="Numbers in a row of y.")
        batch: int = Field(default=1, ge=1, le=65_536, description="Rows.")
        scheme: Literal["int8-weights", "int8-both"] = Field(
            default="int8-weights",
            description="int8-weights: x keeps its type; int8-both: x is quantised in each step.",
        )
        asks: Literal["time", "error"] = Field(default="time", description="time: the product; error: its error.")

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe` for `asks: error`, and otherwise `steady`, the default."""
        return Measure(protocol="observe" if parameters.asks == "error" else "steady", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw x (batch, inputs) and W (inputs, outputs)."""
        p = parameters
        weights = rng.standard_normal((p.inputs, p.outputs)) / p.inputs**0.5
        return Arrays(state={"x": rng.standard_normal((p.batch, p.inputs))}, batches=({"w": weights},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Compute the product without quantisation."""
        del parameters, units
        return {"y": arrays.state["x"] @ arrays.batches[0]["w"]}

    def canonical(self, parameters: Parameters, arrays: Arrays, outputs: NamedArrays) -> NamedArrays:
        """Replace y by the product in float64 if the error of y is small enough; otherwise leave y unchanged."""
        right = self.reference(parameters, arrays, 1)
        error = relative_error(outputs["y"], right["y"])
        return right if error <= ALLOWANCE * error_of_rounding(parameters, arrays) else outputs

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the product; the weights, a byte each, their scales and x are read, and y is written."""
        p = parameters
        numbers = p.batch * (p.inputs + p.outputs) + p.outputs
        return Cost(
            flops=2.0 * p.batch * p.inputs * p.outputs, bytes=float(p.inputs * p.outputs + numbers * float_bytes)
        )

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use nnx.Linear, without quantisation."""
        return _jax_program(arrays, tools, _jax_layer(parameters, arrays, tools))

    def jax_qwix(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Quantise nnx.Linear with qwix's PtqProvider."""
        import jax.numpy as jnp
        import qwix

        types = {"weight_qtype": jnp.int8} | ({"act_qtype": jnp.int8} if parameters.scheme == "int8-both" else {})
        provider = qwix.PtqProvider([qwix.QuantizationRule(module_path=".*", **types)])
        layer = qwix.quantize_model(_jax_layer(parameters, arrays, tools), provider, tools.put(arrays.state["x"]))
        return _jax_program(arrays, tools, layer)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn.Linear, without quantisation."""
        return _torch_program(arrays, tools, _torch_layer(parameters, arrays, tools))

    def pytorch_torchao(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Quantise torch.nn.Linear with torchao's quantize_; torchao is meant to run under torch.compile."""
        import torch
        from torchao import quantization

        both = parameters.scheme == "int8-both"
        scheme = quantization.Int8DynamicActivationInt8WeightConfig if both else quantization.Int8WeightOnlyConfig
        model = torch.nn.Sequential(_torch_layer(parameters, arrays, tools))  # quantize_ replaces layers of a model
        quantization.quantize_(model, scheme())
        model.requires_grad_(False)  # quantize_ makes new parameters
        return _torch_program(arrays, tools, model)


def relative_error(y: Array, right: Array) -> float:
    """Return the norm of y - right, relative to the norm of `right`."""
    import numpy as np

    return float(np.linalg.norm(y - right) / np.linalg.norm(right))


def error_of_rounding(parameters: QuantizedLinear.Parameters, arrays: Arrays) -> float:
    """Return the relative error of y if W, and x for `int8-both`, are rounded to the nearest of 255 levels.

    Each output of W and each row of x has a scale of its own, by its largest magnitude.
    """
    x, w = arrays.state["x"], arrays.batches[0]["w"]
    rounded_x = _rounded(x, 1) if parameters.scheme == "int8-both" else x
    return relative_error(rounded_x @ _rounded(w, 0), x @ w)


def _rounded(array: Array, axis: int) -> Array:
    """Return the array rounded to int8 and scaled back; each slice along the axis has its own scale."""
    import numpy as np

    scale = np.abs(array).max(axis, keepdims=True) / LEVELS
    rounded: Array = np.rint(array / scale) * scale
    return rounded


def _jax_layer(parameters: QuantizedLinear.Parameters, arrays: Arrays, tools: Tools) -> Any:
    """Return a flax module that contains the linear layer, as qwix requires."""
    from flax import nnx

    weights = tools.put(arrays.batches[0]["w"])

    class Layer(nnx.Module):  # type: ignore[misc]
        """Apply a linear layer."""

        def __init__(self) -> None:
            self.linear = nnx.Linear(
                parameters.inputs, parameters.outputs, use_bias=False, param_dtype=weights.dtype, rngs=nnx.Rngs(0)
            )
            self.linear.kernel.value = weights

        def __call__(self, x: Any) -> Any:
            """Return x W."""
            return self.linear(x)

    return Layer()


def _torch_layer(parameters: QuantizedLinear.Parameters, arrays: Arrays, tools: Tools) -> Any:
    """Return torch.nn.Linear with the weights."""
    import torch

    layer = torch.nn.Linear(parameters.inputs, parameters.outputs, bias=False, device="meta")
    layer.weight = torch.nn.Parameter(tools.put(arrays.batches[0]["w"]).T.contiguous(), requires_grad=False)
    return layer


def _jax_program(arrays: Arrays, tools: Tools, layer: Any) -> Program:
    """Return a program whose batch is the layer's weights."""
    import jax
    from flax import nnx

    graph, weights = nnx.split(layer)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(weights))
    return _program(arrays, tools, lambda x, weights: nnx.merge(graph, weights)(x), weights, size)


def _torch_program(arrays: Arrays, tools: Tools, layer: Any) -> Program:
    """Return a program whose batch is the layer."""
    weights = list(layer.parameters())
    # A quantised tensor of torchao has its integers and scales as inner tensors.
    parts = [getattr(w, name) for w in weights for name in getattr(w, "tensor_data_names", ())] or weights
    size = sum(part.numel() * part.element_size() for part in parts)
    return _program(arrays, tools, lambda x, layer: layer(x), layer, size)


def _program(
    arrays: Arrays,
    tools: Tools,
    apply: Callable[[Any, Any], Any],
    layer: Any,
    size: int,
) -> Program:
    """Return a program whose step is (x, layer) -> (x, y); `size` is that of the layer's weights in bytes."""

    def observe(outs: Sequence[Any]) -> dict[str, Any]:
        """Return the error of the last call that raised no exception, if any, and the bytes of the weights."""
        known = [out for out in outs if out is not None]
        right = arrays.state["x"] @ arrays.batches[0]["w"]
        errors = {"relativeError": f"{relative_error(known[-1], right):.2g}"} if known else {}
        return {**errors, "weightBytes": size}

    return Program(
        state=tools.put(arrays.state["x"]),
        step=lambda x, layer: (x, apply(x, layer)),
        batches=(layer,),
        export=lambda _, y: {"y": y},
        observe=observe,
    )
