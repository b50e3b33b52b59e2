"""Hand an array from one framework to the other by DLPack, and observe what is shared."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    Arrays,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)

if TYPE_CHECKING:
    from numpy.random import Generator

HandOver = Callable[[Any], Any]
"""Function from an array of the other framework to an array of the launch's own framework."""


class Dlpack(Workload):
    """Hand x of (size,) from PyTorch to JAX, or from JAX to PyTorch; launches import both frameworks.

    Row 66 of the claims: to use both is possible, "but it's awkward. You can convert arrays with
    jax.dlpack.to_dlpack() and torch.from_dlpack()". With shared memory, handing over takes as long for a gigabyte as
    for a kilobyte; `asks: time` compares it with a copy through NumPy. `asks: sharing` observes one call each for
    floats, bfloat16, integers and booleans, and from PyTorch also for a transposed matrix, for an address that is no
    multiple of 64, and for a tensor that requires a gradient. Then PyTorch fills its tensor with zeros, which JAX sees
    if the memory is shared. On a GPU, JAX reserves its share of the memory in these launches too.
    """

    name = "dlpack"
    modes = {}
    libraries = {"jax": ("torch",), "pytorch": ("jax",)}
    observes = {
        "memory": "For each call: does the array use the same memory, or is it copied?",
        "types": "For each call, the type of the array that it returned.",
        "zeros": "For each call: are the zeros that PyTorch writes afterwards seen by JAX?",
    }

    class Parameters(WorkloadParameters):
        """Set the size, and which question is asked."""

        size: int = Field(default=2**20, ge=64, le=2**31, multiple_of=2, description="Numbers in x.")
        asks: Literal["time", "sharing"] = Field(
            default="time",
            description="time: handing over x; sharing: is the memory of several kinds of arrays shared?",
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe` for `asks: sharing`, and `steady`, the default, for `asks: time`."""
        return Measure(unit="call", protocol="observe" if parameters.asks == "sharing" else "steady")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw x (size,) between 1 and 2, so that no number is zero as an integer or a boolean."""
        return Arrays(state={}, batches=({"x": rng.uniform(1, 2, parameters.size)},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Return x, which handing over does not change."""
        del parameters, units
        return arrays.batches[0]

    @variant("jax/from-torch")
    def from_torch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call jax.dlpack.from_dlpack with the tensor."""
        import jax

        return _to_jax(parameters, arrays, tools, jax.dlpack.from_dlpack)

    @variant("jax/copied-from-torch")
    def copied_from_torch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call jnp.array with the tensor as an array of NumPy, which copies it."""
        import jax.numpy as jnp

        return _to_jax(parameters, arrays, tools, lambda tensor: jnp.array(tensor.numpy(force=True)))

    @variant("pytorch/from-jax")
    def from_jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call torch.from_dlpack with the array."""
        import torch

        return _to_torch(parameters, arrays, tools, torch.from_dlpack)

    @variant("pytorch/copied-from-jax")
    def copied_from_jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call torch.tensor with the array as an array of NumPy, which copies it."""
        import numpy as np
        import torch

        def hand_over(array: Any) -> Any:
            """Copy the array to a tensor on the same kind of device."""
            return torch.tensor(np.asarray(array), device=array.device.platform.replace("gpu", "cuda"))

        return _to_torch(parameters, arrays, tools, hand_over)

    @variant("pytorch/from-jax-as-published")
    def from_jax_as_published(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call torch.from_dlpack(jax.dlpack.to_dlpack(array)), as published; JAX has removed to_dlpack since.

        With `asks: sharing`, it is observed that each call fails. `asks: time` raises ValueError: nothing can be timed.
        """
        import jax
        import torch

        if parameters.asks == "time":
            raise ValueError("jax.dlpack.to_dlpack was removed from JAX, so nothing can be timed: set asks: sharing")
        return _to_torch(parameters, arrays, tools, lambda array: torch.from_dlpack(jax.dlpack.to_dlpack(array)))


def _to_jax(parameters: Dlpack.Parameters, arrays: Arrays, tools: Tools, hand_over: HandOver) -> Program:
    """Return a program that hands tensors over to JAX, in launches of JAX."""
    import jax
    import torch

    def as_tensor() -> Any:
        """Return x in memory of PyTorch's own, in the launch's precision and on its device."""
        return torch.from_dlpack(tools.put(arrays.batches[0]["x"])).clone()

    if parameters.asks == "time":
        return _timed(as_tensor(), hand_over)
    kinds = [
        as_tensor(),
        as_tensor().to(torch.bfloat16),
        as_tensor().to(torch.int64),
        as_tensor().to(torch.bool),
        as_tensor().reshape(2, -1).T,
        as_tensor()[1:],
        as_tensor().requires_grad_(),
    ]

    def step(state: Any, tensor: Any) -> tuple[Any, str]:
        """Hand the tensor over, fill the tensor with zeros, and describe JAX's array."""
        array = hand_over(tensor)
        is_shared = array.unsafe_buffer_pointer() == tensor.data_ptr()
        dtype = str(array.dtype)
        tensor.zero_()
        jax.block_until_ready(array)
        return state, _describe(shared=is_shared, dtype=dtype, zeros_seen=not bool(array.any()))

    return _observed(tools.put(arrays.batches[0]["x"]), kinds, step)


def _to_torch(parameters: Dlpack.Parameters, arrays: Arrays, tools: Tools, hand_over: HandOver) -> Program:
    """Return a program that hands arrays of JAX over to PyTorch, in launches of PyTorch."""
    import jax
    import jax.numpy as jnp
    import torch

    x = tools.put(arrays.batches[0]["x"])
    if x.device.type == "cpu":
        jax.config.update("jax_platforms", "cpu")  # otherwise JAX takes a GPU's memory, where there is one
    jax.config.update("jax_enable_x64", x.dtype == torch.float64)  # otherwise float64 becomes float32

    def as_array() -> Any:
        """Return x in memory of JAX's own, in the launch's precision and on its device."""
        return jnp.array(jax.dlpack.from_dlpack(x), copy=True)

    if parameters.asks == "time":
        return _timed(as_array(), hand_over)
    kinds = [as_array(), as_array().astype(jnp.bfloat16), as_array().astype(int), as_array().astype(bool)]

    def step(state: Any, array: Any) -> tuple[Any, str]:
        """Hand the array over, fill the tensor with zeros, and describe both."""
        tensor = hand_over(array)
        is_shared = array.unsafe_buffer_pointer() == tensor.data_ptr()
        dtype = str(tensor.dtype).removeprefix("torch.")
        tensor.zero_()
        return state, _describe(shared=is_shared, dtype=dtype, zeros_seen=not bool(array.any()))

    return _observed(x, kinds, step)


def _timed(source: Any, hand_over: HandOver) -> Program:
    """Return a program whose step hands `source` over and returns it."""
    return Program(
        state=(),
        step=lambda state, batch: (state, hand_over(batch["x"])),
        batches=({"x": source},),
        placed=True,
        export=lambda _, x: {"x": x},
    )


def _observed(x: Any, kinds: Sequence[Any], step: Any) -> Program:
    """Return a program that hands over one array of `kinds` in each call; its state x shows the launch's device."""
    return Program(state=x, step=step, batches=kinds, placed=True, observe=_observe)


def _describe(*, shared: bool, dtype: str, zeros_seen: bool) -> str:
    """Return what was observed in a call as one text, which `_observe` splits."""
    return " ".join(("same" if shared else "copied", dtype, "seen" if zeros_seen else "unseen"))


def _observe(outs: Sequence[str | None]) -> Mapping[str, Any]:
    """Return the parts of each call's description; None for a call that failed."""
    parts = [out.split() if out else (None, None, None) for out in outs]
    return dict(zip(("memory", "types", "zeros"), map(list, zip(*parts, strict=True)), strict=True))
